package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"pidb/query"
	"pidb/query/fulltext"
)

func TestPatternNeeds(t *testing.T) {
	kinds := map[fulltext.Kind]string{fulltext.Exact: "%s", fulltext.Prefix: "%s…", fulltext.Suffix: "…%s", fulltext.Inside: "…%s…"}
	tests := []struct {
		mode        query.Mode
		query, want string
	}{
		{query.Substring, "foo", "…foo…"},
		{query.Substring, "fo", ""},
		{query.Substring, " foo", "foo…"},
		{query.Substring, "foo ", "…foo"},
		{query.Substring, " foo ", "foo"},
		{query.Substring, "foo bar", "…foo & bar…"},
		{query.Substring, "o bar", "bar…"},
		{query.Substring, "foo bar.baz(", "…foo & bar & baz"},
		{query.Substring, "修复", "修复"},
		{query.Substring, "修复登", "修复 & 复登"},
		{query.Substring, "x修y", "修 & y…"},
		{query.Substring, "\u0301foo bar", "…foo & bar…"},
		{query.Substring, " \u0301foo", "foo…"},
		{query.Substring, "::", ""},
		{query.Substring, "\xff foo ", ""},
		{query.Regexp, `foo`, "…foo…"},
		{query.Regexp, `(a| foo )`, ""},
		{query.Regexp, `(bar| foo )`, "…bar… | foo"},
		{query.Regexp, `( foo )+x? bar `, "foo & bar"},
		{query.Regexp, `( foo )*`, ""},
		{query.Regexp, `( foo ){0,2}`, ""},
		{query.Regexp, `( foo ){2}`, "foo & foo"},
		{query.Regexp, `(?i) FOO `, "foo"},
		{query.Regexp, `[(]foo\)`, "foo"},
		{query.Regexp, `(?i)error: foo bar`, "…error & foo & bar…"},
		{query.Substring, "31mfoo bar ", "…31mfoo & bar"},
		{query.Substring, " foo\x1b[31mbar ", "foo & 31mbar"},
	}
	for _, test := range tests {
		p, err := query.NewPattern(test.query, test.mode)
		if err != nil {
			t.Errorf("%q: %v", test.query, err)
			continue
		}
		var needs []string
		for _, need := range p.Needs() {
			var choices []string
			for _, choice := range need {
				var words []string
				for _, m := range choice {
					words = append(words, fmt.Sprintf(kinds[m.Kind], m.Word))
				}
				choices = append(choices, strings.Join(words, " & "))
			}
			needs = append(needs, strings.Join(choices, " | "))
		}
		if got := strings.Join(needs, " & "); got != test.want {
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
	x := openIndexed(t)
	r := rand.New(rand.NewPCG(1, 2))
	const rounds = 400
	narrowed, passed := 0, 0
	for range rounds {
		text := randomText(r, 5+r.IntN(30))
		runes := []rune(text)
		from := r.IntN(len(runes))
		part := string(runes[from : from+1+r.IntN(len(runes)-from)])
		x.set(t, text)
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
			if needs := p.Needs(); needs != nil {
				narrowed++
				if len(x.find(t, &fulltext.Query{Needs: needs, Fields: fulltext.InTalk})) == 0 {
					t.Errorf("%q matches %q, %v does not", q.text, text, needs)
				}
			}
		}
	}
	if narrowed < rounds || passed < rounds {
		t.Errorf("only %d narrowed and %d passed over", narrowed, passed)
	}
}
