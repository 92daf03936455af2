package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"pidb/query"
)

// BackupOptions are the choices of a backup.
type BackupOptions struct {
	// Replace lets the backup take the place of a file that is there already.
	Replace bool
	// Progress is told the sessions of the copy that are proved and those to be proved.
	Progress func(done, total int)
}

// BackupResult is what a backup wrote.
type BackupResult struct {
	Path     string // absolute
	Sessions int
	Lines    int64 // all proved
	Bytes    int64 // of the lines
	Size     int64 // of the file
	Duration time.Duration
}

// Backup writes the archive as it is at one instant to a new file, while others read and
// write: no writer waits for it. The copy is an archive of its own, compact, without the
// search index, which is derived. Every session of it is proved against its hashes before
// it gets its name. Its mode is 0600. It is written to a temporary file in the folder of
// path, and path is there whole or not at all; at least as much room as the archive takes
// is needed there.
//
// The error wraps [ErrExists] where path is taken and Replace does not say otherwise, and a
// [*DatabaseNameError] where path is this archive, a name that belongs to a database beside
// it, or a database that is open, whatever Replace says; it wraps [ErrDamaged] for an
// archive that cannot be copied whole: see [Salvage].
func (a *Archive) Backup(ctx context.Context, path string, opts *BackupOptions) (*BackupResult, error) {
	if opts == nil {
		opts = &BackupOptions{}
	}
	began := time.Now()
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	result := &BackupResult{Path: path}
	if err := a.promptly(ctx, func() error { return a.backup(ctx, path, opts, result) }); err != nil {
		return nil, fmt.Errorf("backup to %s: %w", path, mapError(err))
	}
	result.Duration = time.Since(began)
	return result, nil
}

// promptly calls f and returns what it returns, or the error of ctx as soon as that ends.
// What f has to end and clean up then, [Archive.Close] waits for: SQLite looks for an
// interrupt now and then only while it copies a database.
func (a *Archive) promptly(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	a.behind.Go(func() { done <- f() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Archive) backup(ctx context.Context, path string, opts *BackupOptions, result *BackupResult) error {
	if err := a.mayReplace(path, opts.Replace); err != nil {
		return err
	}
	// A folder of mode 0700 holds the copy and whatever SQLite puts beside it.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".pidb-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "backup.db")
	db, err := openReadOnly(a.path, false)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := vacuumInto(ctx, db, copied); err != nil {
		return err
	}
	if err := stampCopy(ctx, copied); err != nil {
		return err
	}
	if err := a.proveCopy(ctx, copied, opts, result); err != nil {
		return err
	}
	if err := syncFile(copied); err != nil {
		return err
	}
	info, err := os.Stat(copied)
	if err != nil {
		return err
	}
	result.Size = info.Size()
	// It may have come since.
	if err := a.mayReplace(path, opts.Replace); err != nil {
		return err
	}
	return place(copied, path, opts.Replace)
}

// DatabaseNameError says that a name is not free for a file to be written, whether there is
// one or not, because it belongs to a database. It is an [ErrExists].
type DatabaseNameError struct {
	Path   string // of the database
	Detail string // what the name is of it
}

func (e *DatabaseNameError) Error() string { return "the name belongs to a database: " + e.Detail }

// Is reports whether target is ErrExists.
func (e *DatabaseNameError) Is(target error) bool { return target == ErrExists }

// mayReplace returns an error where a backup must not get the name.
func (a *Archive) mayReplace(path string, replace bool) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	is := func(own string) bool {
		other, statErr := os.Stat(own)
		return path == own || err == nil && statErr == nil && os.SameFile(info, other)
	}
	for _, own := range []struct{ path, what string }{{a.path, "the archive"}, {a.IndexPath(), "the search index of the archive"}} {
		if is(own.path) {
			return &DatabaseNameError{own.path, "it is " + own.what + " itself"}
		}
		for _, suffix := range sideSuffixes {
			if is(own.path + suffix) {
				return &DatabaseNameError{own.path, "it is a part of " + own.what}
			}
		}
	}
	if err := freeOfDatabases(path); err != nil {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !replace || !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", path, ErrExists)
	}
	return nil
}

// sideSuffixes are those of the files that SQLite keeps beside a database.
var sideSuffixes = []string{"-wal", "-shm", "-journal"}

// freeOfDatabases returns an error that is a DatabaseNameError where a new database must
// not get the name: SQLite would take it for a part of another one, or another's log for a
// part of it, or an archive would take it for its index.
func freeOfDatabases(path string) error {
	there := func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, suffix := range sideSuffixes {
		if base, ok := strings.CutSuffix(path, suffix); ok && there(base) {
			return &DatabaseNameError{base, "SQLite keeps a part of " + base + " there"}
		}
	}
	for _, suffix := range []string{"-wal", "-journal"} {
		if there(path + suffix) {
			return &DatabaseNameError{path, "the one of that name is in use, as " + path + suffix + " says"}
		}
	}
	if base, ok := strings.CutSuffix(path, ".index.db"); ok {
		for _, archive := range []string{base + ".db", base} {
			if there(archive) {
				return &DatabaseNameError{archive, "it is that of the search index of " + archive}
			}
		}
	}
	return nil
}

// place gives a finished file its name.
func place(from, to string, replace bool) error {
	if replace {
		return os.Rename(from, to)
	}
	// A link fails where the name is taken, a rename would replace it.
	err := os.Link(from, to)
	if err == nil {
		return nil
	}
	if _, statErr := os.Lstat(to); !errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", to, ErrExists)
	}
	return os.Rename(from, to)
}

