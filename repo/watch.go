package repo

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/jmoiron/sqlx"

	"pidb/query"
)

// How often an archive that is waited for is looked at. A commit writes to its log before
// others may see it, by as much as the disk takes, so that a look at once may be too early.
const (
	lookFirst  = time.Millisecond        // after the file system told of a write, then twice as late each time
	lookLast   = 1024 * time.Millisecond // at most that late
	lookSlow   = 2 * time.Second         // where the file system tells of writes
	lookSilent = 50 * time.Millisecond   // where it does not
)

// watch tells those who wait when a transaction of any process was committed. It runs
// while there are such.
type watch struct {
	mu      sync.Mutex
	waiters int
	changed chan struct{} // closed at the next commit
	stop    context.CancelFunc
	done    chan struct{} // closed when it has ended
	err     error         // why it ended by itself
	closed  bool          // the archive is closed: no other begins
}

// join counts a waiter and starts the watch for the first one.
func (a *Archive) join(ctx context.Context) error {
	w := &a.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed && w.changed == nil {
		w.changed = make(chan struct{})
	}
	if w.closed || w.waiters > 0 && w.err == nil {
		w.waiters++
		return nil
	}
	eyes, err := openEyes(ctx, a.path)
	if err != nil {
		return mapError(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.waiters++
	w.changed, w.stop, w.done, w.err = make(chan struct{}), stop, make(chan struct{}), nil
	go w.run(ctx, eyes, w.done)
	return nil
}

// leave stops the watch with its last waiter.
func (a *Archive) leave() {
	w := &a.watch
	w.mu.Lock()
	w.waiters--
	if w.waiters > 0 {
		w.mu.Unlock()
		return
	}
	stop, done := w.stop, w.done
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// end stops the watch for good. It returns what wakes those who wait, for when the
// archive is closed: they look at it once more, and get its error.
func (w *watch) end() (wake func()) {
	w.mu.Lock()
	w.closed = true
	stop, done := w.stop, w.done
	w.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.changed != nil {
			close(w.changed)
			w.changed = make(chan struct{})
		}
	}
}

// next returns what is closed at the next commit, and why there will be none.
func (w *watch) next() (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed, w.err
}

// tell wakes all waiters.
func (w *watch) tell(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *watch) run(ctx context.Context, eyes *eyes, done chan<- struct{}) {
	defer close(done)
	defer eyes.close()
	for {
		if err := eyes.untilChange(ctx); ctx.Err() != nil {
			return
		} else if err != nil {
			w.tell(err)
			return
		}
		w.tell(nil)
	}
}

// eyes look at an archive.
type eyes struct {
	db      *sqlx.DB // one connection: what it says of changes is of others than itself
	conn    *sql.Conn
	version int64
	log     string            // path of the write-ahead log
	path    string            // of the archive
	events  *fsnotify.Watcher // nil: the file system tells nothing
}

func openEyes(ctx context.Context, path string) (*eyes, error) {
	e := &eyes{path: path, log: path + "-wal"}
	var err error
	if e.db, err = openDB(path, "", 1, url.Values{"_query_only": {"1"}, "_pragma": {"cache_size=-64"}}); err != nil {
		return nil, err
	}
	if e.conn, err = e.db.Conn(ctx); err == nil {
		_, err = e.look(ctx)
	}
	if err != nil {
		e.close()
		return nil, err
	}
	if e.events, err = fsnotify.NewWatcher(); err == nil && e.events.Add(filepath.Dir(path)) != nil {
		e.events.Close()
		e.events = nil
	}
	return e, nil
}

func (e *eyes) close() {
	if e.events != nil {
		e.events.Close()
	}
	if e.conn != nil {
		e.conn.Close()
	}
	e.db.Close()
}

// look reports whether another connection, of whatever process, has committed since the last look.
func (e *eyes) look(ctx context.Context) (bool, error) {
	var version int64
	if err := e.conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		return false, err
	}
	changed := version != e.version
	e.version = version
	return changed, nil
}

// untilChange returns when another connection has committed.
func (e *eyes) untilChange(ctx context.Context) error {
	var events <-chan fsnotify.Event
	var failures <-chan error
	slow := lookSilent
	if e.events != nil {
		events, failures, slow = e.events.Events, e.events.Errors, lookSlow
	}
	// A write that was told of before the last look may be seen only after it.
	late := lookFirst
	due := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-events:
			if event.Name != e.log && event.Name != e.path {
				continue
			}
			late = lookFirst
		case failure := <-failures:
			if failure != nil { // an event may be lost
				late = lookFirst
			}
		case <-timer.C:
			changed, err := e.look(ctx)
			if err != nil && !errors.Is(mapError(err), ErrBusy) || changed {
				return err
			}
			due = time.Now().Add(min(late, slow))
			if late > lookLast {
				due = time.Now().Add(slow)
			} else {
				late *= 2
			}
			timer.Reset(time.Until(due))
			continue
		}
		// Writes that go on do not put off the look.
		if soon := time.Now().Add(late); soon.Before(due) {
			due = soon
			timer.Reset(late)
		}
	}
}

