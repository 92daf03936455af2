package query

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"pidb/query/fulltext"
)

// token is a word of a query or of a text.
type token struct {
	word       string // folded: lower case, without accents
	start, end int    // byte range in the text
	apart      bool   // one character of a script without spaces
}

// tokens returns all words of a short text.
func tokens(text []byte) []token {
	var list []token
	var t fulltext.Tokenizer
	t.Reset(text)
	for {
		start, end, ok := t.Next()
		if !ok {
			return list
		}
		word := string(t.Word) + string(text[end:end+t.Symbols])
		list = append(list, token{word, start, end + t.Symbols, t.Apart})
	}
}

// term is one thing that a query asks for.
type term struct {
	text   string // as typed, without quotes, minus and star
	words  []token
	prefix bool // the last word may go on
	not    bool // entries with it are left out
	or     bool // an alternative to the term before
}

// field is a filter in a query: role:user.
type field struct {
	name, value string
	not         bool
}

// parsed is a query that was read.
type parsed struct {
	terms   []term
	fields  []field
	ignored []string // terms that hold no word
}

// straight makes quotes that a text program has bent straight again.
var straight = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‟", `"`)

var fieldPattern = regexp.MustCompile(`^(?i:(role|tool|cwd|model|name|session|before|after|since|until|type|is)):("[^"]*"?|[^\s"]+)`)

// parseQuery reads a query. Words and phrases in double quotes are terms; a quote that
// is not closed reaches to the end. A minus before a term excludes it, but for one letter
// or digit alone, a star behind it
// leaves its last word open, OR between two terms asks for either. A field that means
// says is one is a filter. Anything is a query: what could not be an operator where it
// stands is text.
func parseQuery(query string, means func(field) bool) parsed {
	var p parsed
	query = straight.Replace(query)
	var list []term
	or := false
	for {
		query = strings.TrimLeftFunc(query, unicode.IsSpace)
		if query == "" {
			break
		}
		var t term
		if rest, ok := strings.CutPrefix(query, "-"); ok && rest != "" && !or {
			if r, _ := utf8.DecodeRuneInString(rest); r != '-' && !unicode.IsSpace(r) && !isSwitch(rest) {
				t.not = true
				query = rest
			}
		}
		if f, rest, ok := cutField(query, t.not, means); ok && !or {
			p.fields = append(p.fields, f)
			query = rest
			continue
		}
		var typed string
		var quoted bool
		typed, query, quoted = cutTerm(query)
		if typed == "OR" && !quoted && !t.not && !or && (len(list) > 0 || strings.TrimSpace(query) != "") {
			// One at the start or the end stands between nothing.
			or = len(list) > 0 && !list[len(list)-1].not && strings.TrimSpace(query) != ""
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
	p.keep(list)
	return p
}

// isSwitch reports whether what follows a minus is one letter or digit: the -n of a command.
func isSwitch(rest string) bool {
	return asciiWord(rest[0]) && (len(rest) == 1 || unicode.IsSpace(rune(rest[1])))
}

func asciiWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// cutField cuts a field that means says is one from a query.
func cutField(query string, not bool, means func(field) bool) (f field, rest string, ok bool) {
	m := fieldPattern.FindStringSubmatch(query)
	if m == nil {
		return f, query, false
	}
	f = field{strings.ToLower(m[1]), strings.Trim(m[2], `"`), not}
	return f, query[len(m[0]):], f.value != "" && means(f)
}

// cutFields cuts the fields that a query begins with.
func cutFields(query string, means func(field) bool) (fields []field, rest string) {
	for {
		query = strings.TrimLeftFunc(query, unicode.IsSpace)
		text, not := strings.CutPrefix(query, "-")
		f, rest, ok := cutField(text, not, means)
		if !ok {
			return fields, query
		}
		fields, query = append(fields, f), rest
	}
}

