package query

// Token is a word of a text as the search index has it.
type Token = token

// Tokens returns all tokens of a text.
func Tokens(text []byte) []Token { return tokens(text) }

// Word returns the folded word.
func (t token) Word() string { return t.word }

// Expression returns what a query asks FTS5, over columns given as its column filter,
// and the terms that were ignored.
func Expression(query, columns string) (expr string, ignored []string) {
	terms, ignored := parseTerms(query)
	return expression(terms, columns), ignored
}

// SnippetOf returns the snippet of a text for a query.
func SnippetOf(query string, text []byte) Snippet {
	terms, _ := parseTerms(query)
	return makeSnippet(text, markTerms(terms)(text))
}

// Marks returns the texts that a query marks in a text.
func Marks(query, text string) []string {
	terms, _ := parseTerms(query)
	var list []string
	for _, m := range markTerms(terms)([]byte(text)) {
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

// Expression returns what narrows the search.
func (p Pattern) Expression(columns string) string { return p.p.expression(columns) }

// CanMatch reports whether a line may hold a match.
func (p Pattern) CanMatch(line []byte) bool { return p.p.canMatch(line) }

// Successor returns the least string greater than all with a prefix.
func Successor(prefix string) string { return successor(prefix) }
