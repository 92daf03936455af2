package repo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jmoiron/sqlx"

	"pidb/query"
)

// derivedTables hold nothing that does not follow from the lines. Each comes after those that refer to it.
var derivedTables = []string{"entry", "usage", "setting"}

// primaryTables are all others.
var primaryTables = []string{"archive", "source", "session", "chunk", "piece", "tombstone", "metadata"}

// repair makes the tables sound: damaged derived ones are emptied, the indexes of the
// others are made anew.
func (a *Archive) repair(ctx context.Context) error {
	conn, err := a.write.Connx(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	sound := true
	for _, table := range derivedTables {
		ok, err := isSound(ctx, conn, table)
		if err != nil {
			return err
		}
		sound = sound && ok
	}
	if !sound {
		if err := a.renew(ctx, conn); err != nil {
			return err
		}
	}
	for _, table := range primaryTables {
		if ok, err := isSound(ctx, conn, table); err != nil || ok {
			if err != nil {
				return err
			}
			continue
		}
		if err := reindex(ctx, conn, table); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
	}
	return nil
}

// isSound reports whether SQLite finds nothing wrong with a table and its indexes.
func isSound(ctx context.Context, conn *sqlx.Conn, table string) (bool, error) {
	var lines []string
	err := conn.SelectContext(ctx, &lines, `PRAGMA main.integrity_check(`+table+`)`)
	if err != nil {
		if errors.Is(mapError(err), ErrDamaged) {
			return false, nil
		}
		return false, err
	}
	return len(lines) == 1 && lines[0] == "ok", nil
}

// schemaRow is a row of SQLite's schema.
type schemaRow struct {
	Type string `db:"type"`
	Name string `db:"name"`
	SQL  string `db:"sql"`
}

// schemaOf returns how the given tables and their indexes are made, tables first.
func schemaOf(ctx context.Context, conn *sqlx.Conn, tables ...string) ([]schemaRow, error) {
	query, args, err := sqlx.In(`
		SELECT type, name, sql FROM main.sqlite_schema WHERE tbl_name IN (?) AND sql IS NOT NULL ORDER BY type = 'table' DESC, rowid`, tables)
	if err != nil {
		return nil, err
	}
	var rows []schemaRow
	err = conn.SelectContext(ctx, &rows, query, args...)
	return rows, err
}

// renew drops the derived tables and makes them anew, in one transaction. The rows of a
// session whose bytes are damaged are kept as far as they can be read.
func (a *Archive) renew(ctx context.Context, conn *sqlx.Conn) error {
	rows, err := schemaOf(ctx, conn, derivedTables...)
	if err != nil {
		return err
	}
	kept, err := a.keep(ctx, conn)
	if err != nil {
		return err
	}
	steady := context.WithoutCancel(ctx)
	err = atomically(steady, conn, func() error {
		for _, table := range derivedTables {
			if _, err := conn.ExecContext(steady, `DROP TABLE main.`+table); err != nil {
				return err
			}
		}
		return createSchema(steady, conn, rows)
	})
	if errors.Is(mapError(err), ErrDamaged) {
		// A table that cannot be walked cannot be dropped. Its name can, and a copy of the whole leaves its pages behind.
		if err = replaceSchema(steady, conn, `tbl_name IN ('entry', 'usage', 'setting')`, rows); err != nil {
			return err
		}
		if _, err = conn.ExecContext(steady, `VACUUM`); errors.Is(mapError(err), ErrDamaged) {
			err = nil // of another table: the pages stay, unused
		}
	}
	if err != nil {
		return err
	}
	return kept.restore(steady, conn)
}

// replaceSchema takes tables or indexes out of the schema, whatever is in them, and
// makes others.
func replaceSchema(ctx context.Context, conn *sqlx.Conn, where string, rows []schemaRow) error {
	if _, err := conn.ExecContext(ctx, `PRAGMA writable_schema = ON`); err != nil {
		return err
	}
	err := atomically(ctx, conn, func() error {
		if _, err := conn.ExecContext(ctx, `DELETE FROM main.sqlite_schema WHERE `+where); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, `PRAGMA writable_schema = RESET`); err != nil {
			return err
		}
		return createSchema(ctx, conn, rows)
	})
	if _, resetErr := conn.ExecContext(ctx, `PRAGMA writable_schema = RESET`); err == nil {
		err = resetErr
	}
	return err
}

