package repo

import (
	"context"
	"errors"

	"pidb/jsonl"
	"pidb/query"
)

// none stands for a row that is not there, where rows are named by their seq.
const none = -1

// row is a row of the entry table in the making. Rows name each other by seq.
type row struct {
	seq        int64
	line       int64
	part       int64
	start      int64
	size       int64
	ending     int64
	kind       string
	typ        *string
	role       *string
	id         *string
	parent     int64
	orphan     *string
	top        bool
	loop       int64 // 0: in no cycle
	ms         *int64
	digest     *int64
	target     *string
	value      *string
	depth      int64
	compaction int64
	kept       int64
	setting    setting
	usage      *jsonl.Usage
	usedBy     model
}

// link is what the session's shape needs to know of a row.
type link struct {
	id         string
	entry      bool
	parent     int64
	loop       int64
	top        bool
	parented   bool // has a child
	depth      int64
	compaction int64
	kept       int64
	setting    setting
}

// model names a model as an entry does.
type model struct{ provider, name *string }

// setting is a row of the setting table.
type setting struct {
	model    model
	hasModel bool
	thinking *string
}

var off = "off"

// maxTime is the latest time that JavaScript's Date can hold, in milliseconds (ECMA-262, TimeClip).
const maxTime = 8.64e15

// summary is what the session row holds of the lines.
type summary struct {
	lines, bytes, rows        int64
	messages, entries, tips   int64
	problems                  int64
	name, firstMessage, model *string
	activity                  *int64
	tokens                    int64
	cost                      float64
	leaf                      int64
}

// ancestry answers questions about rows that are in the archive already, for a session
// that goes on.
type ancestry interface {
	// last returns the last row with an entry id, or none.
	last(ctx context.Context, id string) (int64, error)
	// link returns a row. Its id and kept are not needed.
	link(ctx context.Context, seq int64) (link, error)
	// awaited reports whether an orphan waits for an entry id.
	awaited(ctx context.Context, id string) (bool, error)
	// rootmost returns the row nearest the root with an entry id on the path that ends at seq, or none.
	rootmost(ctx context.Context, seq int64, id string) (int64, error)
}

// builder turns the lines of a session into rows and resolves parents as they come.
type builder struct {
	first   int64 // seq of the first row that is in links; those before are in old
	old     ancestry
	links   []link
	last    map[string]int64   // newest row of an entry id
	waiting map[string][]int64 // orphans by the id they wait for
	cached  map[int64]*link    // rows from old
	forward bool               // a parent came after its child: finish has to look at the whole
	sent    int64              // rows with a smaller seq were taken already

	rows     []row // not taken yet
	fixes    []row // taken before, changed since
	sum      summary
	strings  map[string]*string // one copy of words that come again and again
	texts    *documents         // the text of entries for the search index; nil: none is kept
	led      bool               // texts has had the first message
	segments []jsonl.Segment    // scratch, as decoded is
	decoded  []byte
}

func newBuilder(first int64, old ancestry, sum summary) *builder {
	return &builder{
		first: first, old: old, sent: first, sum: sum,
		last: map[string]int64{}, waiting: map[string][]int64{}, cached: map[int64]*link{}, strings: map[string]*string{},
	}
}

// errReparse asks for the whole session to be read again: a line that goes on with it
// changes what earlier rows mean.
var errReparse = errors.New("a parent arrived after its child")

