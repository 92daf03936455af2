package fulltext

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Version changes with the way in which text is cut into words: what another version
// has indexed is to be indexed again.
const Version = 2

// Tokenizer cuts a text into words.
type Tokenizer struct {
	Word    []byte // of the token read last, folded; valid until the next call
	Apart   bool   // the word is one character that stands apart
	Symbols int    // of c++ and c#: the length of what follows the word, else 0

	text []byte
	pos  int
	raw  bool // control sequences are text
}

// Reset makes the tokenizer start with another text.
func (t *Tokenizer) Reset(text []byte) { t.text, t.pos = text, 0 }

// Next reads the next word and returns its place in the text.
func (t *Tokenizer) Next() (start, end int, ok bool) {
	text := t.text
	for t.pos < len(text) {
		if c := text[t.pos]; c < utf8.RuneSelf {
			if asciiFold[c] != 0 {
				break
			}
			n := 1
			if c == escape && !t.raw {
				n = max(n, ControlSequence(text[t.pos:]))
			}
			t.pos += n
			continue
		}
		r, size := utf8.DecodeRune(text[t.pos:])
		if !(r == utf8.RuneError && size == 1) && IsToken(r) {
			break
		}
		t.pos += size
	}
	if t.pos >= len(text) {
		return 0, 0, false
	}
	start = t.pos
	t.Word, t.Apart, t.Symbols = t.Word[:0], false, 0
	ascii := true
	for t.pos < len(text) {
		if c := text[t.pos]; c < utf8.RuneSelf {
			folded := asciiFold[c]
			if folded == 0 {
				break
			}
			t.Word = append(t.Word, folded)
			t.pos++
			continue
		}
		r, size := utf8.DecodeRune(text[t.pos:])
		if r == utf8.RuneError && size == 1 {
			return start, t.pos, true
		}
		if StandsApart(r) {
			if t.pos == start {
				r, size = compose(text[t.pos:])
				t.pos += size
				t.Apart = true
				t.Word = utf8.AppendRune(t.Word, fold(r))
			}
			return start, t.pos, true
		}
		ascii = false
		switch {
		case sharp(r):
			t.Word = append(t.Word, "ss"...)
		case isWord(r):
			t.Word = utf8.AppendRune(t.Word, fold(r))
		case !IsAccent(r):
			return start, t.pos, true
		}
		t.pos += size
	}
	if ascii && t.pos-start <= 2 && t.pos < len(text) {
		t.Symbols = symbols(text[t.pos:])
	}
	return start, t.pos, true
}

// symbols returns the length of the ++ or # that text begins with, if no letter or symbol
// is glued to it: C++17 is a C++.
func symbols(text []byte) int {
	n := 0
	switch {
	case text[0] == '#':
		n = 1
	case len(text) > 1 && text[0] == '+' && text[1] == '+':
		n = 2
	default:
		return 0
	}
	if n < len(text) {
		if c := text[n]; c == '+' || c == '#' || kindOf(c)&(lower|upper) != 0 {
			return 0
		}
	}
	return n
}

// Part is a range of bytes in a word.
type Part struct{ Start, End int }

// maxPart bounds the words that are taken apart: what is longer is no identifier.
const maxPart = 64

// AppendParts appends the parts of a word as it stands in a text: what begins with a
// capital letter, and where letters and digits meet each of them, and several of these
// that follow each other: at most three, or those at the start or the end of the word. A
// part is at least two characters long. A word in one part has none, nor one that looks
// like a number in base 16.
func AppendParts(dst []Part, word []byte) []Part {
	if isVersion(word) {
		return append(dst, Part{1, len(word)})
	}
	if len(word) < 3 || len(word) > maxPart {
		return dst
	}
	// Most words are of one kind of character.
	kinds := 0
	for _, c := range word {
		kind := kindOf(c)
		if kind == 0 {
			return dst
		}
		kinds |= kind
	}
	if kinds == lower || kinds == upper || kinds == digit || kinds == upper|lower && kindOf(word[0]) == upper && allLower(word[1:]) {
		return dst
	}
	if kinds&digit != 0 && looksRandom(word) {
		return dst
	}
	var ends [maxPart]int
	n := 0
	for start := 0; start < len(word); n++ {
		start = runEnd(word, start, camelEnd(word, start))
		ends[n] = start
	}
	for i, start := 0, 0; i < n; i++ {
		for j := i; j < n; j++ {
			if length := ends[j] - start; length >= 2 && length < len(word) && (j < i+3 || i == 0 || j == n-1) {
				dst = append(dst, Part{start, ends[j]})
			}
		}
		start = ends[i]
	}
	return dst
}

