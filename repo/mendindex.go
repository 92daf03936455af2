package repo

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"modernc.org/sqlite"

	"pidb/migrations"
	"pidb/query/fulltext"
)

// RepairIndex reads the whole search index and, where anything of it is damaged, makes it
// anew and feeds it. Reports whether it did. progress is that of [Archive.UpdateIndex].
// Other processes go on with the new one.
func (a *Archive) RepairIndex(ctx context.Context, progress func(done, total int64)) (bool, error) {
	a.indexing.Lock()
	defer a.indexing.Unlock()
	renewed, err := a.repairIndex(ctx)
	if err == nil && renewed {
		f := &feeder{archive: a, progress: progress}
		err = f.update(ctx)
	}
	if err != nil {
		return renewed, fmt.Errorf("repair search index: %w", mapError(err))
	}
	return renewed, nil
}

// mayBeDamage reports whether an error may come from a damaged index: not where it says
// that something else stands in the way.
func mayBeDamage(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	err = mapError(err)
	for _, other := range []error{ErrBusy, ErrFull, ErrReadOnly, ErrNotFound, os.ErrPermission} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// repairIndex empties the index where it is damaged, and reports whether it was.
func (a *Archive) repairIndex(ctx context.Context) (bool, error) {
	found, err := a.checkIndex(ctx)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if err := a.emptyIndex(ctx); err != nil {
		return true, err
	}
	a.lost.CompareAndSwap(nil, &indexLoss{})
	return true, nil
}

// checkIndex reads the whole index and says what is wrong with it.
func (a *Archive) checkIndex(ctx context.Context) (found []string, err error) {
	err = a.view(ctx, func(rx *reading) (err error) {
		if found, err = integrity(ctx, rx.tx, "idx"); err != nil {
			return err
		}
		index, err := fulltext.Open(ctx, rx.tx, "idx")
		if err != nil {
			return err
		}
		defer index.Close()
		if err := index.Check(ctx); err != nil {
			return err
		}
		var n int64
		if err := rx.tx.GetContext(ctx, &n, `SELECT count(*) FROM idx.watermark WHERE change > 0 AND uuid <> ''`); err != nil {
			return err
		}
		return rx.tx.GetContext(ctx, &n, `SELECT count(*) FROM idx.indexed WHERE nonce > 0 AND rows > 0 AND version > 0`)
	})
	switch {
	case err == nil:
		return found, nil
	case !mayBeDamage(ctx, err):
		return nil, err
	}
	return append(found, err.Error()), nil
}

// emptyIndex empties the index, whatever is in its pages: they are all replaced, in one
// transaction, by those of a new one.
func (a *Archive) emptyIndex(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "pidb-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	fresh := filepath.Join(dir, "index.db")
	if err := createIndex(ctx, fresh); err != nil {
		return err
	}
	conn, err := a.index.Connx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	// A file that was cut is written over too.
	if _, err := conn.ExecContext(ctx, `PRAGMA writable_schema = ON`); err != nil {
		return err
	}
	err = conn.Raw(func(raw any) error { return overwrite(raw.(driver.Conn), fresh) })
	_, resetErr := conn.ExecContext(ctx, `PRAGMA writable_schema = RESET`)
	if err == nil {
		err = resetErr
	}
	if err != nil {
		return fmt.Errorf("make search index anew: %w", err)
	}
	return nil
}

// overwrite copies the database at path over that of a connection.
func overwrite(conn driver.Conn, path string) error {
	restore, err := conn.(interface {
		NewRestore(string) (*sqlite.Backup, error)
	}).NewRestore(fileURI(path, url.Values{}))
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = restore.Step(-1)
	}
	return errors.Join(err, restore.Finish())
}

// createIndex makes an empty index.
func createIndex(ctx context.Context, path string) error {
	base, err := sqlite.NewConnector(fileURI(path, url.Values{"_pragma": {"page_size=" + indexPageSize, "journal_mode=OFF", "synchronous=OFF"}}))
	if err != nil {
		return err
	}
	db := openConnector(base, 1)
	defer db.Close()
	_, err = db.ExecContext(ctx, migrations.Index+`; PRAGMA user_version = `+strconv.Itoa(migrations.IndexVersion))
	return err
}
