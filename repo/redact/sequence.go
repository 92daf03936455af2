package redact

import "bytes"

const escapeByte = 0x1b

// sequence returns the length of the control sequence of a terminal that text begins with,
// 0 for none: ESC [ 1;31 m, ESC ( B, the same with U+009B, and also [1;31m alone, which
// stands where the escape character was taken out or is written as \033.
func sequence(text []byte) int {
	inside := func(i int, first, last byte) int {
		for i < len(text) && first <= text[i] && text[i] <= last {
			i++
		}
		return i
	}
	end := func(i int, first, last byte) int {
		if i < len(text) && first <= text[i] && text[i] <= last {
			return i + 1
		}
		return 0
	}
	switch {
	case bytes.HasPrefix(text, []byte{escapeByte, '['}), bytes.HasPrefix(text, []byte("\u009b")):
		return end(inside(inside(2, '0', '?'), ' ', '/'), '@', '~')
	case len(text) > 0 && text[0] == escapeByte:
		return end(inside(1, ' ', '/'), '0', '~')
	case len(text) > 0 && text[0] == '[':
		if i := inside(1, '0', ';'); i > 1 {
			return end(i, 'm', 'm')
		}
	}
	return 0
}

// withoutSequences returns a text without control sequences, and with spaces in their
// place; nothing where it has none. The one brings together what they part, in the other
// they are borders of words.
func withoutSequences(text []byte) (left decoded, blank []byte) {
	from := 0
	for i := 0; i < len(text); i++ {
		if c := text[i]; c != '[' && c != escapeByte && c != 0xc2 {
			continue
		}
		n := sequence(text[i:])
		if n == 0 {
			continue
		}
		if blank == nil {
			blank = bytes.Clone(text)
		}
		left.runs = append(left.runs, run{len(left.text), from, i - from})
		left.text = append(left.text, text[from:i]...)
		for j := i; j < i+n; j++ {
			blank[j] = ' '
		}
		from = i + n
		i = from - 1
	}
	if blank == nil {
		return decoded{}, nil
	}
	left.runs = append(left.runs, run{len(left.text), from, len(text) - from})
	left.text = append(left.text, text[from:]...)
	return left, blank
}
