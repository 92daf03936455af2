package repo

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding"
	"errors"
	"fmt"

	"pidb/query"
)

// sourceRow is a row of the source table.
type sourceRow struct {
	Key     int64        `db:"key"`
	Path    string       `db:"path"`
	Root    string       `db:"root"`
	State   string       `db:"state"`
	Problem *ProblemCode `db:"problem"`
	Detail  string       `db:"detail"`
	stat
}

// sessionState is what is needed to go on with a session.
type sessionState struct {
	Key        query.Key   `db:"key"`
	ID         string      `db:"id"`
	Source     *int64      `db:"source"`
	Version    int64       `db:"version"`
	State      query.State `db:"state"`
	Native     bool        `db:"native"`
	Nonce      int64       `db:"nonce"`
	Bytes      int64       `db:"bytes"`
	Lines      int64       `db:"lines"`
	Rows       int64       `db:"rows"`
	SHA256     []byte      `db:"sha256"`
	Decoder    []byte      `db:"decoder"`
	Format     int         `db:"format"`
	Headerless bool        `db:"headerless"`
	CWD        *string     `db:"cwd"`
	ParentPath *string     `db:"parent_path"`
	CreatedMS  *int64      `db:"created_ms"`
	Name       *string     `db:"name"`
	ActivityMS *int64      `db:"activity_ms"`
	Messages   int64       `db:"messages"`
	Entries    int64       `db:"entries"`
	Tips       int64       `db:"tips"`
	Problems   int64       `db:"problems"`
	Leaf       *query.Ref  `db:"leaf"`
	Model      *string     `db:"model"`
	Tokens     int64       `db:"tokens"`
	Cost       float64     `db:"cost"`
	First      *string     `db:"first_message"`
}

const sessionStateColumns = `key, id, source, version, state, native, nonce, bytes, lines, rows, sha256, decoder, format, headerless,
	cwd, parent_path, created_ms, name, activity_ms, messages, entries, tips, problems, leaf, model, tokens, cost, first_message`

func (s *sessionState) head() head {
	return head{id: s.ID, format: s.Format, headerless: s.Headerless, cwd: s.CWD, parent: s.ParentPath, createdMS: s.CreatedMS}
}

// leafRef returns the leaf, 0 for none.
func (s *sessionState) leafRef() query.Ref {
	if s.Leaf == nil {
		return 0
	}
	return *s.Leaf
}

func (s *sessionState) summary() summary {
	return summary{
		lines: s.Lines, bytes: s.Bytes, rows: s.Rows, messages: s.Messages, entries: s.Entries, tips: s.Tips, problems: s.Problems,
		name: s.Name, firstMessage: s.First, model: s.Model, activity: s.ActivityMS, tokens: s.Tokens, cost: s.Cost, leaf: seqOf(s.Leaf),
	}
}

// newestSession returns the newest session of a source, or nil where it has none.
func (rx *reading) newestSession(ctx context.Context, source int64) (*sessionState, error) {
	var s sessionState
	err := rx.tx.GetContext(ctx, &s, `SELECT `+sessionStateColumns+` FROM session WHERE source = ? ORDER BY version DESC LIMIT 1`, source)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return &s, err
}

// sessionState returns what is needed to go on with a session.
func (rx *reading) sessionState(ctx context.Context, key query.Key) (*sessionState, error) {
	var s sessionState
	err := rx.get(ctx, &s, `SELECT `+sessionStateColumns+` FROM session WHERE key = ?`, key)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("session #%d: %w", key, ErrNotFound)
	}
	return &s, query.Unreadable(err)
}

// writer stores parts in a transaction.
type writer struct {
	settings map[string]int64 // keys of the setting table
	keys     map[*job]query.Key
	skipped  map[*job]bool // another process was faster
}

func newWriter() *writer {
	return &writer{settings: map[string]int64{}, keys: map[*job]query.Key{}, skipped: map[*job]bool{}}
}

// store writes a part. It reports whether the part was written: not when another
// process has changed the session since the part was made.
func (w *writer) store(ctx context.Context, tx *Tx, p *part) (bool, error) {
	if w.skipped[p.job] {
		return false, nil
	}
	current, err := w.begin(ctx, tx, p)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", p.job.name, err)
	}
	if !current {
		w.skipped[p.job] = true
		return false, nil
	}
	switch p.action {
	case actBury:
		return true, tx.remember(ctx, p.job)
	case actReject, actTouch, actEmptied:
	default:
		err = w.fill(ctx, tx, p)
	}
	if err == nil {
		err = w.settle(ctx, tx, p)
	}
	if err != nil {
		return false, fmt.Errorf("store %s: %w", p.job.name, err)
	}
	return true, nil
}

