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

// openIndex opens the index, or makes a new one where it cannot be used.
func (a *Archive) openIndex(ctx context.Context) error {
	err := a.tryIndex(ctx)
	if err == nil {
		return nil
	}
	if cause := mapError(err); ctx.Err() != nil || errors.Is(cause, ErrBusy) || errors.Is(cause, fs.ErrPermission) || errors.Is(cause, ErrReadOnly) {
		return fmt.Errorf("open search index %s: %w", a.IndexPath(), cause)
	}
	if err := a.removeIndex(); err != nil {
		return err
	}
	if err := a.tryIndex(ctx); err != nil {
		return fmt.Errorf("make search index: %w", err)
	}
	return nil
}

// removeIndex deletes the files of the index. What is no database is moved aside: it may
// be somebody's.
func (a *Archive) removeIndex() error {
	if a.index != nil {
		a.index.Close()
		a.index = nil
	}
	if !isDatabase(a.IndexPath()) {
		if err := os.Rename(a.IndexPath(), a.IndexPath()+".aside-"+uuid.NewString()); err != nil {
			return fmt.Errorf("move aside what is in the place of the search index: %w", err)
		}
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(a.IndexPath() + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove search index: %w", err)
		}
	}
	return nil
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

var errIndexVersion = errors.New("index of another version")

func (a *Archive) tryIndex(ctx context.Context) error {
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
