package jsonl

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// AppendNormal appends what JSON.stringify(JSON.parse(text)) makes of the value: no white space, names that are array
// indexes first and ascending, of repeated names the first place and the last value, numbers as doubles, strings with
// the fewest escapes, lone surrogates as escapes in lower case. An absent value appends nothing.
func (v Value) AppendNormal(dst []byte) []byte {
	if !v.Exists() {
		return dst
	}
	w := writer{d: v.d}
	return w.value(dst, v.i)
}

// A writer writes values in normal form. Depth costs memory, not stack.
type writer struct {
	d      *Doc
	order  []pair  // of the objects open, one behind the other
	frames []frame // the containers open, innermost last
	custom uint32  // the node that is written as "custom"; 0: none
}

// A pair is a member to be written: its nodes or, instead of those, its name and JSON text.
type pair struct {
	name, value uint32
	newName     string
	newValue    []byte
}

type frame struct {
	object   bool
	next     uint32 // array: the node of the next element; object: index into order
	end      uint32
	first    bool
	ordStart int
}

func (w *writer) value(dst []byte, i uint32) []byte { return w.rest(w.open(dst, i)) }

// object writes the members in list instead of those of an object.
func (w *writer) object(dst []byte, list []pair) []byte {
	w.order = append(w.order, list...)
	return w.rest(w.push(dst, 0))
}

// rest writes what is in the containers open.
func (w *writer) rest(dst []byte) []byte {
	for len(w.frames) > 0 {
		f := &w.frames[len(w.frames)-1]
		if f.next == f.end {
			if f.object {
				w.order = w.order[:f.ordStart]
				dst = append(dst, '}')
			} else {
				dst = append(dst, ']')
			}
			w.frames = w.frames[:len(w.frames)-1]
			continue
		}
		if !f.first {
			dst = append(dst, ',')
		}
		f.first = false
		if !f.object {
			i := f.next
			f.next = w.d.after(i)
			dst = w.open(dst, i)
			continue
		}
		p := w.order[f.next]
		f.next++
		if p.newName != "" {
			dst = AppendQuoted(dst, p.newName)
		} else {
			dst = w.scalar(dst, p.name)
		}
		dst = append(dst, ':')
		if p.newValue != nil {
			dst = append(dst, p.newValue...)
		} else {
			dst = w.open(dst, p.value)
		}
	}
	return dst
}

// open writes a scalar, or opens a container.
func (w *writer) open(dst []byte, i uint32) []byte {
	n := w.d.nodes[i]
	switch w.d.b[n.start] {
	case '{':
		start := len(w.order)
		w.members(i)
		return w.push(dst, start)
	case '[':
		w.frames = append(w.frames, frame{false, i + 1, n.aux, true, 0})
		return append(dst, '[')
	}
	return w.scalar(dst, i)
}

// push opens an object whose members are in order from start on.
func (w *writer) push(dst []byte, start int) []byte {
	w.frames = append(w.frames, frame{true, uint32(start), uint32(len(w.order)), true, start})
	return append(dst, '{')
}

func (w *writer) scalar(dst []byte, i uint32) []byte {
	if i == w.custom && i != 0 {
		return append(dst, `"custom"`...)
	}
	v := Value{w.d, i}
	n := v.node()
	switch v.Kind() {
	case KindNumber:
		f, _ := v.Float()
		return AppendNumber(dst, f)
	case KindString:
		dst = append(dst, '"')
		dst, _ = appendDecoded(dst, w.d.b[n.start+1:n.end-1], n.aux, loneJSON)
		return append(dst, '"')
	default:
		return append(dst, v.Raw()...)
	}
}

// members appends the members of the object at i to order, in the order of JavaScript.
func (w *writer) members(i uint32) {
	d := w.d
	start := len(w.order)
	indexes := false
	for k, end := i+1, d.nodes[i].aux; k < end; k = d.after(k + 1) {
		w.order = append(w.order, pair{name: k, value: k + 1})
		indexes = indexes || w.isIndex(k)
	}
	list := w.unique(w.order[start:])
	w.order = w.order[:start+len(list)]
	if indexes {
		slices.SortStableFunc(list, func(a, b pair) int {
			x, isX := w.index(a.name)
			y, isY := w.index(b.name)
			switch {
			case isX && isY:
				return int(x - y)
			case isX:
				return -1
			case isY:
				return 1
			}
			return 0
		})
	}
}

// unique drops, in place, the later ones of repeated names and gives their values to the first.
func (w *writer) unique(list []pair) []pair {
	const few = 12
	var seen map[string]int
	if len(list) > few {
		seen = make(map[string]int, len(list))
	}
	kept := list[:0]
	for _, p := range list {
		at := -1
		if seen != nil {
			key, _ := Value{w.d, p.name}.Key()
			if i, ok := seen[key]; ok {
				at = i
			} else {
				seen[key] = len(kept)
			}
		} else {
			at = slices.IndexFunc(kept, func(q pair) bool { return w.sameName(q.name, p.name) })
		}
		if at >= 0 {
			kept[at].value = p.value
		} else {
			kept = append(kept, p)
		}
	}
	return kept
}

func (w *writer) sameName(i, j uint32) bool {
	a, b := Value{w.d, i}, Value{w.d, j}
	if string(a.Raw()) == string(b.Raw()) {
		return true
	}
	if a.node().aux == 0 && b.node().aux == 0 {
		return false
	}
	x, _ := a.Key()
	y, _ := b.Key()
	return x == y
}

func (w *writer) isIndex(i uint32) bool {
	_, ok := w.index(i)
	return ok
}

