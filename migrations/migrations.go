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
// one statement. Several processes may call it at once on the same file. Returns
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
	// All in one statement, which reads one state of the file: another process may be making
	// its first tables. goose's own table stands alone when that was interrupted.
	var application, version, tables int
	err := db.QueryRowContext(ctx, `SELECT
		(SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%')`,
	).Scan(&application, &version, &tables)
	if err != nil {
		return 0, fmt.Errorf("read stamp: %w", err)
	}
	if application == ApplicationID {
		if version > Version {
			return 0, fmt.Errorf("%w: schema %d, this one knows %d", ErrNewer, version, Version)
		}
		return version, nil
	}
	if application != 0 || tables > 0 {
		return 0, ErrForeign
	}
	return 0, nil
}
