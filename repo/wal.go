package repo

import (
	"context"
	"os"

	"github.com/jmoiron/sqlx"
)

// logAtMost is the size in bytes from which on a write-ahead log is emptied by a commit that
// waits for readers: while someone always reads, no other commit gets to begin it anew.
const logAtMost = 32 << 20

// readerTimeout is how long such a commit waits for readers, in milliseconds.
const readerTimeout = "500"

// emptyLog empties the write-ahead log of a database where it has grown large. Where readers
// do not let it, a later commit will.
func emptyLog(ctx context.Context, db *sqlx.DB, path string) {
	info, err := os.Stat(path + "-wal")
	if err != nil || info.Size() < logAtMost || ctx.Err() != nil {
		return
	}
	conn, err := db.Connx(ctx)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	steady := context.WithoutCancel(ctx)
	if _, err := conn.ExecContext(steady, `PRAGMA busy_timeout = `+readerTimeout); err != nil {
		return
	}
	_, _ = conn.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	_, _ = conn.ExecContext(steady, `PRAGMA busy_timeout = `+busyTimeout)
}
