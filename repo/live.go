package repo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"pidb/query"
)

// Session is a handle on a session, for a program that lives in it. It has a leaf of its
// own, where what it appends goes: the session's leaf when the handle is made, and then
// what this handle has appended or branched to. Other handles and processes may append to
// the session meanwhile; their entries stand beside those of this one.
//
// Sessions that were born in the archive may be appended to; those that came from a file
// belong to the file, and the error is [ErrNotNative]: [Archive.Fork] makes one that may.
// The same holds for a session born here once an import has taken in what another program
// added to an exported copy of it. Everything else works with every session.
//
// Methods may be called by several goroutines at once.
type Session struct {
	archive *Archive
	key     query.Key
	id      string
	cwd     string

	mu   sync.Mutex
	leaf query.Ref
}

// CreateOptions are the choices of [Archive.Create].
type CreateOptions struct {
	// ID is the session id; empty means a new UUIDv7. Letters, digits, '.', '_' and '-',
	// the first and last one a letter or digit.
	ID string
	// ParentSession is the path or the id of the session that this one comes from.
	ParentSession string
	// Metadata are JSON values that the program keeps with the session, see [Session.Metadata].
	Metadata map[string]any
	// Fixed are the names among Metadata whose values no later write replaces.
	Fixed []string
}

// Create makes a session without entries for work in the folder cwd, which is made
// absolute; empty means none. Errors wrap [ErrInvalidID], and [ErrExists] where a live
// session has the id.
func (a *Archive) Create(ctx context.Context, cwd string, opts *CreateOptions) (*Session, error) {
	if opts == nil {
		opts = &CreateOptions{}
	}
	h := header{id: opts.ID, cwd: cwd, parent: opts.ParentSession}
	s, err := a.bear(ctx, func(tx *Tx) (*birth, error) {
		return &birth{header: h, metadata: opts.Metadata, fixed: opts.Fixed}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("create session: %w", err)
	}
	return s, nil
}

// OpenSession returns a handle on the session that spec names, see [query.Rx.Find]: an
// id, a unique beginning of one, the path of a source, #KEY, or last. Errors wrap
// [ErrNotFound] and [query.ErrAmbiguous].
func (a *Archive) OpenSession(ctx context.Context, spec string) (*Session, error) {
	var s *Session
	err := a.View(ctx, func(rx *query.Rx) error {
		found, err := rx.Find(ctx, spec)
		s = a.handle(&found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// Session returns a handle on the session with a key. The error wraps [ErrNotFound].
func (a *Archive) Session(ctx context.Context, key query.Key) (*Session, error) {
	var s *Session
	err := a.View(ctx, func(rx *query.Rx) error {
		found, err := rx.Session(ctx, key)
		s = a.handle(&found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	return s, nil
}

// MostRecent returns a handle on the live session of exactly the folder cwd that has the
// newest activity, be it born here or from a file. The error wraps [ErrNotFound].
func (a *Archive) MostRecent(ctx context.Context, cwd string) (*Session, error) {
	s, err := a.mostRecent(ctx, cwd, `SELECT key FROM session WHERE state = 'live' AND cwd = ? ORDER BY modified_ms DESC, key DESC LIMIT 1`)
	if err != nil {
		return nil, fmt.Errorf("find the newest session of %s: %w", cwd, err)
	}
	return s, nil
}

// Continue returns a handle on the session with the newest activity that was born here
// for the folder cwd and may be appended to, and makes one where there is none.
func (a *Archive) Continue(ctx context.Context, cwd string, opts *CreateOptions) (*Session, error) {
	s, err := a.mostRecent(ctx, cwd, `
		SELECT key FROM session WHERE state = 'live' AND native = 1 AND cwd = ? ORDER BY modified_ms DESC, key DESC LIMIT 1`)
	if errors.Is(err, ErrNotFound) {
		return a.Create(ctx, cwd, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("continue in %s: %w", cwd, err)
	}
	return s, nil
}

func (a *Archive) mostRecent(ctx context.Context, cwd, statement string) (*Session, error) {
	cwd, err := filepath.Abs(cwd)
	if err != nil {
		return nil, err
	}
	var s *Session
	err = a.view(ctx, func(rx *reading) error {
		var key query.Key
		if err := rx.tx.GetContext(ctx, &key, statement, cwd); err != nil {
			if errors.Is(err, sql.ErrNoRows) {
				return ErrNotFound
			}
			return err
		}
		found, err := rx.Session(ctx, key)
		s = a.handle(&found)
		return err
	})
	return s, err
}

func (a *Archive) handle(s *query.Session) *Session {
	return &Session{archive: a, key: s.Key, id: s.ID, cwd: s.CWD, leaf: s.Leaf}
}

// Key names the session in the archive.
func (s *Session) Key() query.Key { return s.key }

// ID returns pi's session id.
func (s *Session) ID() string { return s.id }

// CWD returns the folder that the session is for; empty: unknown.
func (s *Session) CWD() string { return s.cwd }

// Archive returns the archive that the session is in.
func (s *Session) Archive() *Archive { return s.archive }

// Leaf returns the entry under which the next one goes; 0 for before the first.
func (s *Session) Leaf() query.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaf
}

// Info returns what a listing shows of the session. Its Leaf is that of the session, not
// of the handle.
func (s *Session) Info(ctx context.Context) (query.Session, error) {
	var info query.Session
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		info, err = rx.Session(ctx, s.key)
		return err
	})
	return info, err
}

// Context returns what the model would be given at the handle's leaf, see [query.Rx.Context].
func (s *Session) Context(ctx context.Context) (*query.Context, error) {
	leaf := s.Leaf()
	if leaf == 0 {
		return &query.Context{ThinkingLevel: "off"}, nil
	}
	var c *query.Context
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		c, err = rx.Context(ctx, leaf)
		return err
	})
	return c, err
}

// Path returns the entries from the root to the handle's leaf.
func (s *Session) Path(ctx context.Context) ([]query.Entry, error) {
	leaf := s.Leaf()
	if leaf == 0 {
		return nil, nil
	}
	var path []query.Entry
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		path, err = rx.Branch(ctx, leaf)
		return err
	})
	return path, err
}

// Entry returns the last entry with an id, or [ErrNotFound].
func (s *Session) Entry(ctx context.Context, id string) (query.Entry, error) {
	var e query.Entry
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		e, err = rx.EntryByID(ctx, s.key, id)
		return err
	})
	return e, err
}

