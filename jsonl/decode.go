package jsonl

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// ErrUnsupportedFormat is wrapped by the error for a file in another format that shares pi's name for it.
var ErrUnsupportedFormat = errors.New("unsupported session format")

// ErrUndecided is returned when a State is to be resumed that cannot be: see State.Undecided.
var ErrUndecided = errors.New("the header of the session is not decided yet")

// A LineKind says what a physical line holds.
type LineKind uint8

// The kinds of a line.
const (
	LineEntry     LineKind = iota // an entry: an object with a string as id; in a file of version 1 any object but a header
	LineHeader                    // the header
	LineJSON                      // any other JSON value, a later header included
	LineBlank                     // nothing but what JavaScript's trim takes away
	LineMalformed                 // not JSON; see Record.Recovered
)

// String returns the kind in one lower-case word.
func (k LineKind) String() string {
	switch k {
	case LineEntry:
		return "entry"
	case LineHeader:
		return "header"
	case LineJSON:
		return "json"
	case LineBlank:
		return "blank"
	case LineMalformed:
		return "malformed"
	default:
		return "LineKind(" + strconv.Itoa(int(k)) + ")"
	}
}

// An Object is a JSON value found in a line: a header, an entry or another value. Its methods show an entry of a file of
// version 1 or 2 as version 3 has it; Value is what the line says.
type Object struct {
	Value      Value // valid until the next call of Decoder.Next
	Part       int   // 0: the whole line; otherwise which of the objects recovered from the line, from 1
	Start, End int   // byte range in Line.Data

	version int
	at      members
	v1      *assigned
}

// members are the indexes of an object's members that every view needs; 0 where there is none.
type members struct{ typ, id, parent, time, message uint32 }

// assigned is what an entry of version 1 gets from its place in the file.
type assigned struct {
	id     string
	parent string // "" for the first entry
	kept   string // id of the entry that firstKeptEntryIndex means, or ""
}

// NewObject gives the views of v as of an entry or header of the current version.
func NewObject(v Value) Object {
	o := Object{Value: v, version: CurrentVersion, Start: v.Offset(), End: v.Offset() + len(v.Raw())}
	o.findMembers()
	return o
}

func (o *Object) findMembers() {
	if !o.Value.is(KindObject) {
		return
	}
	d := o.Value.d
	for i, end := o.Value.i+1, o.Value.node().aux; i < end; i = d.after(i + 1) {
		n := d.nodes[i]
		raw := d.b[n.start+1 : n.end-1]
		if n.aux != 0 {
			raw, _ = appendDecoded(nil, raw, n.aux, loneReplace)
		}
		switch string(raw) {
		case "type":
			o.at.typ = i + 1
		case "id":
			o.at.id = i + 1
		case "parentId":
			o.at.parent = i + 1
		case "timestamp":
			o.at.time = i + 1
		case "message":
			o.at.message = i + 1
		}
	}
}

func (o Object) member(i uint32) Value {
	if i == 0 {
		return Value{}
	}
	return Value{o.Value.d, i}
}

// A Record is what a Decoder makes of one physical line. It is valid until the next call of Next.
type Record struct {
	Line      Line
	Kind      LineKind
	Err       *SyntaxError // of a malformed line; its offset is one in Line.Data
	Whole     Object       // of a line that is JSON
	Recovered []Object     // the entries found in a malformed line, in order

	one [1]Object
}

// Entries returns the entries of the line, in order: the whole line, or those recovered, or none.
func (r *Record) Entries() []Object {
	if r.Kind == LineEntry {
		r.one[0] = r.Whole
		return r.one[:]
	}
	return r.Recovered
}

// DecoderOptions are the options of NewDecoder.
type DecoderOptions struct {
	// Resume goes on behind the lines that another decoder read, where the stream begins.
	Resume *State
	// MaxLine is how many bytes a line may have, its terminator excluded; 0 means any number. A longer one ends the
	// decoding with a LineTooLongError, and no more than twice so much of it is held.
	MaxLine int64
}

const (
	headerObjects   = 10       // among so many objects the header is looked for
	headerLookahead = 16 << 20 // and not behind more bytes than this of lines that hold none
)

// A Decoder reads the records of a session file from a stream. It is not safe for concurrent use.
type Decoder struct {
	lines *LineReader
	doc   Doc
	rec   Record
	held  []Line // read in search of the header and not returned yet
	err   error  // to be returned behind the lines held

	decided   bool
	header    Header
	hasHeader bool

	state State
}

// NewDecoder reads the file that r streams.
func NewDecoder(r io.Reader, opts *DecoderOptions) *Decoder {
	d := &Decoder{lines: new(LineReader)}
	d.Reset(r, opts)
	return d
}

