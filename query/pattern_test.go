package query_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pidb/query"
)

func TestPatternExpression(t *testing.T) {
	tests := []struct {
		mode        query.Mode
		query, want string
	}{
		{query.Substring, "foo", ""},
		{query.Substring, " foo", `{a} : ("foo" *)`},
		{query.Substring, "foo ", ""},
		{query.Substring, " foo ", `{a} : ("foo")`},
		{query.Substring, "foo bar", `{a} : ("bar" *)`},
		{query.Substring, "foo bar.baz(", `{a} : ("bar.baz")`},
		{query.Substring, "修复", `{a} : ("修 复")`},
		{query.Substring, "x修y", `{a} : ("修 y" *)`},
		{query.Substring, "\u0301foo bar", `{a} : ("bar" *)`},
		{query.Substring, " \u0301foo", `{a} : ("foo" *)`},
		{query.Substring, "::", ""},
		{query.Substring, "\xff foo ", ""},
		{query.Regexp, `foo`, ""},
		{query.Regexp, ` foo `, `{a} : ("foo")`},
		{query.Regexp, `(a| foo )`, ""},
		{query.Regexp, `( foo )+x? bar `, `{a} : ("foo" AND "bar")`},
		{query.Regexp, `( foo )*`, ""},
		{query.Regexp, `( foo ){0,2}`, ""},
		{query.Regexp, `( foo ){2}`, `{a} : ("foo" AND "foo")`},
		{query.Regexp, `(?i) FOO `, `{a} : ("foo")`},
		{query.Regexp, `[(]foo\)`, `{a} : ("foo")`},
		{query.Regexp, `(?i)error: foo bar`, `{a} : ("foo bar" *)`},
		{query.Substring, "31mfoo bar ", `{a} : ("bar")`},
		{query.Substring, "[31mfoo bar ", `{a} : ("bar")`},
		{query.Substring, "; foo ", `{a} : ("foo")`},
		{query.Substring, ";foo ", ""},
		{query.Substring, " foo\x1b[31", `{a} : ("foo")`},
		{query.Substring, " foo\x1b[31mbar ", `{a} : ("foo bar")`},
	}
	for _, test := range tests {
		p, err := query.NewPattern(test.query, test.mode)
		if err != nil {
			t.Errorf("%q: %v", test.query, err)
			continue
		}
		if got := strings.ToLower(p.Expression("{a}")); got != strings.ToLower(test.want) {
			t.Errorf("%q is narrowed by %s, want %s", test.query, got, test.want)
		}
	}
}

func TestBadPattern(t *testing.T) {
	for _, expr := range []string{"(", "[", "a**", `\p{Nope}`, "(?P<n", "a{2,1}", "\xff", `(?<=x)y`} {
		_, err := query.NewPattern(expr, query.Regexp)
		if !errors.Is(err, query.ErrBadPattern) {
			t.Errorf("%q: %v", expr, err)
		} else if strings.Contains(err.Error(), "(?m") {
			t.Errorf("%q: the error tells of flags that nobody typed: %v", expr, err)
		}
	}
}

// alphabet has what is special to words, to JSON and to case.
var alphabet = []rune("\x1b\x1b[[31m;aAbkKsSſ\u212Aéé\u0301\u0308 修复ไทยภ가ー・-_.:;\"\\/\n\t0ıİßẞ\U0001F389\ufffd\u0378𠀀")

func randomText(r *rand.Rand, n int) string {
	var b strings.Builder
	for range n {
		b.WriteRune(alphabet[r.IntN(len(alphabet))])
	}
	return b.String()
}

// TestPatternIsComplete proves that what narrows a search leaves out no text that
// matches, and that no line is passed over that holds one.
func TestPatternIsComplete(t *testing.T) {
	db := openFTS(t)
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 400
	narrowed, passed := 0, 0
	for range rounds {
		exec(t, db, `INSERT INTO t(t) VALUES('delete-all')`)
		text := randomText(r, 5+r.IntN(30))
		runes := []rune(text)
		from := r.IntN(len(runes))
		part := string(runes[from : from+1+r.IntN(len(runes)-from)])
		insertText(t, db, 1, text)
		line, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		var other strings.Builder // the same with other escapes
		for _, r := range string(line) {
			if r > 0xff && r < 0xffff && r != 0xfffd {
				other.WriteString(`\u` + strings.ToLower(string("0123456789abcdef"[r>>12])+string("0123456789abcdef"[r>>8&15])+string("0123456789abcdef"[r>>4&15])+string("0123456789abcdef"[r&15])))
			} else {
				other.WriteString(string(r))
			}
		}
		quoted := regexp.QuoteMeta(part)
		for _, q := range []struct {
			mode query.Mode
			text string
		}{
			{query.Substring, part},
			{query.Regexp, quoted},
			{query.Regexp, "(?i)" + quoted},
			{query.Regexp, "(?i)" + regexp.QuoteMeta(strings.ToUpper(part))},
			{query.Regexp, "(" + quoted + ")+.?"},
			{query.Regexp, quoted + "|x"},
		} {
			p, err := query.NewPattern(q.text, q.mode)
			if err != nil {
				t.Fatal(err)
			}
			if !p.Match(text) {
				continue
			}
			if !p.CanMatch(line) || !p.CanMatch([]byte(other.String())) {
				t.Errorf("%q is not looked for in %s", q.text, line)
			}
			if !p.CanMatch([]byte("{}")) {
				passed++
			}
			if expr := p.Expression("{a}"); expr != "" {
				narrowed++
				if len(matches(t, db, expr)) == 0 {
					t.Errorf("%q matches %q, %s does not", q.text, text, expr)
				}
			}
		}
	}
	if narrowed < rounds || passed < rounds {
		t.Errorf("only %d narrowed and %d passed over", narrowed, passed)
	}
}
