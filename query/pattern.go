package query

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"

	"pidb/query/fulltext"
)

// ErrBadPattern is returned for a regular expression that is none.
var ErrBadPattern = errors.New("bad pattern")

// pattern is what the modes Substring and Regexp look for.
type pattern struct {
	match  func(text []byte) bool
	find   marker
	needs  [][]fulltext.Choice // what the words of each text with a match meet; none: nothing is known
	needle needle              // each line with a match has it, or a \u escape
}

// literalPattern looks for a text, byte by byte.
func literalPattern(text string) *pattern {
	wanted := []byte(text)
	p := &pattern{
		match: func(b []byte) bool { return bytes.Contains(b, wanted) },
		find: func(b []byte, found []bool) (marks []mark) {
			for at := 0; len(marks) < maxMarks; {
				i := bytes.Index(b[at:], wanted)
				if i < 0 {
					break
				}
				found[0] = true
				marks = append(marks, mark{at + i, at + i + len(wanted), 0})
				at += i + len(wanted)
			}
			return marks
		},
	}
	if choice := wordsOf(literal{text, false}); choice != nil {
		p.needs = append(p.needs, []fulltext.Choice{choice})
	}
	p.needle.improve(literal{text, false})
	return p
}

// regexpPattern looks for a regular expression in the syntax of RE2. ^ and $ stand for
// the borders of lines.
func regexpPattern(expr string, anyCase bool) (*pattern, error) {
	flags := "(?m)"
	if anyCase {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + expr)
	if err != nil {
		if syntaxErr := new(syntax.Error); errors.As(err, &syntaxErr) {
			return nil, fmt.Errorf("%w: %s: `%s`", ErrBadPattern, syntaxErr.Code, strings.TrimPrefix(syntaxErr.Expr, flags))
		}
		return nil, fmt.Errorf("%w: %w", ErrBadPattern, err)
	}
	p := &pattern{
		match: re.Match,
		find: func(b []byte, found []bool) (marks []mark) {
			for _, at := range re.FindAllIndex(b, maxMarks) {
				found[0] = true
				if at[1] > at[0] {
					marks = append(marks, mark{at[0], at[1], 0})
				}
			}
			return marks
		},
	}
	tree, err := syntax.Parse(flags+expr, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBadPattern, err)
	}
	for _, alternatives := range required(tree.Simplify(), nil) {
		var need []fulltext.Choice
		for _, literals := range alternatives {
			var choice fulltext.Choice
			for _, l := range literals {
				choice = append(choice, wordsOf(l)...)
			}
			if choice == nil {
				need = nil
				break
			}
			need = append(need, choice)
		}
		if need != nil {
			p.needs = append(p.needs, need)
		}
		if len(alternatives) == 1 {
			for _, l := range alternatives[0] {
				p.needle.improve(l)
			}
		}
	}
	return p, nil
}

// literal is a text that each match of a regular expression holds.
type literal struct {
	text    string
	anyCase bool
}

// required appends what each match of a simplified expression holds: of each element all
// literals of one of its alternatives. Not all of it is found.
func required(re *syntax.Regexp, list [][][]literal) [][][]literal {
	switch re.Op {
	case syntax.OpLiteral:
		return append(list, [][]literal{{literalOf(re)}})
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0], list)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0], list)
		}
	case syntax.OpConcat:
		for i := 0; i < len(re.Sub); i++ {
			if re.Sub[i].Op != syntax.OpLiteral {
				list = required(re.Sub[i], list)
				continue
			}
			// What follows each other is one text, in parts by whether case matters.
			l := literalOf(re.Sub[i])
			for ; i+1 < len(re.Sub) && re.Sub[i+1].Op == syntax.OpLiteral; i++ {
				next := literalOf(re.Sub[i+1])
				l.text += next.text
				l.anyCase = l.anyCase || next.anyCase
			}
			list = append(list, [][]literal{{l}})
		}
	case syntax.OpAlternate:
		var alternatives [][]literal
		for _, sub := range re.Sub {
			var literals []literal
			for _, need := range required(sub, nil) {
				if len(need) == 1 {
					literals = append(literals, need[0]...)
				}
			}
			if literals == nil {
				return list
			}
			alternatives = append(alternatives, literals)
		}
		return append(list, alternatives)
	}
	return list
}

