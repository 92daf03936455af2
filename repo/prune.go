package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"pidb/jsonl"
	"pidb/query"
)

// PruneOptions say what a prune takes out. The zero value takes every old version.
type PruneOptions struct {
	// OlderThan takes only what had its last activity longer ago; 0 takes any.
	OlderThan time.Duration
	// Keep is how many old versions of each source stay, the newest ones, besides the one
	// in use. Negative means that their number does not count.
	Keep int
	// Missing takes sessions too whose source is gone, by OlderThan alone, which it needs, and
	// with them all old versions of that source.
	Missing bool
	// LastCopies takes also what holds lines that no other session has; otherwise that stays.
	LastCopies bool
	// DryRun changes nothing.
	DryRun bool
}

// PruneResult is what a prune took out, or would.
type PruneResult struct {
	Sessions []Pruned // in the order of keys
	Removed  int
	Kept     int   // stay because of lines that no other session has
	Bytes    int64 // of the sessions removed
	Freed    int64 // what the archive can use again, or give back by [Archive.Vacuum]
}

// Pruned is a session that a prune looked at closely.
type Pruned struct {
	Session    query.Key
	ID         string
	Path       string // of the source; empty: none
	Version    int64
	State      query.State
	ModifiedMS int64 // last activity
	Bytes      int64
	LastCopies int  // lines that no session has that stays: of this source or id, or in a shared chunk
	Removed    bool // or would be
}

// Prune takes old versions of sources out of the archive, and sessions whose source is gone
// where that is asked for. A session in use, one that was born here and the newest one of a
// source that is there always stay. A line is the last copy of it where the archive cannot
// show that another session holds it: what has such lines stays unless LastCopies says
// otherwise. Each session goes in a transaction of its own and leaves a tombstone, so that
// neither a sync nor a merge brings it back. The error wraps [ErrNoLimit] where opts is nil, or
// names neither an age nor a number.
func (a *Archive) Prune(ctx context.Context, opts *PruneOptions) (*PruneResult, error) {
	result := &PruneResult{}
	if opts == nil || opts.OlderThan <= 0 && (opts.Keep < 0 || opts.Missing) {
		return nil, fmt.Errorf("prune: %w", ErrNoLimit)
	}
	if err := a.prune(ctx, opts, result); err != nil {
		return result, fmt.Errorf("prune: %w", mapError(err))
	}
	return result, nil
}

// pruneRow is a session that may go.
type pruneRow struct {
	Key        query.Key   `db:"key"`
	ID         string      `db:"id"`
	Source     int64       `db:"source"`
	Path       string      `db:"path"`
	Version    int64       `db:"version"`
	State      query.State `db:"state"`
	ModifiedMS int64       `db:"modified_ms"`
	Bytes      int64       `db:"bytes"`
	Nonce      int64       `db:"nonce"`
	Newer      int         `db:"newer"` // old versions of the source that are newer
}

func (a *Archive) prune(ctx context.Context, opts *PruneOptions, result *PruneResult) error {
	var rows []pruneRow
	err := a.view(ctx, func(rx *reading) (err error) {
		if rows, err = rx.prunable(ctx, opts, a.now().UTC()); err != nil {
			return err
		}
		return rx.judge(ctx, rows, opts, result)
	})
	if err != nil || opts.DryRun {
		return err
	}
	removed := result.Removed
	result.Removed, result.Bytes, result.Freed = 0, 0, 0
	for i := range rows {
		p := &result.Sessions[i]
		if !p.Removed {
			continue
		}
		if p.Removed, err = a.pruneOne(ctx, &rows[i], result); err != nil {
			// What follows was not come to.
			for j := i; j < len(rows); j++ {
				result.Sessions[j].Removed = false
			}
			return err
		}
	}
	if removed == 0 {
		return nil
	}
	return a.UpdateIndex(ctx, nil)
}

// prunable returns what age and number say may go.
func (rx *reading) prunable(ctx context.Context, opts *PruneOptions, now time.Time) ([]pruneRow, error) {
	var rows []pruneRow
	err := rx.tx.SelectContext(ctx, &rows, `
		SELECT s.key, s.id, s.source, o.path, s.version, s.state, s.modified_ms, s.bytes, s.nonce,
			(SELECT count(*) FROM session n WHERE n.source = s.source AND n.version > s.version AND n.version < (
				SELECT max(version) FROM session WHERE source = s.source)) AS newer
		FROM session s JOIN source o ON o.key = s.source
		WHERE s.native = 0 AND (s.state = 'superseded' AND s.version < (SELECT max(version) FROM session WHERE source = s.source)
			OR s.state = 'missing' AND ?)
		ORDER BY s.key`, opts.Missing)
	if err != nil {
		return nil, err
	}
	before := now.Add(-opts.OlderThan).UnixMilli()
	old := func(row *pruneRow) bool { return opts.OlderThan <= 0 || row.ModifiedMS < before }
	gone := map[int64]bool{}
	for i := range rows {
		if rows[i].State == query.Missing && old(&rows[i]) {
			gone[rows[i].Source] = true
		}
	}
	return slices.DeleteFunc(rows, func(row pruneRow) bool {
		switch {
		case gone[row.Source]:
			return false
		case row.State == query.Missing:
			return true
		}
		return !old(&row) || row.Newer < opts.Keep
	}), nil
}

