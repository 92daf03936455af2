package jsonl

import "math"

const headerType = "session"

// A Header is the first record of a session.
type Header struct {
	Version int // 1, 2, 3 or more
	ID      string
	Line    int

	Timestamp    string // as text; "" if it is no string
	HasTimestamp bool   // it is a string
	CreatedMS    int64  // as time
	HasCreated   bool   // it is a time

	CWD              string
	HasCWD           bool
	ParentSession    string
	HasParentSession bool

	Raw []byte // the object as it stands in the file
}

// newHeader copies what it needs of o.
func newHeader(o Object, id string, line int) Header {
	h := Header{ID: id, Line: line, Raw: append([]byte(nil), o.Value.Raw()...)}
	h.Version = headerVersion(o.Value)
	timestamp := o.member(o.at.time)
	h.Timestamp, h.HasTimestamp = timestamp.Text()
	h.CreatedMS, h.HasCreated = ParseTime(timestamp)
	h.CWD, h.HasCWD = o.Value.Get("cwd").Text()
	h.ParentSession, h.HasParentSession = o.Value.Get("parentSession").Text()
	return h
}

func headerVersion(header Value) int {
	v := header.Get("version")
	if k := v.Kind(); k == KindAbsent || k == KindNull {
		return 1
	}
	switch f := v.number(); {
	case math.IsNaN(f):
		return CurrentVersion
	case f < 2:
		return 1
	default:
		return int(min(f, math.MaxInt32))
	}
}

// viewVersion returns which migrations the entries need.
func viewVersion(header Value) int { return min(headerVersion(header), CurrentVersion) }