// cutTerm cuts a word or a phrase from a query.
func cutTerm(query string) (typed, rest string, quoted bool) {
	if rest, ok := strings.CutPrefix(query, `"`); ok {
		typed, rest, _ = strings.Cut(rest, `"`)
		if after, ok := strings.CutPrefix(rest, "*"); ok {
			typed, rest = typed+"*", after
		}
		return typed, rest, true
	}
	end := strings.IndexFunc(query, unicode.IsSpace)
	if end < 0 {
		end = len(query)
	}
	return query[:end], query[end:], false
}

// keep takes the terms that hold a word.
func (p *parsed) keep(list []term) {
	positive := len(p.fields) > 0
	for _, t := range list {
		positive = positive || !t.not && len(t.words) > 0
	}
	for i, t := range list {
		if len(t.words) == 0 {
			p.ignored = append(p.ignored, t.text)
			// The terms on both sides of it stay alternatives.
			if i+1 < len(list) && !t.or {
				list[i+1].or = false
			}
			continue
		}
		if t.not && !positive {
			// Where all is excluded nothing is asked for; but -4i is a number.
			if c := t.text[0]; c < '0' || c > '9' {
				p.ignored = append(p.ignored, "-"+t.text)
				continue
			}
			t.not = false
		}
		p.terms = append(p.terms, t)
	}
}

// needs returns the terms that are wanted, alternatives together, as their places in the
// list of terms.
func (p *parsed) needs() [][]int {
	var list [][]int
	for i, t := range p.terms {
		switch {
		case t.not:
		case t.or && len(list) > 0:
			list[len(list)-1] = append(list[len(list)-1], i)
		default:
			list = append(list, []int{i})
		}
	}
	return list
}

// ask asks the index for the terms, and returns for each of its needs the terms that it
// is of.
func (p *parsed) ask(q *fulltext.Query) [][]int {
	var needs [][]int
	asked := map[string]bool{}
	for _, need := range p.needs() {
		var choices []fulltext.Choice
		for _, i := range need {
			choices = append(choices, p.terms[i].choice())
		}
		// What is typed twice is asked for once.
		if key := fmt.Sprint(choices); !asked[key] {
			asked[key] = true
			q.Needs = append(q.Needs, choices)
			needs = append(needs, need)
		}
	}
	for i := range p.terms {
		t := &p.terms[i]
		if c := t.choice(); t.not && len(c) == 1 && c[0].Kind == fulltext.Exact && len(t.words) == 1 {
			q.Not = append(q.Not, c[0].Word)
		}
	}
	return needs
}

