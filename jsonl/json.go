package jsonl

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// A SyntaxError says why and where a text is not JSON.
type SyntaxError struct {
	Offset int // of the first byte that cannot be, or the length of a text that ends too early
	Msg    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: %s", e.Offset, e.Msg) }

// A Doc is a parsed JSON text. It may be used again for the next text; the values of the former are then void.
// The zero Doc is ready for use. A Doc must not be parsed into while its values are read elsewhere.
type Doc struct {
	b     []byte
	nodes []node
	token int // where the last token began that a parse looked at
}

// A node is one value or member name. The nodes stand in the order of the text, those of a container behind it, the
// name of a member before its value.
type node struct {
	start, end uint32 // byte range in the text
	aux        uint32 // container: index behind its last node (while it is open: its parent); string: flags
}

const (
	flagEscape = 1 << iota // has a backslash
	flagWide               // has a byte above 0x7f
)

const (
	noParent  = math.MaxUint32
	maxText   = math.MaxUint32 - 1
	keepNodes = 1 << 16 // a longer tape is given up with the next text, so that one odd line does not hold its memory
)

const (
	msgEnd    = "unexpected end"
	msgValue  = "a value is expected"
	msgExtra  = "unexpected text after the value"
	msgSize   = "the text is too long"
	msgEscape = "bad escape"
	msgChar   = "control character in a string"
	msgNumber = "bad number"
	msgName   = "a member name is expected"
	msgColon  = "a colon is expected"
	msgObject = "a comma or } is expected"
	msgArray  = "a comma or ] is expected"
)

// Parse reads one JSON value with nothing but white space around it, as leniently as JSON.parse does after the bytes
// were decoded: invalid UTF-8 may stand in strings, names may repeat, numbers and nesting have no limit. A text of
// 4 GiB or more is an error. It keeps b. The error is a *SyntaxError; the document is then empty.
func (d *Doc) Parse(b []byte) error {
	if err := d.parse(b); err != nil {
		return err
	}
	return nil
}

func (d *Doc) parse(b []byte) *SyntaxError {
	d.reset(b)
	if len(b) > maxText {
		return &SyntaxError{Offset: 0, Msg: msgSize}
	}
	end, msg := d.value(0)
	if msg == "" {
		for end < len(b) && isSpace(b[end]) {
			end++
		}
		if end == len(b) {
			return nil
		}
		msg = msgExtra
	}
	d.nodes = d.nodes[:0]
	return &SyntaxError{Offset: end, Msg: msg}
}

func (d *Doc) reset(b []byte) {
	if cap(d.nodes) > keepNodes && len(d.nodes) < cap(d.nodes)/8 {
		d.nodes = nil
	}
	d.b = b
	d.nodes = d.nodes[:0]
	d.token = 0
}

// Root returns the value of the text, absent when it did not parse.
func (d *Doc) Root() Value {
	if len(d.nodes) == 0 {
		return Value{}
	}
	return Value{d: d}
}

// value reads the one value that begins at i, white space skipped, appends its nodes and returns the index behind it.
// Where that fails it returns the offset of the error and a message; nodes may then hold the beginning of a value.
func (d *Doc) value(i int) (int, string) {
	b := d.b
	nodes := d.nodes
	parent := uint32(noParent)
	inObject := false
	name := false
	tok := i
	msg := ""
	var flags uint32

	for {
		if name {
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			if i >= len(b) {
				msg = msgEnd
				break
			}
			if b[i] != '"' {
				msg = msgName
				break
			}
			tok = i
			if i, flags, msg = scanString(b, i+1); msg != "" {
				break
			}
			nodes = append(nodes, node{uint32(tok), uint32(i), flags})
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			if i >= len(b) {
				msg = msgEnd
				break
			}
			if b[i] != ':' {
				msg = msgColon
				break
			}
			i++
			name = false
		}

		for i < len(b) && isSpace(b[i]) {
			i++
		}
		if i >= len(b) {
			msg = msgEnd
			break
		}
		tok = i
		switch b[i] {
		case '"':
			if i, flags, msg = scanString(b, i+1); msg == "" {
				nodes = append(nodes, node{uint32(tok), uint32(i), flags})
			}
		case '{', '[':
			inObject = b[i] == '{'
			nodes = append(nodes, node{uint32(i), 0, parent})
			parent = uint32(len(nodes) - 1)
			i++
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			switch {
			case i >= len(b):
				msg = msgEnd
			case inObject && b[i] == '}', !inObject && b[i] == ']':
			case inObject:
				name = true
				continue
			default:
				continue
			}
		case 't':
			if i, msg = scanWord(b, i, "true"); msg == "" {
				nodes = append(nodes, node{uint32(tok), uint32(i), 0})
			}
		case 'f':
			if i, msg = scanWord(b, i, "false"); msg == "" {
				nodes = append(nodes, node{uint32(tok), uint32(i), 0})
			}
		case 'n':
			if i, msg = scanWord(b, i, "null"); msg == "" {
				nodes = append(nodes, node{uint32(tok), uint32(i), 0})
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			if i, msg = scanNumber(b, i); msg == "" {
				nodes = append(nodes, node{uint32(tok), uint32(i), 0})
			}
		default:
			msg = msgValue
		}
		if msg != "" {
			break
		}

		// Behind a value or at the end of an empty container: close what ends here.
		for parent != noParent {
			for i < len(b) && isSpace(b[i]) {
				i++
			}
			if i >= len(b) {
				msg = msgEnd
				break
			}
			c := b[i]
			if c == ',' {
				i++
				name = inObject
				break
			}
			if inObject && c != '}' {
				msg = msgObject
				break
			}
			if !inObject && c != ']' {
				msg = msgArray
				break
			}
			i++
			n := &nodes[parent]
			parent = n.aux
			n.end = uint32(i)
			n.aux = uint32(len(nodes))
			inObject = parent != noParent && b[nodes[parent].start] == '{'
		}
		if msg != "" || parent == noParent {
			break
		}
	}
	d.nodes = nodes
	d.token = tok
	return i, msg
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// scanString reads the rest of a string whose opening quote is before i.
func scanString(b []byte, i int) (end int, flags uint32, msg string) {
	var wide uint64
	for {
		for i+8 <= len(b) {
			x := binary.LittleEndian.Uint64(b[i:])
			q := x ^ '"'*ones
			s := x ^ '\\'*ones
			stop := ((q-ones)&^q | (s-ones)&^s | (x-' '*ones)&^x) & highs
			if stop != 0 {
				n := bits.TrailingZeros64(stop) &^ 7
				wide |= x & (1<<n - 1)
				i += n >> 3
				break
			}
			wide |= x
			i += 8
		}
		for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
			wide |= uint64(b[i])
			i++
		}
		if i >= len(b) {
			return len(b), 0, msgEnd
		}
		switch b[i] {
		case '"':
			if wide&highs != 0 {
				flags |= flagWide
			}
			return i + 1, flags, ""
		case '\\':
			flags |= flagEscape
			i++
			if i >= len(b) {
				return i, 0, msgEnd
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				i++
			case 'u':
				i++
				for range 4 {
					if i >= len(b) {
						return i, 0, msgEnd
					}
					if hexDigit(b[i]) < 0 {
						return i, 0, msgEscape
					}
					i++
				}
			default:
				return i, 0, msgEscape
			}
		default:
			return i, 0, msgChar
		}
	}
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}

func scanWord(b []byte, i int, word string) (int, string) {
	for j := range len(word) {
		if i >= len(b) {
			return i, msgEnd
		}
		if b[i] != word[j] {
			return i, msgValue
		}
		i++
	}
	return i, ""
}

// scanNumber reads a number. At the end of the text a number that could go on is complete if it is one.
func scanNumber(b []byte, i int) (int, string) {
	digits := func() bool {
		from := i
		for i < len(b) && b[i]-'0' <= 9 {
			i++
		}
		return i > from
	}
	bad := func() (int, string) {
		if i >= len(b) {
			return i, msgEnd
		}
		return i, msgNumber
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return bad()
	}
	if i < len(b) && b[i] == '.' {
		i++
		if !digits() {
			return bad()
		}
	}
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return bad()
		}
	}
	return i, ""
}
