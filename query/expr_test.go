package query_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

func TestExpression(t *testing.T) {
	tests := []struct {
		query, want string
		ignored     []string
	}{
		{query: "", want: ""},
		{query: "  \t ", want: ""},
		{query: "foo", want: `{a} : (("foo"))`},
		{query: "foo bar", want: `{a} : (("foo") AND ("bar"))`},
		{query: "foo\u3000bar", want: `{a} : (("foo") AND ("bar"))`},
		{query: `"a phrase" x`, want: `{a} : (("a phrase") AND ("x"))`},
		{query: `x "unbalanced quote`, want: `{a} : (("x") AND ("unbalanced quote"))`},
		{query: `"`, want: "", ignored: []string{""}},
		{query: `say"hi there"`, want: `{a} : (("say""hi") AND ("there"""))`},
		{query: "foo-bar", want: `{a} : (("foo-bar"))`},
		{query: "a::b", want: `{a} : (("a::b"))`},
		{query: "it's", want: `{a} : (("it's"))`},
		{query: "--flag", want: `{a} : (("--flag"))`},
		{query: "-4i", want: `{a} : (("4i"))`},
		{query: "foo -bar", want: `{a} : ((("foo")) NOT ("bar"))`},
		{query: `foo -"two words" -x`, want: `{a} : ((("foo")) NOT ("two words" OR "x"))`},
		{query: "-foo -bar", want: `{a} : (("foo") AND ("bar"))`},
		{query: "foo - bar", want: `{a} : (("foo") AND ("bar"))`, ignored: []string{"-"}},
		{query: "::", want: "", ignored: []string{"::"}},
		{query: ":: foo", want: `{a} : (("foo"))`, ignored: []string{"::"}},
		{query: "foo -::", want: `{a} : (("foo"))`, ignored: []string{"::"}},
		{query: "a OR b", want: `{a} : (("a" OR "b"))`},
		{query: "a OR b c", want: `{a} : (("a" OR "b") AND ("c"))`},
		{query: "a b OR c OR d", want: `{a} : (("a") AND ("b" OR "c" OR "d"))`},
		{query: "OR a", want: `{a} : (("OR") AND ("a"))`},
		{query: "a OR", want: `{a} : (("a") AND ("OR"))`},
		{query: "a OR OR", want: `{a} : (("a" OR "OR"))`},
		{query: `a "OR" b`, want: `{a} : (("a") AND ("OR") AND ("b"))`},
		{query: "a or b", want: `{a} : (("a") AND ("or") AND ("b"))`},
		{query: "a OR -b", want: `{a} : (("a" OR "-b"))`},
		{query: "a OR :: OR b", want: `{a} : (("a" OR "b"))`, ignored: []string{"::"}},
		{query: ":: OR b c", want: `{a} : (("b") AND ("c"))`, ignored: []string{"::"}},
		{query: "x :: OR b", want: `{a} : (("x") AND ("b"))`, ignored: []string{"::"}},
		{query: "wor*", want: `{a} : (("wor" *))`},
		{query: `"two wor"*`, want: `{a} : (("two wor" *))`},
		{query: "*", want: "", ignored: []string{"*"}},
		{query: "**bold**", want: `{a} : (("**bold**"))`},
		{query: "f(*x)", want: `{a} : (("f(*x)"))`},
		{query: "修复登录", want: `{a} : (("修 复 登 录"))`},
		{query: "x\x00y \xff", want: `{a} : (("x y"))`, ignored: []string{"\xff"}},
		{query: "AND NOT NEAR(a, 2)", want: `{a} : (("AND") AND ("NOT") AND ("NEAR(a,") AND ("2)"))`},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			got, ignored := query.Expression(test.query, "{a}")
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if diff := cmp.Diff(test.ignored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarks(t *testing.T) {
	tests := []struct {
		query, text string
		want        []string
	}{
		{"foo", "Foo, foobar; FOO", []string{"Foo", "FOO"}},
		{"foo*", "Foo, foobar", []string{"Foo", "foobar"}},
		{`"a b"`, "a b, a a b; b a", []string{"a b", "a b"}},
		{`"a b"*`, "a bc", []string{"a bc"}},
		{"a-b", "a b", []string{"a b"}},
		{"cafe", "un café, e\u0301 cafe\u0301!", []string{"café", "cafe\u0301"}},
		{"登录", "请修复登录。", []string{"登录"}},
		{"x -y", "x y", []string{"x"}},
		{"x OR y", "x y z", []string{"x", "y"}},
		{`"a a"`, "a a a", []string{"a a", "a a"}},
	}
	for _, test := range tests {
		if got := query.Marks(test.query, test.text); !slices.Equal(got, test.want) {
			t.Errorf("Marks(%q, %q) = %q, want %q", test.query, test.text, got, test.want)
		}
	}
}

// matches returns the rowids of t that an expression finds.
func matches(t testing.TB, db *sql.DB, expr string) []int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT rowid FROM t WHERE t MATCH ? ORDER BY rowid`, expr)
	if err != nil {
		t.Fatalf("MATCH %s: %v", expr, err)
	}
	defer rows.Close()
	var list []int
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		list = append(list, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("MATCH %s: %v", expr, err)
	}
	return list
}

// insertText puts a text into the index as the archive does.
func insertText(t testing.TB, db *sql.DB, id int, text string) {
	t.Helper()
	exec(t, db, `INSERT INTO t (rowid, a) VALUES (?, ?)`, id, string(query.IndexText(nil, []byte(text))))
}

func TestExpressionOfLongQuery(t *testing.T) {
	db := openFTS(t)
	insertText(t, db, 1, strings.Repeat("word ", 3000)+"end")
	for name, text := range map[string]string{
		"words":  strings.Repeat("word ", 3000),
		"phrase": `"` + strings.Repeat("word ", 3000) + `end"`,
		"either": "end" + strings.Repeat(" OR x", 3000),
		"not":    "end" + strings.Repeat(" -x", 3000),
		"long":   strings.Repeat("word::", 3000) + "end",
	} {
		t.Run(name, func(t *testing.T) {
			expr, _ := query.Expression(text, "{a}")
			if got := matches(t, db, expr); !slices.Equal(got, []int{1}) {
				t.Errorf("found %v", got)
			}
		})
	}
}

// FuzzQuery proves that no query is an error of FTS5, and that what is found agrees with
// what is marked.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "foo bar", `"a b" -c*`, "x OR y", "a::b", "--flag", "修复 登*", "-4i", `"`, "*", "{a} : b", "a NEAR b", "\x00\xff", "(", "^x", "col:x", "a + b", "é"} {
		f.Add(q, "foo bar a b c x y 修复登录 é 4i")
	}
	db := openFTS(f)
	f.Fuzz(func(t *testing.T, q, text string) {
		expr, ignored := query.Expression(q, "{a}")
		if expr == "" {
			if len(ignored) == 0 && strings.TrimSpace(q) != "" {
				t.Fatalf("nothing is asked for %q", q)
			}
			return
		}
		exec(t, db, `INSERT INTO t(t) VALUES('delete-all')`)
		insertText(t, db, 1, text)
		insertText(t, db, 2, q)
		found := matches(t, db, expr)
		if slices.Contains(found, 1) && len(query.Marks(q, text)) == 0 {
			t.Errorf("%q finds %q and marks nothing", q, text)
		}
		if !strings.Contains(q, "-") && !slices.Contains(found, 2) {
			t.Errorf("%q does not find itself: %s", q, expr)
		}
	})
}
