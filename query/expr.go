package query

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// term is one thing that a query asks for.
type term struct {
	text   string // as typed, without quotes, minus and star
	words  []token
	prefix bool // the last word may go on
	not    bool // entries with it are left out
	or     bool // an alternative to the term before
}

// parseTerms reads a query. Words and phrases in double quotes are terms; a quote that
// is not closed reaches to the end. A minus before a term excludes it, a star behind it
// leaves its last word open, OR between two terms asks for either. Anything is a query:
// what could not be an operator where it stands is text. Terms that hold no word are
// given back in ignored.
func parseTerms(query string) (terms []term, ignored []string) {
	var list []term
	or := false
	for {
		query = strings.TrimLeftFunc(query, unicode.IsSpace)
		if query == "" {
			break
		}
		var t term
		typed, quoted := "", false
		if rest, ok := strings.CutPrefix(query, "-"); ok && rest != "" && !or {
			if r, _ := utf8.DecodeRuneInString(rest); r != '-' && !unicode.IsSpace(r) {
				t.not = true
				query = rest
			}
		}
		if rest, ok := strings.CutPrefix(query, `"`); ok {
			quoted = true
			typed, query, _ = strings.Cut(rest, `"`)
			if after, ok := strings.CutPrefix(query, "*"); ok {
				typed, query = typed+"*", after
			}
		} else {
			end := strings.IndexFunc(query, unicode.IsSpace)
			if end < 0 {
				end = len(query)
			}
			typed, query = query[:end], query[end:]
		}
		if typed == "OR" && !quoted && !t.not && !or && len(list) > 0 && !list[len(list)-1].not && strings.TrimSpace(query) != "" {
			or = true
			continue
		}
		t.or, or = or, false
		t.text = typed
		t.words = tokens([]byte(typed))
		if body, ok := strings.CutSuffix(typed, "*"); ok && len(t.words) > 0 && t.words[len(t.words)-1].end == len(body) {
			t.text, t.prefix = body, true
		}
		list = append(list, t)
	}
	positive := false
	for _, t := range list {
		positive = positive || !t.not && len(t.words) > 0
	}
	for i, t := range list {
		if len(t.words) == 0 {
			ignored = append(ignored, t.text)
			// The terms on both sides of it stay alternatives.
			if i+1 < len(list) && !t.or {
				list[i+1].or = false
			}
			continue
		}
		// Where all is excluded nothing is asked for: -4i means the word.
		t.not = t.not && positive
		terms = append(terms, t)
	}
	return terms, ignored
}

// expression returns the terms as an expression of FTS5 over the columns given, "" for
// none.
func expression(terms []term, columns string) string {
	var wanted, excluded []string
	for _, t := range terms {
		phrase := quote(t.text, t.prefix)
		switch {
		case t.not:
			excluded = append(excluded, phrase)
		case t.or && len(wanted) > 0:
			wanted[len(wanted)-1] += " OR " + phrase
		default:
			wanted = append(wanted, phrase)
		}
	}
	if len(wanted) == 0 {
		return ""
	}
	expr := "(" + strings.Join(wanted, ") AND (") + ")"
	if len(excluded) > 0 {
		expr = "(" + expr + ") NOT (" + strings.Join(excluded, " OR ") + ")"
	}
	return columns + " : (" + expr + ")"
}

// quote returns text as a phrase of FTS5.
func quote(text string, prefix bool) string {
	phrase := `"` + strings.ReplaceAll(string(IndexText(nil, []byte(text))), `"`, `""`) + `"`
	if prefix {
		phrase += " *"
	}
	return phrase
}

// mark is a place in a text that a query asks for.
type mark struct {
	start, end int
	term       int // which of the terms
}

// marker finds what a query asks for in a text, in order of place. It gives up after
// so many marks that a snippet has plenty.
type marker func(text []byte) []mark

const maxMarks = 4096

// markTerms returns the marker of the terms that are wanted.
func markTerms(terms []term) marker {
	m := termMarker{starts: map[string][]int{}}
	for _, t := range terms {
		if t.not {
			continue
		}
		if len(t.words) == 1 && t.prefix {
			m.prefixes = append(m.prefixes, len(m.terms))
		} else {
			m.starts[t.words[0].word] = append(m.starts[t.words[0].word], len(m.terms))
		}
		m.terms = append(m.terms, t)
	}
	return m.find
}

type termMarker struct {
	terms    []term
	starts   map[string][]int // terms by their first word, whole
	prefixes []int            // terms of one open word
}

// progress is a phrase found up to some word.
type progress struct{ term, words, start int }

func (m *termMarker) find(text []byte) []mark {
	var marks []mark
	var open, still []progress
	t := tokenizer{text: text}
	for len(marks) < maxMarks {
		start, end, ok := t.next()
		if !ok {
			break
		}
		still = still[:0]
		for _, p := range open {
			term := &m.terms[p.term]
			if !term.accepts(p.words, t.word) {
				continue
			}
			if p.words++; p.words == len(term.words) {
				marks = append(marks, mark{p.start, end, p.term})
			} else {
				still = append(still, p)
			}
		}
		for _, i := range m.starts[string(t.word)] {
			if len(m.terms[i].words) == 1 {
				marks = append(marks, mark{start, end, i})
			} else {
				still = append(still, progress{i, 1, start})
			}
		}
		for _, i := range m.prefixes {
			if m.terms[i].accepts(0, t.word) {
				marks = append(marks, mark{start, end, i})
			}
		}
		open, still = still, open
	}
	return marks
}

// accepts reports whether a word of a text can stand for the i-th word of the term.
func (t *term) accepts(i int, word []byte) bool {
	want := t.words[i].word
	if t.prefix && i == len(t.words)-1 {
		return len(word) >= len(want) && string(word[:len(want)]) == want
	}
	return string(word) == want
}
