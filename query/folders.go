package query

import (
	"context"
	"fmt"
)

// Folders are the working directories of the sessions of an archive.
type Folders struct {
	// CWDs are the distinct ones, that with the newest activity first.
	CWDs []string
	// Unreadable counts what could not say: files that were refused, and sessions whose
	// header is not there or damaged. Another import may know more.
	Unreadable int64
	// Silent counts sessions that were read whole and name no folder.
	Silent int64
}

// Folders returns the working directories of the sessions that are live or missing. It
// reads session rows only.
func (rx *Rx) Folders(ctx context.Context) (*Folders, error) {
	var f Folders
	err := rx.tx.SelectContext(ctx, &f.CWDs, `
		SELECT cwd FROM session
		WHERE state IN ('live', 'missing') AND cwd <> ''
		GROUP BY cwd ORDER BY max(modified_ms) DESC, max(key) DESC`)
	if err == nil {
		err = rx.tx.QueryRowContext(ctx, `
			SELECT
				(SELECT count(*) FROM source WHERE state = 'rejected')
				+ count(*) FILTER (WHERE headerless = 1),
				count(*) FILTER (WHERE headerless = 0)
			FROM session WHERE state IN ('live', 'missing') AND bytes > 0 AND coalesce(cwd, '') = ''`).Scan(&f.Unreadable, &f.Silent)
	}
	if err != nil {
		return nil, fmt.Errorf("list folders: %w", err)
	}
	return &f, nil
}
