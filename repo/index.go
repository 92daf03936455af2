package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"pidb/migrations"
)

// The search index is a database of its own beside the archive. Nothing is in it that
// the archive does not hold: a damaged, foreign or missing one is made anew, and
// [Archive.UpdateIndex] feeds it whatever it lacks.

// IndexPath returns the path of the search index. Anyone may delete that file while no
// process has the archive open.
func (a *Archive) IndexPath() string {
	return strings.TrimSuffix(a.path, ".db") + ".index.db"
}

// indexLoss is what became of an index that was damaged.
type indexLoss struct {
	aside string // where the file is that was no database; empty: nowhere
}

// IndexLoss reports whether the search index was found damaged since the archive was
// opened, or while it was, and replaced by a new one. A file that was no database was
// moved to aside.
func (a *Archive) IndexLoss() (aside string, lost bool) {
	if loss := a.lost.Load(); loss != nil {
		return loss.aside, true
	}
	return "", false
}

// openIndex opens the index, or makes a new one where it cannot be used.
func (a *Archive) openIndex(ctx context.Context) error {
	err := patiently(ctx, a.tryIndex)
	if err == nil {
		return nil
	}
	if cause := mapError(err); ctx.Err() != nil || errors.Is(cause, ErrBusy) || errors.Is(cause, fs.ErrPermission) || errors.Is(cause, ErrReadOnly) {
		return fmt.Errorf("open search index %s: %w", a.IndexPath(), cause)
	}
	aside, removeErr := a.removeIndex(errors.Is(err, errNoIndex))
	if removeErr != nil {
		return removeErr
	}
	if !errors.Is(err, errIndexVersion) {
		a.lost.Store(&indexLoss{aside})
	}
	if err := patiently(ctx, a.tryIndex); err != nil {
		return fmt.Errorf("make search index: %w", err)
	}
	return nil
}

// removeIndex deletes the files of the index. What is foreign, or no database, is moved
// aside, as it may be somebody's; its new path is returned.
func (a *Archive) removeIndex(foreign bool) (aside string, err error) {
	if a.index != nil {
		a.index.Close()
		a.index = nil
	}
	if foreign || !isDatabase(a.IndexPath()) {
		if aside, err = moveAside(a.IndexPath()); err != nil {
			return "", fmt.Errorf("move aside what is in the place of the search index: %w", err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(a.IndexPath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("remove search index: %w", err)
		}
	}
	return aside, nil
}

// moveAside gives a file another name beside its own, with mode 0600, and returns that.
func moveAside(path string) (string, error) {
	aside := path + ".aside-" + uuid.NewString()
	if err := os.Rename(path, aside); err != nil {
		return "", err
	}
	info, err := os.Lstat(aside)
	if err == nil && info.Mode().IsRegular() {
		err = os.Chmod(aside, 0o600)
	}
	return aside, err
}

// isDatabase reports whether a file is empty, not there, or begins as a database of SQLite.
func isDatabase(path string) bool {
	const magic = "SQLite format 3\x00"
	file, err := os.Open(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer file.Close()
	start := make([]byte, len(magic))
	n, _ := io.ReadFull(file, start)
	return n == 0 || string(start[:n]) == magic
}

// indexPageSize is larger than that of the archive: what the index holds are blobs.
const indexPageSize = "32768"

// patience is for how long an archive that others are making is opened again.
const patience = 20 * time.Second

// patiently calls f until it does not say that the database is busy, or for some time.
// Where several processes turn a new database to a write-ahead log at once, SQLite waits
// for none of them.
func patiently(ctx context.Context, f func(context.Context) error) error {
	for begun := time.Now(); ; {
		err := f(ctx)
		if err == nil || !errors.Is(mapError(err), ErrBusy) || time.Since(begun) > patience {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var (
	errIndexVersion = errors.New("index of another version")
	errNoIndex      = errors.New("a database that is no index")
)

func (a *Archive) tryIndex(ctx context.Context) error {
	if a.index != nil {
		a.index.Close()
	}
	if err := createPrivate(a.IndexPath()); err != nil {
		return err
	}
	var err error
	a.index, err = openDB(a.IndexPath(), "", 1, url.Values{
		"_pragma": {"page_size=" + indexPageSize, "cache_size=-4096", "temp_store=MEMORY", "journal_size_limit=67108864", "secure_delete=ON"},
		"_txlock": {"immediate"}, "_synchronous": {"OFF"},
	})
	if err != nil {
		return err
	}
	var version, tables, own int
	const ownTables = `SELECT count(*) FROM sqlite_schema WHERE name IN ('watermark', 'indexed')`
	if err := a.index.GetContext(ctx, &version, `PRAGMA user_version`); err != nil {
		return err
	}
	if err := a.index.GetContext(ctx, &own, ownTables); err != nil {
		return err
	}
	if version == migrations.IndexVersion && own == 2 {
		return nil
	}
	tx, err := a.index.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Another process may have made it since.
	if err := tx.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version), (`+ownTables+`), (SELECT count(*) FROM sqlite_schema)`).Scan(
		&version, &own, &tables); err != nil {
		return err
	}
	switch {
	case version == migrations.IndexVersion && own == 2:
		return nil
	case tables > 0 && own < 2:
		return errNoIndex
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
