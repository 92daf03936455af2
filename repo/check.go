package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jmoiron/sqlx"

	"pidb/query"
)

// Finding is something that [Archive.Check] found wrong.
type Finding struct {
	Area   string // "archive", "index", or "session"
	Detail string
}

// CheckResult is what a check of an archive found.
type CheckResult struct {
	Sessions int
	Entries  int64
	Bytes    int64 // of all lines
	Stored   int64 // bytes of the chunks as stored
	Indexed  int   // sessions that the index holds completely
	Findings []Finding
}

// Check looks at the archive as a database: SQLite's own integrity check, foreign keys,
// the counts that session rows hold against the rows they count, and the full-text
// index against itself. It changes nothing. [Archive.Verify] proves the bytes. That
// [Open] found the index damaged is a finding until [Archive.UpdateIndex] has fed the new one.
func (a *Archive) Check(ctx context.Context) (*CheckResult, error) {
	result := &CheckResult{}
	found, err := a.checkIndex(ctx)
	if err != nil {
		return result, fmt.Errorf("check: %w", mapError(err))
	}
	for _, detail := range found {
		result.add("index", detail)
	}
	err = a.view(ctx, func(rx *reading) error {
		lines, err := integrity(ctx, rx.tx, "main")
		if err != nil {
			return err
		}
		for _, line := range lines {
			result.add("archive", line)
		}
		return rx.check(ctx, result)
	})
	if err != nil {
		return result, fmt.Errorf("check: %w", err)
	}
	if _, lost := a.IndexLoss(); lost && result.Indexed < result.Sessions {
		result.add("index", fmt.Sprintf("it was damaged and has been made anew: %d of %d sessions are in it", result.Indexed, result.Sessions))
	}
	return result, nil
}

// integrity returns what SQLite finds wrong with a database.
func integrity(ctx context.Context, tx *sqlx.Tx, schema string) ([]string, error) {
	var lines []string
	if err := tx.SelectContext(ctx, &lines, `PRAGMA `+schema+`.integrity_check(20)`); err != nil {
		if !errors.Is(mapError(err), ErrDamaged) {
			return nil, err
		}
		return []string{err.Error()}, nil
	}
	return slices.DeleteFunc(lines, func(line string) bool { return line == "ok" }), nil
}

func (r *CheckResult) add(area, detail string) {
	r.Findings = append(r.Findings, Finding{area, detail})
}

// check compares the rows of the archive with each other.
func (rx *reading) check(ctx context.Context, result *CheckResult) error {
	if err := rx.tx.QueryRowxContext(ctx, `SELECT count(*), coalesce(sum(entries), 0), coalesce(sum(bytes), 0) FROM session`).Scan(
		&result.Sessions, &result.Entries, &result.Bytes); err != nil {
		return err
	}
	if err := rx.tx.GetContext(ctx, &result.Stored, `SELECT coalesce(sum(length(data)), 0) FROM chunk`); err != nil {
		return err
	}
	if err := rx.tx.GetContext(ctx, &result.Indexed, `
		SELECT count(*) FROM session s JOIN idx.indexed i ON i.session = s.key AND i.nonce = s.nonce AND i.rows >= s.rows`); err != nil &&
		!errors.Is(mapError(err), ErrDamaged) {
		return err
	}
	for _, invariant := range invariants {
		var found []string
		if err := rx.tx.SelectContext(ctx, &found, invariant.query); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			found = append(found, err.Error())
		}
		for _, what := range found {
			result.add("session", fmt.Sprintf("%s: %s", invariant.rule, what))
		}
	}
	return nil
}

