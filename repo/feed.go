package repo

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"pidb/jsonl"
	"pidb/query"
	"pidb/query/fulltext"
)

// feedMemory is how large a segment of the index grows in memory before it is written.
const feedMemory = 24 << 20

// stale is a session with rows that the index lacks.
type stale struct {
	Key     query.Key `db:"key"`
	Nonce   int64     `db:"nonce"`
	Rows    int64     `db:"rows"`
	Bytes   int64     `db:"bytes"`
	Indexed int64     `db:"indexed"` // rows in the index; 0: none, or those of a lost session
	Present bool      `db:"present"` // something of the key is in the index
	Known   *int64    `db:"known"`   // the nonce that is in the index
}

// UpdateIndex feeds the search index with the lines that it lacks and takes out what
// was deleted. Lines whose bytes are damaged are left out, and an index that turns out to
// be damaged is made anew. It costs a query when there is nothing to do. progress, if any,
// is told the bytes of sessions done and to be done.
func (a *Archive) UpdateIndex(ctx context.Context, progress func(done, total int64)) error {
	a.indexing.Lock()
	defer a.indexing.Unlock()
	if err := a.feed(ctx, &feeder{archive: a, progress: progress}); err != nil {
		return fmt.Errorf("update search index: %w", mapError(err))
	}
	return nil
}

// IndexIsOld reports whether another version of pidb, which cut text into words in
// another way, has made some of the search index. It serves all the same.
func (a *Archive) IndexIsOld(ctx context.Context) (bool, error) {
	old := false
	err := a.view(ctx, func(rx *reading) error {
		return rx.tx.GetContext(ctx, &old, `SELECT EXISTS (SELECT 1 FROM idx.indexed WHERE version <> ?)`, fulltext.Version)
	})
	return old, err
}

// RenewIndex is [Archive.UpdateIndex], and indexes again what another version has
// indexed. A search during that finds the old words or the new ones.
func (a *Archive) RenewIndex(ctx context.Context, progress func(done, total int64)) error {
	a.indexing.Lock()
	defer a.indexing.Unlock()
	if err := a.feed(ctx, &feeder{archive: a, progress: progress, renew: true}); err != nil {
		return fmt.Errorf("renew search index: %w", mapError(err))
	}
	return nil
}

// feed brings the index up to the archive for who holds its lock. Where it is damaged, it is
// made anew.
func (a *Archive) feed(ctx context.Context, f *feeder) error {
	err := f.update(ctx)
	if !mayBeDamage(ctx, err) {
		return err
	}
	if renewed, repairErr := a.repairIndex(ctx); !renewed || repairErr != nil {
		return errors.Join(err, repairErr)
	}
	f.reset()
	return f.update(ctx)
}

// feeder moves text from the archive to the index.
type feeder struct {
	archive     *Archive
	progress    func(done, total int64)
	done, total int64
	renew       bool // what another version has indexed too

	builder fulltext.Builder
	pending map[query.Key]*pending // what the builder holds
	order   []query.Key            // of pending
	lines   lineReader
}

// pending is a session of which lines are in the builder.
type pending struct {
	session stale
	rows    int64 // seq behind the last of them
}

// errOvertaken says that another process has fed the same lines.
var errOvertaken = errors.New("another process has fed the search index")

// update brings the index up to the archive.
func (f *feeder) update(ctx context.Context) error {
	for {
		err := f.once(ctx)
		if !errors.Is(err, errOvertaken) {
			return err
		}
		f.reset()
	}
}

func (f *feeder) reset() {
	f.builder, f.pending, f.order = fulltext.Builder{}, nil, nil
	f.done, f.total = 0, 0
}

func (f *feeder) once(ctx context.Context) error {
	mark, err := f.gather(ctx)
	if err != nil || mark == nil {
		return err
	}
	if err := f.flush(ctx); err != nil {
		return err
	}
	if err := f.forget(ctx, mark.gone); err != nil {
		return err
	}
	_, err = f.archive.index.ExecContext(ctx, `
		INSERT INTO watermark (only, uuid, change) VALUES (1, ?, ?)
		ON CONFLICT (only) DO UPDATE SET uuid = excluded.uuid, change = excluded.change
		WHERE uuid <> excluded.uuid OR change < excluded.change`,
		mark.uuid, mark.change)
	return err
}

// mark is the state of the archive that the index is brought to.
type mark struct {
	uuid   string
	change int64
	gone   []query.Key // sessions that the index has and the archive has not
}

