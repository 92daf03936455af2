package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// ExtractOptions are the choices of [Archive.Extract].
type ExtractOptions struct {
	ID       string         // of the new session; empty means a new UUIDv7
	Metadata map[string]any // nil means that of the old one
}

// Extract makes a session of the path to an entry, as pi's createBranchedSession does:
// without label entries, each entry under the one before it; the labels that the entries
// have now, wherever they were set, follow at the end with the times when they were set;
// a compaction that kept from a label on keeps from the entry behind the label on. It is
// born here, its ParentSession is that of an [Archive.Fork], and so are the ids that it has
// for repeated ones. Errors wrap
// [ErrNotFound], [ErrInvalidID], [ErrExists] and [ErrDamaged].
func (a *Archive) Extract(ctx context.Context, leaf query.Ref, opts *ExtractOptions) (*Session, error) {
	if opts == nil {
		opts = &ExtractOptions{}
	}
	s, err := a.bear(ctx, func(tx *Tx) (*birth, error) { return tx.extract(ctx, leaf, opts) })
	if err != nil {
		return nil, fmt.Errorf("extract from session #%d: %w", leaf.Session(), err)
	}
	return s, nil
}

func (tx *Tx) extract(ctx context.Context, leaf query.Ref, opts *ExtractOptions) (*birth, error) {
	b, session, err := tx.descend(ctx, leaf.Session(), opts.ID, opts.Metadata)
	if err != nil {
		return nil, err
	}
	path, err := tx.path(ctx, session.Key, leaf)
	if err != nil {
		return nil, err
	}
	m, err := mendPath(path)
	if err != nil {
		return nil, err
	}
	var entries []query.Entry
	var parents []jsonl.ParentRef
	var pending []string           // ids of labels that no entry has followed yet
	instead := map[string]string{} // id of the entry that followed a label
	parent := jsonl.ParentRef{Null: true}
	for i := range path {
		e := &path[i]
		if e.Type == "label" {
			pending = append(pending, m.id(e.Ref))
			continue
		}
		for _, label := range pending {
			instead[label] = m.id(e.Ref)
		}
		pending = nil
		m.link(e.Ref, parent)
		entries, parents = append(entries, *e), append(parents, parent)
		parent = jsonl.ParentRef{ID: m.id(e.Ref)}
	}
	kept, err := tx.normalEntries(ctx, session, entries, parents, m)
	if err != nil {
		return nil, err
	}
	labels, err := tx.labelLines(ctx, session.Key, entries, m)
	if err != nil {
		return nil, err
	}
	b.lines = func(yield func([]byte, error) bool) {
		i := 0
		for line, err := range kept {
			if err == nil && entries[i].Type == "compaction" {
				line, err = keepFrom(line, m.id(entries[i].Ref), instead)
			}
			if !yield(line, err) {
				return
			}
			i++
		}
		for _, line := range labels {
			if !yield(line, nil) {
				return
			}
		}
	}
	return b, nil
}

// keepFrom gives a compaction the entry that followed a label in place of the label.
func keepFrom(line []byte, id string, instead map[string]string) ([]byte, error) {
	var doc jsonl.Doc
	if err := doc.Parse(line); err != nil {
		return nil, err
	}
	kept := doc.Root().Get("firstKeptEntryId")
	key, ok := kept.Key()
	to, label := instead[key]
	if !ok || !label || key == id {
		return line, nil
	}
	start, end := kept.Offset(), kept.Offset()+len(kept.Raw())
	return append(jsonl.AppendKey(bytes.Clone(line[:start]), to), line[end:]...), nil
}

// labelOf is a label as pi's map of labels has it.
type labelOf struct {
	text      json.RawMessage
	timestamp json.RawMessage // nil: none
}

// labelLines returns label entries for the labels that entries have now, to follow the
// last of them, in the order of pi's map of labels.
func (tx *Tx) labelLines(ctx context.Context, session query.Key, entries []query.Entry, m *mending) ([][]byte, error) {
	var labels ordered[labelOf]
	var doc jsonl.Doc
	for e, err := range tx.Entries(ctx, session, &query.EntriesOptions{Types: []string{"label"}}) {
		if err != nil {
			return nil, err
		}
		value, err := tx.value(ctx, &doc, e.Ref)
		if err != nil {
			return nil, err
		}
		target, ok := value.Get("targetId").Key()
		if !ok {
			continue
		}
		if label := value.Get("label"); label.Truthy() {
			labels.set(target, labelOf{label.AppendNormal(nil), value.Get("timestamp").AppendNormal(nil)})
		} else {
			labels.remove(target)
		}
	}
	ids := make(map[string]bool, len(entries))
	onPath := make(map[string]string, len(entries)) // new ids by the old ones
	parent := json.RawMessage("null")
	for i := range entries {
		id := m.id(entries[i].Ref)
		ids[id], onPath[entries[i].ID] = true, id
	}
	if n := len(entries); n > 0 && entries[n-1].ID != "" {
		parent = idText(m.id(entries[n-1].Ref))
	}
	var lines [][]byte
	for _, target := range labels.keys {
		marked, ok := onPath[target]
		if !ok {
			continue
		}
		id, err := newEntryID(uuid.NewString, func(id string) (bool, error) { return ids[id], nil })
		if err != nil {
			return nil, err
		}
		ids[id] = true
		label := labels.values[target]
		var at any = jsonl.Undefined
		if label.timestamp != nil {
			at = label.timestamp
		}
		line, err := jsonl.Append(nil, jsonl.Members{
			{Key: "type", Value: "label"},
			{Key: "id", Value: id},
			{Key: "parentId", Value: parent},
			{Key: "timestamp", Value: at},
			{Key: "targetId", Value: idText(marked)},
			{Key: "label", Value: label.text},
		})
		if err != nil {
			return nil, err
		}
		lines, parent = append(lines, line), idText(id)
	}
	return lines, nil
}
