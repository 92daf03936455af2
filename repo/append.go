package repo

import (
	"bytes"
	"context"
	"database/sql"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// Append writes entries in one transaction, each under the one before it, the first under
// the handle's leaf, and returns their ids. The last one is the leaf from then on, of the
// handle and of the session. Who appends through another handle makes a sibling, as with
// pi; [Session.AppendIfLeaf] makes none.
//
// When it returns nil, the entries are durable as [Durability] says; otherwise neither
// archive nor handle has changed. Its cost does not grow with the session. Errors wrap
// [ErrNotFound], [ErrNotNative], [ErrInvalidEntry], [ErrExists], [ErrTooLarge] and those
// of a write; an [*EntryError] says which entry is at fault.
func (s *Session) Append(ctx context.Context, entries ...NewEntry) ([]string, error) {
	return s.append(ctx, nil, entries)
}

// AppendIfLeaf is [Session.Append] under the given entry, 0 for before the first, if that
// is the leaf of the session still. The error wraps [ErrConflict] where it is not, because
// someone else has appended or branched: [Session.Refresh] takes the handle there.
func (s *Session) AppendIfLeaf(ctx context.Context, leaf query.Ref, entries ...NewEntry) ([]string, error) {
	return s.append(ctx, &leaf, entries)
}

func (s *Session) append(ctx context.Context, ifLeaf *query.Ref, entries []NewEntry) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	leaf := s.leaf
	if ifLeaf != nil {
		leaf = *ifLeaf
	}
	var ids []string
	err := s.archive.Update(ctx, func(tx *Tx) error {
		// What has begun is finished: it takes no time worth a watch over every statement.
		ctx := context.WithoutCancel(ctx)
		state, err := tx.sessionState(ctx, s.key)
		switch {
		case err != nil:
			return err
		case !state.Native:
			return fmt.Errorf("%w: fork it", ErrNotNative)
		case ifLeaf != nil && state.leafRef() != *ifLeaf:
			return ErrConflict
		}
		a, err := newAppending(ctx, tx, state, leaf)
		if err != nil {
			return err
		}
		for i := range entries {
			id, err := a.add(ctx, &entries[i])
			if err != nil {
				return &EntryError{Index: i, Err: err}
			}
			ids = append(ids, id)
		}
		if err := a.flush(ctx); err != nil {
			return err
		}
		leaf = a.leaf
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("append to session #%d: %w", s.key, err)
	}
	s.leaf = leaf
	return ids, nil
}

// appending is an append under way.
type appending struct {
	tx      *Tx
	state   *sessionState
	job     *job
	writer  *writer
	loader  *loader // its decoder and chunker
	old     *archived
	builder *builder
	hash    hash.Hash
	decoded jsonl.State
	leaf    query.Ref
	leafID  *string // nil: before the first
	text    []byte  // lines not flushed, each with its LF
	doc     jsonl.Doc
}

// unnamed is the ancestry of entries under ids that no orphan waits for.
type unnamed struct{ *archived }

func (unnamed) awaited(context.Context, string) (bool, error) { return false, nil }

func newAppending(ctx context.Context, tx *Tx, state *sessionState, leaf query.Ref) (*appending, error) {
	l, err := tx.archive.liveLoader()
	if err != nil {
		return nil, err
	}
	a := &appending{
		tx: tx, state: state, job: &job{session: state, name: state.ID}, writer: newWriter(), loader: l,
		old: &archived{&tx.reading, state.Key},
	}
	a.builder = newBuilder(state.Rows, unnamed{a.old}, state.summary())
	a.writer.keys[a.job] = state.Key
	if a.hash, err = unmarshalHash(state.SHA256); err != nil {
		return nil, fmt.Errorf("%w: hash state of session #%d: %w", ErrDamaged, state.Key, err)
	}
	if err := json.Unmarshal(state.Decoder, &a.decoded); err != nil {
		return nil, fmt.Errorf("%w: decoder state of session #%d: %w", ErrDamaged, state.Key, err)
	}
	return a, a.moveTo(ctx, leaf)
}

// moveTo makes an entry the leaf, 0 stands for before the first.
func (a *appending) moveTo(ctx context.Context, leaf query.Ref) error {
	a.leaf, a.leafID = leaf, nil
	if leaf == 0 {
		return nil
	}
	var row struct {
		ID   string    `db:"id"`
		Last query.Ref `db:"last"` // which a parent link with that id means
	}
	err := a.tx.get(ctx, &row, `
		SELECT e.id, (SELECT max(ref) FROM entry WHERE id = e.id AND ref >= ? AND ref < ?) AS last
		FROM entry e WHERE e.ref = ? AND e.kind = 'entry'`, query.MakeRef(a.state.Key, 0), query.MakeRef(a.state.Key+1, 0), leaf)
	if errors.Is(err, sql.ErrNoRows) || err == nil && leaf.Session() != a.state.Key {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	a.leafID, a.builder.last[row.ID] = &row.ID, row.Last.Seq()
	return nil
}

// add takes an entry and returns its id.
func (a *appending) add(ctx context.Context, e *NewEntry) (string, error) {
	if e.err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalidEntry, e.err)
	}
	if e.kind == kindSummary {
		from := "root"
		if a.leafID != nil {
			from = *a.leafID
		}
		var to query.Ref
		if e.target != "" {
			var err error
			if to, err = a.find(ctx, e.target); err != nil {
				return "", err
			}
		}
		if err := a.flush(ctx); err != nil {
			return "", err
		}
		if err := a.moveTo(ctx, to); err != nil {
			return "", err
		}
		summary := *e
		summary.after = append(jsonl.Members{{Key: "fromId", Value: idText(from)}}, e.after...)
		e = &summary
	}
	id, err := a.newID(ctx, e)
	if err != nil {
		return "", err
	}
	typ, before, after, err := a.members(ctx, e, id)
	if err != nil {
		return "", err
	}
	line := append([]byte(`{"type":`), jsonl.AppendQuoted(nil, typ)...)
	line = appendPart(line, before)
	line = jsonl.AppendKey(append(line, `,"id":`...), id)
	line = append(line, `,"parentId":`...)
	if a.leafID == nil {
		line = append(line, "null"...)
	} else {
		line = jsonl.AppendKey(line, *a.leafID)
	}
	line = jsonl.AppendQuoted(append(line, `,"timestamp":`...), jsonl.FormatTime(a.tx.now.UnixMilli()))
	line = append(appendPart(line, after), '}')
	return id, a.take(ctx, line, id)
}

