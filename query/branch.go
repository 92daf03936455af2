package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// The path from an entry up to its root, as pi's getBranch. A row of a cycle of parents
// has the cycle's length in loop: who enters one may visit that many rows, the first
// included, and so ends at the first repeat.
const sqlBranch = `
	WITH RECURSIVE walk (ref, parent, step, room) AS (
		SELECT ref, parent, 0, loop FROM entry WHERE ref = ?1 AND kind = 'entry'
		UNION ALL
		SELECT a.ref, a.parent, w.step + 1, CASE WHEN w.room IS NULL THEN a.loop ELSE w.room - 1 END
		FROM walk w CROSS JOIN entry a ON a.ref = w.parent
		WHERE w.room IS NULL OR w.room > 1
	)
	SELECT` + entryColumns + `, w.step
	FROM walk w CROSS JOIN entry e ON e.ref = w.ref`

// branchRows returns the path to an entry, its root first, or [ErrNotFound].
func (rx *Rx) branchRows(ctx context.Context, leaf Ref) ([]*entryRow, error) {
	type walked struct {
		row  *entryRow
		step int64
	}
	var walk []walked
	var step int64
	scan := newEntryScan(entryWidth, &step)
	err := rx.scanRows(ctx, func(rows *sqlx.Rows) error {
		row, err := scan.scan(rows)
		walk = append(walk, walked{row, step})
		return err
	}, sqlBranch, leaf)
	if err != nil {
		return nil, err
	}
	if walk == nil {
		return nil, ErrNotFound
	}
	// Rows come in the order of the walk, mostly: SQLite does not promise it.
	slices.SortFunc(walk, func(a, b walked) int { return int(b.step - a.step) })
	branch := make([]*entryRow, len(walk))
	for i, w := range walk {
		branch[i] = w.row
	}
	return branch, rx.linkParents(ctx, branch)
}

// What an entry says of its parent.
const sqlParent = `SELECT id, line, part FROM entry WHERE ref = ?1`

// linkParents fills in what the rows of a path say of their parents, which are mostly the
// rows before them.
func (rx *Rx) linkParents(ctx context.Context, rows []*entryRow) error {
	for i, row := range rows {
		if row.Parent == 0 {
			continue
		}
		if i > 0 && rows[i-1].Ref == row.Parent {
			row.ParentID, row.ParentLine = rows[i-1].ID, rows[i-1].at()
			continue
		}
		err := rx.tx.QueryRowContext(ctx, sqlParent, row.Parent).Scan(&row.ParentID, &row.ParentLine.Line, &row.ParentLine.Part)
		if err != nil {
			return fmt.Errorf("read the parent of line %d: %w", row.Line, noRows(err, ErrDamaged))
		}
	}
	return nil
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
	path, err := rx.pathRow(ctx, leaf)
	if err != nil {
		return nil, err
	}
	if path.Depth != nil {
		if path.Compaction == nil {
			return nil, ErrNotFound
		}
		return rx.entryRow(ctx, sqlEntry, *path.Compaction)
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
		if branch[i].Type == "compaction" {
			return i
		}
	}
	return -1
}
