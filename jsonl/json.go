package jsonl

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
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
// were decoded: invalid UTF-8 may stand in strings, names may repeat, numbers and nesting have no limit. It keeps b. The
// error is a *SyntaxError; the document is then empty.
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

// A Kind is a type of JSON value.
type Kind uint8

// The kinds of a Value.
const (
	KindAbsent Kind = iota // no value at all: JavaScript's undefined
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// A Value is one value of a Doc, valid until the Doc parses again. The zero Value is absent, as a member is that an
// object does not have; every method can be called on it.
type Value struct {
	d *Doc
	i uint32 // of its node
}

func (v Value) node() node { return v.d.nodes[v.i] }

// Kind returns the type of the value.
func (v Value) Kind() Kind {
	if v.d == nil {
		return KindAbsent
	}
	switch v.d.b[v.node().start] {
	case 'n':
		return KindNull
	case 't', 'f':
		return KindBool
	case '"':
		return KindString
	case '[':
		return KindArray
	case '{':
		return KindObject
	default:
		return KindNumber
	}
}

// Exists reports whether there is a value, be it null.
func (v Value) Exists() bool { return v.d != nil }

// Raw returns the bytes of the value as they stand in the text.
func (v Value) Raw() []byte {
	if v.d == nil {
		return nil
	}
	n := v.node()
	return v.d.b[n.start:n.end:n.end]
}

// Offset returns where in the text the value begins.
func (v Value) Offset() int {
	if v.d == nil {
		return 0
	}
	return int(v.node().start)
}

func (v Value) is(k Kind) bool { return v.Kind() == k }

// after returns the index of the node behind the value at i and all in it.
func (d *Doc) after(i uint32) uint32 {
	n := d.nodes[i]
	if c := d.b[n.start]; c == '{' || c == '[' {
		return n.aux
	}
	return i + 1
}

// Get returns the member of that name, the last one if there are several; absent if there is none or the value is no
// object.
func (v Value) Get(key string) Value {
	if !v.is(KindObject) {
		return Value{}
	}
	d := v.d
	var found Value
	for i, end := v.i+1, v.node().aux; i < end; i = d.after(i + 1) {
		if d.equal(i, key) {
			found = Value{d, i + 1}
		}
	}
	return found
}

// equal reports whether the string at i, decoded, is s.
func (d *Doc) equal(i uint32, s string) bool {
	n := d.nodes[i]
	raw := d.b[n.start+1 : n.end-1]
	if n.aux == 0 {
		return string(raw) == s
	}
	if n.aux&flagEscape == 0 && string(raw) == s && utf8.Valid(raw) {
		return true
	}
	// Decoding makes a string at most as long, but for invalid bytes, which become three.
	if 3*len(raw) < len(s) {
		return false
	}
	var buf [64]byte
	text, lone := appendDecoded(buf[:0], raw, n.aux, loneReplace)
	return !lone && string(text) == s
}

// Members yields the names and values of an object, in the order of the text, repeated names included.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(Value, Value) bool) {
		if !v.is(KindObject) {
			return
		}
		for i, end := v.i+1, v.node().aux; i < end; i = v.d.after(i + 1) {
			if !yield(Value{v.d, i}, Value{v.d, i + 1}) {
				return
			}
		}
	}
}

// Elements yields the values of an array.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if !v.is(KindArray) {
			return
		}
		for i, end := v.i+1, v.node().aux; i < end; i = v.d.after(i) {
			if !yield(Value{v.d, i}) {
				return
			}
		}
	}
}

// Len counts the elements of an array or the members of an object, repeated names included. It takes time in proportion.
func (v Value) Len() int {
	n := 0
	switch v.Kind() {
	case KindArray:
		for range v.Elements() {
			n++
		}
	case KindObject:
		for range v.Members() {
			n++
		}
	}
	return n
}

// IsString reports whether the value is the string s.
func (v Value) IsString(s string) bool { return v.is(KindString) && v.d.equal(v.i, s) }

// Text returns a string as valid UTF-8 for showing and searching: lone surrogates and invalid bytes become U+FFFD.
// It is false when the value is no string.
func (v Value) Text() (string, bool) {
	if !v.is(KindString) {
		return "", false
	}
	var buf [256]byte
	text, _ := v.AppendText(buf[:0])
	return string(text), true
}

// AppendText appends what Text returns.
func (v Value) AppendText(dst []byte) ([]byte, bool) {
	if !v.is(KindString) {
		return dst, false
	}
	n := v.node()
	dst, _ = appendDecoded(dst, v.d.b[n.start+1:n.end-1], n.aux, loneReplace)
	return dst, true
}

// Key returns a string for comparing, in its key form: as Text gives it, but with different keys for different strings.
// A lone surrogate is written as its escape, \udc88, and in a string that has such, or has those characters of itself,
// each backslash of the string is doubled. It is false when the value is no string.
func (v Value) Key() (string, bool) {
	if !v.is(KindString) {
		return "", false
	}
	n := v.node()
	raw := v.d.b[n.start+1 : n.end-1]
	if n.aux == 0 {
		return string(raw), true
	}
	var buf [256]byte
	return string(appendKeyForm(buf[:0], raw, n.aux)), true
}

// Float returns a number as JavaScript reads it: rounded to the nearest double, infinite when too large.
func (v Value) Float() (float64, bool) {
	if !v.is(KindNumber) {
		return 0, false
	}
	f, _ := strconv.ParseFloat(string(v.Raw()), 64) // a range error comes with the infinity wanted
	return f, true
}

// Bool returns a boolean.
func (v Value) Bool() (value, ok bool) {
	if !v.is(KindBool) {
		return false, false
	}
	return v.d.b[v.node().start] == 't', true
}

// Truthy reports whether the value counts as true in JavaScript: neither absent, null, false, 0 nor the empty string.
func (v Value) Truthy() bool {
	switch v.Kind() {
	case KindAbsent, KindNull:
		return false
	case KindBool:
		b, _ := v.Bool()
		return b
	case KindNumber:
		f, _ := v.Float()
		return f != 0
	case KindString:
		return len(v.Raw()) > 2
	default:
		return true
	}
}