// waitFor calls ready until it says true: at once, also when ctx has ended, and after every
// commit of any process.
func (a *Archive) waitFor(ctx context.Context, ready func(ctx context.Context) (bool, error)) error {
	if ok, err := ready(context.WithoutCancel(ctx)); ok || err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := a.join(ctx); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	defer a.leave()
	for {
		changed, err := a.watch.next()
		if err != nil {
			return mapError(err)
		}
		if ok, err := ready(ctx); ok || err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Last returns the last line of the session, 0 where it has none: what [Session.Wait]
// begins after to wait for what is not there yet.
func (s *Session) Last(ctx context.Context) (query.Ref, error) {
	var last query.Ref
	err := s.archive.view(ctx, func(rx *reading) error {
		state, err := rx.sessionState(ctx, s.key)
		if err == nil && state.Rows > 0 {
			last = query.MakeRef(s.key, state.Rows-1)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("read the last line of session #%d: %w", s.key, err)
	}
	return last, nil
}

// Wait returns the lines of the session behind a given one, 0 for all, in file order. It
// waits until there are any, whichever process writes them, as long as ctx lets it: the
// error is then that of ctx, which may have ended before. Waiting costs next to nothing, and ends some milliseconds
// after the commit where the file system tells of writes. It wraps [ErrNotFound] when the
// session is deleted, and ends with an error when the archive is closed.
func (s *Session) Wait(ctx context.Context, after query.Ref) ([]query.Entry, error) {
	var entries []query.Entry
	first := query.MakeRef(s.key, 0)
	if after != 0 {
		first = after + 1
	}
	err := s.archive.waitFor(ctx, func(ctx context.Context) (bool, error) {
		err := s.archive.view(ctx, func(rx *reading) error {
			state, err := rx.sessionState(ctx, s.key)
			if err != nil {
				return err
			}
			for ref := first; ref < query.MakeRef(s.key, state.Rows); ref++ {
				e, err := rx.Entry(ctx, ref)
				if err != nil {
					return err
				}
				entries = append(entries, e)
			}
			return nil
		})
		return len(entries) > 0, err
	})
	if err != nil {
		return nil, fmt.Errorf("wait for session #%d: %w", s.key, err)
	}
	return entries, nil
}

// Change returns the number of the last transaction that changed lines: what
// [Archive.Wait] begins after to wait for the next one.
func (a *Archive) Change(ctx context.Context) (int64, error) {
	var change int64
	err := a.view(ctx, func(rx *reading) error { return rx.tx.GetContext(ctx, &change, `SELECT change FROM archive`) })
	return change, err
}

// Wait returns the sessions whose lines were changed by transactions after the one with a
// number, 0 for all, in the order of those, and the number to wait for next. It waits
// until there are any, as [Session.Wait] does. Sessions that were deleted are not told of.
func (a *Archive) Wait(ctx context.Context, after int64) ([]query.Session, int64, error) {
	var sessions []query.Session
	change := after
	err := a.waitFor(ctx, func(ctx context.Context) (bool, error) {
		err := a.view(ctx, func(rx *reading) error {
			if err := rx.tx.GetContext(ctx, &change, `SELECT change FROM archive`); err != nil || change <= after {
				return err
			}
			var keys []query.Key
			if err := rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session WHERE change > ? ORDER BY change, key`, after); err != nil {
				return err
			}
			for _, key := range keys {
				session, err := rx.Session(ctx, key)
				if err != nil {
					return err
				}
				sessions = append(sessions, session)
			}
			return nil
		})
		return len(sessions) > 0, err
	})
	if err != nil {
		return nil, after, fmt.Errorf("wait for the archive: %w", err)
	}
	return sessions, change, nil
}
