package redact

import (
	"bytes"
	"hash/maphash"
)

// manyLines bounds the memory for lines without a finding.
const manyLines = 1 << 22

// findLine returns the findings in a line, by place, without overlaps. They are valid until
// the next call.
func (r *Redactor) findLine(line []byte) []finding {
	r.found = r.found[:0]
	h := maphash.Bytes(r.seed, line)
	if _, r.noRule = r.clean[h]; r.noRule && len(r.known.secrets) == 0 {
		return nil
	}
	r.ruled = false
	found := r.findStrings(line)
	if !r.noRule && !r.ruled && len(r.clean) < manyLines {
		r.clean[h] = struct{}{}
	}
	return found
}

func (r *Redactor) findStrings(line []byte) []finding {
	body := bytes.TrimPrefix(line, []byte("\ufeff"))
	if r.doc.Parse(body) != nil {
		r.found = r.search(line, r.found, deepest)
		return resolve(line, r.found)
	}
	offset := len(line) - len(body)
	for at := offset; ; {
		name, ok := nextString(line, at)
		if !ok {
			return resolve(line, r.found)
		}
		at = name.end + 1
		next := skipSpace(line, at)
		if next == len(line) || line[next] != ':' {
			r.findValue(line, name)
			continue
		}
		r.findName(line, name)
		if next = skipSpace(line, next+1); line[next] == '"' {
			value, _ := nextString(line, next)
			at = value.end + 1
			r.findValue(line, value)
			r.findMember(line, name, value)
		}
	}
}

// A literal is a JSON string in a line, without its quotes.
type literal struct {
	start, end int
	escapes    bool
}

func (l literal) raw(line []byte) []byte { return line[l.start:l.end] }

// text returns a string as it reads, and where it stood in the line, until the next call.
func (r *Redactor) text(line []byte, l literal) decoded {
	if !l.escapes {
		r.runs = append(r.runs[:0], run{0, l.start, l.end - l.start})
		return decoded{l.raw(line), r.runs}
	}
	d := decode(decoded{r.unescaped, r.runs}, l.raw(line), l.start)
	r.unescaped, r.runs = d.text, d.runs
	if cap(r.unescaped) > keepRest {
		r.unescaped, r.runs = nil, nil
	}
	return d
}

// nextString returns the first string in a JSON text from a place on that is in no string.
func nextString(line []byte, at int) (literal, bool) {
	n := bytes.IndexByte(line[at:], '"')
	if n < 0 {
		return literal{}, false
	}
	l := literal{start: at + n + 1}
	for l.end = l.start; ; l.end++ {
		l.end += bytes.IndexByte(line[l.end:], '"')
		first := l.end
		for first > l.start && line[first-1] == '\\' {
			first--
		}
		if (l.end-first)%2 == 0 {
			l.escapes = bytes.IndexByte(l.raw(line), '\\') >= 0
			return l, true
		}
	}
}

func skipSpace(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
		at++
	}
	return at
}

func (r *Redactor) findValue(line []byte, value literal) {
	if isImage(value.raw(line)) {
		return
	}
	from := len(r.found)
	text := r.text(line, value)
	r.found = r.search(text.text, r.found, deepest)
	place(&text, r.found[from:])
}

// findName is findValue for the name of a member.
func (r *Redactor) findName(line []byte, name literal) {
	key := name.raw(line)
	if r.plain[string(key)] {
		return
	}
	from := len(r.found)
	r.findValue(line, name)
	if len(r.found) == from && !r.noRule && len(r.plain) < manyNames && len(key) <= longName {
		r.plain[string(key)] = true
	}
}

// place turns offsets in a text into those in what it was read from.
func place(text *decoded, found []finding) {
	for i := range found {
		f := &found[i]
		f.start, f.end = text.start(f.start), text.end(f.end)
	}
}

const (
	longName   = 256  // bytes of a name that is not searched together with its value
	longMember = 4096 // and of a value
	manyNames  = 4096
)

// findMember finds what only the name of its member shows to be a secret.
func (r *Redactor) findMember(line []byte, name, value literal) {
	if r.noRule || name.end-name.start > longName || value.end-value.start > longMember {
		return
	}
	key := name.raw(line)
	tells, ok := r.tells[string(key)]
	if !ok {
		tells = r.finder.any(r.text(line, name).text)
		if len(r.tells) < manyNames {
			r.tells[string(key)] = tells
		}
	}
	if !tells {
		return
	}
	r.member = append(append(r.member[:0], r.text(line, name).text...), `":"`...)
	begin := len(r.member)
	text := r.text(line, value)
	r.member = append(append(r.member, text.text...), '"')
	end := len(r.member) - 1
	from := len(r.found)
	r.found = r.find(r.member, r.found)
	if left, blank := withoutSequences(r.member); blank != nil {
		from := len(r.found)
		r.found = r.find(left.text, r.found)
		place(&left, r.found[from:])
	}
	kept := r.found[:from]
	for _, f := range r.found[from:] {
		start, stop := max(f.start, begin), min(f.end, end)
		if start >= stop {
			continue
		}
		f.start, f.end = text.start(start-begin), text.end(stop-begin)
		f.secret = string(r.member[start:stop])
		kept = append(kept, f)
		r.ruled = true
	}
	r.found = kept
}

// deepest is how often a text is read as the inside of a JSON string once more.
const deepest = 3

// search appends what is found in a text, also where that holds JSON in strings.
func (r *Redactor) search(text []byte, found []finding, depth int) []finding {
	found = r.searchPlain(text, found)
	if left, blank := withoutSequences(text); blank != nil {
		found = r.searchPlain(blank, found)
		from := len(found)
		found = r.searchPlain(left.text, found)
		place(&left, found[from:])
	}
	if depth == 0 || !hasQuoted(text) {
		return found
	}
	inner := decode(decoded{}, text, 0)
	from := len(found)
	found = r.search(inner.text, found, depth-1)
	place(&inner, found[from:])
	return found
}

// searchPlain appends what rules find in a text, and the secrets that are known.
func (r *Redactor) searchPlain(text []byte, found []finding) []finding {
	if !r.noRule {
		from := len(found)
		found = r.find(text, found)
		r.ruled = r.ruled || len(found) > from
	}
	r.known.each(text, func(at int, s *secret) {
		found = append(found, finding{at, at + len(s.text), s.text, s.rule})
	})
	return found
}

// hasQuoted reports whether a text seems to hold a JSON string with escapes.
func hasQuoted(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		switch text[i+1] {
		case '"', '/', 'u':
			return true
		case '\\':
			i++
		}
		text = text[i+1:]
	}
}
