package query

import (
	"context"
	"fmt"
)

// The path from a row up to its root, as pi's getBranch, the root first. A row of a
// cycle of parents has its length in loop: who enters one may visit that many rows, the
// first included, and so ends at the first repeat.
const sqlBranch = `
	WITH RECURSIVE walk (ref, parent, step, room) AS (
		SELECT ref, parent, 0, loop FROM entry WHERE ref = ?1 AND kind = 'entry'
		UNION ALL
		SELECT a.ref, a.parent, w.step + 1, CASE WHEN w.room IS NULL THEN a.loop ELSE w.room - 1 END
		FROM walk w CROSS JOIN entry a ON a.ref = w.parent
		WHERE w.room IS NULL OR w.room > 1
	)
	SELECT` + entryColumns + `
	FROM walk w CROSS JOIN entry e ON e.ref = w.ref LEFT JOIN entry p ON p.ref = e.parent
	ORDER BY w.step DESC`

// branchRows returns the path to an entry, its root first.
func (rx *Rx) branchRows(ctx context.Context, leaf Ref) ([]*entryRow, error) {
	var branch []*entryRow
	for row, err := range rx.entryRows(ctx, sqlBranch, leaf) {
		if err != nil {
			return nil, err
		}
		branch = append(branch, row)
	}
	if branch == nil {
		return nil, ErrNotFound
	}
	return branch, nil
}

// Branch returns the entries from the root to an entry, the root first. In a cycle of
// parents each entry stands once: the walk up ends at the first that it meets again.
// Returns [ErrNotFound] for a row that is no entry.
func (rx *Rx) Branch(ctx context.Context, leaf Ref) ([]Entry, error) {
	rows, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return nil, fmt.Errorf("read branch of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return entriesOf(rows), nil
}

func entriesOf(rows []*entryRow) []Entry {
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entries[i] = row.entry()
	}
	return entries
}

// LatestCompaction returns the compaction nearest to an entry on its path, itself
// included, or [ErrNotFound].
func (rx *Rx) LatestCompaction(ctx context.Context, leaf Ref) (Entry, error) {
	row, err := rx.latestCompaction(ctx, leaf)
	if err != nil {
		return Entry{}, fmt.Errorf("read latest compaction of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return row.entry(), nil
}

func (rx *Rx) latestCompaction(ctx context.Context, leaf Ref) (*entryRow, error) {
	row, err := rx.entryRow(ctx, sqlEntry, leaf)
	if err != nil {
		return nil, err
	}
	if row.Depth != nil {
		if row.Compaction == nil {
			return nil, ErrNotFound
		}
		return rx.entryRow(ctx, sqlEntry, *row.Compaction)
	}
	branch, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return nil, err
	}
	if at := lastCompaction(branch); at >= 0 {
		return branch[at], nil
	}
	return nil, ErrNotFound
}

// lastCompaction returns the place of the last compaction in a branch, or -1.
func lastCompaction(branch []*entryRow) int {
	for i := len(branch) - 1; i >= 0; i-- {
		if deref(branch[i].Type) == "compaction" {
			return i
		}
	}
	return -1
}