// begin makes or finds the rows of source and session, and reports false when they are
// no longer what the part was made from.
func (w *writer) begin(ctx context.Context, tx *Tx, p *part) (bool, error) {
	j := p.job
	if !p.first {
		// The part before may be in a transaction of its own.
		var same bool
		err := tx.tx.GetContext(ctx, &same, `SELECT EXISTS (SELECT 1 FROM session WHERE key = ? AND rows = ?)`, w.keys[j], p.before)
		return same, err
	}
	current, err := tx.unchanged(ctx, j)
	if err != nil || !current {
		return false, err
	}
	if j.session != nil {
		w.keys[j] = j.session.Key
	}
	switch p.action {
	case actNew:
		if err := tx.exhume(ctx, j); err != nil {
			return false, err
		}
		return true, w.create(ctx, tx, p, 1)
	case actVersion:
		if j.session.Native {
			// The file went its own way. What was born here stays, in no file.
			if _, err := tx.exec(ctx, `UPDATE session SET source = NULL, state = 'live' WHERE key = ?`, j.session.Key); err != nil {
				return false, err
			}
			return true, w.create(ctx, tx, p, 1)
		}
		if _, err := tx.exec(ctx, `UPDATE session SET state = 'superseded' WHERE key = ?`, j.session.Key); err != nil {
			return false, err
		}
		return true, w.create(ctx, tx, p, j.session.Version+1)
	case actReplace:
		return true, tx.clear(ctx, j.session.Key)
	}
	return true, nil
}

// unchanged reports whether source and session of a job are still what they were when
// the job was made.
func (tx *Tx) unchanged(ctx context.Context, j *job) (bool, error) {
	if j.path != "" {
		var key int64
		err := tx.tx.GetContext(ctx, &key, `SELECT key FROM source WHERE path = ?`, j.path)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			if j.source != nil {
				return false, nil
			}
		case err != nil:
			return false, err
		default:
			if j.source == nil || j.source.Key != key {
				return false, nil
			}
			newest, err := tx.newestSession(ctx, key)
			if err != nil {
				return false, err
			}
			if newest != nil && (j.session == nil || newest.Key != j.session.Key) {
				return false, nil
			}
		}
	}
	if j.session == nil {
		return true, nil
	}
	var same bool
	err := tx.tx.GetContext(ctx, &same, `SELECT EXISTS (SELECT 1 FROM session WHERE key = ? AND nonce = ? AND bytes = ? AND rows = ?)`,
		j.session.Key, j.session.Nonce, j.session.Bytes, j.session.Rows)
	return same, err
}

// emptyHash is the marshalled state of a SHA-256 over nothing.
var emptyHash = func() []byte {
	state, err := sha256.New().(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic(err)
	}
	return state
}()

// create inserts a session row that settle fills.
func (w *writer) create(ctx context.Context, tx *Tx, p *part, version int64) error {
	p.job.nonce = newNonce()
	result, err := tx.exec(ctx, `
		INSERT INTO session (id, version, state, nonce, change, sha256, decoder, format, modified_ms)
		VALUES (?, ?, 'live', ?, ?, ?, x'', ?, 0)`,
		p.head.id, version, p.job.nonce, tx.touch(), emptyHash, p.head.format)
	if err != nil {
		return err
	}
	key, err := result.LastInsertId()
	w.keys[p.job] = query.Key(key)
	return err
}

// clear takes all lines from a session. Its key stays, its nonce changes.
func (tx *Tx) clear(ctx context.Context, session query.Key) error {
	first, end := query.MakeRef(session, 0), query.MakeRef(session+1, 0)
	for _, statement := range []string{
		`DELETE FROM usage WHERE ref >= ? AND ref < ?`,
		`DELETE FROM entry WHERE ref >= ? AND ref < ?`,
	} {
		if _, err := tx.exec(ctx, statement, first, end); err != nil {
			return err
		}
	}
	if err := tx.cutPieces(ctx, session, 0); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `UPDATE session SET nonce = ?, change = ? WHERE key = ?`, newNonce(), tx.touch(), session)
	return err
}

// cutPieces takes the pieces of a session from an offset on, and with them the chunks
// that nothing else needs.
func (tx *Tx) cutPieces(ctx context.Context, session query.Key, from int64) error {
	var chunks []int64
	if err := tx.tx.SelectContext(ctx, &chunks, `SELECT DISTINCT chunk FROM piece WHERE session = ? AND start >= ?`, session, from); err != nil {
		return err
	}
	if len(chunks) == 0 {
		return nil
	}
	if _, err := tx.exec(ctx, `DELETE FROM piece WHERE session = ? AND start >= ?`, session, from); err != nil {
		return err
	}
	for _, chunk := range chunks {
		if _, err := tx.exec(ctx, `DELETE FROM chunk WHERE key = ? AND NOT EXISTS (SELECT 1 FROM piece WHERE chunk = ?)`, chunk, chunk); err != nil {
			return err
		}
	}
	return nil
}

