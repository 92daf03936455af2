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
)

// ErrBadPattern is returned for a regular expression that is none.
var ErrBadPattern = errors.New("bad pattern")

// pattern is what the modes Substring and Regexp look for.
type pattern struct {
	match  func(text []byte) bool
	find   marker
	expr   []string // phrases of FTS5 that each text with a match has; none: nothing is known
	needle needle   // each line with a match has it, or a \u escape
}

// literalPattern looks for a text, byte by byte.
func literalPattern(text string) *pattern {
	wanted := []byte(text)
	p := &pattern{
		match: func(b []byte) bool { return bytes.Contains(b, wanted) },
		find: func(b []byte) (marks []mark) {
			for at := 0; len(marks) < maxMarks; {
				i := bytes.Index(b[at:], wanted)
				if i < 0 {
					break
				}
				marks = append(marks, mark{at + i, at + i + len(wanted), 0})
				at += i + len(wanted)
			}
			return marks
		},
	}
	if phrase, ok := wholeWords(text); ok {
		p.expr = append(p.expr, phrase)
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
		find: func(b []byte) (marks []mark) {
			for _, at := range re.FindAllIndex(b, maxMarks) {
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
	for _, l := range required(tree.Simplify(), nil) {
		if phrase, ok := wholeWords(l.text); ok && (!l.anyCase || foldsAlike(l.text)) {
			p.expr = append(p.expr, phrase)
		}
		p.needle.improve(l)
	}
	return p, nil
}

// literal is a text that each match of a regular expression holds.
type literal struct {
	text    string
	anyCase bool
}

// required appends literals that each match of a simplified expression holds. Not all of
// them are found.
func required(re *syntax.Regexp, list []literal) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		return appendLiteral(list, re)
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
			list = appendLiteral(list, re.Sub[i])
			for ; i+1 < len(re.Sub) && re.Sub[i+1].Op == syntax.OpLiteral; i++ {
				next := appendLiteral(nil, re.Sub[i+1])[0]
				last := &list[len(list)-1]
				last.text += next.text
				last.anyCase = last.anyCase || next.anyCase
			}
		}
	}
	return list
}

func appendLiteral(list []literal, re *syntax.Regexp) []literal {
	return append(list, literal{string(re.Rune), re.Flags&syntax.FoldCase != 0})
}

// foldsAlike reports whether the index has one form for all cases of a text.
func foldsAlike(text string) bool {
	for _, r := range text {
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			if fold(other) != fold(r) || isToken(other) != isToken(r) || standsApart(other) != standsApart(r) {
				return false
			}
		}
	}
	return true
}

// wholeWords returns a phrase of FTS5 that is in each text which contains the literal:
// its words but for one at the start or the end that could be a part of a longer one,
// of which the former is left out and the latter stays open.
func wholeWords(literal string) (string, bool) {
	if !utf8.ValidString(literal) {
		return "", false
	}
	// A control sequence that ends behind the literal is no word.
	if at := strings.LastIndexByte(literal, escape); at >= 0 && strings.TrimFunc(literal[at+1:], isOpening) == "" {
		literal = literal[:at+1]
	}
	words := tokens([]byte(literal))
	// Nor is one that began before it.
	tail := len(literal) - len(strings.TrimLeftFunc(literal, isOpening)) + 1
	for len(words) > 0 && words[0].start < tail && !apartAt(literal, words[0].start) {
		// Behind what is not of a sequence the word is whole, if there is a border before it.
		if before := literal[:words[0].start]; strings.ContainsFunc(before, func(r rune) bool { return !isAccent(r) && !isOpening(r) }) {
			break
		}
		words = words[1:]
	}
	if len(words) > 0 && !apartAt(literal, words[0].start) && !strings.ContainsFunc(literal[:words[0].start], func(r rune) bool { return !isAccent(r) }) {
		words = words[1:]
	}
	if len(words) == 0 {
		return "", false
	}
	start, last := words[0].start, words[len(words)-1]
	open := last.end == len(literal) && !apartAt(literal, last.start)
	return quote(literal[start:last.end], open), true
}

// isOpening reports whether r may stand between the escape character and the letter of a
// control sequence.
func isOpening(r rune) bool { return r == '[' || r < utf8.RuneSelf && isParameter(byte(r)) }

func apartAt(text string, at int) bool {
	r, _ := utf8.DecodeRuneInString(text[at:])
	return standsApart(r)
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

// expression returns what narrows the search, over the columns given; "" for nothing.
func (p *pattern) expression(columns string) string {
	if len(p.expr) == 0 {
		return ""
	}
	return columns + " : (" + strings.Join(p.expr, " AND ") + ")"
}
