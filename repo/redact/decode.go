package redact

import (
	"bytes"
	"sort"
	"unicode/utf16"
	"unicode/utf8"
)

// A decoded is a text that was read from another with escapes, and where it stood there.
type decoded struct {
	text []byte
	runs []run
}

// A run is a part of a text that stood without escapes. Before each run but the first, and
// nowhere else, stood an escape, or a control sequence that was left out.
type run struct {
	text int // where it begins in the text
	from int // and in what that was read from
	n    int // bytes
}

// decode reads src, which begins at offset of its line, as the inside of a JSON string. A
// backslash that begins no escape stands for itself.
func decode(dst decoded, src []byte, offset int) decoded {
	text, runs := dst.text[:0], dst.runs[:0]
	for i := 0; ; {
		n := bytes.IndexByte(src[i:], '\\')
		if n < 0 {
			n = len(src) - i
		}
		runs = append(runs, run{len(text), offset + i, n})
		text = append(text, src[i:i+n]...)
		if i += n; i == len(src) {
			return decoded{text, runs}
		}
		r, size := escape(src[i:])
		text = utf8.AppendRune(text, r)
		i += size
	}
}

// escape returns the character that an escape at the start of b stands for, and the bytes
// of the escape.
func escape(b []byte) (rune, int) {
	if len(b) < 2 {
		return '\\', 1
	}
	switch c := b[1]; c {
	case '"', '\\', '/':
		return rune(c), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return '\\', 1
		}
		if utf16.IsSurrogate(r) {
			if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
				if low, ok := hex4(b[8:]); ok {
					if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
						return pair, 12
					}
				}
			}
			return utf8.RuneError, 6
		}
		return r, 6
	}
	return '\\', 1
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// at returns the last run that begins at p or before.
func (d *decoded) at(p int) int {
	return sort.Search(len(d.runs), func(i int) bool { return d.runs[i].text > p }) - 1
}

// start returns where a part of the text that begins at p begins in what it was read from.
// An escape is never cut in two.
func (d *decoded) start(p int) int {
	r := d.runs[d.at(p)]
	return r.from + min(p-r.text, r.n)
}

// end returns where a part of the text that ends at p, behind its first byte, ends in what
// it was read from.
func (d *decoded) end(p int) int {
	i := d.at(p - 1)
	r := d.runs[i]
	if p-r.text > r.n {
		return d.runs[i+1].from
	}
	return r.from + p - r.text
}
