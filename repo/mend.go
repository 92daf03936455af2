package repo

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// mended is what an entry has to say of itself in a copy so that pi, for which the last
// line with an id stands for all of them, reads the same tree from it. A nil stays as it is.
type mended struct {
	id     *string
	parent *jsonl.ParentRef
	target *string
}

// mending is what has to change in a copy of entries. The nil one changes nothing.
type mending struct {
	changes map[query.Ref]*mended
	taken   map[string]bool        // ids that a new one must not have
	lines   map[string][]query.Ref // entries of the ids that come more than once, in the order given
	repeats map[query.Ref]bool     // entries that share their id with an earlier one
	parents map[query.Ref]query.Ref
	ids     map[query.Ref]string // as they were
	places  map[query.LineNumber]query.Ref
}

// needsMending reports whether pi would read another tree from the lines of a session: an
// id comes twice, or parents make a cycle.
func (tx *Tx) needsMending(ctx context.Context, session query.Key) (bool, error) {
	var needs bool
	err := tx.tx.GetContext(ctx, &needs, `
		SELECT EXISTS (SELECT 1 FROM entry WHERE ref >= ?1 AND ref < ?2 AND loop IS NOT NULL)
			OR EXISTS (SELECT 1 FROM entry WHERE ref >= ?1 AND ref < ?2 AND kind = 'entry' GROUP BY id HAVING count(*) > 1)`,
		query.MakeRef(session, 0), query.MakeRef(session+1, 0))
	return needs, err
}

// mend returns what has to change in a copy of a whole session with the given leaf. A
// cycle of parents is cut where the walk from the leaf ends, or above its earliest line.
func (tx *Tx) mend(ctx context.Context, session query.Key, leaf query.Ref) (*mending, error) {
	needs, err := tx.needsMending(ctx, session)
	if err != nil || !needs {
		return nil, err
	}
	var entries []query.Entry
	for e, err := range tx.Entries(ctx, session, nil) {
		if err != nil {
			return nil, err
		}
		if e.Kind == query.KindEntry {
			entries = append(entries, e)
		}
	}
	m := newMending(entries)
	for i := range entries {
		m.parents[entries[i].Ref] = entries[i].Parent
	}
	walked := map[query.Ref]bool{}
	for ref := leaf; ref != 0; ref = m.parents[ref] {
		walked[ref] = true
		if walked[m.parents[ref]] {
			m.cut(ref)
		}
	}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Parent == 0 && e.Top && (e.ParentID == "" || e.ParentID == e.ID):
			m.cut(e.Ref) // it names itself, or says nothing that pi would read
		case e.Parent != 0 && e.Top && !walked[e.Ref]:
			m.cut(e.Ref)
		}
	}
	return m, m.settle(entries)
}

// mendPath returns what has to change in a copy of a path, its root first.
func mendPath(path []query.Entry) (*mending, error) {
	m := newMending(path)
	for i := range path {
		m.parents[path[i].Ref] = 0
		if i > 0 {
			m.parents[path[i].Ref] = path[i-1].Ref
		}
	}
	if len(path) > 0 && (path[0].Parent != 0 || path[0].ParentID == "" || path[0].ParentID == path[0].ID) {
		m.cut(path[0].Ref)
	}
	return m, m.settle(path)
}

func newMending(entries []query.Entry) *mending {
	m := &mending{
		changes: map[query.Ref]*mended{}, taken: map[string]bool{}, lines: map[string][]query.Ref{}, repeats: map[query.Ref]bool{},
		parents: map[query.Ref]query.Ref{}, ids: map[query.Ref]string{}, places: map[query.LineNumber]query.Ref{},
	}
	first := make(map[string]query.Ref, len(entries))
	for i := range entries {
		e := &entries[i]
		m.ids[e.Ref], m.places[e.Line] = e.ID, e.Ref
		m.taken[e.ParentID], m.taken[e.Target] = true, true
		at, repeated := first[e.ID]
		switch {
		case !repeated:
			first[e.ID], m.taken[e.ID] = e.Ref, true
		case m.lines[e.ID] == nil:
			m.lines[e.ID] = []query.Ref{at, e.Ref}
		default:
			m.lines[e.ID] = append(m.lines[e.ID], e.Ref)
		}
		m.repeats[e.Ref] = repeated
	}
	return m
}

