package query_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"pidb/migrations"
	"pidb/query"
	"pidb/query/fulltext"
)

func TestExpression(t *testing.T) {
	tests := []struct {
		query, want string
		ignored     []string
	}{
		{query: "", want: ""},
		{query: "  \t ", want: ""},
		{query: "foo", want: `"foo"`},
		{query: "foo bar", want: `"foo" AND "bar"`},
		{query: "foo\u3000bar", want: `"foo" AND "bar"`},
		{query: `"a phrase" x`, want: `"a phrase" AND "x"`},
		{query: `x "unbalanced quote`, want: `"x" AND "unbalanced quote"`},
		{query: `"`, want: "", ignored: []string{""}},
		{query: `say"hi there"`, want: `"say"hi" AND "there""`},
		{query: "foo-bar", want: `"foo-bar"`},
		{query: "a::b", want: `"a::b"`},
		{query: "it's", want: `"it's"`},
		{query: "--flag", want: `"--flag"`},
		{query: "-4i", want: `"4i"`},
		{query: "kubectl get pods -n x", want: `"kubectl" AND "get" AND "pods" AND "-n" AND "x"`},
		{query: "foo -bar", want: `"foo" NOT "bar"`},
		{query: `foo -"two words" -xy`, want: `"foo" NOT "two words" OR "xy"`},
		{query: "-foo -bar", want: "", ignored: []string{"-foo", "-bar"}},
		{query: "foo - bar", want: `"foo" AND "bar"`, ignored: []string{"-"}},
		{query: "::", want: "", ignored: []string{"::"}},
		{query: ":: foo", want: `"foo"`, ignored: []string{"::"}},
		{query: "foo -::", want: `"foo"`, ignored: []string{"::"}},
		{query: "a OR b", want: `"a" OR "b"`},
		{query: "a OR b c", want: `"a" OR "b" AND "c"`},
		{query: "a b OR c OR d", want: `"a" AND "b" OR "c" OR "d"`},
		{query: "OR a", want: `"a"`},
		{query: "a OR", want: `"a"`},
		{query: "OR", want: `"OR"`},
		{query: "“a b” c", want: `"a b" AND "c"`},
		{query: "a OR OR", want: `"a" OR "OR"`},
		{query: `a "OR" b`, want: `"a" AND "OR" AND "b"`},
		{query: "a or b", want: `"a" AND "or" AND "b"`},
		{query: "a OR -b", want: `"a" OR "-b"`},
		{query: "a OR :: OR b", want: `"a" OR "b"`, ignored: []string{"::"}},
		{query: ":: OR b c", want: `"b" AND "c"`, ignored: []string{"::"}},
		{query: "x :: OR b", want: `"x" AND "b"`, ignored: []string{"::"}},
		{query: "wor*", want: `"wor" *`},
		{query: `"two wor"*`, want: `"two wor" *`},
		{query: "*", want: "", ignored: []string{"*"}},
		{query: "**bold**", want: `"**bold**"`},
		{query: "f(*x)", want: `"f(*x)"`},
		{query: "修复登录", want: `"修复登录"`},
		{query: "x\x00y \xff", want: "\"x\x00y\"", ignored: []string{"\xff"}},
		{query: "AND NOT NEAR(a, 2)", want: `"AND" AND "NOT" AND "NEAR(a," AND "2)"`},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			got, ignored := query.Expression(test.query)
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
		{"x OR y", "x y z", []string{"x", "y"}},
		{`"a a"`, "a a a", []string{"a a", "a a"}},
		{"session", "parseSessionEntry session_x sessions", []string{"Session", "session"}},
		{"sess*", "parseSessionEntry sessions", []string{"Session", "sessions"}},
		{"parseSessionEntry", "parsesessionentry parse session entry", []string{"parsesessionentry"}},
		{"SessionEntry", "parseSessionEntry", []string{"SessionEntry"}},
		{`"parse session"`, "parseSessionEntry parse Sessions", []string{"parseSession"}},
		{`"look at parse"`, "look at parseSessionEntry", []string{"look at parse"}},
		{`"session entry now"`, "parseSessionEntry now", []string{"SessionEntry now"}},
		{"2026-03-15", "at 2026-03-15T02:08:30.250Z", []string{"2026-03-15"}},
		{"collections::Hash", "std::collections::HashMap", []string{"collections::Hash"}},
		{"oauth2", "OAuth2Token", []string{"OAuth2"}},
		{"c++", "C++17 or c++11", []string{"C++", "c++"}},
		{"c++", "c and C++, c+ c#", []string{"C++"}},
		{"c#", "c# C++", []string{"c#"}},
		{"c", "c# x", []string{"c"}},
		{`"c++ code"`, "C++ code, c code", []string{"C++ code"}},
		{"api", "ＡＰＩ", []string{"ＡＰＩ"}},
	}
	for _, test := range tests {
		if got := query.Marks(test.query, test.text); !slices.Equal(got, test.want) {
			t.Errorf("Marks(%q, %q) = %q, want %q", test.query, test.text, got, test.want)
		}
	}
}

