package query

import (
	"slices"
	"sync"
	"unicode/utf8"
)

// token is a word of a text as the search index has it.
type token struct {
	word       string // folded: lower case, without accents
	start, end int    // byte range in the text
}

// tokenizer cuts text into tokens exactly as the index does: FTS5's unicode61 with
// remove_diacritics 2, over the output of [IndexText], whose positions are those of the
// text given here.
type tokenizer struct {
	text []byte
	pos  int
	word []byte // of the token read last
}

// next returns the next token. Its word is in t.word, valid until the next call.
func (t *tokenizer) next() (start, end int, ok bool) {
	for t.pos < len(t.text) {
		if c := t.text[t.pos]; c < utf8.RuneSelf {
			if asciiFold[c] != 0 {
				break
			}
			n := 1
			if c == escape {
				n = max(n, controlSequence(t.text[t.pos:]))
			}
			t.pos += n
			continue
		}
		r, size := utf8.DecodeRune(t.text[t.pos:])
		if !(r == utf8.RuneError && size == 1) && isToken(r) {
			break
		}
		t.pos += size
	}
	if t.pos == len(t.text) {
		return 0, 0, false
	}
	start = t.pos
	t.word = t.word[:0]
	for t.pos < len(t.text) {
		if c := t.text[t.pos]; c < utf8.RuneSelf {
			folded := asciiFold[c]
			if folded == 0 {
				break
			}
			t.word = append(t.word, folded)
			t.pos++
			continue
		}
		r, size := utf8.DecodeRune(t.text[t.pos:])
		switch {
		case r == utf8.RuneError && size == 1:
			return start, t.pos, true
		case standsApart(r):
			if t.pos > start {
				return start, t.pos, true
			}
			t.pos += size
			t.word = utf8.AppendRune(t.word, fold(r))
			return start, t.pos, true
		case isToken(r):
			t.word = utf8.AppendRune(t.word, fold(r))
		case !isAccent(r):
			return start, t.pos, true
		}
		t.pos += size
	}
	return start, t.pos, true
}

// tokens returns all tokens of a short text.
func tokens(text []byte) []token {
	var list []token
	t := tokenizer{text: text}
	for {
		start, end, ok := t.next()
		if !ok {
			return list
		}
		list = append(list, token{string(t.word), start, end})
	}
}

// asciiFold holds for each ASCII character of a token its lower case, 0 for others.
var asciiFold = func() (table [utf8.RuneSelf]byte) {
	for c := byte('0'); c <= '9'; c++ {
		table[c] = c
	}
	for c := byte('a'); c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = c, c
	}
	return table
}()

// isToken reports whether r is part of a word.
func isToken(r rune) bool {
	if r >= 0x4e00 && r <= 0x9fff {
		return true
	}
	i, found := slices.BinarySearch(tokenEdges[:], r)
	if found {
		i++
	}
	return i%2 == 1
}

// isAccent reports whether r is a combining mark that a word passes over.
func isAccent(r rune) bool {
	return r >= 0x300 && r <= 0x331 && accents&(1<<(r-0x300)) != 0
}

// fold returns the character that stands for r in a token; 0 for ASCII that is in none.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(asciiFold[r])
	}
	if r >= 0x2e80 && r <= 0xa63f {
		return r
	}
	if folded, ok := foldTable()[r]; ok {
		return folded
	}
	return r
}

var foldTable = sync.OnceValue(func() map[rune]rune {
	from, to := []rune(foldFrom), []rune(foldTo)
	table := make(map[rune]rune, len(from))
	for i, r := range from {
		table[r] = to[i]
	}
	return table
})