// invariants are rules that the rows of every archive keep. Each query names the rows
// that break one, up to a few.
var invariants = []struct{ rule, query string }{
	{"foreign key", `SELECT "table" || ' row ' || coalesce(rowid, '?') FROM pragma_foreign_key_check LIMIT 20`},
	{"entries belong to a session", `
		SELECT 'ref ' || min(ref) FROM entry WHERE ref >> 26 NOT IN (SELECT key FROM session) GROUP BY ref >> 26 LIMIT 20`},
	{"counts of the session row", `
		SELECT '#' || s.key FROM session s LEFT JOIN (
			SELECT ref >> 26 AS session, count(*) FILTER (WHERE part = 0) AS lines, count(*) FILTER (WHERE kind = 'entry') AS entries,
				count(*) FILTER (WHERE kind = 'entry' AND type = 'message') AS messages, sum(size + ending) FILTER (WHERE part = 0) AS bytes,
				max(ref & 67108863) + 1 AS rows
			FROM entry GROUP BY 1) e ON e.session = s.key
		WHERE s.lines <> coalesce(e.lines, 0) OR s.entries <> coalesce(e.entries, 0) OR s.messages <> coalesce(e.messages, 0)
			OR s.bytes <> coalesce(e.bytes, 0) OR s.rows < coalesce(e.rows, 0) LIMIT 20`},
	{"tips of the session row", `
		SELECT '#' || s.key FROM session s WHERE s.tips <> (
			SELECT count(*) FROM entry e WHERE e.ref >= s.key << 26 AND e.ref < (s.key + 1) << 26 AND e.kind = 'entry'
				AND NOT EXISTS (SELECT 1 FROM entry c WHERE c.parent = e.ref)) LIMIT 20`},
	{"parents are entries of the same session", `
		SELECT 'ref ' || e.ref FROM entry e LEFT JOIN entry p ON p.ref = e.parent
		WHERE e.parent IS NOT NULL AND (p.kind IS NOT 'entry' OR p.ref >> 26 <> e.ref >> 26) LIMIT 20`},
	{"depth follows from the parent", `
		SELECT 'ref ' || e.ref FROM entry e LEFT JOIN entry p ON p.ref = e.parent
		WHERE e.kind = 'entry' AND e.depth IS NOT (CASE WHEN e.parent IS NULL THEN 0 WHEN e.parent < e.ref THEN p.depth + 1 END) LIMIT 20`},
	{"the leaf is an entry of the session", `
		SELECT '#' || s.key FROM session s LEFT JOIN entry e ON e.ref = s.leaf
		WHERE s.leaf IS NOT NULL AND (e.kind IS NOT 'entry' OR e.ref >> 26 <> s.key)
			OR s.leaf IS NULL AND s.leaf_moved = 0 AND s.entries > 0 LIMIT 20`},
	{"pieces cover the session", `
		SELECT '#' || s.key FROM session s LEFT JOIN (
			SELECT p.session, sum(c.size) AS bytes, sum(p.start) AS starts,
				sum(p.start) - sum(expected) AS gap FROM (
				SELECT session, start, chunk, coalesce(lag(end) OVER (PARTITION BY session ORDER BY start), 0) AS expected FROM (
					SELECT p.session, p.start, p.chunk, p.start + c.size AS end FROM piece p JOIN chunk c ON c.key = p.chunk)) p
			JOIN chunk c ON c.key = p.chunk GROUP BY p.session) x ON x.session = s.key
		WHERE s.bytes <> coalesce(x.bytes, 0) OR coalesce(x.gap, 0) <> 0 LIMIT 20`},
	{"every chunk is used", `SELECT 'chunk ' || key FROM chunk WHERE key NOT IN (SELECT chunk FROM piece) LIMIT 20`},
	{"one session of a source is the newest", `
		SELECT '#' || s.key FROM session s WHERE s.state = 'live' AND s.source IS NOT NULL
			AND s.version < (SELECT max(version) FROM session n WHERE n.source = s.source) LIMIT 20`},
}