// index returns the array index that the string at i is: 0 to 2^32-2 in canonical decimal form.
func (w *writer) index(i uint32) (int64, bool) {
	n := w.d.nodes[i]
	raw := w.d.b[n.start+1 : n.end-1]
	if n.aux&flagEscape != 0 {
		var buf [64]byte
		if len(raw) > 6*10 {
			return 0, false
		}
		raw, _ = appendDecoded(buf[:0], raw, n.aux, loneReplace)
	}
	if len(raw) == 0 || len(raw) > 10 || raw[0] == '0' && len(raw) > 1 {
		return 0, false
	}
	x := int64(0)
	for _, c := range raw {
		if c-'0' > 9 {
			return 0, false
		}
		x = x*10 + int64(c-'0')
	}
	return x, x <= 1<<32-2
}

// NormalOptions are the options of Object.AppendNormal.
type NormalOptions struct {
	// Parent replaces the entry's parentId, as {...entry, parentId} does: in its place, or at the end.
	Parent *ParentRef
}

// A ParentRef is a parentId: an entry's id in key form, or null.
type ParentRef struct {
	ID   string
	Null bool
}

// AppendNormal appends the line, without terminator, that pi writes for the header or entry when it rewrites a session:
// the normal form, migrated to version 3. A nil opts changes nothing else.
func (o Object) AppendNormal(dst []byte, opts *NormalOptions) []byte {
	if !o.Value.is(KindObject) {
		return o.Value.AppendNormal(dst)
	}
	w := writer{d: o.Value.d}
	w.members(o.Value.i)
	list := slices.Clone(w.order)
	w.order = w.order[:0]

	set := func(name string, value []byte) {
		for i := range list {
			if list[i].newName == name || list[i].newName == "" && w.d.equal(list[i].name, name) {
				list[i].newValue = value
				return
			}
		}
		list = append(list, pair{newName: name, newValue: value})
	}
	isHeader := o.Type() == headerType
	switch {
	case isHeader && o.version < CurrentVersion:
		set("version", strconv.AppendInt(nil, CurrentVersion, 10))
	case o.v1 != nil:
		set("id", AppendKey(nil, o.v1.id))
		set("parentId", appendParent(ParentRef{o.v1.parent, o.v1.parent == ""}))
		if o.Type() == "compaction" && o.Value.Get("firstKeptEntryIndex").is(KindNumber) {
			if o.v1.kept != "" {
				set("firstKeptEntryId", AppendKey(nil, o.v1.kept))
			}
			list = slices.DeleteFunc(list, func(p pair) bool {
				return p.newName == "" && w.d.equal(p.name, "firstKeptEntryIndex")
			})
		}
	}
	if o.version < 3 && !isHeader {
		if role := o.Message().Get("role"); role.IsString("hookMessage") {
			w.custom = role.i
		}
	}
	if opts != nil && opts.Parent != nil {
		set("parentId", appendParent(*opts.Parent))
	}
	return w.object(dst, list)
}

func appendParent(p ParentRef) []byte {
	if p.Null {
		return []byte("null")
	}
	return AppendKey(nil, p.ID)
}

// A Member is one member of an object to be written.
type Member struct {
	Key   string
	Value any
}

// Members is an object to be written, with its members in this order.
type Members []Member

type undefined struct{}

// Undefined is the value of a member that is not written.
var Undefined any = undefined{}

// Append appends v as JSON.stringify writes it. It takes nil, booleans, integers, floats, strings, Value and
// json.RawMessage (in their normal form; absent is undefined), Members, []any, []string and map[string]any, whose names
// it sorts. In an array Undefined is null. Any other type is an error, and so is a RawMessage that is not JSON.
func Append(dst []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, v), nil
	case string:
		return AppendQuoted(dst, v), nil
	case float64:
		return AppendNumber(dst, v), nil
	case float32:
		return AppendNumber(dst, float64(v)), nil
	case int:
		return AppendNumber(dst, float64(v)), nil
	case int32:
		return AppendNumber(dst, float64(v)), nil
	case int64:
		return AppendNumber(dst, float64(v)), nil
	case uint64:
		return AppendNumber(dst, float64(v)), nil
	case Value:
		if !v.Exists() {
			return append(dst, "null"...), nil
		}
		return v.AppendNormal(dst), nil
	case json.RawMessage:
		var d Doc
		if err := d.Parse(v); err != nil {
			return dst, fmt.Errorf("raw message: %w", err)
		}
		return d.Root().AppendNormal(dst), nil
	case undefined:
		return append(dst, "null"...), nil
	case Members:
		return appendMembers(dst, v)
	case map[string]any:
		list := make(Members, 0, len(v))
		for key, value := range v {
			list = append(list, Member{key, value})
		}
		sort.Slice(list, func(i, j int) bool { return list[i].Key < list[j].Key })
		return appendMembers(dst, list)
	case []any:
		return appendArray(dst, v)
	case []string:
		return appendArray(dst, v)
	}
	return dst, fmt.Errorf("cannot write a %T as JSON", v)
}

func appendMembers(dst []byte, list Members) (_ []byte, err error) {
	dst = append(dst, '{')
	first := true
	for _, m := range list {
		if m.Value == Undefined {
			continue
		}
		if v, ok := m.Value.(Value); ok && !v.Exists() {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = AppendQuoted(dst, m.Key)
		dst = append(dst, ':')
		if dst, err = Append(dst, m.Value); err != nil {
			return dst, fmt.Errorf("%s: %w", m.Key, err)
		}
	}
	return append(dst, '}'), nil
}

func appendArray[T any](dst []byte, list []T) (_ []byte, err error) {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = Append(dst, v); err != nil {
			return dst, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return append(dst, ']'), nil
}
