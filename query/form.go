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
	out.Write(session.header(now.UnixMilli()))
	parent := []byte("null")
	var line lineReader
	for _, row := range branch {
		v, err := line.read(ctx, rx, row)
		if err != nil {
			return err
		}
		text := session.normal(row, v)
		out.Write(replaceMember(text, "parentId", parent))
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
		parent = jsonl.AppendKey(nil, deref(row.ID))
	}
	return out.Flush()
}

// header returns a new header line for the session.
func (session *formRow) header(ms int64) []byte {
	b := fmt.Appendf(nil, `{"type":"session","version":%d,"id":`, jsonl.CurrentVersion)
	b = jsonl.AppendQuoted(b, session.ID)
	b = append(b, `,"timestamp":`...)
	b = jsonl.AppendQuoted(b, jsonl.FormatTime(ms))
	if session.CWD != nil {
		b = jsonl.AppendQuoted(append(b, `,"cwd":`...), *session.CWD)
	}
	return append(b, "}\n"...)
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

// The header of a session that has one: the first line like one.
const sqlHeader = `
	SELECT` + entryColumns + `
	FROM entry e INDEXED BY entry_kind LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.kind = 'session' AND e.kind <> 'entry' AND e.ref >= ?1 AND e.ref < ?2
	ORDER BY e.ref LIMIT 1`

func (rx *Rx) writeNormalized(ctx context.Context, key Key, w io.Writer) error {
	session, err := rx.formRow(ctx, key)
	if err != nil {
		return err
	}
	first, end := key.refRange()
	out := bufio.NewWriter(w)
	var line lineReader
	write := func(row *entryRow) error {
		v, err := line.read(ctx, rx, row)
		if err != nil {
			return err
		}
		// pi drops a line whose value JavaScript takes for false.
		if !v.Truthy() {
			return nil
		}
		out.Write(session.normal(row, v))
		return out.WriteByte('\n')
	}
	var header Ref = -1
	if session.Headerless {
		ms := deref(session.FirstMS)
		if session.CreatedMS != nil {
			ms = *session.CreatedMS
		}
		out.Write(session.header(ms))
	} else {
		row, err := rx.entryRow(ctx, sqlHeader, first, end)
		if errors.Is(err, ErrNotFound) {
			return fmt.Errorf("%w: no header", ErrDamaged)
		}
		if err != nil {
			return err
		}
		header = row.Ref
		if err := write(row); err != nil {
			return err
		}
	}
	for row, err := range rx.entryRows(ctx, sqlEntries, first, end) {
		if err != nil {
			return err
		}
		if row.Ref == header || row.Kind == string(KindBlank) || row.Kind == string(KindMalformed) {
			continue
		}
		if err := write(row); err != nil {
			return err
		}
	}
	return out.Flush()
}

// normal returns a JSON value of the session as pi rewrites it: migrated to version 3,
// in normal form.
func (session *formRow) normal(row *entryRow, v jsonl.Value) []byte {
	text := v.AppendNormal(nil)
	if session.Format >= jsonl.CurrentVersion || v.Kind() != jsonl.KindObject {
		return text
	}
	if v.Get("type").IsString("session") {
		return replaceMember(text, "version", fmt.Append(nil, jsonl.CurrentVersion))
	}
	if session.Format < 2 {
		text = replaceMember(text, "id", jsonl.AppendKey(nil, deref(row.ID)))
		parent := []byte("null")
		if row.Parent != nil {
			parent = jsonl.AppendKey(nil, deref(row.ParentID))
		}
		text = replaceMember(text, "parentId", parent)
		if v.Get("type").IsString("compaction") && v.Get("firstKeptEntryIndex").Kind() == jsonl.KindNumber {
			if kept := deref(row.Target); kept != "" {
				text = replaceMember(text, "firstKeptEntryId", jsonl.AppendKey(nil, kept))
			}
			text = replaceMember(text, "firstKeptEntryIndex", nil)
		}
	}
	if v.Get("type").IsString("message") {
		if message := v.Get("message"); message.Get("role").IsString("hookMessage") {
			text = replaceMember(text, "message", replaceMember(message.AppendNormal(nil), "role", []byte(`"custom"`)))
		}
	}
	return text
}
