package repo

import (
	"context"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"regexp"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// header is the first line of a session born here.
type header struct {
	id     string // empty: a new one
	cwd    string // empty: none
	parent string // empty: none
}

var sessionID = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// CheckSessionID returns an error that wraps [ErrInvalidID] for what cannot be the id of a
// new session: what pi would not take, and last, which names the newest one.
func CheckSessionID(id string) error {
	if id == "last" {
		return fmt.Errorf("%w %q: it names the newest session", ErrInvalidID, id)
	}
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
	fixed    []string                 // names in metadata
	lines    iter.Seq2[[]byte, error] // behind the header, without LF, each valid until the next; nil: none
	moved    bool                     // the leaf is not the last entry, but the row
	leaf     int64                    // with this seq, none for before the first; known after the lines
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
	if b.moved {
		if _, err := tx.exec(ctx, `UPDATE session SET leaf = ?, leaf_moved = 1 WHERE key = ?`, refOf(key, b.leaf), key); err != nil {
			return 0, err
		}
	}
	if err := tx.putMetadata(ctx, key, b.metadata); err != nil {
		return 0, err
	}
	return key, tx.fixMetadata(ctx, key, b.fixed)
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