// fill stores the lines of a part and what the session row holds of them.
func (w *writer) fill(ctx context.Context, tx *Tx, p *part) error {
	session := w.keys[p.job]
	if old := p.job.session; old != nil && p.from < old.Bytes {
		if err := tx.cutPieces(ctx, session, p.from); err != nil {
			return err
		}
	}
	for i := range p.chunks {
		if err := tx.putChunk(ctx, session, &p.chunks[i]); err != nil {
			return err
		}
	}
	if p.drop != none {
		if _, err := tx.exec(ctx, `DELETE FROM entry WHERE ref = ?`, query.MakeRef(session, p.drop)); err != nil {
			return err
		}
	}
	if p.ending != nil {
		if _, err := tx.exec(ctx, `UPDATE entry SET ending = ? WHERE ref = ?`, p.ending.ending, query.MakeRef(session, p.ending.seq)); err != nil {
			return err
		}
	}
	for i := range p.rows {
		if err := w.putRow(ctx, tx, session, &p.rows[i]); err != nil {
			return fmt.Errorf("line %d: %w", p.rows[i].line, err)
		}
	}
	for i := range p.fixes {
		if err := w.fixRow(ctx, tx, session, &p.fixes[i]); err != nil {
			return err
		}
	}
	s := &p.sum
	_, err := tx.exec(ctx, `
		UPDATE session SET id = ?, change = ?, bytes = ?, lines = ?, rows = ?, sha256 = ?, decoder = ?, format = ?, headerless = ?,
			cwd = ?, parent_path = ?, created_ms = ?, name = ?, modified_ms = ?, activity_ms = ?, messages = ?, entries = ?, tips = ?,
			problems = ?, leaf = ?, leaf_moved = 0, model = ?, tokens = ?, cost = ?, first_message = ?
		WHERE key = ?`,
		p.head.id, tx.touch(), s.bytes, s.lines, s.rows, p.sha256, p.decoder, p.head.format, p.head.headerless,
		p.head.cwd, p.head.parent, p.head.createdMS, s.name, p.modified(tx), s.activity, s.messages, s.entries, s.tips,
		s.problems, refOf(session, s.leaf), s.model, s.tokens, s.cost, s.firstMessage, session)
	return err
}

// modified returns the time of the last activity, as pi's listing has it: the newest
// user or assistant message, else the header's time, else that of the file.
func (p *part) modified(tx *Tx) int64 {
	switch {
	case p.sum.activity != nil && *p.sum.activity > 0:
		return *p.sum.activity
	case p.head.createdMS != nil:
		return *p.head.createdMS
	case p.job.stat.MtimeNS > 0:
		return p.job.stat.MtimeNS / 1e6
	}
	return tx.now.UnixMilli()
}

// putChunk stores a chunk, or finds the same bytes stored already, and adds it to the
// session. What is stored otherwise than it would be now may be damaged: it is replaced.
func (tx *Tx) putChunk(ctx context.Context, session query.Key, c *chunk) error {
	_, err := tx.exec(ctx, `
		INSERT INTO chunk (hash, size, codec, data) VALUES (?, ?, ?, ?)
		ON CONFLICT (hash) DO UPDATE SET size = excluded.size, codec = excluded.codec, data = excluded.data
		WHERE size <> excluded.size OR codec <> excluded.codec OR data <> excluded.data`,
		c.hash[:], c.size, c.codec, c.data)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `INSERT INTO piece (session, start, chunk) SELECT ?, ?, key FROM chunk WHERE hash = ?`, session, c.start, c.hash[:])
	return err
}

