package repo

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"pidb/query/fulltext"
)

// VacuumOptions are the choices of [Archive.Vacuum].
type VacuumOptions struct {
	// DryRun changes nothing and tells what there is to give back.
	DryRun bool
}

// VacuumResult is what a vacuum gave back.
type VacuumResult struct {
	Before      int64 // bytes of the archive's files
	After       int64 // in a dry run what is expected at least
	IndexBefore int64 // bytes of the files of the search index
	IndexAfter  int64
	Orphans     int // chunks that no session needs
	Duration    time.Duration
}

// Vacuum gives back the room that the archive and its index do not need: chunks that no
// session holds, pages of what was deleted, merged parts of the index. What was deleted is
// no longer in the files then. Other processes go on reading; those that write wait, about
// a second for 200 megabytes. As much room as the archive takes is needed for the time of
// the work, in its folder and in that of temporary files.
//
// A file shrinks when nobody reads it as it was before: while someone does, After is what
// it is so far. Errors wrap [ErrBusy] or [ErrFull], with nothing lost.
func (a *Archive) Vacuum(ctx context.Context, opts *VacuumOptions) (*VacuumResult, error) {
	if opts == nil {
		opts = &VacuumOptions{}
	}
	began := time.Now()
	result := &VacuumResult{}
	err := a.promptly(ctx, func() error { return a.vacuum(ctx, opts, result) })
	if err != nil {
		return nil, fmt.Errorf("vacuum: %w", mapError(err))
	}
	result.Duration = time.Since(began)
	return result, nil
}

func (a *Archive) vacuum(ctx context.Context, opts *VacuumOptions, result *VacuumResult) error {
	result.Before, result.IndexBefore = filesSize(a.path), filesSize(a.IndexPath())
	var orphans []int64
	var orphaned int64
	err := a.view(ctx, func(rx *reading) error {
		if err := rx.tx.SelectContext(ctx, &orphans, `SELECT key FROM chunk WHERE NOT EXISTS (SELECT 1 FROM piece WHERE chunk = chunk.key)`); err != nil {
			return err
		}
		return rx.tx.GetContext(ctx, &orphaned, `
			SELECT coalesce(sum(length(data)), 0) FROM chunk WHERE NOT EXISTS (SELECT 1 FROM piece WHERE chunk = chunk.key)`)
	})
	if err != nil {
		return err
	}
	result.Orphans = len(orphans)
	if opts.DryRun {
		unused, err := unusedBytes(ctx, a.write)
		if err != nil {
			return err
		}
		indexUnused, err := unusedBytes(ctx, a.index)
		result.After, result.IndexAfter = result.Before-unused-orphaned, result.IndexBefore-indexUnused
		return err
	}
	if err := a.dropOrphans(ctx, orphans); err != nil {
		return err
	}
	if err := a.compact(ctx, a.path); err != nil {
		return err
	}
	if err := a.UpdateIndex(ctx, nil); err != nil {
		return err
	}
	if err := a.mergeIndex(ctx); err != nil {
		return err
	}
	if err := a.compact(ctx, a.IndexPath()); err != nil {
		return err
	}
	result.After, result.IndexAfter = filesSize(a.path), filesSize(a.IndexPath())
	return nil
}

// dropOrphans deletes chunks that no session needs, unless one has begun to.
func (a *Archive) dropOrphans(ctx context.Context, orphans []int64) error {
	if len(orphans) == 0 {
		return nil
	}
	return a.Update(ctx, func(tx *Tx) error {
		for _, chunk := range orphans {
			if _, err := tx.exec(ctx, `DELETE FROM chunk WHERE key = ? AND NOT EXISTS (SELECT 1 FROM piece WHERE chunk = ?)`, chunk, chunk); err != nil {
				return err
			}
		}
		return nil
	})
}

// compact writes a database anew without what it does not use, and empties its log.
func (a *Archive) compact(ctx context.Context, path string) error {
	// The connections for all else keep temporary files in memory; a copy of an archive is too large for that.
	base, err := sqlite.NewConnector(fileURI(path, url.Values{"_busy_timeout": {busyTimeout}}))
	if err != nil {
		return err
	}
	db := openConnector(base, 1)
	defer db.Close()
	// The log is emptied now or, where someone reads for longer than a second, later.
	for _, statement := range []string{`VACUUM`, `PRAGMA busy_timeout = 1000`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// mergeIndex merges the parts of the index as far as they are worth it.
func (a *Archive) mergeIndex(ctx context.Context) error {
	a.indexing.Lock()
	defer a.indexing.Unlock()
	f := &feeder{archive: a}
	for again := true; again; {
		err := f.write(ctx, func(_ *sqlx.Tx, index *fulltext.Index) (err error) {
			again, err = index.Merge(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unusedBytes returns the size of the pages that a database does not use.
func unusedBytes(ctx context.Context, db *sqlx.DB) (int64, error) {
	var pages, size int64
	if err := db.GetContext(ctx, &pages, `PRAGMA freelist_count`); err != nil {
		return 0, err
	}
	err := db.GetContext(ctx, &size, `PRAGMA page_size`)
	return pages * size, err
}

// filesSize returns the size of a database and its write-ahead log.
func filesSize(path string) int64 {
	var size int64
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(path + suffix); err == nil {
			size += info.Size()
		}
	}
	return size
}