// judge counts the lines of each session that no session has that stays, and decides.
func (rx *reading) judge(ctx context.Context, rows []pruneRow, opts *PruneOptions, result *PruneResult) error {
	going := map[query.Key]bool{}
	for i := range rows {
		going[rows[i].Key] = true
	}
	for i := range rows {
		row := &rows[i]
		last, err := rx.lastCopies(ctx, row, going)
		if err != nil {
			return fmt.Errorf("session #%d: %w", row.Key, err)
		}
		p := Pruned{
			Session: row.Key, ID: row.ID, Path: row.Path, Version: row.Version, State: row.State, ModifiedMS: row.ModifiedMS,
			Bytes: row.Bytes, LastCopies: last, Removed: last == 0 || opts.LastCopies,
		}
		if p.Removed {
			result.Removed++
			result.Bytes += row.Bytes
		} else {
			result.Kept++
			// Its lines are there for those that are looked at later.
			delete(going, row.Key)
		}
		result.Sessions = append(result.Sessions, p)
	}
	freed, err := rx.freed(ctx, going)
	result.Freed = freed
	return err
}

// chunkUse is a piece of a session and the sessions that have its chunk too.
type chunkUse struct {
	Start int64     `db:"start"`
	Size  int64     `db:"size"`
	Chunk int64     `db:"chunk"`
	Other query.Key `db:"other"`
}

// lastCopies counts the lines of a session that stand in no chunk of a session that stays,
// nor in one that stays of the same source or id.
func (rx *reading) lastCopies(ctx context.Context, row *pruneRow, going map[query.Key]bool) (int, error) {
	var uses []chunkUse
	if err := rx.tx.SelectContext(ctx, &uses, `
		SELECT p.start, c.size, p.chunk, coalesce(o.session, 0) AS other
		FROM piece p JOIN chunk c ON c.key = p.chunk LEFT JOIN piece o ON o.chunk = p.chunk AND o.session <> p.session
		WHERE p.session = ? ORDER BY p.start`, row.Key); err != nil {
		return 0, err
	}
	shared := map[int64]bool{}
	for _, use := range uses {
		if use.Other != 0 && !going[use.Other] {
			shared[use.Start] = true
		}
	}
	var alone []chunkUse
	for i, use := range uses {
		if !shared[use.Start] && (i == 0 || uses[i-1].Start != use.Start) {
			alone = append(alone, use)
		}
	}
	if len(alone) == 0 {
		return 0, nil
	}
	var kin []query.Key
	if err := rx.tx.SelectContext(ctx, &kin, `SELECT key FROM session WHERE (source = ? OR id = ?) AND key <> ?`, row.Source, row.ID, row.Key); err != nil {
		return 0, err
	}
	there := map[[16]byte]bool{}
	for _, key := range kin {
		if going[key] {
			continue
		}
		if err := rx.eachLine(ctx, key, func(line jsonl.Line) { there[query.ChunkHash(line.Data)] = true }); err != nil {
			return 0, err
		}
	}
	count, next := 0, 0
	err := rx.eachLine(ctx, row.Key, func(line jsonl.Line) {
		end := line.Offset + line.Size()
		for next < len(alone) && alone[next].Start+alone[next].Size <= line.Offset {
			next++
		}
		if len(line.Data) > 0 && next < len(alone) && alone[next].Start < end && !there[query.ChunkHash(line.Data)] {
			count++
		}
	})
	return count, err
}

// freed returns the bytes of the chunks that no session needs but those that go.
func (rx *reading) freed(ctx context.Context, going map[query.Key]bool) (int64, error) {
	used := map[int64]bool{}
	for key := range going {
		var chunks []int64
		if err := rx.tx.SelectContext(ctx, &chunks, `SELECT DISTINCT chunk FROM piece WHERE session = ?`, key); err != nil {
			return 0, err
		}
		for _, chunk := range chunks {
			used[chunk] = true
		}
	}
	var freed int64
	for chunk := range used {
		var sessions []query.Key
		if err := rx.tx.SelectContext(ctx, &sessions, `SELECT DISTINCT session FROM piece WHERE chunk = ?`, chunk); err != nil {
			return 0, err
		}
		if slices.ContainsFunc(sessions, func(key query.Key) bool { return !going[key] }) {
			continue
		}
		var size int64
		if err := rx.tx.GetContext(ctx, &size, `SELECT length(data) FROM chunk WHERE key = ?`, chunk); err != nil {
			return 0, err
		}
		freed += size
	}
	return freed, nil
}

// pruneOne takes a session out, unless it has changed since it was judged.
func (a *Archive) pruneOne(ctx context.Context, row *pruneRow, result *PruneResult) (bool, error) {
	removed := false
	err := a.Update(ctx, func(tx *Tx) error {
		s, err := tx.sessionState(ctx, row.Key)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.Nonce != row.Nonce || s.State != row.State || s.Bytes != row.Bytes {
			return nil
		}
		freed, err := tx.freed(ctx, map[query.Key]bool{row.Key: true})
		if err != nil {
			return err
		}
		if err := tx.bury(ctx, row.Key); err != nil {
			return err
		}
		if err := tx.endSource(ctx, row.Source); err != nil {
			return err
		}
		removed = true
		result.Removed++
		result.Bytes += row.Bytes
		result.Freed += freed
		return nil
	})
	return removed && err == nil, err
}

// eachLine calls f for every physical line of a session.
func (rx *reading) eachLine(ctx context.Context, session query.Key, f func(jsonl.Line)) error {
	lines := jsonl.NewLineReader(rx.Reader(ctx, session), 1, 0)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f(line)
	}
}