// choice returns what the index is asked for a term: its words. Whether they follow each
// other is seen in the text.
func (t *term) choice() fulltext.Choice {
	var list fulltext.Choice
	add := func(m fulltext.Match) {
		if !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	for i, w := range t.words {
		alone := i == 0 || !t.words[i-1].apart
		switch {
		case w.apart && i+1 < len(t.words) && t.words[i+1].apart:
			add(fulltext.Match{Word: w.word + t.words[i+1].word})
		case w.apart && !alone:
		case t.prefix && i == len(t.words)-1:
			add(fulltext.Match{Word: w.word, Kind: fulltext.Prefix})
		default:
			m := fulltext.Match{Word: w.word}
			if last := i+1 == len(t.words)-1; i+1 < len(t.words) && !(last && t.prefix) {
				m.Next = t.words[i+1].word
			}
			add(m)
		}
	}
	return list
}

// mark is a place in a text that a query asks for.
type mark struct {
	start, end int
	term       int // which of the terms
}

// maxMarks is how many marks of a text a snippet has use for.
const maxMarks = 4096

// marker finds what a query asks for in a text: it returns places in order, and sets
// found for each term that is there. It returns only the first maxMarks places.
type marker func(text []byte, found []bool) []mark

// termMarker finds terms.
type termMarker struct {
	terms    []term
	starts   map[string][]int // terms by their first word, whole
	prefixes []int            // terms of one open word
}

// markTerms returns the marker of terms.
func markTerms(terms []term) marker {
	m := termMarker{terms: terms, starts: map[string][]int{}}
	for i, t := range terms {
		if len(t.words) == 1 && t.prefix {
			m.prefixes = append(m.prefixes, i)
		} else {
			m.starts[t.words[0].word] = append(m.starts[t.words[0].word], i)
		}
	}
	return m.find
}

// progress is a phrase found up to some word.
type progress struct{ term, words, start int }

// marking is a text that is being marked.
type marking struct {
	marks []mark
	found []bool
	left  int // terms not found yet
}

func (g *marking) add(start, end, term int) {
	if !g.found[term] {
		g.found[term] = true
		g.left--
	}
	if len(g.marks) < maxMarks {
		g.marks = append(g.marks, mark{start, end, term})
	}
}

func (m *termMarker) find(text []byte, found []bool) []mark {
	g := marking{found: found}
	for _, f := range found {
		if !f {
			g.left++
		}
	}
	var open, still []progress
	var inside []insideWord
	var parts []fulltext.Part
	var t fulltext.Tokenizer
	t.Reset(text)
	for len(g.marks) < maxMarks || g.left > 0 {
		start, end, ok := t.Next()
		if !ok {
			break
		}
		symbols := text[end : end+t.Symbols]
		still = m.goOn(&g, still[:0], open, t.Word, symbols, end)
		still = m.begin(&g, still, t.Word, start, end)
		if len(symbols) > 0 {
			still = m.begin(&g, still, append(t.Word, symbols...), start, end+len(symbols))
		} else if !t.Apart {
			parts = fulltext.AppendParts(parts[:0], text[start:end])
			inside = inside[:0]
			// Parts come in the order of their starts: what ends where one begins is known by then.
			for _, part := range parts {
				from := len(still)
				word := t.Word[part.Start:part.End]
				if part.Start == 0 {
					still = m.goOn(&g, still, open, word, nil, start+part.End)
				}
				for _, before := range inside {
					if before.end == part.Start {
						still = m.goOn(&g, still, []progress{before.progress}, word, nil, start+part.End)
					}
				}
				still = m.begin(&g, still, word, start+part.Start, start+part.End)
				if part.End < len(t.Word) {
					for _, p := range still[from:] {
						inside = append(inside, insideWord{p, part.End})
					}
					still = still[:from]
				}
			}
		}
		open, still = still, open
	}
	return g.marks
}

// insideWord is a phrase that is found up to a place inside a word.
type insideWord struct {
	progress
	end int
}

// goOn finds the open phrases that go on with a word, and appends those that are not whole.
func (m *termMarker) goOn(g *marking, still, open []progress, word, symbols []byte, end int) []progress {
	for _, p := range open {
		term := &m.terms[p.term]
		n, ok := term.accepts(p.words, word, symbols)
		if !ok {
			continue
		}
		if p.words++; p.words == len(term.words) {
			g.add(p.start, end+n, p.term)
		} else {
			still = append(still, p)
		}
	}
	return still
}

// begin finds the terms that begin with a word, or a part of one.
func (m *termMarker) begin(g *marking, still []progress, word []byte, start, end int) []progress {
	for _, i := range m.starts[string(word)] {
		if len(m.terms[i].words) == 1 {
			g.add(start, end, i)
		} else {
			still = append(still, progress{i, 1, start})
		}
	}
	for _, i := range m.prefixes {
		if n := len(g.marks); n > 0 && g.marks[n-1].start == start && g.marks[n-1].term == i {
			continue // A part of what is marked.
		}
		if strings.HasPrefix(string(word), m.terms[i].words[0].word) {
			g.add(start, end, i)
		}
	}
	return still
}

// accepts reports whether a word of a text, or the word with the symbols behind it, can
// stand for the i-th word of the term, and how many of the symbols it takes.
func (t *term) accepts(i int, word, symbols []byte) (int, bool) {
	want := t.words[i].word
	if t.prefix && i == len(t.words)-1 {
		return 0, len(word) >= len(want) && string(word[:len(want)]) == want
	}
	if string(word) == want {
		return 0, true
	}
	if n := len(symbols); n > 0 && len(want) == len(word)+n && want[:len(word)] == string(word) && want[len(word):] == string(symbols) {
		return n, true
	}
	return 0, false
}
