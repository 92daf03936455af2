package query

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"
)

// Key names a session in one archive: a positive integer that is never used twice.
// It is what `#KEY` names on the command line.
type Key int64

// Ref names a row of the entry table: one physical line, or one entry recovered from
// a malformed line. Refs of a session grow in file order.
type Ref int64

// seqBits is the room for rows of one session in a Ref.
const seqBits = 26

// MaxRows is the number of rows that one session can hold.
const MaxRows = 1 << seqBits

// MakeRef returns the Ref of the row with the given sequence number, from 0, of a session.
func MakeRef(session Key, seq int64) Ref { return Ref(int64(session)<<seqBits | seq) }

// Session returns the session that the row belongs to.
func (r Ref) Session() Key { return Key(r >> seqBits) }

// Seq returns the place of the row among the rows of its session, from 0.
func (r Ref) Seq() int64 { return int64(r) & (MaxRows - 1) }

// refRange returns the first Ref of a session and the first of the next.
func (k Key) refRange() (first, end Ref) { return MakeRef(k, 0), MakeRef(k+1, 0) }

// ErrNotFound is returned for a session or an entry that the archive does not hold.
var ErrNotFound = errors.New("not found")

// Rx reads an archive as it was at one instant. It belongs to the transaction that it
// was made from and must not be used after that, nor by two goroutines at once.
type Rx struct {
	tx     *sqlx.Tx
	chunks chunkCache
}

// NewRx returns an Rx over a transaction, which stays the caller's to end.
func NewRx(tx *sqlx.Tx) *Rx { return &Rx{tx: tx} }

// each calls f for every row of a query.
func each[T any](ctx context.Context, rx *Rx, f func(*T) error, query string, args ...any) error {
	rows, err := rx.tx.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var row T
		if err := rows.StructScan(&row); err != nil {
			return Unreadable(err)
		}
		if err := f(&row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Unreadable returns the error of a read of rows: a value that does not fit its column is
// none that was stored, and so the error wraps [ErrDamaged]. Errors of SQLite, of a context
// and of a transaction that is over stay as they are.
func Unreadable(err error) error {
	if _, ok := errors.AsType[*sqlite.Error](err); ok {
		return err
	}
	for _, other := range []error{nil, sql.ErrNoRows, sql.ErrTxDone, sql.ErrConnDone, driver.ErrBadConn, context.Canceled, context.DeadlineExceeded, ErrDamaged, ErrNotFound} {
		if errors.Is(err, other) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// noRows returns instead for sql.ErrNoRows, and other errors as they are.
func noRows(err, instead error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return instead
	}
	return err
}
