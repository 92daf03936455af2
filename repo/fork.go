package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"pidb/jsonl"
	"pidb/query"
)

// ForkOptions are the choices of [Archive.Fork]. At most one of UpTo and Before is set.
type ForkOptions struct {
	ID       string         // of the new session; empty means a new UUIDv7
	CWD      string         // folder of the new session; empty means that of the old one
	UpTo     query.Ref      // only the path from the root to this entry
	Before   query.Ref      // only the path to the parent of this entry
	Metadata map[string]any // nil means that of the old one
}

// Fork makes a session of another one, born here whatever the other is: all its entries,
// or the path to one of them, as pi's forkFrom writes them, upgraded to version 3. Its
// ParentSession is the path of the other's source, or its id where it is in no file. A
// fork of the whole has its leaf where the other has it.
//
// pi knows an entry by its id alone, and walks a cycle of parents for ever. So an entry
// whose id an earlier one has gets a new one, and the links to it name that; and the
// entry where the walk up from the leaf ends in a cycle becomes a root, in another cycle
// the earliest line.
//
// Errors wrap [ErrNotFound], [ErrInvalidID], [ErrExists] and [ErrDamaged].
func (a *Archive) Fork(ctx context.Context, session query.Key, opts *ForkOptions) (*Session, error) {
	if opts == nil {
		opts = &ForkOptions{}
	}
	if opts.UpTo != 0 && opts.Before != 0 {
		return nil, errors.New("fork: up to one entry and before another at once")
	}
	s, err := a.bear(ctx, func(tx *Tx) (*birth, error) { return tx.fork(ctx, session, opts) })
	if err != nil {
		return nil, fmt.Errorf("fork session #%d: %w", session, err)
	}
	return s, nil
}

func (tx *Tx) fork(ctx context.Context, key query.Key, opts *ForkOptions) (*birth, error) {
	b, session, err := tx.descend(ctx, key, opts.ID, opts.Metadata)
	if err != nil {
		return nil, err
	}
	if opts.CWD != "" {
		b.header.cwd = opts.CWD
	}
	if opts.UpTo == 0 && opts.Before == 0 {
		return b, tx.copyWhole(ctx, session, b)
	}
	leaf := opts.UpTo
	if opts.Before != 0 {
		before, err := tx.Entry(ctx, opts.Before)
		if err != nil {
			return nil, err
		}
		if before.Ref.Session() != key || before.Kind != query.KindEntry {
			return nil, fmt.Errorf("entry %d: %w", opts.Before.Seq(), ErrNotFound)
		}
		if leaf = before.Parent; leaf == 0 {
			return b, nil
		}
	}
	path, err := tx.path(ctx, key, leaf)
	if err != nil {
		return nil, err
	}
	m, err := mendPath(path)
	if err != nil {
		return nil, err
	}
	b.lines, err = tx.normalEntries(ctx, session, path, nil, m)
	return b, err
}

// copyWhole makes all lines of a session those of a birth, and its leaf where it was moved.
func (tx *Tx) copyWhole(ctx context.Context, session *query.Session, b *birth) error {
	if err := tx.get(ctx, &b.moved, `SELECT leaf_moved FROM session WHERE key = ?`, session.Key); err != nil {
		return err
	}
	m, err := tx.mend(ctx, session.Key, session.Leaf)
	if err != nil {
		return err
	}
	var leaf query.LineNumber
	if session.Leaf != 0 {
		e, err := tx.Entry(ctx, session.Leaf)
		if err != nil {
			return err
		}
		leaf = e.Line
	}
	lines := tx.normalLines(ctx, session.Key, m)
	b.leaf = none
	b.lines = func(yield func([]byte, error) bool) {
		seq := int64(0)
		for line, err := range lines {
			if seq++; line.at == leaf {
				b.leaf = seq
			}
			if !yield(line.text, err) {
				return
			}
		}
	}
	return nil
}

