package jsonl

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUTF8 appends b, decoded as WHATWG decodes UTF-8: each maximal part of a sequence that cannot be completed is one
// U+FFFD.
func appendUTF8[T []byte | string](dst []byte, b T) []byte {
	for len(b) > 0 {
		i := 0
		for i < len(b) && b[i] < utf8.RuneSelf {
			i++
		}
		dst = append(dst, b[:i]...)
		b = b[i:]
		if len(b) == 0 {
			break
		}
		n, ok := sequence(b)
		if ok {
			dst = append(dst, b[:n]...)
		} else {
			dst = append(dst, "\ufffd"...)
		}
		b = b[n:]
	}
	return dst
}

// sequence returns the length of the sequence at the start of b, or of the maximal part of one that is not completed.
func sequence[T []byte | string](b T) (n int, ok bool) {
	low, high := byte(0x80), byte(0xbf) // of the second byte
	switch c := b[0]; {
	case c < 0x80:
		return 1, true
	case c < 0xc2:
		return 1, false
	case c < 0xe0:
		n = 2
	case c < 0xf0:
		n = 3
		if c == 0xe0 {
			low = 0xa0
		} else if c == 0xed {
			high = 0x9f
		}
	case c < 0xf5:
		n = 4
		if c == 0xf0 {
			low = 0x90
		} else if c == 0xf4 {
			high = 0x8f
		}
	default:
		return 1, false
	}
	for i := 1; i < n; i++ {
		if i >= len(b) || b[i] < low || b[i] > high {
			return i, false
		}
		low, high = 0x80, 0xbf
	}
	return n, true
}

// What becomes of a surrogate without its partner.
type loneMode uint8

const (
	loneReplace loneMode = iota // U+FFFD
	loneEscape                  // \udXXX, and backslashes are doubled
	loneJSON                    // the text is written as the inside of a JSON string
)

// largeText is what a text has in bytes for which room is made at once.
const largeText = 1 << 20

// appendDecoded appends the text of a string literal (without its quotes, known to be well formed) and reports whether
// it has a lone surrogate.
func appendDecoded(dst, raw []byte, flags uint32, mode loneMode) (text []byte, lone bool) {
	wide := flags&flagWide != 0 && !utf8.Valid(raw)
	if len(raw) > largeText {
		dst = slices.Grow(dst, len(raw))
	}
	for len(raw) > 0 {
		n := len(raw)
		if flags&flagEscape != 0 {
			if n = bytes.IndexByte(raw, '\\'); n < 0 {
				n, flags = len(raw), flags&^flagEscape
			}
		}
		if wide {
			dst = appendUTF8(dst, raw[:n])
		} else {
			dst = append(dst, raw[:n]...)
		}
		raw = raw[n:]
		if len(raw) == 0 {
			break
		}
		c := raw[1]
		if c != 'u' {
			raw = raw[2:]
			switch c {
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			}
			dst = appendUnit(dst, rune(c), mode)
			continue
		}
		r := hex4(raw[2:])
		raw = raw[6:]
		if utf16.IsSurrogate(r) {
			pair := rune(utf8.RuneError)
			if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
				pair = utf16.DecodeRune(r, hex4(raw[2:]))
			}
			if pair != utf8.RuneError {
				r = pair
				raw = raw[6:]
			} else {
				lone = true
				if mode == loneReplace {
					r = utf8.RuneError
				} else {
					dst = appendEscape(dst, r)
					continue
				}
			}
		}
		dst = appendUnit(dst, r, mode)
	}
	return dst, lone
}

func hex4(b []byte) rune {
	return hexDigit(b[0])<<12 | hexDigit(b[1])<<8 | hexDigit(b[2])<<4 | hexDigit(b[3])
}

// appendUnit appends one character that the literal wrote as an escape.
func appendUnit(dst []byte, r rune, mode loneMode) []byte {
	if mode == loneJSON {
		if r < utf8.RuneSelf {
			return appendQuotedByte(dst, byte(r))
		}
	} else if mode == loneEscape && r == '\\' {
		return append(dst, `\\`...)
	}
	return utf8.AppendRune(dst, r)
}

const hexDigits = "0123456789abcdef"

func appendEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
}

// keyMark is what only the key form of a string with a lone surrogate, or of one that looks so, contains.
const keyMark = `\ud`

func appendKeyForm(dst, raw []byte, flags uint32) []byte {
	start := len(dst)
	dst, lone := appendDecoded(dst, raw, flags, loneReplace)
	if !lone && !bytes.Contains(dst[start:], []byte(keyMark)) {
		return dst
	}
	dst, _ = appendDecoded(dst[:start], raw, flags, loneEscape)
	return dst
}

// AppendKey appends the JSON string whose key form key is.
func AppendKey(dst []byte, key string) []byte {
	if !strings.Contains(key, keyMark) {
		return AppendQuoted(dst, key)
	}
	dst = append(dst, '"')
	for key != "" {
		i := strings.IndexByte(key, '\\')
		if i < 0 {
			i = len(key)
		}
		dst = appendQuotedText(dst, key[:i])
		key = key[i:]
		switch {
		case strings.HasPrefix(key, `\\`):
			dst = append(dst, `\\`...)
			key = key[2:]
		case len(key) >= 6 && isLoneEscape(key[:6]):
			dst = append(dst, key[:6]...)
			key = key[6:]
		case key != "":
			dst = append(dst, `\\`...)
			key = key[1:]
		}
	}
	return append(dst, '"')
}

// isLoneEscape reports whether s is the escape of a surrogate, as a key form has it.
func isLoneEscape(s string) bool {
	return strings.HasPrefix(s, keyMark) && s[3] >= '8' &&
		hexDigit(s[3]) >= 0 && hexDigit(s[4]) >= 0 && hexDigit(s[5]) >= 0
}

// AppendQuoted appends s as JSON.stringify writes a string: short escapes, \u00XX for other control characters, and
// everything else as it is, HTML characters and U+2028 included. Invalid UTF-8 becomes U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = appendQuotedText(dst, s)
	return append(dst, '"')
}

func appendQuotedText(dst []byte, s string) []byte {
	for s != "" {
		i := 0
		for i < len(s) && s[i] >= ' ' && s[i] != '"' && s[i] != '\\' {
			i++
		}
		if utf8.ValidString(s[:i]) {
			dst = append(dst, s[:i]...)
		} else {
			dst = appendUTF8(dst, s[:i])
		}
		s = s[i:]
		if s != "" {
			dst = appendQuotedByte(dst, s[0])
			s = s[1:]
		}
	}
	return dst
}

// appendQuotedByte appends one ASCII character, escaped where JSON.stringify escapes it.
func appendQuotedByte(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if c < ' ' {
		return appendEscape(dst, rune(c))
	}
	return append(dst, c)
}
