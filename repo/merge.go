package repo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"

	"pidb/query"
)

// MergeOptions are the choices of a merge.
type MergeOptions struct {
	// NoIndex leaves the search index as it is: a search feeds it later.
	NoIndex bool
	// Progress is told the sessions done and to be done.
	Progress func(done, total int)
}

// MergeResult is what a merge did. Sessions is the sum of Imported, Updated, Unchanged,
// Skipped and the number of Failed.
type MergeResult struct {
	Sessions  int // of the other archive, old versions included
	Imported  int // new here
	Updated   int // grown here to what the other archive has
	Unchanged int // here already, or here with more lines
	Skipped   int // deleted here before
	Entries   int64
	Bytes     int64 // of what was imported or updated
	Deleted   int   // deletions that were taken over
	Duration  time.Duration
	Failed    []MergeFailure // in the order of the other archive's keys
	IndexErr  error          // what kept the search index behind; the sessions are in all the same
}

// MergeFailure is a session that could not be brought in.
type MergeFailure struct {
	Session query.Key // in the other archive
	ID      string
	Path    string // of the source; empty: none
	Err     error
}

// Merge brings the sessions of the archive at path in. A session whose bytes are here
// already is not brought in again. Where the bytes of one begin with all bytes of the other
// and both are of one source, or have one id, the longer one stands in the end. Sessions
// that went different ways stand side by side: of one source, the one that is in use here
// stays so, and the other becomes an older version; otherwise both are in use. Where the version in use here is an old one there, the newer one follows it.
// What was
// deleted here does not come back, and what was deleted there is not taken in from a file
// later, but nothing is deleted here.
//
// Versions, paths of sources, leaves that were moved and metadata come too; where both
// have one, that of this archive stays. Nothing that this archive holds is lost, and a
// second merge of the same archive changes nothing.
//
// The other archive is read as it is at one instant and never written. One of an older
// schema is copied to a temporary folder first. Errors wrap [ErrNotFound], [ErrForeign],
// [ErrNewer], [ErrBusy] for an archive that a process has begun to write meanwhile, or
// [ErrDamaged]. A session that is damaged is in the result and stops nothing. When ctx ends,
// what was finished stays, and an error is returned with the result so far.
func (a *Archive) Merge(ctx context.Context, path string, opts *MergeOptions) (*MergeResult, error) {
	if opts == nil {
		opts = &MergeOptions{}
	}
	began := time.Now()
	result := &MergeResult{}
	err := a.merge(ctx, path, opts, result)
	result.Duration = time.Since(began)
	if err != nil {
		return result, fmt.Errorf("merge %s: %w", path, mapError(err))
	}
	return result, nil
}

func (a *Archive) merge(ctx context.Context, path string, opts *MergeOptions, result *MergeResult) error {
	other, err := openOther(ctx, path)
	if err != nil {
		return err
	}
	defer other.close()
	in, err := newIntake(a)
	if err != nil {
		return err
	}
	m := &merger{intake: in, opts: opts, result: result, deleted: map[string]bool{}, past: map[string]query.Key{}}
	if err := a.view(ctx, func(rx *reading) error { return m.know(ctx, rx) }); err != nil {
		return err
	}
	err = other.archive.view(ctx, func(rx *reading) error {
		m.other = rx
		return m.run(ctx)
	})
	if err != nil {
		return err
	}
	if err := other.unchanged(); err != nil {
		return err
	}
	if !opts.NoIndex {
		if err := a.UpdateIndex(ctx, nil); err != nil {
			if ctx.Err() != nil {
				return err
			}
			result.IndexErr = mapError(err)
		}
	}
	return nil
}

// merger is one merge under way.
type merger struct {
	*intake
	other   *reading
	opts    *MergeOptions
	result  *MergeResult
	here    map[identity]query.Key
	buried  map[identity]bool
	deleted map[string]bool      // paths whose session was deleted here
	past    map[string]query.Key // by path: the session here that is an old version there
}

// know reads what this archive has.
func (m *merger) know(ctx context.Context, rx *reading) error {
	var err error
	if m.here, err = rx.identities(ctx); err != nil {
		return err
	}
	if m.buried, err = rx.tombstones(ctx); err != nil {
		return err
	}
	var paths []string
	if err := rx.tx.SelectContext(ctx, &paths, `SELECT path FROM source WHERE state = 'deleted'`); err != nil {
		return err
	}
	for _, path := range paths {
		m.deleted[path] = true
	}
	return nil
}