// gather reads what the index and the builder lack into the builder, and writes segments
// as they fill up. It returns nil when there is nothing to do.
func (f *feeder) gather(ctx context.Context) (*mark, error) {
	var todo []stale
	m := &mark{}
	upToDate := false
	err := f.archive.view(ctx, func(rx *reading) error {
		// Each of the two databases is seen as it is when it is read first. The index is the older one:
		// a session that it has and the archive has not is gone, and not one that has come since.
		var marks int
		if err := rx.tx.GetContext(ctx, &marks, `SELECT count(*) FROM idx.watermark`); err != nil {
			return err
		}
		if err := rx.tx.QueryRowContext(ctx, `SELECT uuid, change FROM archive`).Scan(&m.uuid, &m.change); err != nil {
			return err
		}
		since := int64(-1)
		if err := rx.tx.GetContext(ctx, &since, `SELECT coalesce(max(change), -1) FROM idx.watermark WHERE uuid = ?`, m.uuid); err != nil {
			return err
		}
		if upToDate = since == m.change && !f.renew; upToDate {
			return nil
		}
		if err := rx.tx.SelectContext(ctx, &todo, `
			SELECT s.key, s.nonce, s.rows, s.bytes, i.nonce AS known, i.nonce IS NOT NULL AS present,
				CASE WHEN i.nonce = s.nonce AND i.version = ? THEN i.rows ELSE 0 END AS indexed
			FROM session s LEFT JOIN idx.indexed i ON i.session = s.key
			WHERE s.change > ? AND (i.nonce IS NOT s.nonce OR i.rows <> s.rows) OR ? AND i.version <> ?
			ORDER BY s.modified_ms DESC`, fulltext.Version, since, f.renew, fulltext.Version); err != nil {
			return query.Unreadable(err)
		}
		return rx.tx.SelectContext(ctx, &m.gone, `
			SELECT i.session FROM idx.indexed i WHERE NOT EXISTS (SELECT 1 FROM session s WHERE s.key = i.session)`)
	})
	if err != nil {
		return nil, err
	}
	if upToDate && len(f.pending) == 0 {
		return nil, nil
	}
	f.total = f.done
	for _, s := range todo {
		if p := f.pending[s.Key]; p == nil || p.rows != s.Rows {
			f.total += s.Bytes
		}
	}
	for i := range todo {
		s := &todo[i]
		if p := f.pending[s.Key]; p != nil {
			if p.session.Nonce != s.Nonce {
				return nil, errOvertaken // all that was gathered of it is of no use
			}
			if p.rows == s.Rows {
				continue
			}
			s.Indexed = p.rows
		}
		err := f.archive.view(ctx, func(rx *reading) error { return f.session(ctx, rx, s) })
		// The rows of one session may be damaged: the others are fed all the same.
		if err != nil && !errors.Is(err, ErrDamaged) {
			return nil, err
		}
		f.done += s.Bytes
		if f.progress != nil {
			f.progress(f.done, f.total)
		}
	}
	return m, nil
}

// lineRow is a row of the entry table, as far as its text needs it.
type lineRow struct {
	Ref   query.Ref `db:"ref"`
	Start int64     `db:"start"`
	Size  int64     `db:"size"`
	MS    *int64    `db:"ms"`
}