// Reset makes d read another file, with the memory it has. Its records and states are void, those of State excepted.
func (d *Decoder) Reset(r io.Reader, opts *DecoderOptions) {
	*d = Decoder{lines: d.lines, doc: d.doc, rec: Record{Recovered: d.rec.Recovered[:0]}}
	d.state.Version = CurrentVersion
	if opts != nil && opts.Resume != nil {
		d.state = *opts.Resume
		d.state.Records = append([]int32(nil), d.state.Records...)
		d.decided = d.state.Lines > 0
		if d.decided && d.state.Undecided {
			d.err = ErrUndecided
		}
	}
	d.lines.Reset(r, d.state.Lines+1, d.state.Offset)
	if opts != nil {
		d.lines.max = opts.MaxLine
	}
}

// Next returns the record of the next line, or io.EOF behind the last. The first call also finds the header: for that it
// reads ahead over at most ten objects, and at most 16 MiB of lines without one. It returns an error that wraps ErrUnsupportedFormat for a file of another format,
// ErrUndecided, a LineTooLongError, or an error of the reader; no line is returned behind an error.
func (d *Decoder) Next() (*Record, error) {
	if !d.decided {
		d.decided = true
		d.err = d.findHeader()
	}
	var line Line
	switch {
	case len(d.held) > 0:
		line = d.held[0]
		d.held = d.held[1:]
	case d.err != nil:
		return nil, d.err
	default:
		if line, d.err = d.lines.Next(); d.err != nil {
			return nil, d.err
		}
	}
	d.decode(line)
	d.state.Lines = line.Number
	d.state.Offset = line.Offset + line.Size()
	return &d.rec, nil
}

// Header returns the header of the file, once Next was called; false when there is none, or when a resumed decoder
// has not read its line.
func (d *Decoder) Header() (Header, bool) { return d.header, d.hasHeader }

// HeaderlessSession reports whether the lines read so far have no header and yet are a session: one of them has the
// members type, id, parentId and timestamp.
func (d *Decoder) HeaderlessSession() bool { return d.state.HeaderLine == 0 && d.state.HasEntry }

// State returns what another decoder needs to go on behind the lines read so far. It shares memory with the decoder,
// which only ever adds to it.
func (d *Decoder) State() State { return d.state }

// A State is how far a Decoder came. It can be stored in any form that keeps its fields.
type State struct {
	Offset int64 // bytes read
	Lines  int   // lines read

	// Undecided says that there was no header yet and that one could still follow: the file has to be read again from
	// its start when it has grown.
	Undecided bool

	HeaderLine int  // of the header, 0 if none was found
	HeaderPart int  // which of the objects recovered from that line it is, 0 if it is the whole line
	HasEntry   bool // an entry was found that would make a file without header a session
	Version    int  // which the entries have: 1, 2 or 3

	// For the entries of version 1, whose ids and parents follow from the lines before. Records are the lines of the
	// values so far, 0 for one that is no entry.
	SessionID string  `json:",omitempty"`
	LastID    string  `json:",omitempty"`
	Records   []int32 `json:",omitempty"`
}

var bom = []byte("\ufeff")

// text returns what of a line is to be parsed, and how many bytes stand before.
func text(l Line) ([]byte, int) {
	if l.Offset == 0 && bytes.HasPrefix(l.Data, bom) {
		return l.Data[len(bom):], len(bom)
	}
	return l.Data, 0
}

// findHeader reads lines until the header is known and holds them.
func (d *Decoder) findHeader() error {
	objects, other := 0, int64(0)
	for {
		line, err := d.lines.Next()
		if err != nil {
			d.state.Undecided = true
			return err
		}
		b, _ := text(line)
		before := objects
		found := false
		examine := func(o Object, part int) (goOn bool) {
			objects++
			if objects == 1 {
				err = checkFormat(o.Value)
			}
			found = o.Type() == headerType
			if found {
				d.setHeader(o, line, part)
			}
			return err == nil && !found && objects < headerObjects
		}
		if !IsBlank(b) {
			if d.doc.parse(b) == nil {
				if root := d.doc.Root(); root.is(KindObject) {
					examine(NewObject(root), 0)
				}
			} else {
				part := 0
				d.recover(b, func(v Value) bool {
					o := NewObject(v)
					switch {
					case o.Type() == headerType && o.Value.Get("id").is(KindString):
						return examine(o, part+1)
					case o.isComplete():
						part++
						return examine(o, part)
					}
					return true
				})
			}
		}
		if err != nil {
			return err
		}
		if objects == before {
			other += line.Size()
		}
		if found || objects >= headerObjects || other > headerLookahead {
			d.held = append(d.held, line)
			return nil
		}
		line.Data = bytes.Clone(line.Data)
		d.held = append(d.held, line)
	}
}

