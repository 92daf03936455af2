package query

import (
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// IndexText appends text to dst in the form in which the search index takes it and a
// query asks it: characters of scripts written without spaces between words stand
// apart, so that each is a token and a run of them a phrase; a control sequence of a
// terminal is a space, so that it is not a part of the word behind it, and so are NUL and
// bytes that are no UTF-8. All else is copied. Applied to its own output it changes nothing.
func IndexText(dst, text []byte) []byte {
	glue := false // the last character written is one that stands apart
	for len(text) > 0 {
		n := plainPrefix(text)
		if n > 0 {
			if glue && text[0] != ' ' {
				dst = append(dst, ' ')
			}
			glue = false
			dst = append(dst, text[:n]...)
			if text = text[n:]; len(text) == 0 {
				break
			}
		}
		r, size := utf8.DecodeRune(text)
		if r == escape {
			if n := controlSequence(text); n > 0 {
				r, size = 0, n
			}
		}
		switch {
		case r == 0 || r == utf8.RuneError && size == 1:
			dst = append(dst, ' ')
			glue = false
		case standsApart(r):
			if len(dst) > 0 && dst[len(dst)-1] != ' ' {
				dst = append(dst, ' ')
			}
			dst = append(dst, text[:size]...)
			glue = true
		default:
			if glue {
				dst = append(dst, ' ')
			}
			dst = append(dst, text[:size]...)
			glue = false
		}
		text = text[size:]
	}
	return dst
}

const escape = 0x1b

// controlSequence returns the length of the control sequence that text, which begins
// with an escape character, begins with: [1;31m and the like. It is 0 for none.
func controlSequence(text []byte) int {
	if len(text) < 3 || text[1] != '[' {
		return 0
	}
	for i := 2; i < min(len(text), 32); i++ {
		switch c := text[i]; {
		case isParameter(c):
		case 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z':
			return i + 1
		default:
			return 0
		}
	}
	return 0
}

// isParameter reports whether c may stand between the [ and the letter of a control sequence.
func isParameter(c byte) bool { return '0' <= c && c <= '9' || c == ';' || c == ':' || c == '?' }

// plainPrefix returns how many bytes at the start of text are ASCII other than NUL and
// escape.
func plainPrefix(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		// The lowest high bit that is set is of a byte that is NUL, escape or above 0x7f.
		word := binary.LittleEndian.Uint64(text[n:])
		if (word|(word-ones)|((word^(ones*escape))-ones))&highs != 0 {
			break
		}
	}
	for n < len(text) && text[n] != 0 && text[n] != escape && text[n] < utf8.RuneSelf {
		n++
	}
	return n
}

// apart lists the scripts that are written without spaces between words, as pairs of
// the first and the last character.
var apart = [...][2]rune{
	{0x0e00, 0x0eff},   // Thai, Lao
	{0x1000, 0x109f},   // Myanmar
	{0x1100, 0x11ff},   // Hangul Jamo
	{0x1780, 0x17ff},   // Khmer
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
	{0x20000, 0x3ffff}, // ideographs, extensions B and later
}

// standsApart reports whether r is a token by itself.
func standsApart(r rune) bool {
	if r < apart[0][0] {
		return false
	}
	if r >= 0x4e00 && r <= 0x9fff {
		return true
	}
	i, _ := slices.BinarySearchFunc(apart[:], r, func(span [2]rune, r rune) int { return int(span[1] - r) })
	return i < len(apart) && r >= apart[i][0]
}