// reindex makes the indexes of a table anew.
func reindex(ctx context.Context, conn *sqlx.Conn, table string) error {
	_, err := conn.ExecContext(ctx, `REINDEX main.`+table)
	if !errors.Is(mapError(err), ErrDamaged) {
		return err
	}
	rows, err := schemaOf(ctx, conn, table)
	if err != nil {
		return err
	}
	indexes := rows[:0]
	for _, row := range rows {
		if row.Type == "index" {
			indexes = append(indexes, row)
		}
	}
	if err := replaceSchema(ctx, conn, `type = 'index' AND sql IS NOT NULL AND tbl_name = '`+table+`'`, indexes); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `REINDEX main.`+table)
	if err == nil {
		_, err = conn.ExecContext(ctx, `VACUUM`)
	}
	return err
}

// keptRows are rows of derived tables in temporary ones.
type keptRows []query.Key

// keep sets aside what can be read of the rows of sessions whose bytes are damaged:
// no rebuild brings these back.
func (a *Archive) keep(ctx context.Context, conn *sqlx.Conn) (keptRows, error) {
	var keys, damaged []query.Key
	err := a.view(ctx, func(rx *reading) error {
		if err := rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session ORDER BY key`); err != nil {
			return err
		}
		for _, key := range keys {
			if _, err := rx.Write(ctx, key, 0, io.Discard); ctx.Err() != nil {
				return ctx.Err()
			} else if err != nil {
				damaged = append(damaged, key)
			}
		}
		return nil
	})
	if err != nil || len(damaged) == 0 {
		return nil, err
	}
	for _, table := range derivedTables {
		if _, err := conn.ExecContext(ctx, `CREATE TEMP TABLE kept_`+table+` AS SELECT * FROM main.`+table+` LIMIT 0`); err != nil {
			return nil, err
		}
	}
	// Where a table cannot be read, the rows of that session are lost.
	lost := func(err error) error {
		if err == nil || errors.Is(mapError(err), ErrDamaged) {
			return nil
		}
		return err
	}
	_, err = conn.ExecContext(ctx, `INSERT INTO kept_setting SELECT * FROM main.setting`)
	for i := 0; lost(err) == nil && i < len(damaged); i++ {
		first, end := query.MakeRef(damaged[i], 0), query.MakeRef(damaged[i]+1, 0)
		for _, table := range []string{"entry", "usage"} {
			if _, err = conn.ExecContext(ctx, `INSERT INTO kept_`+table+` SELECT * FROM main.`+table+` WHERE ref >= ? AND ref < ?`, first, end); lost(err) != nil {
				break
			}
		}
	}
	return damaged, lost(err)
}

// restore brings back what was kept.
func (kept keptRows) restore(ctx context.Context, conn *sqlx.Conn) error {
	if len(kept) == 0 {
		return nil
	}
	return atomically(ctx, conn, func() error {
		for _, statement := range []string{
			`INSERT INTO setting SELECT * FROM kept_setting`,
			`UPDATE kept_entry SET setting = NULL WHERE setting NOT IN (SELECT key FROM setting)`,
			`INSERT INTO entry SELECT * FROM kept_entry`,
			`INSERT INTO usage SELECT * FROM kept_usage`,
			`DROP TABLE kept_entry`, `DROP TABLE kept_usage`, `DROP TABLE kept_setting`,
		} {
			if _, err := conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// atomically calls f in a transaction of a connection.
func atomically(ctx context.Context, conn *sqlx.Conn, f func() error) error {
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := f()
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		_, _ = conn.ExecContext(ctx, `ROLLBACK`) // SQLite may have done it
	}
	return err
}

// createSchema makes tables and indexes.
func createSchema(ctx context.Context, conn *sqlx.Conn, rows []schemaRow) error {
	for _, row := range rows {
		if _, err := conn.ExecContext(ctx, row.SQL); err != nil {
			return fmt.Errorf("%s %s: %w", row.Type, row.Name, err)
		}
	}
	return nil
}
