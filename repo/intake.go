package repo

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"

	"pidb/query"
)

// identity tells the bytes of one session from those of another.
type identity struct {
	bytes int64
	sum   [sha256.Size]byte
}

// identityOf returns the identity of a session from the hash state in its row.
func identityOf(bytes int64, state []byte) (identity, error) {
	h, err := unmarshalHash(state)
	if err != nil {
		return identity{}, fmt.Errorf("%w: hash state: %w", ErrDamaged, err)
	}
	return identity{bytes, [sha256.Size]byte(h.Sum(nil))}, nil
}

// incoming is a session that comes from another archive, with what no line of it holds.
type incoming struct {
	identity
	key        query.Key // in the other archive
	id         string
	headerless bool
	source     *sourceRow // nil: in no file
	version    int64
	state      query.State
	native     bool
	moved      movedLeaf
	kept       kept
	follows    query.Key // session here that it is a later version of; 0: none is known
	open       func() (io.ReadCloser, error)
}

func (s *incoming) path() string {
	if s.source == nil {
		return ""
	}
	return s.source.Path
}

// steadyBytes is the size of a session below which storing it is not interrupted: it
// takes some hundredths of a second, and statements that may be interrupted cost more.
const steadyBytes = 1 << 20

// errStale says that another process has changed a session meanwhile.
var errStale = errors.New("the session has changed meanwhile")

// intake brings sessions of another archive into this one.
type intake struct {
	archive *Archive
	loader  *loader
	parts   []*part
}

func newIntake(a *Archive) (*intake, error) {
	in := &intake{archive: a}
	var err error
	in.loader, err = newLoader(a, func(p *part) error {
		in.parts = append(in.parts, p)
		return nil
	})
	return in, err
}

// take stores a session: as one of its own, or, where onto is not nil, as what the session
// onto has grown to. The bytes are proved before anything is committed. It returns the key
// of the session and the number of its entries.
func (in *intake) take(ctx context.Context, s *incoming, onto *sessionState) (query.Key, int64, error) {
	name := s.path()
	if name == "" {
		name = s.id
	}
	j := &job{name: name, session: onto, open: s.open, explicit: true}
	if s.source != nil {
		j.stat = s.source.stat
	}
	in.parts = nil
	defer func() { in.parts = nil }()
	err := in.loader.tryLoad(ctx, j)
	if errors.Is(err, errReparse) {
		in.parts = nil
		err = in.loader.loadWhole(ctx, j, actReplace)
	}
	if err != nil {
		return 0, 0, err
	}
	last := in.parts[len(in.parts)-1]
	switch last.action {
	case actNew, actTail, actReplace:
	default:
		return 0, 0, errStale
	}
	got, err := identityOf(last.sum.bytes, last.sha256)
	if err != nil {
		return 0, 0, err
	}
	if got != s.identity {
		return 0, 0, fmt.Errorf("%w: the bytes do not match the hash of the file", ErrDamaged)
	}
	var key query.Key
	if s.bytes < steadyBytes {
		ctx = context.WithoutCancel(ctx)
	}
	err = in.archive.Update(ctx, func(tx *Tx) error {
		w := newWriter()
		for _, p := range in.parts {
			if s.headerless {
				p.head.id = s.id
			}
			written, err := w.store(ctx, tx, p)
			if err != nil {
				return err
			}
			if !written {
				return errStale
			}
		}
		key = w.keys[j]
		if onto == nil {
			err = tx.settleNew(ctx, key, s)
		} else {
			err = tx.settleGrown(ctx, onto, s)
		}
		if err != nil {
			return err
		}
		if err := tx.putLeaf(ctx, key, s.moved); err != nil {
			return err
		}
		return tx.addKept(ctx, key, &s.kept)
	})
	return key, last.sum.entries, err
}

// settleNew gives a session that has come its source and its place among the versions of
// that. A source with a session that is in use here keeps it, and the one that has come is
// an older version, unless it is known to follow.
func (tx *Tx) settleNew(ctx context.Context, key query.Key, s *incoming) error {
	source, version, state := any(nil), s.version, s.state
	if s.source != nil {
		k, err := tx.putSource(ctx, s.source)
		if err != nil {
			return err
		}
		source = k
		newest, err := tx.newestSession(ctx, k)
		if err != nil {
			return err
		}
		switch {
		case newest == nil:
		case newest.State == query.Superseded:
			version = max(version, newest.Version+1)
		case newest.Key == s.follows && !newest.Native:
			version = newest.Version + 1
			if _, err := tx.exec(ctx, `UPDATE session SET state = 'superseded' WHERE key = ?`, newest.Key); err != nil {
				return err
			}
		default:
			version, state = newest.Version, query.Superseded
			if _, err := tx.exec(ctx, `UPDATE session SET version = version + 1 WHERE key = ?`, newest.Key); err != nil {
				return err
			}
		}
	}
	_, err := tx.exec(ctx, `UPDATE session SET source = ?, version = ?, state = ?, native = ? WHERE key = ?`, source, version, state, s.native, key)
	return err
}

// settleGrown gives a session that was in no file the file that it has grown in.
func (tx *Tx) settleGrown(ctx context.Context, onto *sessionState, s *incoming) error {
	if onto.Source != nil || s.source == nil {
		return nil
	}
	source, err := tx.putSource(ctx, s.source)
	if err != nil {
		return err
	}
	newest, err := tx.newestSession(ctx, source)
	if err != nil || newest != nil {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE session SET source = ?, version = ?, state = ?, native = native AND ? WHERE key = ?`,
		source, s.version, s.state, s.native, onto.Key)
	return err
}

// putSource makes the row of a source, or finds the one that is here. Of a source that has
// a session here, or whose session was deleted here, what is known stays.
func (tx *Tx) putSource(ctx context.Context, source *sourceRow) (int64, error) {
	var key int64
	err := tx.get(ctx, &key, `SELECT key FROM source WHERE path = ?`, source.Path)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, err
	}
	if err == nil {
		_, err = tx.exec(ctx, `
			UPDATE source SET root = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ?, state = ?, problem = ?, detail = ?
			WHERE key = ? AND state IN ('missing', 'rejected') AND NOT EXISTS (SELECT 1 FROM session WHERE source = source.key)`,
			source.Root, source.Size, source.MtimeNS, source.CtimeNS, source.Inode, source.State, source.Problem, source.Detail, key)
		return key, err
	}
	err = tx.get(ctx, &key, `
		INSERT INTO source (path, root, size, mtime_ns, ctime_ns, inode, state, problem, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
		source.Path, source.Root, source.Size, source.MtimeNS, source.CtimeNS, source.Inode, source.State, source.Problem, source.Detail)
	return key, err
}