// indexed is a search index of its own.
type indexed struct{ db *sqlx.DB }

func openIndexed(t testing.TB) indexed {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `PRAGMA synchronous = OFF; `+migrations.Index); err != nil {
		t.Fatal(err)
	}
	return indexed{db}
}

// set makes texts, numbered from 1, all that is in the index.
func (x indexed) set(t testing.TB, texts ...string) {
	t.Helper()
	var b fulltext.Builder
	for i, text := range texts {
		b.Begin(int64(i+1), 1, 0, 0, false)
		b.Add(fulltext.Talk, []byte(text))
		b.End()
	}
	x.update(t, func(tx *sqlx.Tx, index *fulltext.Index) error {
		for _, table := range []string{"segment", "block", "list"} {
			if _, err := tx.Exec(`DELETE FROM ` + table); err != nil {
				return err
			}
		}
		return index.Write(t.Context(), b.Build())
	})
}

// find returns the numbers of the texts that a query finds.
func (x indexed) find(t testing.TB, q *fulltext.Query) []int {
	t.Helper()
	var list []int
	x.update(t, func(_ *sqlx.Tx, index *fulltext.Index) error {
		found, err := index.Candidates(t.Context(), q)
		for ok := true; err == nil; {
			var c fulltext.Candidate
			if c, ok, err = found.Next(t.Context()); !ok {
				break
			}
			list = append(list, int(c.Session))
		}
		return err
	})
	slices.Sort(list)
	return list
}

func (x indexed) update(t testing.TB, f func(tx *sqlx.Tx, index *fulltext.Index) error) {
	t.Helper()
	tx, err := x.db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	index, err := fulltext.Open(t.Context(), tx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	if err := f(tx, index); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestLongQuery(t *testing.T) {
	x := openIndexed(t)
	x.set(t, strings.Repeat("word ", 3000)+"end")
	for name, text := range map[string]string{
		"words":  strings.Repeat("word ", 3000),
		"phrase": `"` + strings.Repeat("word ", 3000) + `end"`,
		"either": "end" + strings.Repeat(" OR x", 3000),
		"not":    "end" + strings.Repeat(" -xy", 3000),
		"long":   strings.Repeat("word::", 3000) + "end",
	} {
		t.Run(name, func(t *testing.T) {
			if got := x.find(t, query.IndexQuery(text)); !slices.Equal(got, []int{1}) {
				t.Errorf("found %v", got)
			}
		})
	}
}

// FuzzQuery proves that what a query marks in a text, the index finds, and that a query
// finds itself.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{"", "foo bar", `"a b" -c*`, "x OR y", "a::b", "--flag", "修复 登*", "-4i", `"`, "*", "{a} : b", "a NEAR b", "\x00\xff", "(", "^x", "col:x", "a + b", "é", "parseSessionEntry", "c++ c#", "E0308"} {
		f.Add(q, "foo bar a b c x y 修复登录 é 4i parseSessionEntry C++ \x1b[31mred")
	}
	x := openIndexed(f)
	f.Fuzz(func(t *testing.T, q, text string) {
		_, ignored := query.Expression(q)
		asked := query.IndexQuery(q)
		if len(asked.Needs) == 0 {
			if len(ignored) == 0 && strings.TrimSpace(q) != "" {
				t.Fatalf("nothing is asked for %q", q)
			}
			return
		}
		x.set(t, text, q)
		found := x.find(t, asked)
		if !slices.Contains(found, 1) && query.Wants(q, text) {
			t.Errorf("%q is in %q and not found", q, text)
		}
		if !strings.Contains(q, "-") && (!slices.Contains(found, 2) || !query.Wants(q, q)) {
			t.Errorf("%q does not find itself", q)
		}
	})
}
