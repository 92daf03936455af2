package jsonl

import (
	"iter"
	"strconv"
	"unicode/utf8"
)

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
