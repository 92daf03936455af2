package query

import (
	"strings"

	"pidb/query/fulltext"
)

// plainly reads a query without fields.
func plainly(query string) parsed { return parseQuery(query, func(field) bool { return false }) }

// Expression returns what a query asks for, and the terms that were ignored.
func Expression(query string) (expr string, ignored []string) {
	p := plainly(query)
	quoted := func(t *term) string {
		if t.prefix {
			return `"` + t.text + `" *`
		}
		return `"` + t.text + `"`
	}
	var needs, not []string
	for _, need := range p.needs() {
		var choices []string
		for _, i := range need {
			choices = append(choices, quoted(&p.terms[i]))
		}
		needs = append(needs, strings.Join(choices, " OR "))
	}
	for i := range p.terms {
		if p.terms[i].not {
			not = append(not, quoted(&p.terms[i]))
		}
	}
	expr = strings.Join(needs, " AND ")
	if len(not) > 0 {
		expr += " NOT " + strings.Join(not, " OR ")
	}
	return expr, p.ignored
}

// IndexQuery returns what a query without fields asks the index.
func IndexQuery(query string) *fulltext.Query {
	p := plainly(query)
	q := &fulltext.Query{Fields: fulltext.InTalk | fulltext.InTool}
	p.ask(q)
	return q
}

// Wants reports whether a text is a hit for a query.
func Wants(query, text string) bool {
	p := plainly(query)
	found := make([]bool, len(p.terms))
	markTerms(p.terms)([]byte(text), found)
	return p.wants(found)
}

// SnippetOf returns the snippet of a text for a query.
func SnippetOf(query string, text []byte) Snippet {
	terms := plainly(query).terms
	return makeSnippet(text, markTerms(terms)(text, make([]bool, len(terms))))
}

// Marks returns the texts that a query marks in a text.
func Marks(query, text string) []string {
	terms := plainly(query).terms
	var list []string
	for _, m := range markTerms(terms)([]byte(text), make([]bool, len(terms))) {
		list = append(list, text[m.start:m.end])
	}
	return list
}

// Pattern is what the modes Substring and Regexp look for.
type Pattern struct{ p *pattern }

// NewPattern returns the pattern of a query.
func NewPattern(query string, mode Mode) (Pattern, error) {
	if mode == Substring {
		return Pattern{literalPattern(query)}, nil
	}
	p, err := regexpPattern(query, false)
	return Pattern{p}, err
}

// Match reports whether a text has a match.
func (p Pattern) Match(text string) bool { return p.p.match([]byte(text)) }

// Needs returns what narrows the search.
func (p Pattern) Needs() [][]fulltext.Choice { return p.p.needs }

// CanMatch reports whether a line may hold a match.
func (p Pattern) CanMatch(line []byte) bool { return p.p.canMatch(line) }

// Successor returns the least string greater than all with a prefix.
func Successor(prefix string) string { return successor(prefix) }