func literalOf(re *syntax.Regexp) literal {
	return literal{string(re.Rune), re.Flags&syntax.FoldCase != 0}
}

// foldsAlike reports whether the index has one form for all cases of a text.
func foldsAlike(text string) bool {
	for _, r := range text {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if !fulltext.FoldsAlike(other, r) {
				return false
			}
		}
	}
	return true
}

// leastInside is how many bytes of a word must be known to look for it among all words.
const leastInside = 3

// wordsOf returns what the words of each text meet that holds the literal; nil for
// nothing that narrows a search. A word at its start or its end may be a part of a longer one.
func wordsOf(l literal) fulltext.Choice {
	if !utf8.ValidString(l.text) || l.anyCase && !foldsAlike(l.text) {
		return nil
	}
	return fulltext.Literal(l.text, leastInside)
}

// standsRaw reports whether a character of what can be read in a line stands there as it
// is, unless the line has a \u escape: it has no other escape, does not come between
// values, and does not stand for bytes that are no UTF-8.
func standsRaw(r rune) bool {
	return r > ' ' && r != '"' && r != '\\' && r != '/' && r != utf8.RuneError
}

// canMatch reports whether a line can hold a match, without reading it as JSON.
func (p *pattern) canMatch(line []byte) bool {
	return p.needle.text == nil || p.needle.in(line) || bytes.Contains(line, unicodeEscape)
}

var unicodeEscape = []byte(`\u`)

// needle is a text to be found in the bytes of a line; the zero needle is none.
type needle struct {
	text    []byte // in lower case where case does not matter
	anyCase bool
	probe   int // index of a byte that is rare in text
}

// improve takes a literal instead, or a part of it, if that is longer and stands in lines
// as it is.
func (n *needle) improve(l literal) {
	if !utf8.ValidString(l.text) {
		return
	}
	parts := strings.FieldsFunc(l.text, func(r rune) bool {
		// The cases of letters beyond ASCII differ in length; those of k and s are such too.
		return !standsRaw(r) || l.anyCase && (r >= utf8.RuneSelf || r|0x20 == 'k' || r|0x20 == 's')
	})
	for _, part := range parts {
		if len(part) <= len(n.text) {
			continue
		}
		n.text, n.anyCase, n.probe = []byte(part), l.anyCase, 0
		if !l.anyCase {
			continue
		}
		n.text = bytes.ToLower(n.text)
		for i, c := range n.text {
			// The commonest letters come first.
			const common = "etaoinrslcdupmhgfbyvwxkjqz"
			if strings.IndexByte(common, c) > strings.IndexByte(common, n.text[n.probe]) {
				n.probe = i
			}
		}
	}
}

// in reports whether a line has the needle.
func (n *needle) in(line []byte) bool {
	if !n.anyCase {
		return bytes.Contains(line, n.text)
	}
	lower := n.text[n.probe]
	if upper := lower - 'a' + 'A'; 'a' <= lower && lower <= 'z' && n.around(line, upper) {
		return true
	}
	return n.around(line, lower)
}

// around reports whether a line has the needle with c as its probe.
func (n *needle) around(line []byte, c byte) bool {
	for at := n.probe; at < len(line); at++ {
		i := bytes.IndexByte(line[at:], c)
		if i < 0 {
			return false
		}
		at += i
		start := at - n.probe
		if len(line)-start < len(n.text) {
			return false
		}
		found := true
		for j, want := range n.text {
			if have := line[start+j]; have != want && (have < 'A' || have > 'Z' || have-'A'+'a' != want) {
				found = false
				break
			}
		}
		if found {
			return true
		}
	}
	return false
}
