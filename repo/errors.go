package repo

import (
	"errors"
	"fmt"
	"io/fs"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"pidb/migrations"
	"pidb/query"
	"pidb/query/fulltext"
)

var (
	// ErrNotFound is returned for a session, an entry or a path that is not there.
	ErrNotFound = query.ErrNotFound
	// ErrDamaged is returned where stored bytes are not what was stored.
	ErrDamaged = query.ErrDamaged
	// ErrIndexDamaged is returned, beside ErrDamaged, where it is the search index: it can be made anew.
	ErrIndexDamaged = fulltext.ErrDamaged
	// ErrNewer is returned for an archive that a newer pidb has written.
	ErrNewer = migrations.ErrNewer
	// ErrForeign is returned for a file that is no archive.
	ErrForeign = migrations.ErrForeign
	// ErrBusy is returned when another process held the archive for longer than the busy timeout.
	ErrBusy = errors.New("the archive is busy")
	// ErrFull is returned when there is no room to write.
	ErrFull = errors.New("no space left")
	// ErrReadOnly is returned for a write to an archive that cannot be written.
	ErrReadOnly = errors.New("the archive is read-only")
	// ErrExists is returned where a file to be written is there already.
	ErrExists = errors.New("already exists")
	// ErrNoSource is returned for a session that is in no file.
	ErrNoSource = errors.New("the session is in no file")
	// ErrNotNative is returned for an append to a session that belongs to a file: fork it.
	ErrNotNative = errors.New("the session belongs to a file")
	// ErrConflict is returned where the leaf of a session is no longer the one that was asked for.
	ErrConflict = errors.New("the leaf has moved")
	// ErrInvalidID is returned for a session id that cannot be one.
	ErrInvalidID = errors.New("invalid session id")
	// ErrInvalidEntry is returned for an entry that pi would not write.
	ErrInvalidEntry = errors.New("invalid entry")
	// ErrNoLimit is returned for a prune that neither an age nor a number limits.
	ErrNoLimit = errors.New("neither an age nor a number of versions is given")
	// ErrUnanswered is returned for an entry at which a branch would leave a tool call without its result.
	ErrUnanswered = query.ErrUnanswered
	// ErrInvalidTree is returned for entries that make no tree.
	ErrInvalidTree = errors.New("invalid tree")
	// ErrTooLarge is returned for a file or a line beyond what an archive can hold.
	ErrTooLarge = errors.New("too large")
)

// mapError wraps an error of the driver in the sentinel that says what it means for a
// caller. Other errors come back as they are.
func mapError(err error) error {
	if errors.Is(err, ErrIndexDamaged) && !errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	driver, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return err
	}
	var sentinel error
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		sentinel = ErrBusy
	case sqlite3.SQLITE_FULL:
		sentinel = ErrFull
	case sqlite3.SQLITE_READONLY:
		sentinel = ErrReadOnly
	case sqlite3.SQLITE_CANTOPEN:
		// The file is there, or was just made.
		sentinel = fs.ErrPermission
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR:
		// Every statement fits the schema that was checked when the archive was opened: one that is
		// wrong met a schema that is damaged.
		sentinel = ErrDamaged
	case sqlite3.SQLITE_NOTADB:
		sentinel = ErrForeign
	case sqlite3.SQLITE_TOOBIG:
		sentinel = ErrTooLarge
	default:
		return err
	}
	if errors.Is(err, sentinel) {
		return err
	}
	return fmt.Errorf("%w: %w", sentinel, err)
}
