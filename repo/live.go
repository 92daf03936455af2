package repo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/google/uuid"

	"pidb/jsonl"
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
		return &birth{header: h, metadata: opts.Metadata}, nil
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

// header is the first line of a session born here.
type header struct {
	id     string // empty: a new one
	cwd    string // empty: none
	parent string // empty: none
}

var sessionID = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// CheckSessionID returns an error that wraps [ErrInvalidID] for what cannot be the id of a
// new session.
func CheckSessionID(id string) error {
	if !sessionID.MatchString(id) {
		return fmt.Errorf("%w %q: letters, digits, '.', '_' and '-', the first and last one a letter or digit", ErrInvalidID, id)
	}
	return nil
}

// settle fills in the id and makes the folder absolute.
func (h *header) settle() error {
	if h.id == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		h.id = id.String()
	} else if err := CheckSessionID(h.id); err != nil {
		return err
	}
	if h.cwd == "" {
		return nil
	}
	cwd, err := filepath.Abs(h.cwd)
	h.cwd = cwd
	return err
}

// line returns the header's line without its end.
func (h *header) line(ms int64) ([]byte, error) {
	list := jsonl.Members{
		{Key: "type", Value: "session"},
		{Key: "version", Value: jsonl.CurrentVersion},
		{Key: "id", Value: h.id},
		{Key: "timestamp", Value: jsonl.FormatTime(ms)},
	}
	if h.cwd != "" {
		list = append(list, jsonl.Member{Key: "cwd", Value: h.cwd})
	}
	if h.parent != "" {
		list = append(list, jsonl.Member{Key: "parentSession", Value: h.parent})
	}
	return jsonl.Append(nil, list)
}

// birth is a session to be made.
type birth struct {
	header   header
	metadata map[string]any
	lines    iter.Seq2[[]byte, error] // behind the header, without LF, each valid until the next; nil: none
}

// bear makes a session of what plan returns.
func (a *Archive) bear(ctx context.Context, plan func(tx *Tx) (*birth, error)) (*Session, error) {
	var s *Session
	err := a.Update(ctx, func(tx *Tx) error {
		b, err := plan(tx)
		if err != nil {
			return err
		}
		key, err := tx.bear(ctx, b)
		if err != nil {
			return err
		}
		made, err := tx.Session(ctx, key)
		s = a.handle(&made)
		return err
	})
	return s, err
}

func (tx *Tx) bear(ctx context.Context, b *birth) (query.Key, error) {
	if err := b.header.settle(); err != nil {
		return 0, err
	}
	var taken bool
	if err := tx.tx.GetContext(ctx, &taken, `SELECT EXISTS (SELECT 1 FROM session WHERE id = ? AND +state = 'live')`, b.header.id); err != nil {
		return 0, err
	}
	if taken {
		return 0, fmt.Errorf("session %q: %w", b.header.id, ErrExists)
	}
	line, err := b.header.line(tx.now.UnixMilli())
	if err != nil {
		return 0, err
	}
	text := &linesReader{rest: append(line, '\n')}
	if b.lines != nil {
		var stop func()
		text.next, stop = iter.Pull2(b.lines)
		defer stop()
	}
	l, err := tx.archive.liveLoader()
	if err != nil {
		return 0, err
	}
	w := newWriter()
	j := &job{name: b.header.id, open: func() (io.ReadCloser, error) { return io.NopCloser(text), nil }, explicit: true}
	into := *l
	into.send = func(p *part) error {
		_, err := w.store(ctx, tx, p)
		return err
	}
	if err := into.loadWhole(ctx, j, actNew); err != nil {
		return 0, err
	}
	key := w.keys[j]
	if _, err := tx.exec(ctx, `UPDATE session SET native = 1 WHERE key = ?`, key); err != nil {
		return 0, err
	}
	return key, tx.putMetadata(ctx, key, b.metadata)
}

// liveLoader returns what turns lines into rows and chunks within the write transaction.
// There is one transaction at a time, and so the loader is its own.
func (a *Archive) liveLoader() (*loader, error) {
	if a.live == nil {
		l, err := newLoader(a, nil)
		if err != nil {
			return nil, err
		}
		a.live = l
	}
	return a.live, nil
}

// linesReader reads lines as a stream, each ended by LF.
type linesReader struct {
	next func() ([]byte, error, bool)
	rest []byte // not read yet
}

func (r *linesReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.next == nil {
			return 0, io.EOF
		}
		line, err, ok := r.next()
		if !ok {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = append(append(r.rest[:0], line...), '\n')
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// Metadata returns the values that the program keeps with the session, as JSON. They are
// in no line and so in no export.
func (s *Session) Metadata(ctx context.Context) (map[string]json.RawMessage, error) {
	var metadata map[string]json.RawMessage
	err := s.archive.view(ctx, func(rx *reading) (err error) {
		metadata, err = rx.metadata(ctx, s.key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read metadata of session #%d: %w", s.key, err)
	}
	return metadata, nil
}

// SetMetadata keeps values with the session under their names; [jsonl.Undefined] takes
// one away. Those not named stay.
func (s *Session) SetMetadata(ctx context.Context, values map[string]any) error {
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		return tx.putMetadata(ctx, s.key, values)
	})
	if err != nil {
		return fmt.Errorf("set metadata of session #%d: %w", s.key, err)
	}
	return nil
}

// metadataRow is a row of the metadata table without its session.
type metadataRow struct {
	Key   string `db:"key"`
	Value string `db:"value"`
}

func (rx *reading) metadata(ctx context.Context, session query.Key) (map[string]json.RawMessage, error) {
	var rows []metadataRow
	if err := rx.tx.SelectContext(ctx, &rows, `SELECT key, value FROM metadata WHERE session = ?`, session); err != nil {
		return nil, err
	}
	metadata := make(map[string]json.RawMessage, len(rows))
	for _, row := range rows {
		metadata[row.Key] = json.RawMessage(row.Value)
	}
	return metadata, nil
}

func (tx *Tx) putMetadata(ctx context.Context, session query.Key, values map[string]any) error {
	for key, value := range values {
		if value == jsonl.Undefined {
			if _, err := tx.exec(ctx, `DELETE FROM metadata WHERE session = ? AND key = ?`, session, key); err != nil {
				return err
			}
			continue
		}
		value, err := plain(value)
		if err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
		text, err := jsonl.Append(nil, value)
		if err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
		if _, err := tx.exec(ctx, `
			INSERT INTO metadata (session, key, value) VALUES (?, ?, ?) ON CONFLICT (session, key) DO UPDATE SET value = excluded.value`,
			session, key, string(text)); err != nil {
			return err
		}
	}
	return nil
}
