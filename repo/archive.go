package repo

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"pidb/migrations"
	"pidb/query"
)

// Durability says what an acknowledged write survives.
type Durability uint8

const (
	// DurabilityNormal survives a crash or kill of the process at any instant. After a
	// loss of power the newest writes may be gone; what is there is whole.
	DurabilityNormal Durability = iota
	// DurabilityFull survives a loss of power too: every commit waits for the disk.
	DurabilityFull
)

// OpenOptions are the choices of [Open].
type OpenOptions struct {
	Durability Durability
	// Now is the clock of what is written; nil means time.Now. It is read once a transaction.
	Now func() time.Time
}

// Archive is an open archive. Its methods may be called by several goroutines at once,
// and several processes may have one archive open.
type Archive struct {
	path  string
	now   func() time.Time
	write *sqlx.DB // one connection, immediate transactions
	read  *sqlx.DB // query_only, the index attached as schema idx
	index *sqlx.DB // one connection to the index file
	scrap string   // folder that goes with the archive; empty: none

	indexing sync.Mutex // held by the one feeder of the index in this process
	prepared statements
	live     *loader        // of the one write transaction; nil: not made yet
	behind   sync.WaitGroup // of calls that returned because their context ended
	lost     atomic.Pointer[indexLoss]
	watch    watch
}

// busyTimeout is how long a write waits for another process, in milliseconds.
const busyTimeout = "60000"

// checkpointPages is how far the write-ahead log grows before a commit empties it. An
// append writes a dozen pages, and of a hundred appends at most one should wait for that.
const checkpointPages = "4000"

// pageSize of a new archive, in bytes.
const pageSize = "8192"

// Open opens the archive at path, and makes it where there is none, in a folder that is
// made too: the file with mode 0600, the folder with 0700. Errors wrap [ErrNewer],
// [ErrForeign], [ErrBusy], [ErrReadOnly] or those of the file system.
func Open(ctx context.Context, path string, opts *OpenOptions) (*Archive, error) {
	if opts == nil {
		opts = &OpenOptions{}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open archive: %w", err)
	}
	// SQLite keeps its side files beside the file that a link leads to: so does the index.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	a := &Archive{path: path, now: opts.Now}
	if a.now == nil {
		a.now = time.Now
	}
	if err := a.open(ctx, opts); err != nil {
		a.Close()
		return nil, fmt.Errorf("open archive %s: %w", path, mapError(err))
	}
	return a, nil
}

func (a *Archive) open(ctx context.Context, opts *OpenOptions) error {
	if err := createPrivate(a.path); err != nil {
		return err
	}
	synchronous := "NORMAL"
	if opts.Durability == DurabilityFull {
		synchronous = "FULL"
	}
	var err error
	if a.write, err = openDB(a.path, "", 1, url.Values{
		"_pragma": {"page_size=" + pageSize, "cache_size=-16384", "temp_store=MEMORY", "journal_size_limit=67108864", "wal_autocheckpoint=" + checkpointPages},
		"_txlock": {"immediate"}, "_synchronous": {synchronous},
	}); err != nil {
		return err
	}
	if err := patiently(ctx, func(ctx context.Context) error { return migrations.Up(ctx, a.write.DB) }); err != nil {
		return err
	}
	if err := a.claim(ctx); err != nil {
		return err
	}
	if err := a.openIndex(ctx); err != nil {
		return err
	}
	a.read, err = openDB(a.path, a.IndexPath(), 4, url.Values{
		"_pragma": {"cache_size=-16384", "temp_store=MEMORY"}, "_query_only": {"1"},
	})
	return err
}

// claim gives a new archive its identity.
func (a *Archive) claim(ctx context.Context) error {
	var n int
	if err := a.write.GetContext(ctx, &n, `SELECT count(*) FROM archive`); err != nil || n == 1 {
		return err
	}
	_, err := a.write.ExecContext(ctx, `INSERT INTO archive (only, uuid, created_ms) VALUES (1, ?, ?) ON CONFLICT DO NOTHING`,
		uuid.NewString(), a.now().UnixMilli())
	return err
}

// OpenTemporary opens a new archive in a folder of its own, which [Archive.Close]
// removes: for a caller who has one session file, or none, and wants to ask.
func OpenTemporary(ctx context.Context, opts *OpenOptions) (*Archive, error) {
	dir, err := os.MkdirTemp("", "pidb-*")
	if err != nil {
		return nil, fmt.Errorf("open temporary archive: %w", err)
	}
	a, err := Open(ctx, filepath.Join(dir, "pidb.db"), opts)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	a.scrap = dir
	return a, nil
}

// Close ends all use of the archive. Transactions under way are waited for; those who
// wait for changes get an error.
func (a *Archive) Close() error {
	defer a.watch.end()()
	a.behind.Wait()
	var errs []error
	for _, db := range []*sqlx.DB{a.read, a.index, a.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if a.scrap != "" {
		errs = append(errs, os.RemoveAll(a.scrap))
	}
	return errors.Join(errs...)
}

// Path returns the absolute path of the archive, without symbolic links.
func (a *Archive) Path() string { return a.path }

// View calls f with the archive as it is at one instant. Writes by others meanwhile are
// not seen and do not wait.
func (a *Archive) View(ctx context.Context, f func(rx *query.Rx) error) error {
	return a.view(ctx, func(rx *reading) error { return f(rx.Rx) })
}

// reading is a read transaction with the SQL of this package.
type reading struct {
	*query.Rx
	tx       *sqlx.Tx
	prepared map[string]*sqlx.Stmt // statements of this transaction; nil: none are kept
	archive  *Archive
}

// get reads one row, as sqlx's GetContext does.
func (rx *reading) get(ctx context.Context, dst any, statement string, args ...any) error {
	if rx.prepared == nil {
		return rx.tx.GetContext(ctx, dst, statement, args...)
	}
	stmt, err := rx.prepare(ctx, statement)
	if err != nil {
		return err
	}
	return stmt.GetContext(ctx, dst, args...)
}

func (a *Archive) view(ctx context.Context, f func(rx *reading) error) error {
	tx, err := a.read.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return mapError(err)
	}
	defer tx.Rollback()
	return mapError(ended(ctx, f(&reading{Rx: query.NewRx(tx), tx: tx, archive: a})))
}

