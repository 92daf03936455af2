package query

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"pidb/query/fulltext"
)

// Snippet is one line of a text around what was found in it, safe to print.
type Snippet struct {
	Text    string
	Matches []Range // in order, not overlapping
}

// Range is a part of a text, in bytes.
type Range struct{ Start, End int }

// snippetWidth is the width that a snippet may have, in columns of a terminal.
const snippetWidth = 160

const escape = 0x1b

// ellipsis stands where a snippet leaves out text.
const ellipsis = "…"

// Printable returns text with everything made harmless that could drive a terminal or
// change the order of what is shown. Line feeds and tabs stay, a carriage return before
// a line feed and sequences like \x1b[1;31m are dropped, other control characters,
// bidirectional controls, invisible tags, byte order marks and bytes that are no UTF-8
// become "·".
func Printable(text string) string {
	if !slices.ContainsFunc([]byte(text), func(c byte) bool { return c >= 0x7f || c < ' ' && c != '\n' && c != '\t' }) {
		return text
	}
	return string(appendPrintable(nil, []byte(text)))
}

func appendPrintable(dst, text []byte) []byte {
	for len(text) > 0 {
		n, r := printableRune(text)
		if r >= 0 {
			dst = utf8.AppendRune(dst, r)
		}
		text = text[n:]
	}
	return dst
}

// printableRune reads what stands at the start of a text: how many bytes, and the
// character to show for them or -1 for none.
func printableRune(text []byte) (n int, show rune) {
	r, n := utf8.DecodeRune(text)
	switch {
	case r == '\n' || r == '\t':
		return n, r
	case r == '\r' && len(text) > 1 && text[1] == '\n':
		return n, -1
	case r == escape:
		if n := fulltext.ControlSequence(text); n > 0 {
			return n, -1
		}
		return n, '·'
	case r == utf8.RuneError && n == 1 || isHarmful(r):
		return n, '·'
	}
	return n, r
}

// isHarmful reports whether a character must not reach a terminal.
func isHarmful(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0: // C0, DEL, C1
	case r == 0x061c, r == 0x200e, r == 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069: // bidirectional controls
	case r == 0x2028, r == 0x2029: // separators of lines
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe007f: // byte order mark, annotations, tags
	default:
		return false
	}
	return true
}

// makeSnippet returns the line around the marks of a text that lie together and cover
// most terms.
func makeSnippet(text []byte, marks []mark) Snippet {
	slices.SortFunc(marks, func(a, b mark) int {
		if a.start != b.start {
			return a.start - b.start
		}
		return b.end - a.end
	})
	first, last := 0, 0
	if len(marks) > 0 {
		i, j := bestRun(marks, snippetWidth*3/4)
		first, last = marks[i].start, marks[i].start
		for _, m := range marks[i:j] {
			last = max(last, m.end)
		}
	}
	start, end := window(text, first, last)
	w := snippetWriter{}
	if start > 0 {
		w.text = append(w.text, ellipsis...)
	}
	at := start
	for _, m := range marks {
		if m.start < at || m.start >= end {
			continue
		}
		w.write(text[at:m.start])
		from := w.flushed()
		at = min(m.end, end)
		w.write(text[m.start:at])
		if len(w.text) > from {
			w.matches = append(w.matches, Range{from, len(w.text)})
		}
	}
	w.write(text[at:end])
	if end < len(text) && len(trimSpaces(text[end:])) > 0 {
		w.text = append(w.text, ellipsis...)
	}
	return Snippet{string(w.text), w.matches}
}

// snippetWriter writes a text on one line: white space of any length is a space.
type snippetWriter struct {
	text    []byte
	matches []Range
	space   bool // one is due before the next character
}

// flushed writes the space that is due, and returns the length of the text.
func (w *snippetWriter) flushed() int {
	if w.space && len(w.text) > 0 {
		w.text = append(w.text, ' ')
	}
	w.space = false
	return len(w.text)
}

func (w *snippetWriter) write(text []byte) {
	for len(text) > 0 {
		n, r := printableRune(text)
		text = text[n:]
		switch {
		case r < 0:
		case unicode.IsSpace(r):
			w.space = true
		default:
			w.flushed()
			w.text = utf8.AppendRune(w.text, r)
		}
	}
}