// descend begins a session that comes from another one.
func (tx *Tx) descend(ctx context.Context, key query.Key, id string, metadata map[string]any) (*birth, *query.Session, error) {
	session, err := tx.Session(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	b := &birth{header: header{id: id, cwd: session.CWD, parent: session.Path}, metadata: metadata}
	if b.header.parent == "" {
		b.header.parent = session.ID
	}
	if metadata == nil {
		old, err := tx.metadata(ctx, key)
		if err != nil {
			return nil, nil, err
		}
		b.metadata = map[string]any{}
		for name, value := range old {
			b.metadata[name] = value
		}
		if b.fixed, err = tx.fixedMetadata(ctx, key); err != nil {
			return nil, nil, err
		}
	}
	return b, &session, nil
}

// path returns the entries from the root to an entry of a session.
func (tx *Tx) path(ctx context.Context, session query.Key, leaf query.Ref) ([]query.Entry, error) {
	if leaf.Session() != session {
		return nil, fmt.Errorf("entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), ErrNotFound)
	}
	return tx.Branch(ctx, leaf)
}

// normalLine is a line to be written, and the place of what it is made of.
type normalLine struct {
	at   query.LineNumber
	text []byte // valid until the next one
}

// normalLines yields what pi's forkFrom writes of a session behind the header, entries
// recovered from damaged lines included: every value but headers and what JavaScript
// takes for false.
func (tx *Tx) normalLines(ctx context.Context, session query.Key, m *mending) iter.Seq2[normalLine, error] {
	return func(yield func(normalLine, error) bool) {
		decoder := jsonl.NewDecoder(tx.Reader(ctx, session), nil)
		var doc jsonl.Doc
		var text []byte
		give := func(record *jsonl.Record, object jsonl.Object) bool {
			text = object.AppendNormal(text[:0], nil)
			line := normalLine{query.LineNumber{Line: int64(record.Line.Number), Part: int64(object.Part)}, text}
			var err error
			if m != nil {
				line.text, err = m.line(&doc, m.places[line.at], text)
			}
			return yield(line, err) && err == nil
		}
		for {
			record, err := decoder.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(normalLine{}, err)
				return
			}
			if whole := record.Whole; record.Kind == jsonl.LineJSON && whole.Value.Truthy() && !whole.Value.Get("type").IsString("session") {
				if !give(record, whole) {
					return
				}
			}
			for _, object := range record.Entries() {
				if !give(record, object) {
					return
				}
			}
		}
	}
}

// normalEntries yields entries in normal form, upgraded to version 3, with the parents
// given, which go by the places of the entries; nil keeps what the entries name. What is
// to be mended comes after that.
func (tx *Tx) normalEntries(ctx context.Context, session *query.Session, entries []query.Entry, parents []jsonl.ParentRef, m *mending) (iter.Seq2[[]byte, error], error) {
	options := func(i int) *jsonl.NormalOptions {
		if parents == nil {
			return nil
		}
		return &jsonl.NormalOptions{Parent: &parents[i]}
	}
	if session.Format < jsonl.CurrentVersion {
		return tx.upgraded(ctx, session.Key, entries, options, m)
	}
	return func(yield func([]byte, error) bool) {
		var doc jsonl.Doc
		var line []byte
		for i := range entries {
			value, err := tx.value(ctx, &doc, entries[i].Ref)
			if err == nil {
				line = jsonl.NewObject(value).AppendNormal(line[:0], options(i))
			}
			text := line
			if err == nil {
				text, err = m.line(&doc, entries[i].Ref, line)
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}, nil
}

// value reads an entry into a document.
func (tx *Tx) value(ctx context.Context, doc *jsonl.Doc, ref query.Ref) (jsonl.Value, error) {
	text, err := tx.Raw(ctx, ref)
	if err != nil {
		return jsonl.Value{}, err
	}
	if ref.Seq() == 0 {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	if err := doc.Parse(text); err != nil {
		return jsonl.Value{}, fmt.Errorf("%w: entry %d of session #%d: %w", ErrDamaged, ref.Seq(), ref.Session(), err)
	}
	return doc.Root(), nil
}

// upgraded is normalEntries for a session of an old version: what an entry becomes
// depends on the lines before it, so all are read.
func (tx *Tx) upgraded(ctx context.Context, session query.Key, entries []query.Entry, options func(i int) *jsonl.NormalOptions, m *mending) (iter.Seq2[[]byte, error], error) {
	places := make(map[query.LineNumber]int, len(entries))
	for i := range entries {
		places[entries[i].Line] = i
	}
	texts := make([][]byte, len(entries))
	decoder := jsonl.NewDecoder(tx.Reader(ctx, session), nil)
	for {
		record, err := decoder.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, object := range record.Entries() {
			if i, ok := places[query.LineNumber{Line: int64(record.Line.Number), Part: int64(object.Part)}]; ok {
				texts[i] = object.AppendNormal(nil, options(i))
			}
		}
	}
	return func(yield func([]byte, error) bool) {
		var doc jsonl.Doc
		for i, text := range texts {
			text, err := m.line(&doc, entries[i].Ref, text)
			if !yield(text, err) || err != nil {
				return
			}
		}
	}, nil
}