// ended returns the error of a transaction. When ctx ends, the transaction ends under its
// statements: whatever they say then, it was ctx.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Tx writes to an archive. It reads what it wrote itself.
type Tx struct {
	reading
	now     time.Time // of everything that this transaction writes
	change  int64     // archive.change after it
	changed bool
}

// Update calls f in a transaction that is committed when f returns nil and undone when
// it does not. It waits for other writers.
func (a *Archive) Update(ctx context.Context, f func(tx *Tx) error) error {
	return mapError(ended(ctx, a.update(ctx, f)))
}

func (a *Archive) update(ctx context.Context, f func(tx *Tx) error) error {
	if err := a.prepared.prepare(ctx, a.write); err != nil {
		return err
	}
	sqlTx, err := a.write.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer sqlTx.Rollback()
	tx := &Tx{reading: reading{Rx: query.NewRx(sqlTx), tx: sqlTx, prepared: map[string]*sqlx.Stmt{}, archive: a}, now: a.now().UTC()}
	if err := tx.get(ctx, &tx.change, `SELECT change + 1 FROM archive`); err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return err
	}
	if tx.changed {
		if _, err := tx.exec(ctx, `UPDATE archive SET change = ?`, tx.change); err != nil {
			return err
		}
	}
	if err := sqlTx.Commit(); err != nil {
		return err
	}
	emptyLog(ctx, a.write, a.path)
	return nil
}

// touch returns the value for session.change of a session whose lines change in this
// transaction.
func (tx *Tx) touch() int64 {
	tx.changed = true
	return tx.change
}

// connector opens connections to a database and attaches a second one to each.
type connector struct {
	driver.Connector
	attach string // path of the database to attach as idx; empty for none
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil || c.attach == "" {
		return conn, err
	}
	if _, err := conn.(driver.ExecerContext).ExecContext(ctx, `ATTACH DATABASE ? AS idx`, []driver.NamedValue{{Ordinal: 1, Value: fileURI(c.attach, nil)}}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// openDB returns a pool of at most n connections to the database at path, in WAL mode,
// each with the given parameters of the driver.
func openDB(path, attach string, n int, params url.Values) (*sqlx.DB, error) {
	params.Set("_busy_timeout", busyTimeout)
	params.Set("_foreign_keys", "1")
	if params.Get("_query_only") == "" {
		params.Set("_journal_mode", "WAL")
	}
	base, err := sqlite.NewConnector(fileURI(path, params))
	if err != nil {
		return nil, err
	}
	return openConnector(connector{base, attach}, n), nil
}

// openConnector returns a pool of at most n connections.
func openConnector(c driver.Connector, n int) *sqlx.DB {
	db := sqlx.NewDb(sql.OpenDB(c), "sqlite")
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db
}

// fileURI names a database file to SQLite, whatever characters its path has.
func fileURI(path string, params url.Values) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: params.Encode(), OmitHost: true}
	return u.String()
}

// createPrivate makes an empty file with mode 0600 where there is none, and its folder
// with 0700. A file that is empty yet gets that mode too. An existing file is not opened:
// closing it again would drop the locks that this process may hold on it.
func createPrivate(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() == 0 && info.Mode().Perm()&0o077 != 0:
		return os.Chmod(path, 0o600)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return file.Close()
}

// newNonce returns a random number for session.nonce.
func newNonce() int64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return int64(binary.LittleEndian.Uint64(b[:]) >> 1)
}

// exec runs a statement that is prepared once for all transactions.
func (tx *Tx) exec(ctx context.Context, statement string, args ...any) (sql.Result, error) {
	stmt, err := tx.prepare(ctx, statement)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// prepare returns a statement of a write transaction.
func (rx *reading) prepare(ctx context.Context, statement string) (*sqlx.Stmt, error) {
	stmt, ok := rx.prepared[statement]
	if ok {
		return stmt, nil
	}
	if kept := rx.archive.prepared.find(statement); kept != nil {
		stmt = rx.tx.StmtxContext(ctx, kept)
	} else {
		var err error
		if stmt, err = rx.tx.PreparexContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	rx.prepared[statement] = stmt
	return stmt, nil
}

// statements are those of write transactions, prepared on the one connection for writing.
// A transaction holds that connection, and so a new statement is prepared for keeps before
// the next one begins.
type statements struct {
	mu   sync.Mutex
	kept map[string]*sqlx.Stmt
	next []string // to be prepared
}

// find returns a statement, nil where it is to be prepared yet.
func (s *statements) find(statement string) *sqlx.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	stmt := s.kept[statement]
	if stmt == nil && !slices.Contains(s.next, statement) {
		s.next = append(s.next, statement)
	}
	return stmt
}

func (s *statements) prepare(ctx context.Context, db *sqlx.DB) error {
	s.mu.Lock()
	next := s.next
	s.next = nil
	s.mu.Unlock()
	for _, statement := range next {
		stmt, err := db.PreparexContext(ctx, statement)
		if err != nil {
			return err
		}
		s.mu.Lock()
		if s.kept == nil {
			s.kept = map[string]*sqlx.Stmt{}
		}
		// Two transactions that have waited may have prepared the same; one of them is never used.
		s.kept[statement] = stmt
		s.mu.Unlock()
	}
	return nil
}