// identities returns which bytes the sessions of an archive have. What is damaged has none.
func (rx *reading) identities(ctx context.Context) (map[identity]query.Key, error) {
	var rows []struct {
		Key    query.Key `db:"key"`
		Bytes  int64     `db:"bytes"`
		SHA256 []byte    `db:"sha256"`
	}
	if err := rx.tx.SelectContext(ctx, &rows, `SELECT key, bytes, sha256 FROM session ORDER BY key DESC`); err != nil {
		return nil, err
	}
	out := make(map[identity]query.Key, len(rows))
	for _, row := range rows {
		if id, err := identityOf(row.Bytes, row.SHA256); err == nil {
			out[id] = row.Key
		}
	}
	return out, nil
}

// tombstones returns which bytes were deleted from an archive.
func (rx *reading) tombstones(ctx context.Context) (map[identity]bool, error) {
	var rows []struct {
		SHA256 []byte `db:"sha256"`
		Bytes  int64  `db:"bytes"`
	}
	if err := rx.tx.SelectContext(ctx, &rows, `SELECT sha256, bytes FROM tombstone`); err != nil {
		return nil, err
	}
	out := map[identity]bool{}
	for _, row := range rows {
		if len(row.SHA256) == sha256.Size {
			out[identity{row.Bytes, [sha256.Size]byte(row.SHA256)}] = true
		}
	}
	return out, nil
}

func (m *merger) run(ctx context.Context) error {
	var keys []query.Key
	if err := m.other.tx.SelectContext(ctx, &keys, `SELECT key FROM session ORDER BY source IS NULL, source, version, key`); err != nil {
		return err
	}
	for i, key := range keys {
		s := &incoming{key: key}
		err := m.other.incoming(ctx, s)
		// Another process may write to a session at the same time; what it wrote is looked at then.
		for attempt := 0; err == nil; attempt++ {
			if err = m.mergeOne(ctx, s); !errors.Is(err, errStale) || attempt == 3 {
				break
			}
			err = nil
		}
		if err == nil {
			m.result.Sessions++
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			err = mapError(err)
			if _, fault := errors.AsType[*sourceError](err); !fault && !errors.Is(err, ErrDamaged) && !errors.Is(err, errStale) {
				return err
			}
			m.result.Failed = append(m.result.Failed, MergeFailure{key, s.id, s.path(), err})
			m.result.Sessions++
		}
		if m.opts.Progress != nil {
			m.opts.Progress(i+1, len(keys))
		}
	}
	return m.takeDeletions(ctx)
}

// incoming reads a session of the other archive, all but its lines.
func (rx *reading) incoming(ctx context.Context, s *incoming) error {
	row, err := rx.sessionState(ctx, s.key)
	if err != nil {
		return err
	}
	s.id, s.headerless, s.version, s.state, s.native = row.ID, row.Headerless, row.Version, row.State, row.Native
	s.open = func() (io.ReadCloser, error) { return io.NopCloser(rx.Reader(ctx, s.key)), nil }
	if row.Source != nil {
		s.source = &sourceRow{}
		if err := rx.tx.GetContext(ctx, s.source, `
			SELECT key, path, root, size, mtime_ns, ctime_ns, inode, state, problem, detail FROM source WHERE key = ?`, *row.Source); err != nil {
			return err
		}
	}
	if s.identity, err = identityOf(row.Bytes, row.SHA256); err != nil {
		return err
	}
	if err := rx.tx.GetContext(ctx, &s.moved, `
		SELECT s.leaf_moved, e.line, e.part FROM session s LEFT JOIN entry e ON e.ref = s.leaf WHERE s.key = ?`, s.key); err != nil {
		return err
	}
	s.kept, err = rx.kept(ctx, s.key)
	return err
}

// mergeOne brings one session in.
func (m *merger) mergeOne(ctx context.Context, s *incoming) error {
	if here, ok := m.here[s.identity]; ok && s.bytes > 0 {
		m.result.Unchanged++
		m.passed(s, here)
		return m.same(ctx, here, s)
	}
	if m.buried[s.identity] || m.deleted[s.path()] {
		m.result.Skipped++
		return nil
	}
	onto, covered, err := m.relate(ctx, s)
	if err != nil {
		return err
	}
	if covered {
		m.result.Unchanged++
		return nil
	}
	s.follows = m.past[s.path()]
	key, entries, err := m.take(ctx, s, onto)
	if err != nil {
		return err
	}
	m.here[s.identity] = key
	m.passed(s, key)
	m.result.Bytes += s.bytes
	m.result.Entries += entries
	if onto == nil {
		m.result.Imported++
		return nil
	}
	if old, err := identityOf(onto.Bytes, onto.SHA256); err == nil {
		delete(m.here, old)
	}
	m.result.Updated++
	m.result.Bytes -= onto.Bytes
	m.result.Entries -= onto.Entries
	return nil
}

// passed remembers that a session here is an old version in the other archive.
func (m *merger) passed(s *incoming, here query.Key) {
	if s.source != nil && s.state == query.Superseded {
		m.past[s.path()] = here
	}
}