func (w *writer) putRow(ctx context.Context, tx *Tx, session query.Key, r *row) error {
	key, err := w.settingKey(ctx, tx, r)
	if err != nil {
		return err
	}
	ref := query.MakeRef(session, r.seq)
	_, err = tx.exec(ctx, `
		INSERT INTO entry (ref, line, part, start, size, ending, kind, type, role, id, parent, orphan, top, loop, ms, digest, target, value,
			depth, compaction, kept, setting)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		ref, r.line, r.part, r.start, r.size, r.ending, r.kind, r.typ, r.role, r.id, refOf(session, r.parent), r.orphan, r.top, loopOf(r),
		r.ms, r.digest, r.target, r.value, depthOf(r), refOf(session, r.compaction), refOf(session, r.kept), key)
	if err != nil || r.usage == nil {
		return err
	}
	u := r.usage
	_, err = tx.exec(ctx, `
		INSERT INTO usage (ref, provider, model, input, output, cache_read, cache_write, total, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		ref, r.usedBy.provider, r.usedBy.name, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Total, u.Cost)
	return err
}

// fixRow changes a stored row that a later line gave another place in the tree.
func (w *writer) fixRow(ctx context.Context, tx *Tx, session query.Key, r *row) error {
	key, err := w.settingKey(ctx, tx, r)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, `
		UPDATE entry SET parent = ?, orphan = CASE WHEN ? THEN orphan END, top = ?, loop = ?, depth = ?, compaction = ?, kept = ?, setting = ?
		WHERE ref = ?`,
		refOf(session, r.parent), r.parent == none, r.top, loopOf(r), depthOf(r), refOf(session, r.compaction), refOf(session, r.kept), key,
		query.MakeRef(session, r.seq))
	return err
}

// settingKey returns the key of a row's setting, nil where the path does not tell.
func (w *writer) settingKey(ctx context.Context, tx *Tx, r *row) (any, error) {
	if r.depth == none {
		return nil, nil
	}
	s := r.setting
	name := settingName(s)
	if key, ok := w.settings[name]; ok {
		return key, nil
	}
	var key int64
	const find = `SELECT key FROM setting WHERE provider IS ? AND model IS ? AND has_model = ? AND thinking IS ?`
	err := tx.get(ctx, &key, find, s.model.provider, s.model.name, s.hasModel, s.thinking)
	if errors.Is(err, sql.ErrNoRows) {
		err = tx.get(ctx, &key, `INSERT INTO setting (provider, model, has_model, thinking) VALUES (?, ?, ?, ?) RETURNING key`,
			s.model.provider, s.model.name, s.hasModel, s.thinking)
	}
	if err == nil {
		w.settings[name] = key
	}
	return key, err
}

func settingName(s setting) string {
	name := []byte{'0'}
	if s.hasModel {
		name[0] = '1'
	}
	for _, word := range []*string{s.model.provider, s.model.name, s.thinking} {
		if word == nil {
			name = append(name, 0)
		} else {
			name = append(append(name, 1), *word...)
		}
	}
	return string(name)
}

// settle brings the source row up to what the part found.
func (w *writer) settle(ctx context.Context, tx *Tx, p *part) error {
	j := p.job
	if j.path == "" || p.action == actReject && p.reason.Code == CodeUnreadable && j.session != nil {
		// No file, or one that another time may be read again.
		return nil
	}
	state, reason := "present", &Problem{}
	var code *ProblemCode
	switch p.action {
	case actReject:
		state, reason, code = "rejected", p.reason, &p.reason.Code
	case actEmptied:
		state = "missing"
	}
	recorded := j.stat
	if !p.last || j.racy() {
		recorded.MtimeNS = -1 // no file has it: the next sync looks again
	}
	var source int64
	err := tx.tx.GetContext(ctx, &source, `
		INSERT INTO source (path, root, size, mtime_ns, ctime_ns, inode, state, problem, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (path) DO UPDATE SET root = excluded.root, size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns,
			inode = excluded.inode, state = excluded.state, problem = excluded.problem, detail = excluded.detail
		RETURNING key`,
		j.path, j.root, recorded.Size, recorded.MtimeNS, recorded.CtimeNS, recorded.Inode, state, code, reason.Detail)
	if err != nil {
		return err
	}
	session, ok := w.keys[j]
	if !ok {
		return nil
	}
	live := query.Live
	// What a file was stays live where it has only become too large since.
	if (p.action == actReject && p.reason.Code != CodeTooLarge || p.action == actEmptied) && !j.session.Native {
		live = query.Missing
	}
	_, err = tx.exec(ctx, `UPDATE session SET source = ?, state = ? WHERE key = ? AND (source IS NOT ? OR state <> ?)`,
		source, live, session, source, live)
	if err == nil && j.session != nil && j.session.Native && (p.action == actTail || p.action == actReplace) {
		// A session born here that went on in a file belongs to the file.
		_, err = tx.exec(ctx, `UPDATE session SET native = 0 WHERE key = ?`, session)
	}
	return err
}

func refOf(session query.Key, seq int64) any {
	if seq == none {
		return nil
	}
	return int64(query.MakeRef(session, seq))
}

func loopOf(r *row) any {
	if r.loop == 0 {
		return nil
	}
	return r.loop
}

func depthOf(r *row) any {
	if r.depth == none {
		return nil
	}
	return r.depth
}