func appendPart(line, members []byte) []byte {
	if len(members) == 0 {
		return line
	}
	return append(append(line, ','), members...)
}

// take takes a line that is an entry with the given id. It writes it in normal form,
// which is that of JSON.stringify also where names repeat or look like array indexes.
func (a *appending) take(ctx context.Context, line []byte, id string) error {
	if err := a.doc.Parse(line); err != nil {
		return err
	}
	if err := checkEntry(a.doc.Root()); err != nil {
		return err
	}
	start := len(a.text)
	a.text = append(a.doc.Root().AppendNormal(a.text), '\n')
	line = a.text[start:]
	a.hash.Write(line)
	decoder := a.loader.decoder
	decoder.Reset(bytes.NewReader(line), &jsonl.DecoderOptions{Resume: &a.decoded})
	record, err := decoder.Next()
	if err != nil {
		return err
	}
	if got, ok := record.Whole.ID(); record.Kind != jsonl.LineEntry || !ok || got != id {
		return fmt.Errorf("%w: it would not be read as an entry", ErrInvalidEntry)
	}
	if err := a.builder.add(ctx, record); err != nil {
		return err
	}
	if a.builder.sum.rows >= query.MaxRows {
		return fmt.Errorf("more than %d lines: %w", query.MaxRows, ErrTooLarge)
	}
	a.decoded = decoder.State()
	a.leaf, a.leafID = query.MakeRef(a.state.Key, a.builder.sum.leaf), &id
	return nil
}

