package repo

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"pidb/jsonl"
	"pidb/migrations"
	"pidb/query"
)

// The search index is a database of its own beside the archive. Nothing is in it that
// the archive does not hold: a damaged, foreign or missing one is made anew, and
// [Archive.UpdateIndex] feeds it whatever it lacks.

// IndexPath returns the path of the search index. Anyone may delete that file while no
// process has the archive open.
func (a *Archive) IndexPath() string {
	return strings.TrimSuffix(a.path, ".db") + ".index.db"
}

// openIndex opens the index, or makes a new one where it cannot be used.
func (a *Archive) openIndex(ctx context.Context) error {
	err := a.tryIndex(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil || errors.Is(mapError(err), ErrBusy) || errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open search index: %w", err)
	}
	if err := a.removeIndex(); err != nil {
		return err
	}
	if err := a.tryIndex(ctx); err != nil {
		return fmt.Errorf("make search index: %w", err)
	}
	return nil
}

// removeIndex deletes the files of the index.
func (a *Archive) removeIndex() error {
	if a.index != nil {
		a.index.Close()
		a.index = nil
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(a.IndexPath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove search index: %w", err)
		}
	}
	return nil
}

var errIndexVersion = errors.New("index of another version")

func (a *Archive) tryIndex(ctx context.Context) error {
	if err := createPrivate(a.IndexPath()); err != nil {
		return err
	}
	var err error
	a.index, err = openDB(a.IndexPath(), "", 1, url.Values{
		"_pragma": {"page_size=" + pageSize, "cache_size=-32768", "temp_store=MEMORY", "journal_size_limit=67108864"},
		"_txlock": {"immediate"}, "_synchronous": {"OFF"},
	})
	if err != nil {
		return err
	}
	var version, tables int
	if err := a.index.GetContext(ctx, &version, `PRAGMA user_version`); err != nil {
		return err
	}
	if version == migrations.IndexVersion {
		return nil
	}
	tx, err := a.index.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Another process may have made it since.
	if err := tx.GetContext(ctx, &version, `PRAGMA user_version`); err != nil || version == migrations.IndexVersion {
		return err
	}
	if err := tx.GetContext(ctx, &tables, `SELECT count(*) FROM sqlite_schema`); err != nil {
		return err
	}
	if version != 0 || tables != 0 {
		return errIndexVersion
	}
	if _, err := tx.ExecContext(ctx, migrations.Index); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `PRAGMA user_version = `+strconv.Itoa(migrations.IndexVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// feedBatch is how much text one transaction of the feeder adds, in bytes.
const feedBatch = 16 << 20

// stale is a session with rows that the index lacks.
type stale struct {
	Key     query.Key `db:"key"`
	Nonce   int64     `db:"nonce"`
	Rows    int64     `db:"rows"`
	Bytes   int64     `db:"bytes"`
	Indexed *int64    `db:"indexed"` // rows in the index; NULL: none, or those of a lost session
	Present bool      `db:"present"` // something of the key is in the index
}

// UpdateIndex feeds the search index with the lines that it lacks and takes out what
// was deleted. Lines whose bytes are damaged are left out. It costs a query when there
// is nothing to do. progress, if any, is told the bytes of sessions done and to be done.
func (a *Archive) UpdateIndex(ctx context.Context, progress func(done, total int64)) error {
	a.indexing.Lock()
	defer a.indexing.Unlock()
	if err := a.updateIndex(ctx, progress); err != nil {
		return fmt.Errorf("update search index: %w", mapError(err))
	}
	return nil
}

func (a *Archive) updateIndex(ctx context.Context, progress func(done, total int64)) error {
	var todo []stale
	var lost []query.Key
	var uuid string
	var change int64
	err := a.view(ctx, func(rx *reading) error {
		if err := rx.tx.QueryRowContext(ctx, `SELECT uuid, change FROM archive`).Scan(&uuid, &change); err != nil {
			return err
		}
		since := int64(-1)
		if err := rx.tx.GetContext(ctx, &since, `SELECT coalesce(max(change), -1) FROM idx.watermark WHERE uuid = ?`, uuid); err != nil {
			return err
		}
		if since == change {
			return nil
		}
		if err := rx.tx.SelectContext(ctx, &todo, `
			SELECT s.key, s.nonce, s.rows, s.bytes, CASE WHEN i.nonce = s.nonce THEN i.rows END AS indexed, i.nonce IS NOT NULL AS present
			FROM session s LEFT JOIN idx.indexed i ON i.session = s.key
			WHERE s.change > ? AND (i.nonce IS NOT s.nonce OR i.rows <> s.rows)
			ORDER BY s.modified_ms DESC`, since); err != nil {
			return err
		}
		return rx.tx.SelectContext(ctx, &lost, `
			SELECT i.session FROM idx.indexed i WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.key = i.session)`)
	})
	if err != nil {
		return err
	}
	feeder := &feeder{archive: a, progress: progress}
	for _, s := range todo {
		feeder.total += s.Bytes
	}
	for _, session := range lost {
		if err := feeder.update(ctx, func(tx *sqlx.Tx) error { return forget(ctx, tx, session) }); err != nil {
			return err
		}
	}
	if err := feeder.feed(ctx, todo); err != nil {
		return err
	}
	var marked int64
	err = a.index.GetContext(ctx, &marked, `SELECT coalesce(max(change), -1) FROM watermark WHERE uuid = ?`, uuid)
	if err != nil || marked == change {
		return err
	}
	_, err = a.index.ExecContext(ctx, `
		INSERT INTO watermark (only, uuid, change) VALUES (1, ?, ?) ON CONFLICT (only) DO UPDATE SET uuid = excluded.uuid, change = excluded.change`,
		uuid, change)
	return err
}

// forget takes a session out of the index.
func forget(ctx context.Context, tx *sqlx.Tx, session query.Key) error {
	if _, err := tx.ExecContext(ctx, `DELETE FROM text WHERE rowid >= ? AND rowid < ?`, query.MakeRef(session, 0), query.MakeRef(session+1, 0)); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM indexed WHERE session = ?`, session)
	return err
}

// feeder moves text from the archive to the index.
type feeder struct {
	archive     *Archive
	progress    func(done, total int64)
	done, total int64
}

func (f *feeder) update(ctx context.Context, do func(tx *sqlx.Tx) error) error {
	tx, err := f.archive.index.BeginTxx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// document is a row of the index in the making.
type document struct {
	ref                        query.Ref
	talk, tool, name, thinking string
}

func (d *document) size() int { return len(d.talk) + len(d.tool) + len(d.name) + len(d.thinking) }

// batch is documents of one session that follow each other.
type batch struct {
	session   *stale
	documents []document
	rows      int64 // seq behind the last one
	last      bool  // of the session
}

// feed reads the sessions on one goroutine and writes the index on another.
func (f *feeder) feed(ctx context.Context, todo []stale) error {
	if len(todo) == 0 {
		return nil
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan *batch, 4)
	failed := make(chan error, 1)
	go func() {
		defer close(batches)
		failed <- f.read(reading, todo, batches)
	}()
	err := f.write(ctx, batches)
	stop()
	for range batches {
	}
	if readErr := <-failed; err == nil {
		err = readErr
	}
	return err
}

func (f *feeder) write(ctx context.Context, batches <-chan *batch) error {
	steady := context.WithoutCancel(ctx)
	for {
		b, ok := <-batches
		if !ok {
			return nil
		}
		err := f.update(ctx, func(tx *sqlx.Tx) error {
			insert, err := tx.PrepareContext(steady, `INSERT INTO text (rowid, talk, tool, name, thinking) VALUES (?, ?, ?, ?, ?)`)
			if err != nil {
				return err
			}
			for size := 0; ok; b, ok = <-batches {
				n, err := f.put(steady, tx, insert, b)
				if err != nil {
					return err
				}
				if size += n; size >= feedBatch || ctx.Err() != nil {
					return nil
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if f.progress != nil {
			f.progress(f.done, f.total)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// put writes a batch, unless another process has written it, and returns the size of its text.
func (f *feeder) put(ctx context.Context, tx *sqlx.Tx, insert *sql.Stmt, b *batch) (int, error) {
	s := b.session
	var nonce, rows int64
	err := tx.QueryRowxContext(ctx, `SELECT nonce, rows FROM indexed WHERE session = ?`, s.Key).Scan(&nonce, &rows)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return 0, err
	case nonce != s.Nonce:
		if err := forget(ctx, tx, s.Key); err != nil {
			return 0, err
		}
		rows = 0
	}
	size := 0
	for i := range b.documents {
		d := &b.documents[i]
		if d.ref.Seq() < rows {
			continue
		}
		if _, err := insert.ExecContext(ctx, int64(d.ref), d.talk, d.tool, d.name, d.thinking); err != nil {
			return 0, err
		}
		size += d.size()
	}
	if b.last {
		f.done += s.Bytes
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO indexed (session, nonce, rows) VALUES (?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET nonce = excluded.nonce, rows = max(rows, excluded.rows)`, s.Key, s.Nonce, b.rows)
	return size, err
}

// read turns the lines of sessions into documents.
func (f *feeder) read(ctx context.Context, todo []stale, batches chan<- *batch) error {
	for i := range todo {
		err := f.archive.view(ctx, func(rx *reading) error { return f.readSession(ctx, rx, &todo[i], batches) })
		// The rows of one session may be damaged: the others are fed all the same.
		if err != nil && !errors.Is(err, ErrDamaged) {
			return err
		}
	}
	return nil
}

// textRow is a row of the entry table, as far as its text needs it.
type textRow struct {
	Ref   query.Ref `db:"ref"`
	Start int64     `db:"start"`
	Size  int64     `db:"size"`
	Role  *string   `db:"role"`
}

func (f *feeder) readSession(ctx context.Context, rx *reading, s *stale, batches chan<- *batch) error {
	from := int64(0)
	if s.Indexed != nil {
		from = *s.Indexed
	}
	rows, err := rx.tx.QueryContext(ctx, `
		SELECT ref, start, size, role FROM entry WHERE ref >= ? AND ref < ? AND kind = 'entry' AND type <> 'custom' ORDER BY ref`,
		query.MakeRef(s.Key, from), query.MakeRef(s.Key, s.Rows))
	if err != nil {
		return err
	}
	defer rows.Close()
	var text texts
	b := &batch{session: s}
	size := 0
	for rows.Next() {
		var row textRow
		if err := rows.Scan(&row.Ref, &row.Start, &row.Size, &row.Role); err != nil {
			return err
		}
		d, err := text.document(ctx, rx, &row)
		if err != nil && !errors.Is(mapError(err), ErrDamaged) {
			return err
		}
		if err != nil || d.size() == 0 {
			continue
		}
		b.documents = append(b.documents, d)
		if size += d.size(); size >= feedBatch/8 {
			b.rows = row.Ref.Seq() + 1
			if err := send(ctx, batches, b); err != nil {
				return err
			}
			b, size = &batch{session: s}, 0
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	b.rows, b.last = s.Rows, true
	return send(ctx, batches, b)
}

func send(ctx context.Context, batches chan<- *batch, b *batch) error {
	select {
	case batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// texts makes documents of lines. It holds what can be used again.
type texts struct {
	doc      jsonl.Doc
	raw      []byte
	segments []jsonl.Segment
	decoded  []byte
	columns  [4][]byte
}

// Columns of the index.
const (
	columnTalk = iota
	columnTool
	columnName
	columnThinking
)

// columnOf says in which column of the index a segment is found.
func columnOf(kind jsonl.SegmentKind) int {
	switch kind {
	case jsonl.SegUser, jsonl.SegAssistant, jsonl.SegError, jsonl.SegSummary, jsonl.SegCustom, jsonl.SegLabel:
		return columnTalk
	case jsonl.SegName:
		return columnName
	case jsonl.SegThinking:
		return columnThinking
	}
	return columnTool
}

func (t *texts) document(ctx context.Context, rx *reading, row *textRow) (document, error) {
	d := document{ref: row.Ref}
	var err error
	if t.raw, err = rx.Bytes(ctx, row.Ref.Session(), row.Start, row.Size, t.raw); err != nil {
		return d, err
	}
	raw := t.raw
	if row.Start == 0 {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if err := t.doc.Parse(raw); err != nil {
		return d, fmt.Errorf("%w: row %d: %w", ErrDamaged, row.Ref, err)
	}
	t.segments, t.decoded = jsonl.NewObject(t.doc.Root()).AppendSegments(t.segments[:0], t.decoded[:0])
	for i := range t.columns {
		t.columns[i] = t.columns[i][:0]
	}
	for i := range t.segments {
		column := &t.columns[columnOf(t.segments[i].Kind)]
		if len(*column) > 0 {
			*column = append(*column, '\n')
		}
		*column = query.IndexText(*column, t.segments[i].Text)
	}
	d.talk, d.tool, d.name, d.thinking = string(t.columns[0]), string(t.columns[1]), string(t.columns[2]), string(t.columns[3])
	return d, nil
}