// same brings what no line holds to a session whose lines are here.
func (m *merger) same(ctx context.Context, here query.Key, s *incoming) error {
	if !s.moved.Moved && s.kept.empty() {
		return nil
	}
	return m.archive.Update(ctx, func(tx *Tx) error {
		var settled bool
		if err := tx.get(ctx, &settled, `SELECT leaf_moved FROM session WHERE key = ?`, here); err != nil {
			return err
		}
		if !settled {
			if err := tx.putLeaf(ctx, here, s.moved); err != nil {
				return err
			}
		}
		return tx.addKept(ctx, here, &s.kept)
	})
}

// relate finds the session here that an incoming one continues, or reports that one here
// holds all of it.
func (m *merger) relate(ctx context.Context, s *incoming) (onto *sessionState, covered bool, err error) {
	err = m.archive.view(ctx, func(rx *reading) error {
		var candidates []sessionState
		if err := rx.tx.SelectContext(ctx, &candidates, `
			SELECT `+sessionStateColumns+` FROM session
			WHERE id = ?1 OR source = (SELECT key FROM source WHERE path = ?2)
			ORDER BY source IS (SELECT key FROM source WHERE path = ?2) DESC, source IS NULL DESC, version DESC, key`, s.id, s.path()); err != nil {
			return err
		}
		if s.bytes == 0 {
			covered = s.source == nil
			for i := range candidates {
				covered = covered || candidates[i].Source != nil
			}
			return nil
		}
		for i := range candidates {
			c := &candidates[i]
			if c.Bytes == 0 || c.Bytes < s.bytes && c.State == query.Superseded {
				continue
			}
			same, err := m.begins(ctx, rx, c, s)
			if err != nil {
				return err
			}
			if same {
				onto, covered = c, c.Bytes >= s.bytes
				return nil
			}
		}
		return nil
	})
	return onto, covered, err
}

// begins reports whether the longer of two sessions begins with all bytes of the other.
// What is damaged here is like nothing.
func (m *merger) begins(ctx context.Context, rx *reading, here *sessionState, s *incoming) (bool, error) {
	want, from := identity{here.Bytes, [sha256.Size]byte{}}, m.other.Reader(ctx, s.key)
	if here.Bytes >= s.bytes {
		want, from = s.identity, rx.Reader(ctx, here.Key)
	} else {
		id, err := identityOf(here.Bytes, here.SHA256)
		if err != nil {
			return false, nil
		}
		want = id
	}
	sum := sha256.New()
	_, err := io.CopyN(sum, contextReader{ctx, from}, want.bytes)
	if errors.Is(err, ErrDamaged) && here.Bytes >= s.bytes {
		return false, nil
	}
	return err == nil && [sha256.Size]byte(sum.Sum(nil)) == want.sum, err
}

// takeDeletions remembers what was deleted from the other archive, so that a sync does not
// take it in. What is here stays.
func (m *merger) takeDeletions(ctx context.Context) error {
	type tombstoneRow struct {
		SHA256    []byte `db:"sha256"`
		Bytes     int64  `db:"bytes"`
		ID        string `db:"id"`
		DeletedMS int64  `db:"deleted_ms"`
	}
	var tombstones []tombstoneRow
	if err := m.other.tx.SelectContext(ctx, &tombstones, `SELECT sha256, bytes, id, deleted_ms FROM tombstone ORDER BY key`); err != nil {
		return err
	}
	var sources []sourceRow
	if err := m.other.tx.SelectContext(ctx, &sources, `
		SELECT key, path, root, size, mtime_ns, ctime_ns, inode, state, problem, detail FROM source WHERE state = 'deleted'`); err != nil {
		return err
	}
	if len(tombstones)+len(sources) == 0 {
		return nil
	}
	return m.archive.Update(ctx, func(tx *Tx) error {
		for _, t := range tombstones {
			if len(t.SHA256) != sha256.Size {
				continue
			}
			id := identity{t.Bytes, [sha256.Size]byte(t.SHA256)}
			if _, ok := m.here[id]; ok || m.buried[id] {
				continue
			}
			if _, err := tx.exec(ctx, `INSERT INTO tombstone (sha256, bytes, id, deleted_ms) VALUES (?, ?, ?, ?)`, t.SHA256, t.Bytes, t.ID, t.DeletedMS); err != nil {
				return err
			}
			m.buried[id] = true
			m.result.Deleted++
		}
		for i := range sources {
			s := &sources[i]
			if _, err := tx.exec(ctx, `
				INSERT INTO source (path, root, size, mtime_ns, ctime_ns, inode, state) VALUES (?, ?, ?, ?, ?, ?, 'deleted') ON CONFLICT DO NOTHING`,
				s.Path, s.Root, s.Size, s.MtimeNS, s.CtimeNS, s.Inode); err != nil {
				return err
			}
		}
		return nil
	})
}