// isVersion reports whether a word is like the v1 of v1.2.3.
func isVersion(word []byte) bool {
	if len(word) < 2 || word[0]|0x20 != 'v' {
		return false
	}
	for _, c := range word[1:] {
		if kindOf(c) != digit {
			return false
		}
	}
	return true
}

// Kinds of ASCII characters in words.
const (
	lower = 1 << iota
	upper
	digit
)

func kindOf(c byte) int {
	switch {
	case 'a' <= c && c <= 'z':
		return lower
	case 'A' <= c && c <= 'Z':
		return upper
	case '0' <= c && c <= '9':
		return digit
	}
	return 0
}

func allLower(word []byte) bool {
	for _, c := range word {
		if kindOf(c) != lower {
			return false
		}
	}
	return true
}

// camelEnd returns where the part that begins at start ends: before the next capital
// letter, of several in a row before the last if a small one follows it, and before the s
// of URLs.
func camelEnd(word []byte, start int) int {
	for i := start + 1; i < len(word); i++ {
		switch {
		case kindOf(word[i]) != upper:
			if i-start >= 2 && kindOf(word[i-1]) == upper && isPlural(word[i:]) {
				return i
			}
		case kindOf(word[i-1]) != upper || i+1 < len(word) && kindOf(word[i+1]) == lower && !isPlural(word[i+1:]):
			return i
		}
	}
	return len(word)
}

// isPlural reports whether a word goes on with an s that is not the start of a word.
func isPlural(word []byte) bool {
	return word[0] == 's' && (len(word) == 1 || kindOf(word[1]) != lower)
}

// runEnd returns where the digits, or the letters, at start end.
func runEnd(word []byte, start, end int) int {
	isDigit := kindOf(word[start]) == digit
	for i := start + 1; i < end; i++ {
		if (kindOf(word[i]) == digit) != isDigit {
			return i
		}
	}
	return end
}

// looksRandom reports whether letters and digits of a word alternate as no name has them.
func looksRandom(word []byte) bool {
	changes := 0
	for i := 1; i < len(word); i++ {
		if (kindOf(word[i]) == digit) != (kindOf(word[i-1]) == digit) {
			changes++
		}
	}
	return changes > 3
}

// asciiFold holds for each ASCII character of a word its lower case, 0 for others.
var asciiFold = func() (table [utf8.RuneSelf]byte) {
	for c := byte('0'); c <= '9'; c++ {
		table[c] = c
	}
	for c := byte('a'); c <= 'z'; c++ {
		table[c], table[c-'a'+'A'] = c, c
	}
	return table
}()

// fold returns the character that stands for r in a word; 0 for ASCII that is in none.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(asciiFold[r])
	}
	if r >= 0x2e80 && r <= 0xa63f {
		return r
	}
	if c, ok := fullWidth(r); ok {
		return rune(asciiFold[c])
	}
	if folded, ok := foldTable()[r]; ok {
		return folded
	}
	return r
}

// sharp is the letter that stands in words as two.
func sharp(r rune) bool { return r == 'ß' || r == 'ẞ' }

// FoldsAlike reports whether two characters are the same to the index.
func FoldsAlike(a, b rune) bool {
	return fold(a) == fold(b) && sharp(a) == sharp(b) && IsToken(a) == IsToken(b) && StandsApart(a) == StandsApart(b)
}

// foldTable pairs the characters that stand in a word as another one: what unicode61
// folds, and letters with marks that it leaves as they are, as in Greek and Cyrillic.
var foldTable = sync.OnceValue(func() map[rune]rune {
	from, to := []rune(foldFrom), []rune(foldTo)
	table := make(map[rune]rune, len(from))
	for i, r := range from {
		table[r] = to[i]
	}
	for _, span := range [][2]rune{{0x80, 0x0780}, {0x1e00, 0x1fff}} {
		for r := span[0]; r <= span[1]; r++ {
			base := r
			if p := norm.NFD.PropertiesString(string(r)); len(p.Decomposition()) > 0 {
				base, _ = utf8.DecodeRune(p.Decomposition())
			}
			if folded, ok := table[base]; ok {
				base = folded
			} else if base < utf8.RuneSelf {
				base = rune(asciiFold[base])
			} else {
				base = unicode.ToLower(base)
			}
			if base != r && base != 0 && isWord(r) {
				table[r] = base
			}
		}
	}
	return table
})