// members returns the type of an entry, and the text of its own members before and after
// its id, parent and time.
func (a *appending) members(ctx context.Context, e *NewEntry, id string) (typ string, before, after []byte, err error) {
	switch e.kind {
	case kindRaw:
		typ, own, err := rawMembers(e.value)
		if err != nil {
			return "", nil, nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
		}
		if typ == "custom" || typ == "custom_message" {
			return typ, own, nil, nil
		}
		return typ, nil, own, nil
	case kindLabel:
		if _, err := a.find(ctx, e.target); err != nil {
			return "", nil, nil, err
		}
	case kindEdit:
		replacement, err := a.replacement(ctx, e)
		if err != nil {
			return "", nil, nil, err
		}
		e = &NewEntry{typ: e.typ, after: jsonl.Members{{Key: "targetId", Value: idText(e.target)}, {Key: "replacement", Value: replacement}}}
	case kindCompaction:
		if e, err = a.compaction(ctx, e, id); err != nil {
			return "", nil, nil, err
		}
	}
	if before, err = memberText(e.before); err == nil {
		after, err = memberText(e.after)
	}
	if err != nil {
		return "", nil, nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	return e.typ, before, after, nil
}

// find returns the last entry with an id.
func (a *appending) find(ctx context.Context, id string) (query.Ref, error) {
	seq, err := a.builder.find(ctx, id)
	if err != nil {
		return 0, err
	}
	if seq == none {
		return 0, fmt.Errorf("entry %q: %w", id, ErrNotFound)
	}
	return query.MakeRef(a.state.Key, seq), nil
}

// newID returns the id of an entry: the one it was given, else a new one.
func (a *appending) newID(ctx context.Context, e *NewEntry) (string, error) {
	taken := func(id string) (bool, error) {
		if _, ok := a.builder.last[id]; ok {
			return true, nil
		}
		// Under an id that orphans wait for, the entry would become their parent.
		var found bool
		first, end := query.MakeRef(a.state.Key, 0), query.MakeRef(a.state.Key+1, 0)
		err := a.tx.get(ctx, &found, `
			SELECT EXISTS (SELECT 1 FROM entry WHERE id = ?1 AND ref >= ?2 AND ref < ?3)
				OR EXISTS (SELECT 1 FROM entry WHERE orphan = ?1 AND ref >= ?2 AND ref < ?3)`, id, first, end)
		return found, err
	}
	if err := checkText(e.id); err != nil {
		return "", fmt.Errorf("%w: id: %w", ErrInvalidEntry, err)
	}
	if e.id == "" {
		return newEntryID(uuid.NewString, taken)
	}
	if is, err := taken(e.id); err != nil || is {
		return "", errors.Join(err, fmt.Errorf("id %q: %w", e.id, ErrExists))
	}
	return e.id, nil
}

// newEntryID returns eight hexadecimal digits that are not taken, or a whole UUID where
// a hundred of them were.
func newEntryID(random func() string, taken func(id string) (bool, error)) (string, error) {
	const digits, attempts = 8, 100
	for range attempts {
		id := random()[:digits]
		is, err := taken(id)
		if err != nil {
			return "", err
		}
		if !is {
			return id, nil
		}
	}
	return random(), nil
}

// flush stores the lines that were added since the last flush.
func (a *appending) flush(ctx context.Context) error {
	if len(a.text) == 0 {
		return nil
	}
	b, s := a.builder, a.state
	from, err := a.tx.growFrom(ctx, s, int64(len(a.text)))
	if err != nil {
		return err
	}
	a.loader.chunker.reset(from)
	if from < s.Bytes {
		data, err := a.tx.Bytes(ctx, s.Key, from, s.Bytes-from, nil)
		if err != nil {
			return err
		}
		a.loader.chunker.buffer = append(a.loader.chunker.buffer, data...)
	}
	for line := range bytes.Lines(a.text) {
		a.loader.chunker.add(line[:len(line)-1], "\n")
	}
	a.loader.chunker.cut()
	p := &part{job: a.job, action: actTail, head: s.head(), sum: b.sum, rows: b.rows, chunks: a.loader.chunker.take(), from: from, drop: none}
	if p.sha256, err = a.hash.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return err
	}
	if p.decoder, err = json.Marshal(a.decoded); err != nil {
		return err
	}
	if err := a.writer.fill(ctx, a.tx, p); err != nil {
		return err
	}
	if s.Source != nil || s.State != query.Live {
		// It has more now than the copy of it that was imported.
		if _, err := a.tx.exec(ctx, `UPDATE session SET source = NULL, state = 'live' WHERE key = ?`, s.Key); err != nil {
			return err
		}
		s.Source, s.State = nil, query.Live
	}
	b.rows, b.sent, a.text = nil, b.sum.rows, a.text[:0]
	s.Bytes, s.Rows = b.sum.bytes, b.sum.rows
	return nil
}

// growFrom returns where the chunk begins that takes size new bytes. Chunks at the end of
// a session become one like the digits of a binary counter: a new one takes in those
// before it that are no larger than itself. So there are few of them, and a byte is
// written again a few times only.
func (tx *Tx) growFrom(ctx context.Context, s *sessionState, size int64) (int64, error) {
	const many = 32 // more than there are powers of two below chunkMin
	stmt, err := tx.prepare(ctx, `
		SELECT p.start, c.size FROM piece p JOIN chunk c ON c.key = p.chunk
		WHERE p.session = ? ORDER BY p.start DESC LIMIT ?`)
	if err != nil {
		return 0, err
	}
	rows, err := stmt.QueryContext(ctx, s.Key, many)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	from := s.Bytes
	for rows.Next() {
		var piece pieceRow
		if err := rows.Scan(&piece.Start, &piece.Size); err != nil {
			return 0, err
		}
		if piece.Size >= chunkMin || piece.Size > size {
			break
		}
		from, size = piece.Start, size+piece.Size
	}
	return from, rows.Err()
}
