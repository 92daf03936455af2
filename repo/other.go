package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pidb/migrations"
)

// otherArchive is an archive that is read and never written.
type otherArchive struct {
	archive *Archive
	path    string
	before  fs.FileInfo // of a file that is read without locks; nil: of one that others may write
	scrap   string      // folder of a copy; empty: none
}

func (o *otherArchive) close() {
	o.archive.Close()
	if o.scrap != "" {
		_ = os.RemoveAll(o.scrap)
	}
}

// openOther opens the archive at path.
func openOther(ctx context.Context, path string) (*otherArchive, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	o := &otherArchive{path: path}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("archive %w", ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ErrForeign
	}
	// Where no process has it open, SQLite needs to make no file beside it.
	if !sideFiles(path) {
		o.before = info
	}
	if o.archive, err = openCopy(path, o.before != nil); err != nil {
		return nil, err
	}
	version, err := o.stamp(ctx)
	if err == nil && version < migrations.Version {
		err = o.upgrade(ctx)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return o, nil
}

// sideFiles reports whether a database has files beside it that hold a part of it, or will.
func sideFiles(path string) bool {
	for _, suffix := range []string{"-wal", "-journal"} {
		if info, err := os.Stat(path + suffix); err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	_, err := os.Stat(path + "-shm")
	return err == nil
}

// unchanged returns an error when a file that was read without locks was written meanwhile.
// What was taken in is proved; there may be more now.
func (o *otherArchive) unchanged() error {
	if o.before == nil {
		return nil
	}
	info, err := os.Stat(o.path)
	if err != nil || info.Size() != o.before.Size() || !info.ModTime().Equal(o.before.ModTime()) || sideFiles(o.path) {
		return fmt.Errorf("%w: it was written meanwhile", ErrBusy)
	}
	return nil
}

// stamp returns the schema version of an archive.
func (o *otherArchive) stamp(ctx context.Context) (int, error) {
	var application, version int
	if err := o.archive.read.GetContext(ctx, &application, `PRAGMA application_id`); err != nil {
		return 0, err
	}
	if err := o.archive.read.GetContext(ctx, &version, `PRAGMA user_version`); err != nil {
		return 0, err
	}
	switch {
	case application != migrations.ApplicationID:
		return 0, ErrForeign
	case version > migrations.Version:
		return 0, fmt.Errorf("%w: schema %d, this one knows %d", ErrNewer, version, migrations.Version)
	}
	return version, nil
}

// upgrade goes on with an upgraded copy.
func (o *otherArchive) upgrade(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "pidb-*")
	if err != nil {
		return err
	}
	o.scrap = dir
	path := filepath.Join(dir, "pidb.db")
	if err := vacuumInto(ctx, o.archive.read, path); err != nil {
		return err
	}
	if err := upgradeCopy(ctx, path); err != nil {
		return err
	}
	copied, err := openCopy(path, false)
	if err != nil {
		return err
	}
	o.archive.Close()
	o.archive = copied
	return nil
}

func upgradeCopy(ctx context.Context, path string) error {
	db, err := openDB(path, "", 1, map[string][]string{"_txlock": {"immediate"}})
	if err != nil {
		return err
	}
	defer db.Close()
	return migrations.Up(ctx, db.DB)
}