// Rebuild makes all derived data anew from the lines: rows, trees, listing fields, and
// the search index; damaged tables and indexes are replaced. Lines, sources and leaves
// that were moved stay. A session whose bytes are damaged keeps its rows where they can
// be read, and is named by the error, which wraps [ErrDamaged]; the others are done. A
// rebuild that was interrupted is to be done again. progress, if any, is told the
// sessions done and to be done.
func (a *Archive) Rebuild(ctx context.Context, progress func(done, total int)) error {
	if err := a.repair(ctx); err != nil {
		return fmt.Errorf("rebuild: %w", mapError(err))
	}
	var keys []query.Key
	err := a.view(ctx, func(rx *reading) error {
		return rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session ORDER BY key`)
	})
	if err != nil {
		return fmt.Errorf("rebuild: %w", mapError(err))
	}
	var damaged []error
	for i, key := range keys {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.rebuild(ctx, key); err != nil {
			err = fmt.Errorf("rebuild session #%d: %w", key, mapError(err))
			if !errors.Is(err, ErrDamaged) {
				return err
			}
			damaged = append(damaged, err)
		}
		if progress != nil {
			progress(i+1, len(keys))
		}
	}
	if err := a.emptyIndex(ctx); err != nil {
		return fmt.Errorf("rebuild: %w", mapError(err))
	}
	return errors.Join(append(damaged, a.UpdateIndex(ctx, nil))...)
}

// rebuild makes the rows of a session anew from its bytes.
func (a *Archive) rebuild(ctx context.Context, key query.Key) error {
	var parts []*part
	var moved movedLeaf
	l, err := newLoader(a, func(p *part) error {
		parts = append(parts, p)
		return nil
	})
	if err != nil {
		return err
	}
	err = a.view(ctx, func(rx *reading) error {
		s, err := rx.sessionState(ctx, key)
		if errors.Is(err, ErrNotFound) {
			return nil // deleted since
		}
		if err != nil {
			return err
		}
		if err := rx.tx.GetContext(ctx, &moved, `
			SELECT s.leaf_moved, s.leaf, e.line, e.part FROM session s LEFT JOIN entry e ON e.ref = s.leaf WHERE s.key = ?`, key); err != nil {
			return err
		}
		var source struct {
			Path    *string `db:"path"`
			MtimeNS *int64  `db:"mtime_ns"`
		}
		if err := rx.tx.GetContext(ctx, &source, `
			SELECT o.path, o.mtime_ns FROM session s LEFT JOIN source o ON o.key = s.source WHERE s.key = ?`, key); err != nil {
			return err
		}
		j := &job{session: s, name: s.ID, open: func() (io.ReadCloser, error) { return io.NopCloser(rx.Reader(ctx, key)), nil }}
		if source.Path != nil {
			j.name, j.stat.MtimeNS = *source.Path, *source.MtimeNS
		}
		return l.loadWhole(ctx, j, actReplace)
	})
	if err != nil || len(parts) == 0 {
		return err
	}
	return a.Update(ctx, func(tx *Tx) error {
		w := newWriter()
		for _, p := range parts {
			if _, err := w.store(ctx, tx, p); err != nil {
				return err
			}
		}
		return tx.putLeaf(ctx, key, moved)
	})
}

// movedLeaf is a leaf that a branch has set.
type movedLeaf struct {
	Moved bool       `db:"leaf_moved"`
	Leaf  *query.Ref `db:"leaf"` // where its row is lost
	Line  *int64     `db:"line"`
	Part  *int64     `db:"part"`
}

// putLeaf gives a session the leaf that a branch has set, if one has.
func (tx *Tx) putLeaf(ctx context.Context, key query.Key, moved movedLeaf) error {
	if !moved.Moved {
		return nil
	}
	_, err := tx.exec(ctx, `
		UPDATE session SET leaf_moved = 1, leaf = (SELECT ref FROM entry WHERE ref >= ? AND ref < ? AND kind = 'entry'
			AND CASE WHEN ? THEN line = ? AND part = ? ELSE ref = ? END)
		WHERE key = ?`, query.MakeRef(key, 0), query.MakeRef(key+1, 0), moved.Line != nil, moved.Line, moved.Part, moved.Leaf, key)
	return err
}
