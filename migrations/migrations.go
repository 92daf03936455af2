package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
)

// ApplicationID marks a SQLite file as an archive ("pidb" in ASCII).
const ApplicationID = 0x70696462

// Version is the number of the newest migration, and user_version of an archive that has it.
const Version = 3

// IndexVersion is user_version of a search index with the schema of [Index]. It changes
// with the schema and with the way text is cut into tokens.
const IndexVersion = 2

var (
	// ErrNewer is returned for an archive that a newer pidb has written.
	ErrNewer = errors.New("the archive is from a newer pidb")
	// ErrForeign is returned for a SQLite database that is no archive.
	ErrForeign = errors.New("not a pidb archive")
)

// Index is the schema of the search index, to be run on an empty database.
//
//go:embed index.sql
var Index string

//go:embed archive/*.sql
var files embed.FS

// Up brings the archive behind db to the newest schema. An up-to-date archive costs
// two pragmas. Several processes may call it at once on the same file. Returns
// [ErrNewer] or [ErrForeign], with nothing changed, for a database that is not its to
// migrate.
func Up(ctx context.Context, db *sql.DB) error {
	const attempts = 100
	for attempt := 1; ; attempt++ {
		current, err := stamp(ctx, db)
		if err != nil || current == Version {
			return err
		}
		err = migrate(ctx, db)
		if err == nil || attempt == attempts {
			return err
		}
		// Another process may be migrating: look again a little later.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func migrate(ctx context.Context, db *sql.DB) error {
	steps, err := fs.Sub(files, "archive")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, steps)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate archive: %w", err)
	}
	return nil
}

// stamp returns user_version of an archive, 0 for an empty database.
func stamp(ctx context.Context, db *sql.DB) (int, error) {
	var application, version, tables int
	for pragma, dst := range map[string]*int{"application_id": &application, "user_version": &version} {
		if err := db.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(dst); err != nil {
			return 0, fmt.Errorf("read %s: %w", pragma, err)
		}
	}
	if application == ApplicationID {
		if version > Version {
			return 0, fmt.Errorf("%w: schema %d, this one knows %d", ErrNewer, version, Version)
		}
		return version, nil
	}
	// goose's own table stands alone in an archive whose first migration was interrupted.
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%'`).Scan(&tables)
	if err != nil {
		return 0, fmt.Errorf("read schema: %w", err)
	}
	if application != 0 || tables > 0 {
		return 0, ErrForeign
	}
	return 0, nil
}