// bestRun returns the marks i to j that lie within so many bytes and belong to as many
// terms as possible; of several such runs the first.
func bestRun(marks []mark, within int) (i, j int) {
	best := 0
	counts := map[int]int{}
	end := 0
	for start := range marks {
		if end == start {
			end++
			counts[marks[start].term]++
		}
		for end < len(marks) && marks[end].end-marks[start].start <= within {
			counts[marks[end].term]++
			end++
		}
		if len(counts) > best {
			best, i, j = len(counts), start, end
		}
		if term := marks[start].term; counts[term] == 1 {
			delete(counts, term)
		} else {
			counts[term]--
		}
	}
	return i, j
}

// window widens the part from first to last of a text to the width of a snippet, two
// thirds of it behind, and to the borders of words. A wider part is cut at its end.
func window(text []byte, first, last int) (start, end int) {
	end, room := forward(text, first, last, snippetWidth)
	before := min(room, max(room/3, room-columns(text[end:], room)))
	start, left := backward(text, first, before)
	end, _ = forward(text, end, len(text), room-before+left)
	if start > 0 {
		start = wordStart(text, start, first)
	}
	if end < len(text) {
		end = wordEnd(text, end, last)
	}
	return start, end
}

// forward returns how far from at on, and not beyond limit, so many columns reach, and
// how many are left.
func forward(text []byte, at, limit, room int) (end, left int) {
	space := false
	for at < limit {
		n, width := step(text[at:], &space)
		if width > room {
			break
		}
		at += n
		room -= width
	}
	return min(at, limit), room
}

// columns returns the width of a text, at most limit.
func columns(text []byte, limit int) int {
	_, left := forward(text, 0, len(text), limit)
	return limit - left
}

// backward returns how far before at so many columns reach, and how many are left.
func backward(text []byte, at, room int) (start, left int) {
	space := false
	for at > 0 {
		_, n := utf8.DecodeLastRune(text[:at])
		_, width := step(text[at-n:at], &space)
		if width > room {
			break
		}
		at -= n
		room -= width
	}
	return at, room
}

// step returns the bytes and the columns of what stands at the start of a text. Of white
// space in a row only one is as wide as a column.
func step(text []byte, space *bool) (n, width int) {
	n, r := printableRune(text)
	switch {
	case r < 0:
		return n, 0
	case unicode.IsSpace(r):
		if *space {
			return n, 0
		}
		*space = true
		return n, 1
	}
	*space = false
	return n, runeWidth(r)
}

// runeWidth returns the columns that a terminal gives to a character.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	case r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3ffff:
		return 2
	}
	return 1
}

// cutReach is how many bytes a snippet gives up so that it ends at the border of a word.
const cutReach = 24

// wordStart returns where behind start the next word begins, before limit.
func wordStart(text []byte, start, limit int) int {
	if r, _ := utf8.DecodeLastRune(text[:start]); unicode.IsSpace(r) {
		return start
	}
	for i := start; i < min(start+cutReach, limit); {
		r, n := utf8.DecodeRune(text[i:])
		if fulltext.StandsApart(r) && i == start {
			return start
		}
		i += n
		if unicode.IsSpace(r) {
			return i
		}
	}
	return start
}

// wordEnd returns where before end the last whole word ends, behind limit.
func wordEnd(text []byte, end, limit int) int {
	if r, _ := utf8.DecodeRune(text[end:]); unicode.IsSpace(r) {
		return end
	}
	for i := end; i > max(end-cutReach, limit); {
		r, n := utf8.DecodeLastRune(text[:i])
		if fulltext.StandsApart(r) && i == end {
			return end
		}
		i -= n
		if unicode.IsSpace(r) {
			return i
		}
	}
	return end
}

// trimSpaces returns text from its first character that shows.
func trimSpaces(text []byte) []byte {
	for len(text) > 0 {
		n, r := printableRune(text)
		if r >= 0 && !unicode.IsSpace(r) {
			break
		}
		text = text[n:]
	}
	return text
}
