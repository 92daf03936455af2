package jsonl

import "bytes"

// recover calls yield for the complete objects in the text of a malformed line, in order, until it returns false. Such
// a line has pieces that were cut off, and what was written behind them. An object that may be a part of a larger value
// is left out. The time is linear: what is read twice is at most the end of a piece, from its last brace on.
func (d *Decoder) recover(b []byte, yield func(Value) bool) {
	d.doc.reset(b)
	if len(b) > maxText {
		return
	}
	r := recovery{doc: &d.doc, yield: yield}
	r.run()
}

type recovery struct {
	doc   *Doc
	yield func(Value) bool
	done  bool // yield returned false

	// torn says that what is read now may stand inside a value whose beginning or end is missing.
	torn bool
	// adjacent are, in torn text, objects directly one behind the other. What follows the last one decides for all.
	adjacent []Value
}

func (r *recovery) run() {
	b := r.doc.b
	for i := 0; i >= 0 && i < len(b) && !r.done; {
		if !r.torn && (isSpace(b[i]) || b[i] == ',') {
			i++
			continue
		}
		i = r.segment(i)
	}
}

// segment reads the value at i, or what there is of it, and returns where to go on; -1 if nothing can follow.
func (r *recovery) segment(i int) int {
	b := r.doc.b
	v, end, msg := r.parse(i)
	for msg != "" {
		r.settle(true)
		if msg == msgEnd {
			return -1
		}
		r.torn = true
		// The token at which the error arose may be the end of the piece together with the beginning of an object
		// behind it, as where a string that was cut ends with the first quote of that object.
		from := max(r.doc.token, i+1)
		c := -1
		if from <= end {
			c = bytes.LastIndexByte(b[from:end+1], '{')
		}
		if c < 0 {
			return r.find(end + 1)
		}
		i = from + c
		failed := end
		if v, end, msg = r.parse(i); msg != "" && end <= failed {
			return r.find(failed + 1)
		}
	}
	if !v.is(KindObject) {
		r.torn = true
		return r.find(end)
	}
	r.adjacent = append(r.adjacent, v)
	if !r.torn {
		r.settle(true)
		return end
	}
	next := end
	for next < len(b) && isSpace(b[next]) {
		next++
	}
	if next < len(b) && b[next] == '{' {
		return next
	}
	r.settle(next == len(b) || b[next] != ',' && b[next] != ']' && b[next] != '}')
	return r.find(end)
}

// parse reads a value, and drops its nodes again if that fails.
func (r *recovery) parse(i int) (v Value, end int, msg string) {
	n := len(r.doc.nodes)
	end, msg = r.doc.value(i)
	if msg != "" {
		r.doc.nodes = r.doc.nodes[:n]
		return Value{}, end, msg
	}
	return Value{r.doc, uint32(n)}, end, ""
}

// settle yields the adjacent objects, or drops them.
func (r *recovery) settle(take bool) {
	for _, v := range r.adjacent {
		if take && !r.done {
			r.done = !r.yield(v)
		}
	}
	r.adjacent = r.adjacent[:0]
}

// find returns where, from i on, an object begins that is not the value of a member or an element, or -1.
func (r *recovery) find(i int) int {
	b := r.doc.b
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '{')
		if n < 0 {
			return -1
		}
		i += n
		p := i - 1
		for p >= 0 && isSpace(b[p]) {
			p--
		}
		if p < 0 || b[p] != ':' && b[p] != '[' && b[p] != ',' {
			return i
		}
		i++
	}
	return -1
}
