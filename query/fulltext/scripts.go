package fulltext

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

const escape = 0x1b

// ControlSequence returns the length of the control sequence of a terminal that text,
// which begins with an escape character, begins with: ESC [1;31m and the like. It is 0
// for none.
func ControlSequence(text []byte) int {
	if len(text) < 3 || text[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(text), 32); i++ {
		switch c := text[i]; {
		case IsParameter(c):
		case 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// IsParameter reports whether c may stand between the [ and the letter of a control sequence.
func IsParameter(c byte) bool { return '0' <= c && c <= '9' || c == ';' || c == ':' || c == '?' }

// apart lists the characters that are words by themselves, as pairs of the first and the
// last: those of scripts that are written without spaces between words, and emoji.
var apart = [...][2]rune{
	{0x0e00, 0x0eff},   // Thai, Lao
	{0x1000, 0x109f},   // Myanmar
	{0x1100, 0x11ff},   // Hangul Jamo
	{0x1780, 0x17ff},   // Khmer
	{0x2600, 0x27bf},   // symbols and dingbats
	{0x2b00, 0x2bff},   // arrows and stars
	{0x3005, 0x3007},   // ideographic iteration mark, closing mark, zero
	{0x3021, 0x3029},   // Hangzhou numerals
	{0x3031, 0x3035},   // kana repeat marks
	{0x3038, 0x303c},   // Hangzhou numerals, masu mark
	{0x3041, 0x30ff},   // kana
	{0x3105, 0x312f},   // bopomofo
	{0x3131, 0x318e},   // Hangul compatibility Jamo
	{0x31a0, 0x31bf},   // bopomofo extended
	{0x31f0, 0x31ff},   // katakana phonetic extensions
	{0x3400, 0x4dbf},   // ideographs, extension A
	{0x4e00, 0x9fff},   // ideographs
	{0xa000, 0xa48c},   // Yi
	{0xa960, 0xa97c},   // Hangul Jamo extended A
	{0xaa60, 0xaa7f},   // Myanmar extended A
	{0xac00, 0xd7fb},   // Hangul syllables, Jamo extended B
	{0xf900, 0xfaff},   // compatibility ideographs
	{0xff66, 0xffdc},   // halfwidth kana and Hangul
	{0x1aff0, 0x1b16f}, // kana supplements
	{0x1f000, 0x1faff}, // emoji
	{0x20000, 0x3ffff}, // ideographs, extensions B and later
}

// StandsApart reports whether r is a word by itself.
func StandsApart(r rune) bool {
	if r < apart[0][0] {
		return false
	}
	if r >= 0x4e00 && r <= 0x9fff {
		return true
	}
	i, _ := slices.BinarySearchFunc(apart[:], r, func(span [2]rune, r rune) int { return int(span[1] - r) })
	return i < len(apart) && r >= apart[i][0] && (isWord(r) || isEmoji(r))
}

func isEmoji(r rune) bool {
	return r >= 0x2600 && r <= 0x27bf || r >= 0x2b00 && r <= 0x2bff || r >= 0x1f000 && r <= 0x1faff
}

// fullWidth returns the ASCII letter or digit that a full-width one stands for.
func fullWidth(r rune) (rune, bool) {
	if r < 0xff10 || r > 0xff5a {
		return 0, false
	}
	c := r - 0xff01 + '!'
	return c, asciiFold[c] != 0
}

// isWord reports whether unicode61 takes r for a part of a word.
func isWord(r rune) bool {
	i, found := slices.BinarySearch(tokenEdges[:], r)
	if found {
		i++
	}
	return i%2 == 1
}

// IsToken reports whether r is part of a word.
func IsToken(r rune) bool {
	return r < utf8.RuneSelf && asciiFold[r] != 0 || r >= 0x4e00 && r <= 0x9fff || r >= utf8.RuneSelf && isWord(r) || StandsApart(r)
}

// IsAccent reports whether r is a combining mark that a word passes over: an accent, a
// vowel point.
func IsAccent(r rune) bool {
	return r >= 0x300 && !StandsApart(r) && unicode.Is(unicode.Mn, r)
}

// compose reads the character with which text begins, together with the marks behind it
// that make it another one: jamo become a syllable, kana voiced.
func compose(text []byte) (rune, int) {
	r, n := utf8.DecodeRune(text)
	next, size := utf8.DecodeRune(text[n:])
	switch {
	case isLead(r) && isVowel(next):
		r, n = 0xac00+((r-0x1100)*21+next-0x1161)*28, n+size
		next, size = utf8.DecodeRune(text[n:])
	case isVoiceable(r) && next == 0x3099:
		switch r {
		case 'う', 'ウ':
			return r + 0x4e, n + size
		}
		return r + 1, n + size
	case isVoiceable(r) && next == 0x309a && isHa(r):
		return r + 2, n + size
	}
	if isOpenSyllable(r) && isTail(next) {
		return r + next - 0x11a7, n + size
	}
	return r, n
}

// Jamo that make syllables, and syllables that another jamo may end.
func isLead(r rune) bool         { return r >= 0x1100 && r <= 0x1112 }
func isVowel(r rune) bool        { return r >= 0x1161 && r <= 0x1175 }
func isTail(r rune) bool         { return r >= 0x11a8 && r <= 0x11c2 }
func isOpenSyllable(r rune) bool { return r >= 0xac00 && r <= 0xd7a3 && (r-0xac00)%28 == 0 }

// isVoiceable reports whether r is kana that a voicing mark makes another one.
func isVoiceable(r rune) bool {
	if r >= 'ァ' && r <= 'ヶ' {
		r -= 'ァ' - 'ぁ'
	}
	switch {
	case r == 'う':
		return true
	case r >= 'か' && r <= 'ち':
		return (r-'か')%2 == 0
	case r == 'つ', r == 'て', r == 'と':
		return true
	}
	return isHa(r)
}

// isHa reports whether r is one of the five kana that have a third form.
func isHa(r rune) bool {
	if r >= 'ァ' && r <= 'ヶ' {
		r -= 'ァ' - 'ぁ'
	}
	return r >= 'は' && r <= 'ほ' && (r-'は')%3 == 0
}

// mayChange reports whether what follows r in a text may make another character of it.
func mayChange(r rune) bool { return isVoiceable(r) || isLead(r) || isOpenSyllable(r) }

// changes reports whether r may be a part of the character before it.
func changes(r rune) bool { return isVowel(r) || isTail(r) || r == 0x3099 || r == 0x309a }