// vacuumInto copies the database behind a read-only connection to a new file.
func vacuumInto(ctx context.Context, db *sqlx.DB, path string) error {
	if err := createPrivate(path); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, `VACUUM INTO ?`, path)
	return err
}

// stampCopy makes a copy an archive of its own: a search index that lies where the copy is
// restored does not take its sessions for those it knows.
func stampCopy(ctx context.Context, path string) error {
	base, err := sqlite.NewConnector(fileURI(path, url.Values{"_busy_timeout": {busyTimeout}}))
	if err != nil {
		return err
	}
	db := openConnector(base, 1)
	defer db.Close()
	if _, err := db.ExecContext(ctx, `UPDATE archive SET uuid = ?`, uuid.NewString()); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `UPDATE session SET nonce = random() & 9223372036854775807`)
	return err
}

// proveCopy proves every session of a copy.
func (a *Archive) proveCopy(ctx context.Context, path string, opts *BackupOptions, result *BackupResult) error {
	copied, err := openCopy(path, false)
	if err != nil {
		return err
	}
	defer copied.Close()
	return copied.view(ctx, func(rx *reading) error {
		var keys []query.Key
		if err := rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session ORDER BY key`); err != nil {
			return err
		}
		for i, key := range keys {
			s, err := rx.sessionState(ctx, key)
			if err != nil {
				return err
			}
			if _, err := rx.prove(ctx, s, io.Discard); err != nil {
				return fmt.Errorf("session #%d: %w", key, err)
			}
			result.Sessions++
			result.Lines += s.Lines
			result.Bytes += s.Bytes
			if opts.Progress != nil && ctx.Err() == nil {
				opts.Progress(i+1, len(keys))
			}
		}
		return nil
	})
}

// openCopy opens an archive for reading alone, whose schema is the present one, without
// its index. It can view and nothing else.
func openCopy(path string, immutable bool) (*Archive, error) {
	db, err := openReadOnly(path, immutable)
	if err != nil {
		return nil, err
	}
	return &Archive{path: path, now: time.Now, read: db}, nil
}

// openReadOnly opens a database that is not to be written. A database that is immutable is
// taken for a file that nobody writes: no lock is taken and no file made beside it.
func openReadOnly(path string, immutable bool) (*sqlx.DB, error) {
	params := url.Values{"mode": {"ro"}, "_busy_timeout": {busyTimeout}, "_pragma": {"cache_size=-16384"}, "_synchronous": {"OFF"}}
	if immutable {
		params.Set("immutable", "1")
	}
	base, err := sqlite.NewConnector(fileURI(path, params))
	if err != nil {
		return nil, err
	}
	return openConnector(base, 2), nil
}

// syncFile brings a file to the disk.
func syncFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Sync()
}