// session reads the lines of a session that the index lacks into the builder.
func (f *feeder) session(ctx context.Context, rx *reading, s *stale) error {
	first, end := query.MakeRef(s.Key, 0), query.MakeRef(s.Key, s.Rows)
	led := false
	if s.Indexed > 0 {
		if err := rx.tx.GetContext(ctx, &led, `
			SELECT EXISTS (SELECT 1 FROM entry WHERE ref >= ? AND ref < ? AND kind = 'entry' AND role = 'user')`,
			first, query.MakeRef(s.Key, s.Indexed)); err != nil {
			return err
		}
	}
	rows, err := rx.tx.QueryContext(ctx, `
		SELECT ref, start, size, ms FROM entry WHERE ref >= ? AND ref < ? AND kind = 'entry' AND type <> 'custom' ORDER BY ref`,
		query.MakeRef(s.Key, s.Indexed), end)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row lineRow
		if err := rows.Scan(&row.Ref, &row.Start, &row.Size, &row.MS); err != nil {
			return query.Unreadable(err)
		}
		entry, segments, err := f.lines.read(ctx, rx, &row)
		if err != nil && !errors.Is(mapError(err), ErrDamaged) {
			return err
		}
		if err != nil || len(segments) == 0 {
			continue
		}
		lead := !led && entry.Role() == "user"
		led = led || lead
		ms := int64(0)
		if row.MS != nil {
			ms = *row.MS
		}
		f.builder.Begin(int64(s.Key), s.Nonce, row.Ref.Seq(), ms, lead)
		addDocument(&f.builder, entry, segments)
		f.builder.End()
		if f.builder.Size() >= feedMemory {
			f.note(s, row.Ref.Seq()+1)
			if err := f.flush(ctx); err != nil {
				return err
			}
			s.Indexed, s.Present, s.Known = row.Ref.Seq()+1, true, &s.Nonce
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	f.note(s, s.Rows)
	return nil
}

// note remembers that the builder holds lines of a session.
func (f *feeder) note(s *stale, rows int64) {
	if p := f.pending[s.Key]; p != nil {
		p.rows = rows
		return
	}
	if f.pending == nil {
		f.pending = map[query.Key]*pending{}
	}
	f.pending[s.Key] = &pending{*s, rows}
	f.order = append(f.order, s.Key)
}

// addDocument adds what is to be found of an entry.
func addDocument(b *fulltext.Builder, entry jsonl.Object, segments []jsonl.Segment) {
	tagDocument(b, entry.Type(), entry.Role(), query.IsError(entry))
	tool := ""
	for i := range segments {
		s := &segments[i]
		if s.Tool != "" && s.Tool != tool {
			tool = s.Tool
			b.Tag(query.ToolTag(tool))
		}
		b.Add(query.FieldOf(s.Kind), s.Text)
	}
}

// flush writes the builder's documents as a segment.
func (f *feeder) flush(ctx context.Context) error {
	if len(f.pending) == 0 {
		return nil
	}
	err := f.write(ctx, func(tx *sqlx.Tx, index *fulltext.Index) error {
		for _, key := range f.order {
			if err := settleIndexed(ctx, tx, index, f.pending[key]); err != nil {
				return err
			}
		}
		if f.builder.Docs() == 0 {
			return nil
		}
		return index.Write(ctx, f.builder.Build())
	})
	if err != nil {
		return err
	}
	f.pending, f.order = nil, nil
	for again := true; again; {
		err := f.write(ctx, func(_ *sqlx.Tx, index *fulltext.Index) (err error) {
			again, err = index.Merge(ctx)
			return err
		})
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	return nil
}

// settleIndexed records what of a session is in the index now.
func settleIndexed(ctx context.Context, tx *sqlx.Tx, index *fulltext.Index, p *pending) error {
	s := &p.session
	var nonce, rows, version int64
	err := tx.QueryRowContext(ctx, `SELECT nonce, rows, version FROM indexed WHERE session = ?`, s.Key).Scan(&nonce, &rows, &version)
	present := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	switch {
	case present != s.Present, present && nonce != *s.Known:
		return errOvertaken
	case present && nonce != s.Nonce:
		err = index.Forget(ctx, int64(s.Key))
	case present && version != fulltext.Version:
		err = index.ForgetOld(ctx, int64(s.Key))
	case present && rows != s.Indexed:
		return errOvertaken
	default:
		err = nil
	}
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO indexed (session, nonce, rows, version) VALUES (?, ?, ?, ?)
		ON CONFLICT (session) DO UPDATE SET nonce = excluded.nonce, rows = excluded.rows, version = excluded.version`,
		s.Key, s.Nonce, p.rows, fulltext.Version)
	return err
}

// forget takes sessions out of the index, with their words.
func (f *feeder) forget(ctx context.Context, sessions []query.Key) error {
	if len(sessions) == 0 {
		return nil
	}
	return f.write(ctx, func(tx *sqlx.Tx, index *fulltext.Index) error {
		for _, key := range sessions {
			if err := index.Forget(ctx, int64(key)); err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `DELETE FROM indexed WHERE session = ?`, key); err != nil {
				return err
			}
		}
		return index.Purge(ctx)
	})
}

// write changes the index in one transaction.
func (f *feeder) write(ctx context.Context, do func(tx *sqlx.Tx, index *fulltext.Index) error) error {
	tx, err := f.archive.index.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	index, err := fulltext.Open(ctx, tx, "")
	if err != nil {
		return err
	}
	defer index.Close()
	if err := do(tx, index); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	emptyLog(ctx, f.archive.index, f.archive.IndexPath())
	return nil
}

// lineReader reads the text of lines. It holds what can be used again.
type lineReader struct {
	doc      jsonl.Doc
	raw      []byte
	segments []jsonl.Segment
	text     []byte
}

func (r *lineReader) read(ctx context.Context, rx *reading, row *lineRow) (jsonl.Object, []jsonl.Segment, error) {
	var err error
	if r.raw, err = rx.Bytes(ctx, row.Ref.Session(), row.Start, row.Size, r.raw); err != nil {
		return jsonl.Object{}, nil, err
	}
	raw := r.raw
	if row.Start == 0 {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if err := r.doc.Parse(raw); err != nil {
		return jsonl.Object{}, nil, fmt.Errorf("%w: row %d: %w", ErrDamaged, row.Ref, err)
	}
	entry := jsonl.NewObject(r.doc.Root())
	r.segments, r.text = entry.AppendSegments(r.segments[:0], r.text[:0])
	return entry, r.segments, nil
}
