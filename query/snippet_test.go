package query_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pidb/query"
)

func TestPrintable(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"plain", "plain\ttext\nof lines, naïve 修复 🎉", "plain\ttext\nof lines, naïve 修复 🎉"},
		{"carriage returns", "a\r\nb\rc", "a\nb·c"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor", "\x1b[2Jx\x1b]0;title\x07\x1bc", "x·]0;title··c"},
		{"unfinished colour", "\x1b[31", "·[31"},
		{"C0", "a\x00b\x08c\x7f", "a·b·c·"},
		{"C1", "a\u009b31mb\u0085", "a·31mb·"},
		{"raw C1", "a\x9b31m", "a·31m"},
		{"bidirectional", "a\u202eb\u2066c\u200fd\u061c", "a·b·c·d·"},
		{"separators", "a\u2028b\u2029c\ufeffd", "a·b·c·d"},
		{"tags", "a\U000e0041b", "a·b"},
		{"joiners stay", "👩\u200d💻", "👩\u200d💻"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := query.Printable(test.text); got != test.want {
				t.Errorf("Printable(%q) = %q, want %q", test.text, got, test.want)
			}
		})
	}
}

// marked writes a snippet with its matches in brackets.
func marked(s query.Snippet) string {
	var b strings.Builder
	at := 0
	for _, m := range s.Matches {
		b.WriteString(s.Text[at:m.Start] + "[" + s.Text[m.Start:m.End] + "]")
		at = m.End
	}
	return b.String() + s.Text[at:]
}

func TestSnippet(t *testing.T) {
	filler := strings.Repeat("filler words ", 40)
	tests := []struct{ name, query, text, want string }{
		{"whole", "foo", "a foo b", "a [foo] b"},
		{"lines", "foo bar", "\n\n a\tfoo \r\n\n  bar", "a [foo] [bar]"},
		{"no match", "foo", "nothing here", "nothing here"},
		{"empty", "foo", "", ""},
		{"colour between", "foo", "\x1b[31mfoo\x1b[0m bar", "[foo] bar"},
		{
			"long", "needle", filler + "needle " + filler,
			"…words filler words filler words filler words [needle] filler words filler words filler words filler words filler words filler words filler words filler…",
		},
		{
			"at the end", "needle", filler + "needle",
			"…words filler words filler words filler words filler words filler words filler words filler words filler words filler words filler words filler words [needle]",
		},
		{"both words", "aa bb", "aa " + filler + "bb aa " + filler, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := query.SnippetOf(test.query, []byte(test.text))
			if test.want == "" && test.text != "" {
				if got := marked(s); !strings.Contains(got, "[bb] [aa]") {
					t.Errorf("got %q", got)
				}
				return
			}
			if got := marked(s); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestSnippetOfCJK(t *testing.T) {
	text := strings.Repeat("然后再试一次，", 60) + "修复登录" + strings.Repeat("然后再试一次，", 60)
	s := query.SnippetOf("修复", []byte(text))
	if n := utf8.RuneCountInString(s.Text); n < 70 || n > 82 {
		t.Errorf("%d characters of two columns: %q", n, s.Text)
	}
	if got := marked(s); !strings.Contains(got, "，[修复]登录") {
		t.Errorf("got %q", got)
	}
}

func FuzzSnippet(f *testing.F) {
	f.Add("foo bar", "a foo\x1b[31m bar\r\n\u202e baz")
	f.Add("修*", "登录修复\xff\xfe")
	f.Add("a", strings.Repeat("a \x1b[3", 100))
	f.Fuzz(func(t *testing.T, q, text string) {
		s := query.SnippetOf(q, []byte(text))
		if s.Text != query.Printable(s.Text) || strings.ContainsAny(s.Text, "\n\t\r") || !utf8.ValidString(s.Text) {
			t.Errorf("not safe to print on a line: %q", s.Text)
		}
		if n := utf8.RuneCountInString(s.Text); n > 1000 && utf8.RuneCountInString(text) > 2*n {
			t.Errorf("%d characters", n)
		}
		at := 0
		for _, m := range s.Matches {
			if m.Start < at || m.End <= m.Start || m.End > len(s.Text) || !utf8.ValidString(s.Text[m.Start:m.End]) {
				t.Errorf("bad ranges %v in %q", s.Matches, s.Text)
			}
			at = m.End
		}
	})
}