// change returns what changes in an entry, to be filled in.
func (m *mending) change(ref query.Ref) *mended {
	c := m.changes[ref]
	if c == nil {
		c = &mended{}
		m.changes[ref] = c
	}
	return c
}

// cut makes an entry a root.
func (m *mending) cut(ref query.Ref) {
	m.parents[ref] = 0
	m.change(ref).parent = &jsonl.ParentRef{Null: true}
}

// link gives an entry that changes another parent.
func (m *mending) link(ref query.Ref, parent jsonl.ParentRef) {
	if c := m.changes[ref]; c != nil {
		c.parent = &parent
	}
}

// settle gives new ids to the entries that repeat one, and names them where others mean them.
func (m *mending) settle(entries []query.Entry) error {
	for i := range entries {
		if !m.repeats[entries[i].Ref] {
			continue
		}
		id, err := newEntryID(uuid.NewString, func(id string) (bool, error) { return m.taken[id], nil })
		if err != nil {
			return err
		}
		m.taken[id] = true
		m.change(entries[i].Ref).id = &id
	}
	for i := range entries {
		e := &entries[i]
		if parent := m.parents[e.Ref]; parent != 0 && m.repeats[parent] {
			m.change(e.Ref).parent = &jsonl.ParentRef{ID: m.id(parent)}
		}
		if m.lines[e.Target] == nil {
			continue
		}
		switch e.Type {
		case "label", "context_edit", "compaction":
			id := m.id(m.meant(e))
			m.change(e.Ref).target = &id
		}
	}
	return nil
}

// meant returns the entry that another one names as its target, of those that share the
// id: for a compaction the one nearest the root on its path, for an edit the nearest on
// its path, for a label the last one, for which pidb shows it; else the nearest earlier
// line, else the first later one.
func (m *mending) meant(e *query.Entry) query.Ref {
	lines := m.lines[e.Target]
	if e.Type == "label" {
		return lines[len(lines)-1]
	}
	var found query.Ref
	for ref := m.parents[e.Ref]; ref != 0; ref = m.parents[ref] {
		if m.ids[ref] != e.Target {
			continue
		}
		found = ref
		if e.Type == "context_edit" {
			break
		}
	}
	if found != 0 {
		return found
	}
	if e.Target == e.ID {
		return e.Ref
	}
	earlier := slices.IndexFunc(lines, func(ref query.Ref) bool { return ref >= e.Ref })
	if earlier < 0 {
		earlier = len(lines)
	}
	return lines[max(earlier-1, 0)]
}

// id returns the id of an entry in the copy.
func (m *mending) id(ref query.Ref) string {
	if c := m.changes[ref]; c != nil && c.id != nil {
		return *c.id
	}
	return m.ids[ref]
}

// line returns the line of an entry in normal form with its changes made. The result may
// be the line itself.
func (m *mending) line(doc *jsonl.Doc, ref query.Ref, line []byte) ([]byte, error) {
	if m == nil || m.changes[ref] == nil {
		return line, nil
	}
	c := m.changes[ref]
	if err := doc.Parse(line); err != nil {
		return nil, err
	}
	root := doc.Root()
	var cuts []splice
	replace := func(name string, text []byte) {
		if v := root.Get(name); v.Exists() {
			cuts = append(cuts, splice{v.Offset(), v.Offset() + len(v.Raw()), text})
		}
	}
	if c.id != nil {
		replace("id", jsonl.AppendKey(nil, *c.id))
	}
	switch {
	case c.parent == nil:
	case c.parent.Null:
		replace("parentId", []byte("null"))
	default:
		replace("parentId", jsonl.AppendKey(nil, c.parent.ID))
	}
	if c.target != nil {
		name := "targetId"
		if root.Get("type").IsString("compaction") {
			name = "firstKeptEntryId"
		}
		replace(name, jsonl.AppendKey(nil, *c.target))
	}
	return spliced(line, cuts), nil
}

// splice is text that stands in place of a part of a line.
type splice struct {
	start, end int
	text       []byte
}

// spliced returns a line with its parts replaced.
func spliced(line []byte, cuts []splice) []byte {
	slices.SortFunc(cuts, func(a, b splice) int { return cmp.Compare(a.start, b.start) })
	var out bytes.Buffer
	at := 0
	for _, c := range cuts {
		out.Write(line[at:c.start])
		out.Write(c.text)
		at = c.end
	}
	out.Write(line[at:])
	return out.Bytes()
}
