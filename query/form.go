package query

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"pidb/jsonl"
)

// formRow is what the written forms of a session need of its row.
type formRow struct {
	ID         string  `db:"id"`
	CWD        *string `db:"cwd"`
	Format     int     `db:"format"`
	Headerless bool    `db:"headerless"`
	CreatedMS  *int64  `db:"created_ms"`
	FirstMS    *int64  `db:"first_ms"`
}

// A session row, and the earliest line with a time, which a session without header began at.
const sqlForm = `
	SELECT id, cwd, format, headerless, created_ms, (
		SELECT e.ms FROM entry e WHERE e.ref >= ?2 AND e.ref < ?3 AND e.ms IS NOT NULL ORDER BY e.ref LIMIT 1) AS first_ms
	FROM session WHERE key = ?1`

func (rx *Rx) formRow(ctx context.Context, session Key) (*formRow, error) {
	first, end := session.refRange()
	var row formRow
	err := rx.tx.GetContext(ctx, &row, sqlForm, session, first, end)
	return &row, noRows(err, ErrNotFound)
}

// WriteBranch writes the branch that ends at an entry as a session file of its own, as
// pi's /export does: a header with the session's id and the given time, then the
// entries in normal form, each with the one before it as parent. A session whose folder
// is unknown gets a header without one. Returns [ErrNotFound], errors that wrap
// [ErrDamaged], and those of w.
func (rx *Rx) WriteBranch(ctx context.Context, leaf Ref, now time.Time, w io.Writer) error {
	if err := rx.writeBranch(ctx, leaf, now, w); err != nil {
		return fmt.Errorf("write branch of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return nil
}

func (rx *Rx) writeBranch(ctx context.Context, leaf Ref, now time.Time, w io.Writer) error {
	session, err := rx.formRow(ctx, leaf.Session())
	if err != nil {
		return err
	}
	branch, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if _, err := out.Write(append(session.header(now.UnixMilli()), '\n')); err != nil {
		return err
	}
	parents := make(map[LineNumber]jsonl.ParentRef, len(branch))
	parent := jsonl.ParentRef{Null: true}
	for _, row := range branch {
		parents[row.at()] = parent
		parent = jsonl.ParentRef{ID: row.ID}
	}
	old := map[LineNumber][]byte{}
	if session.Format < jsonl.CurrentVersion {
		if old, err = rx.migrated(ctx, leaf.Session(), parents); err != nil {
			return err
		}
	}
	var line lineReader
	for _, row := range branch {
		at := row.at()
		text, ok := old[at]
		if !ok {
			v, err := line.read(ctx, rx, row)
			if err != nil {
				return err
			}
			parent := parents[at]
			text = jsonl.NewObject(v).AppendNormal(nil, &jsonl.NormalOptions{Parent: &parent})
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}

// migrated returns entries of a session of an old version in normal form, with the given
// parents. What they become depends on the lines before them, so all are read.
func (rx *Rx) migrated(ctx context.Context, session Key, parents map[LineNumber]jsonl.ParentRef) (map[LineNumber][]byte, error) {
	texts := make(map[LineNumber][]byte, len(parents))
	d := jsonl.NewDecoder(&sessionReader{ctx: ctx, rx: rx, session: session}, nil)
	for {
		rec, err := d.Next()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		for _, object := range rec.Entries() {
			at := LineNumber{int64(rec.Line.Number), int64(object.Part)}
			if parent, ok := parents[at]; ok {
				texts[at] = object.AppendNormal(nil, &jsonl.NormalOptions{Parent: &parent})
			}
		}
	}
}

// sessionReader reads the file of a session. It lives no longer than the call that made
// it, and so may keep its context.
type sessionReader struct {
	ctx     context.Context
	rx      *Rx
	session Key
	offset  int64
	end     int64 // 0: not known yet
}

// Where the file of a session ends.
const sqlEnd = `SELECT bytes FROM session WHERE key = ?1`

func (r *sessionReader) Read(p []byte) (int, error) {
	if r.end == 0 {
		if err := r.rx.tx.GetContext(r.ctx, &r.end, sqlEnd, r.session); err != nil {
			return 0, noRows(err, ErrNotFound)
		}
	}
	if r.offset >= r.end {
		return 0, io.EOF
	}
	data, start, err := r.rx.chunkAt(r.ctx, r.session, r.offset)
	if err != nil {
		return 0, err
	}
	data = data[r.offset-start:]
	n := copy(p, data[:min(int64(len(data)), r.end-r.offset)])
	r.offset += int64(n)
	return n, nil
}

// header returns a new header for the session.
func (session *formRow) header(ms int64) []byte {
	b := fmt.Appendf(nil, `{"type":"session","version":%d,"id":`, jsonl.CurrentVersion)
	b = jsonl.AppendQuoted(b, session.ID)
	b = append(b, `,"timestamp":`...)
	b = jsonl.AppendQuoted(b, jsonl.FormatTime(ms))
	if session.CWD != nil {
		b = jsonl.AppendQuoted(append(b, `,"cwd":`...), *session.CWD)
	}
	return append(b, '}')
}

// WriteNormalized writes a session as pi would rewrite it: as version 3, every JSON value
// in the form of JSON.stringify, the header first. Blank and unreadable lines are left
// out, but entries recovered from an unreadable line are written, each on a line of its
// own. A session without header gets one. Returns [ErrNotFound], errors that wrap
// [ErrDamaged], and those of w.
func (rx *Rx) WriteNormalized(ctx context.Context, session Key, w io.Writer) error {
	if err := rx.writeNormalized(ctx, session, w); err != nil {
		return fmt.Errorf("write session #%d: %w", session, err)
	}
	return nil
}

func (rx *Rx) writeNormalized(ctx context.Context, key Key, w io.Writer) error {
	session, err := rx.formRow(ctx, key)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	d := jsonl.NewDecoder(&sessionReader{ctx: ctx, rx: rx, session: key}, nil)
	var buf []byte
	write := func(object jsonl.Object) error {
		buf = append(object.AppendNormal(buf[:0], nil), '\n')
		_, err := out.Write(buf)
		return err
	}
	for first := true; ; first = false {
		rec, err := d.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if first {
			text, headerErr := session.normalHeader(d)
			if headerErr != nil {
				return headerErr
			}
			if _, err := out.Write(append(text, '\n')); err != nil {
				return err
			}
		}
		if err != nil {
			return out.Flush()
		}
		// pi drops a line whose value JavaScript takes for false.
		if rec.Kind == jsonl.LineJSON && rec.Whole.Value.Truthy() {
			if err := write(rec.Whole); err != nil {
				return err
			}
		}
		for _, object := range rec.Entries() {
			if err := write(object); err != nil {
				return err
			}
		}
	}
}

// normalHeader returns the header of a session in normal form, or a new one where it has
// none.
func (session *formRow) normalHeader(d *jsonl.Decoder) ([]byte, error) {
	header, ok := d.Header()
	if !ok {
		ms := deref(session.FirstMS)
		if session.CreatedMS != nil {
			ms = *session.CreatedMS
		}
		return session.header(ms), nil
	}
	var doc jsonl.Doc
	if err := doc.Parse(header.Raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	text := doc.Root().AppendNormal(nil)
	if header.Version < jsonl.CurrentVersion {
		text = replaceMember(text, "version", fmt.Append(nil, jsonl.CurrentVersion))
	}
	return text, nil
}