// add takes a line.
func (b *builder) add(ctx context.Context, rec *jsonl.Record) error {
	whole := row{
		line: int64(rec.Line.Number), start: rec.Line.Offset, size: int64(len(rec.Line.Data)), ending: int64(rec.Line.Terminator.Len()),
	}
	b.sum.lines++
	b.sum.bytes += rec.Line.Size()
	switch rec.Kind {
	case jsonl.LineEntry:
		whole.kind = "entry"
		return b.addEntry(ctx, whole, rec.Whole)
	case jsonl.LineHeader:
		whole.kind = "session"
		b.addOther(whole)
	case jsonl.LineJSON:
		whole.kind = "json"
		if rec.Whole.Value.Get("type").IsString("session") {
			whole.kind = "session"
		}
		b.addOther(whole)
	case jsonl.LineBlank:
		whole.kind = "blank"
		b.addOther(whole)
	default:
		whole.kind = "malformed"
		b.sum.problems++
		b.addOther(whole)
		for _, object := range rec.Recovered {
			recovered := whole
			recovered.kind, recovered.part = "entry", int64(object.Part)
			recovered.start, recovered.size = rec.Line.Offset+int64(object.Start), int64(object.End-object.Start)
			if err := b.addEntry(ctx, recovered, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// addOther takes a row that is no entry.
func (b *builder) addOther(r row) {
	r.parent, r.depth, r.compaction, r.kept = none, none, none, none
	b.push(r, link{parent: none, depth: none, compaction: none, kept: none})
}

func (b *builder) push(r row, l link) {
	r.seq = b.first + int64(len(b.links))
	b.links = append(b.links, l)
	b.rows = append(b.rows, r)
	b.sum.rows = r.seq + 1
}

func (b *builder) addEntry(ctx context.Context, r row, o jsonl.Object) error {
	seq := b.first + int64(len(b.links))
	id, _ := o.ID()
	r.id = &id
	r.typ, r.role = b.word(o.Type()), b.word(o.Role())
	if ms, ok := o.Timestamp(); ok {
		r.ms = &ms
	}
	if err := b.resolve(ctx, &r, o, seq, id); err != nil {
		return err
	}
	if err := b.inherit(ctx, &r, o, seq, id); err != nil {
		return err
	}
	b.describe(&r, o)
	if b.texts != nil && len(b.segments) > 0 {
		b.keepText(seq, &r, o)
	}
	b.summarise(&r, o)
	b.push(r, link{
		id: id, entry: true, parent: r.parent, loop: r.loop, top: r.top,
		depth: r.depth, compaction: r.compaction, kept: r.kept, setting: r.setting,
	})
	b.sum.leaf = seq
	b.last[id] = seq
	return b.adopt(ctx, seq, id)
}

// keepText keeps the text of an entry, whose segments describe has left in b.segments.
func (b *builder) keepText(seq int64, r *row, o jsonl.Object) {
	doc := document{seq: seq, typ: r.typ, role: r.role, failed: query.IsError(o)}
	if r.ms != nil {
		doc.ms = *r.ms
	}
	doc.lead = !b.led && r.role != nil && *r.role == "user"
	b.led = b.led || doc.lead
	b.texts.add(doc, b.segments)
}

// resolve finds the parent: the nearest earlier row with that id; while there is none,
// the entry is a root that waits for it.
func (b *builder) resolve(ctx context.Context, r *row, o jsonl.Object, seq int64, id string) error {
	r.parent = none
	parentID, _, ok := o.ParentID()
	if ok && parentID != "" {
		parent, err := b.find(ctx, parentID)
		if err != nil {
			return err
		}
		switch {
		case parent != none:
			r.parent = parent
		case parentID == id:
			r.loop = 1
		default:
			r.orphan = &parentID
			b.waiting[parentID] = append(b.waiting[parentID], seq)
		}
	}
	r.top = r.parent == none
	b.sum.tips++
	if r.parent == none {
		return nil
	}
	l, err := b.at(ctx, r.parent)
	if err != nil {
		return err
	}
	if !l.parented {
		l.parented = true
		b.sum.tips--
	}
	return nil
}

// adopt gives a new row to the orphans that waited for its id.
func (b *builder) adopt(ctx context.Context, seq int64, id string) error {
	orphans, awaited := b.waiting[id]
	if b.old != nil && !awaited {
		var err error
		if awaited, err = b.old.awaited(ctx, id); err != nil {
			return err
		}
	}
	if !awaited {
		return nil
	}
	if b.old != nil {
		return errReparse
	}
	delete(b.waiting, id)
	b.forward = true
	for _, orphan := range orphans {
		b.links[orphan].parent = seq
	}
	return nil
}

// find returns the newest row with an entry id, or none.
func (b *builder) find(ctx context.Context, id string) (int64, error) {
	if seq, ok := b.last[id]; ok {
		return seq, nil
	}
	if b.old == nil {
		return none, nil
	}
	return b.old.last(ctx, id)
}

// at returns a row by seq.
func (b *builder) at(ctx context.Context, seq int64) (*link, error) {
	if seq >= b.first {
		return &b.links[seq-b.first], nil
	}
	if l, ok := b.cached[seq]; ok {
		return l, nil
	}
	l, err := b.old.link(ctx, seq)
	if err != nil {
		return nil, err
	}
	b.cached[seq] = &l
	return &l, nil
}

// inherit carries what the path from the root gives: depth, latest compaction, model
// and thinking level.
func (b *builder) inherit(ctx context.Context, r *row, o jsonl.Object, seq int64, id string) error {
	r.compaction, r.kept = none, none
	r.setting = setting{thinking: &off}
	if r.parent != none {
		parent, err := b.at(ctx, r.parent)
		if err != nil {
			return err
		}
		if parent.depth == none {
			r.depth = none
			return nil
		}
		r.depth = parent.depth + 1
		r.compaction, r.setting = parent.compaction, parent.setting
	}
	switch {
	case r.typ == nil:
	case *r.typ == "thinking_level_change":
		r.setting.thinking = b.text(o.Value.Get("thinkingLevel"))
	case *r.typ == "model_change":
		r.setting.model = model{b.text(o.Value.Get("provider")), b.text(o.Value.Get("modelId"))}
		r.setting.hasModel = true
	case *r.typ == "message" && r.role != nil && *r.role == "assistant":
		message := o.Value.Get("message")
		r.setting.model = model{b.text(message.Get("provider")), b.text(message.Get("model"))}
		r.setting.hasModel = true
	case *r.typ == "compaction":
		r.compaction = seq
		kept, err := b.keeps(ctx, r, o, id)
		if err != nil {
			return err
		}
		r.kept = kept
	}
	return nil
}

// keeps returns the first kept row of a compaction: the one nearest the root, on the
// path above it, with the id that firstKeptEntryId names (pi's buildContextEntries).
func (b *builder) keeps(ctx context.Context, r *row, o jsonl.Object, id string) (int64, error) {
	compaction, ok := o.Compaction()
	if !ok || compaction.FirstKeptEntryID == "" {
		return none, nil
	}
	found := int64(none)
	seq := r.parent
	for seq >= b.first {
		l := &b.links[seq-b.first]
		if l.id == compaction.FirstKeptEntryID {
			found = seq
		}
		seq = l.parent
	}
	if seq == none || b.old == nil {
		return found, nil
	}
	older, err := b.old.rootmost(ctx, seq, compaction.FirstKeptEntryID)
	if err != nil || older == none {
		return found, err
	}
	return older, nil
}

// String returns provider/name, what is known of it, or nil.
func (m model) String() *string {
	switch {
	case m.name == nil:
		return m.provider
	case m.provider == nil:
		return m.name
	}
	s := *m.provider + "/" + *m.name
	return &s
}

// word returns a shared copy of a string, or nil for an empty one.
func (b *builder) word(s string) *string {
	if s == "" {
		return nil
	}
	if p, ok := b.strings[s]; ok {
		return p
	}
	if len(b.strings) < 1<<12 {
		b.strings[s] = &s
	}
	return &s
}

// text returns a string value, or nil for another.
func (b *builder) text(v jsonl.Value) *string {
	s, ok := v.Text()
	if !ok {
		return nil
	}
	if s == "" {
		return &s
	}
	return b.word(s)
}