// setHeader takes o, the first record of a session in the file, for its header if it has an id.
func (d *Decoder) setHeader(o Object, line Line, part int) {
	id, ok := o.Value.Get("id").Key()
	if !ok {
		return
	}
	d.header, d.hasHeader = newHeader(o, id, line.Number), true
	d.state.HeaderLine, d.state.HeaderPart = line.Number, part
	d.state.Version = viewVersion(o.Value)
	if d.state.Version == 1 {
		d.state.SessionID = id
	}
}

// checkFormat refuses the formats whose first record is not one of pi's sessions.
func checkFormat(first Value) error {
	if !first.Get("kind").IsString("header") {
		return nil
	}
	is4 := func(name string) bool {
		f, ok := first.Get(name).Float()
		return ok && f == 4
	}
	switch {
	case is4("version"):
		return fmt.Errorf("%w: an agent session of storage version 4 with lanes and records (kind \"header\", version 4)", ErrUnsupportedFormat)
	case is4("v"):
		return fmt.Errorf("%w: an agent session of storage version 4 with transactions (kind \"header\", v 4)", ErrUnsupportedFormat)
	}
	return nil
}

// decode makes d.rec of a line.
func (d *Decoder) decode(line Line) {
	r := &d.rec
	*r = Record{Line: line, Recovered: r.Recovered[:0]}
	b, skipped := text(line)
	if len(b) == 0 || b[0] != '{' && IsBlank(b) {
		r.Kind = LineBlank
		return
	}
	if r.Err = d.doc.parse(b); r.Err != nil {
		r.Err.Offset += skipped
		r.Kind = LineMalformed
		d.decodeRecovered(b, skipped)
		return
	}
	r.Whole = d.object(d.doc.Root(), skipped)
	o := &r.Whole
	switch {
	case !o.Value.is(KindObject):
		r.Kind = LineJSON
	case o.Type() == headerType:
		r.Kind = LineJSON
		if line.Number == d.state.HeaderLine && d.state.HeaderPart == 0 {
			r.Kind = LineHeader
			if !d.hasHeader {
				d.setHeader(*o, line, 0)
			}
		}
	case d.state.Version == 1, o.member(o.at.id).is(KindString):
		r.Kind = LineEntry
		d.state.HasEntry = d.state.HasEntry || o.at.typ != 0 && o.at.id != 0 && o.at.parent != 0 && o.at.time != 0
	default:
		r.Kind = LineJSON
	}
	if d.state.Version == 1 {
		isEntry := r.Kind == LineEntry
		if o.Value.Truthy() {
			index := int32(0)
			if isEntry {
				index = int32(line.Number)
			}
			d.state.Records = append(d.state.Records, index)
		}
		if isEntry {
			d.assign(o)
		}
	}
}

func (d *Decoder) object(v Value, skipped int) Object {
	o := NewObject(v)
	o.Start += skipped
	o.End += skipped
	o.version = d.state.Version
	return o
}

func (d *Decoder) decodeRecovered(b []byte, skipped int) {
	r := &d.rec
	d.recover(b, func(v Value) bool {
		o := d.object(v, skipped)
		if o.isComplete() {
			d.state.HasEntry = d.state.HasEntry || o.at.id != 0 && o.at.parent != 0
			o.Part = len(r.Recovered) + 1
			if o.version == 1 {
				d.assign(&o)
			}
			r.Recovered = append(r.Recovered, o)
		}
		return true
	})
}

// isComplete reports whether an object that stands amid other text is an entry by itself.
func (o Object) isComplete() bool {
	typ := o.member(o.at.typ)
	if !typ.is(KindString) || typ.IsString(headerType) || o.at.time == 0 {
		return false
	}
	if o.version == 1 {
		return true
	}
	parent := o.member(o.at.parent).Kind()
	return o.member(o.at.id).is(KindString) && (parent == KindString || parent == KindNull)
}

// assign gives an entry of version 1 its id and its parent.
func (d *Decoder) assign(o *Object) {
	s := &d.state
	a := &assigned{id: assignedID(s.SessionID, d.rec.Line.Number, o.Part), parent: s.LastID}
	o.v1 = a
	s.LastID = a.id
	if o.Type() != "compaction" {
		return
	}
	f, ok := o.Value.Get("firstKeptEntryIndex").Float()
	if i := int(f); ok && float64(i) == f && i >= 0 && i < len(s.Records) && s.Records[i] != 0 {
		a.kept = assignedID(s.SessionID, int(s.Records[i]), 0)
	}
}

// assignedID is the id of an entry that has none of its own.
func assignedID(session string, line, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d\n%d", session, line, part))
	return hex.EncodeToString(sum[:8])
}
