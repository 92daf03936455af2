package repo

import (
	"context"
	"sync"

	"pidb/jsonl"
	"pidb/query"
	"pidb/query/fulltext"
)

// documents is the text of entries on its way from an import to the search index, so that
// it need not be read from the archive again.
type documents struct {
	list     []document
	segments []textSegment
	text     []byte
	lacking  bool // a text was too large to be kept: all is read from the archive later
}

// document is an entry with text.
type document struct {
	seq, ms   int64
	typ, role *string
	failed    bool // it has query.ErrorTag
	lead      bool // the first message of its session
	segments  int  // how many of the segments are its own
}

// textSegment is a part of the text of an entry.
type textSegment struct {
	kind jsonl.SegmentKind
	tool string
	size int
}

// add takes the segments of an entry.
func (d *documents) add(doc document, segments []jsonl.Segment) {
	size := len(d.text)
	for i := range segments {
		size += len(segments[i].Text)
	}
	if d.lacking = d.lacking || size > handMemory; d.lacking {
		d.text = nil
		return
	}
	doc.segments = len(segments)
	d.list = append(d.list, doc)
	for i := range segments {
		s := &segments[i]
		d.segments = append(d.segments, textSegment{s.Kind, s.Tool, len(s.Text)})
		d.text = append(d.text, s.Text...)
	}
}

// handed is the documents of a part that was committed.
type handed struct {
	session query.Key
	nonce   int64
	before  int64 // rows of the session before the part
	rows    int64 // and with it
	bytes   int64 // of the session
	documents
}

// handMemory is how much text waits for the feeder at most, in bytes. What comes while
// so much does is read from the archive later.
const handMemory = 12 << 20

// hand is a queue of documents for the feeder.
type hand struct {
	mu    sync.Mutex
	queue []handed
	size  int
	more  chan struct{} // of capacity one: there is more, or something to read from the archive
}

// give adds the documents of a part.
func (h *hand) give(d handed) {
	h.mu.Lock()
	if h.size < handMemory {
		h.queue = append(h.queue, d)
		h.size += len(d.text)
	}
	h.mu.Unlock()
	select {
	case h.more <- struct{}{}:
	default:
	}
}

// take returns what is next.
func (h *hand) take() (handed, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return handed{}, false
	}
	d := h.queue[0]
	h.queue[0] = handed{}
	h.queue = h.queue[1:]
	h.size -= len(d.text)
	return d, true
}

// put puts documents into the builder, unless the index has others of the session, which
// the archive then has to tell.
func (f *feeder) put(ctx context.Context, d *handed) error {
	p := f.pending[d.session]
	switch {
	case p == nil && d.before == 0:
		p = &pending{session: stale{Key: d.session, Nonce: d.nonce, Bytes: d.bytes}}
	case p != nil && p.session.Nonce == d.nonce && p.rows == d.before:
	default:
		return nil
	}
	segments, text := d.segments, d.text
	for i := range d.list {
		doc := &d.list[i]
		f.builder.Begin(int64(d.session), d.nonce, doc.seq, doc.ms, doc.lead)
		tagDocument(&f.builder, text0(doc.typ), text0(doc.role), doc.failed)
		tool := ""
		for _, s := range segments[:doc.segments] {
			if s.tool != "" && s.tool != tool {
				tool = s.tool
				f.builder.Tag(query.ToolTag(tool))
			}
			f.builder.Add(query.FieldOf(s.kind), text[:s.size])
			text = text[s.size:]
		}
		segments = segments[doc.segments:]
		f.builder.End()
	}
	f.note(&p.session, d.rows)
	if f.builder.Size() >= feedMemory {
		return f.flush(ctx)
	}
	return nil
}

func text0(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// tagDocument adds what can be asked of an entry beside its text.
func tagDocument(b *fulltext.Builder, entryType, role string, failed bool) {
	for tag := range query.Tags(entryType, role, failed) {
		b.Tag(tag)
	}
}