// Name returns the name of the session, empty for none.
func (s *Session) Name(ctx context.Context) (string, error) {
	var name string
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		name, err = rx.Name(ctx, s.key)
		return err
	})
	return name, err
}

// Labels returns the labels of the session, see [query.Rx.Labels].
func (s *Session) Labels(ctx context.Context) ([]query.Label, error) {
	var labels []query.Label
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		labels, err = rx.Labels(ctx, s.key)
		return err
	})
	return labels, err
}

// Branch moves the leaf, of the handle and of the session, to the last entry with an id,
// or before the first entry for the empty id: what is appended next begins a new branch.
// The session keeps the leaf until its next line; an exported file cannot carry it. The
// error wraps [ErrNotFound].
func (s *Session) Branch(ctx context.Context, id string) error {
	return s.branch(ctx, id, func(*Tx, query.Ref) error { return nil })
}

// branch moves the leaf to an entry that check lets pass; before the first, any may.
func (s *Session) branch(ctx context.Context, id string, check func(tx *Tx, leaf query.Ref) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var leaf query.Ref
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if id != "" {
			e, err := tx.EntryByID(ctx, s.key, id)
			if err != nil {
				return err
			}
			leaf = e.Ref
			if err := check(tx, leaf); err != nil {
				return err
			}
		}
		result, err := tx.exec(ctx, `UPDATE session SET leaf = ?, leaf_moved = 1 WHERE key = ?`, refOrNull(leaf), s.key)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, ErrNotFound)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("branch session #%d: %w", s.key, err)
	}
	s.leaf = leaf
	return nil
}

// ResetLeaf moves the leaf before the first entry: what is appended next is a new root.
func (s *Session) ResetLeaf(ctx context.Context) error { return s.Branch(ctx, "") }

// Refresh moves the handle to the leaf of the session, where others may have appended.
func (s *Session) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	s.leaf = info.Leaf
	return nil
}

// Delete takes the session out of the archive and reports whether it was there, see
// [Archive.Delete].
func (s *Session) Delete(ctx context.Context) (bool, error) { return s.archive.Delete(ctx, s.key) }

func refOrNull(ref query.Ref) any {
	if ref == 0 {
		return nil
	}
	return int64(ref)
}
