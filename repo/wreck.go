package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"pidb/migrations"
	"pidb/query"
)

// wreck is what the pages of a damaged archive still say. A row counts where the tree of
// its table leads to it; one that only stands on a page that no tree leads to comes second.
type wreck struct {
	pages    *pageFile
	files    []*os.File
	owner    map[uint32]string // table or index whose tree leads to a page
	sessions map[query.Key]*wreckSession
	sources  map[int64]*sourceRow
	chunks   map[int64][]wreckChunk // by key, those that are likelier first
	hashes   map[string]int64       // keys of chunks by hash, from the index of hashes
	kept     map[query.Key]*kept
	buried   []wreckTombstone
	seen     map[query.Key]bool // sessions that have rows of lines
}

// wreckSession is a session row, and the pieces of the session.
type wreckSession struct {
	known  bool // the row is there, and not only pieces
	stray  bool // it was found on a page that no tree leads to
	row    sessionState
	moved  bool
	pieces map[int64][]wreckPiece // by offset, likelier first
}

// wreckPiece is a chunk that may stand at an offset of a session.
type wreckPiece struct {
	chunk int64
	stray bool // it was found on a page that no tree leads to, and may be something else
}

// wreckChunk is where a chunk row stands.
type wreckChunk struct {
	page uint32
	cell int
}

type wreckTombstone struct {
	identity
	id string
	ms int64
}

// openWreck reads what is left of the archive at path. The file is read, never written.
func openWreck(ctx context.Context, path string) (*wreck, error) {
	w := &wreck{
		owner: map[uint32]string{}, sessions: map[query.Key]*wreckSession{}, sources: map[int64]*sourceRow{}, chunks: map[int64][]wreckChunk{},
		hashes: map[string]int64{}, kept: map[query.Key]*kept{}, seen: map[query.Key]bool{},
	}
	err := w.open(ctx, path)
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *wreck) close() {
	for _, file := range w.files {
		file.Close()
	}
}

func (w *wreck) open(ctx context.Context, path string) error {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotFound
	}
	if err != nil {
		return err
	}
	w.files = append(w.files, file)
	wal, err := openRegular(path + "-wal")
	if err == nil {
		w.files = append(w.files, wal)
	} else {
		wal = nil
	}
	if w.pages, err = openPages(file, wal); err != nil {
		return err
	}
	return w.read(ctx)
}

// read reads all pages.
func (w *wreck) read(ctx context.Context) error {
	roots, err := w.roots()
	if err != nil {
		return err
	}
	seen := map[uint32]bool{}
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		err := w.pages.walk(roots[name], seen, func(n *node) error {
			w.owner[n.number] = name
			return errors.Join(ctx.Err(), w.readNode(n, name))
		})
		if err != nil {
			return err
		}
	}
	free, err := w.pages.free()
	if err != nil {
		return err
	}
	for number := uint32(1); number <= w.pages.count; number++ {
		if number%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if seen[number] || free[number] || w.pages.chain[number] {
			continue
		}
		n, err := w.pages.node(number)
		if err != nil {
			return err
		}
		if n != nil {
			if err := w.readNode(n, ""); err != nil {
				return err
			}
		}
	}
	w.dropGuesses()
	return nil
}

// newer returns the version of the schema where that is newer than the one this package
// knows, and 0 where it is not, or cannot be read.
func (w *wreck) newer() int {
	const version, application = 60, 68 // where they stand in the first page
	first, err := w.pages.page(1)
	if err != nil || binary.BigEndian.Uint32(first[application:]) != migrations.ApplicationID {
		return 0
	}
	if v := binary.BigEndian.Uint32(first[version:]); v > migrations.Version {
		return int(v)
	}
	return 0
}

// roots returns the root pages of tables and indexes by name, as far as the schema says.
func (w *wreck) roots() (map[string]uint32, error) {
	roots := map[string]uint32{}
	err := w.pages.walk(1, map[uint32]bool{}, func(n *node) error {
		return w.rows(n, func(_ int64, _ int, c []any) {
			if len(c) != 5 {
				return
			}
			name, named := c[1].(string)
			root, rooted := c[3].(int64)
			if named && rooted && root > 1 && root <= int64(w.pages.count) {
				roots[name] = uint32(root)
			}
		})
	})
	return roots, err
}

// rows calls f for each record of a node, with its rowid and the offset of its cell.
func (w *wreck) rows(n *node, f func(rowid int64, cell int, columns []any)) error {
	for _, at := range n.cells {
		rowid, payload, ok, err := w.pages.cell(n, at)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if columns, ok := record(payload); ok {
			f(rowid, at, columns)
		}
	}
	return nil
}

// readNode takes the rows of a node. name is the table or index that it belongs to, empty
// where that is not known: then the form of a row says what it is.
func (w *wreck) readNode(n *node, name string) error {
	return w.rows(n, func(rowid int64, cell int, c []any) {
		if n.kind == leafTable {
			w.readRow(n, cell, rowid, c, name == "")
			return
		}
		w.readIndex(c, name)
	})
}

// readRow takes a row of a table, whatever table its page was thought to be of.
func (w *wreck) readRow(n *node, cell int, rowid int64, c []any, stray bool) {
	if rowid <= 0 {
		return
	}
	switch {
	case isChunk(c):
		w.chunks[rowid] = append(w.chunks[rowid], wreckChunk{n.number, cell})
	case isSession(c):
		s := w.session(query.Key(rowid))
		if s.known && (!s.stray || stray) {
			return
		}
		s.known, s.stray = true, stray
		s.row, s.moved = sessionOf(query.Key(rowid), c)
	case isSource(c):
		if _, ok := w.sources[rowid]; !ok || !stray {
			w.sources[rowid] = sourceOfRow(rowid, c)
		}
	case isEntry(c):
		w.seen[query.Ref(rowid).Session()] = true
	case isDocument(c):
		w.keptBy(rowid).document = &keptDocument{c[1].(string), c[2].(int64), c[3].(int64)}
	case isSubagent(c):
		k := w.keptBy(c[0].(int64))
		k.agents = append(k.agents, subagentOf(c))
	case isTombstone(c):
		if !stray {
			w.buried = append(w.buried, wreckTombstone{
				identity{c[2].(int64), [sha256.Size]byte(c[1].([]byte))}, c[3].(string), c[4].(int64),
			})
		}
	}
}

// readIndex takes a row of an index, or of a table without rowids.
func (w *wreck) readIndex(c []any, name string) {
	switch {
	case len(c) == 3 && isInt(c[0]) && isInt(c[1]) && isInt(c[2]):
		a, b, d := c[0].(int64), c[1].(int64), c[2].(int64)
		if name == "piece" || name == "" {
			w.addPiece(a, b, wreckPiece{d, name == ""})
		}
		if name == "piece_chunk" || name == "" {
			w.addPiece(b, d, wreckPiece{a, name == ""})
		}
	case len(c) == 2 && isBlob(c[0], query.HashSize) && isInt(c[1]) && name != "":
		w.hashes[string(c[0].([]byte))] = c[1].(int64)
	case (len(c) == 3 || len(c) == 4) && name == "metadata" && isInt(c[0]):
		key, ok1 := c[1].(string)
		value, ok2 := c[2].(string)
		if ok1 && ok2 {
			k := w.keptBy(c[0].(int64))
			k.metadata = append(k.metadata, keptMetadata{key, value, len(c) == 4 && c[3] == int64(1)})
		}
	case len(c) == 2 && name == "idempotency" && isText(c[0]) && isInt(c[1]):
		w.keptBy(c[1].(int64)).idempotency = new(c[0].(string))
	}
}

// keptBy returns what a session keeps beside its lines, to be filled in.
func (w *wreck) keptBy(session int64) *kept {
	k := w.kept[query.Key(session)]
	if k == nil {
		k = &kept{}
		w.kept[query.Key(session)] = k
	}
	return k
}

// addPiece remembers a chunk that may stand at an offset of a session.
func (w *wreck) addPiece(session, start int64, p wreckPiece) {
	if session <= 0 || session >= 1<<37 || start < 0 || p.chunk <= 0 {
		return
	}
	s := w.session(query.Key(session))
	if !slices.ContainsFunc(s.pieces[start], func(other wreckPiece) bool { return other.chunk == p.chunk }) {
		s.pieces[start] = append(s.pieces[start], p)
	}
}

// dropGuesses takes out the sessions that only pieces speak for that may be something else.
func (w *wreck) dropGuesses() {
	maps.DeleteFunc(w.sessions, func(key query.Key, s *wreckSession) bool {
		if s.known || w.seen[key] {
			return false
		}
		for start, pieces := range s.pieces {
			if s.pieces[start] = slices.DeleteFunc(pieces, func(p wreckPiece) bool { return p.stray }); len(s.pieces[start]) == 0 {
				delete(s.pieces, start)
			}
		}
		return len(s.pieces) == 0
	})
}

func (w *wreck) session(key query.Key) *wreckSession {
	s, ok := w.sessions[key]
	if !ok {
		s = &wreckSession{pieces: map[int64][]wreckPiece{}}
		w.sessions[key] = s
	}
	return s
}

// chunk returns the bytes of a chunk, nil where no row of it proves against its hash, or
// where rows with different bytes do.
func (w *wreck) chunk(key int64) ([]byte, error) {
	var found [][]byte
	for _, at := range w.chunks[key] {
		n, err := w.pages.node(at.page)
		if err != nil {
			return nil, err
		}
		_, payload, ok, err := w.pages.cell(n, at.cell)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		c, ok := record(payload)
		if !ok || !isChunk(c) {
			continue
		}
		hash := c[1].([]byte)
		data, err := query.DecodeChunk(int(c[3].(int64)), c[4].([]byte), hash, nil)
		if err != nil || int64(len(data)) != c[2].(int64) {
			continue
		}
		if w.hashes[string(hash)] == key {
			return data, nil
		}
		if !slices.ContainsFunc(found, func(other []byte) bool { return bytes.Equal(other, data) }) {
			found = append(found, data)
		}
	}
	if len(found) != 1 {
		return nil, nil
	}
	return found[0], nil
}

// wreckLine is where a physical line stands in its session.
type wreckLine struct {
	seq, line, part, start, end int64
}

// lines returns the rows of the lines of some sessions, in the order of their seq.
func (w *wreck) lines(ctx context.Context, sessions map[query.Key]bool) (map[query.Key][]wreckLine, error) {
	out := map[query.Key][]wreckLine{}
	if len(sessions) == 0 {
		return out, nil
	}
	for number, name := range w.owner {
		if name != "entry" {
			continue
		}
		n, err := w.pages.node(number)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		if n == nil || n.kind != leafTable {
			continue
		}
		err = w.rows(n, func(rowid int64, _ int, c []any) {
			ref := query.Ref(rowid)
			if !isEntry(c) || !sessions[ref.Session()] {
				return
			}
			start := c[3].(int64)
			out[ref.Session()] = append(out[ref.Session()], wreckLine{ref.Seq(), c[1].(int64), c[2].(int64), start, start + c[4].(int64) + c[5].(int64)})
		})
		if err != nil {
			return nil, err
		}
	}
	for _, rows := range out {
		slices.SortFunc(rows, func(a, b wreckLine) int { return int(a.seq - b.seq) })
	}
	return out, nil
}

func isInt(v any) bool {
	_, ok := v.(int64)
	return ok
}

func isText(v any) bool {
	_, ok := v.(string)
	return ok
}

func isBlob(v any, size int) bool {
	b, ok := v.([]byte)
	return ok && len(b) == size
}

// isChunk and those below tell a row by its form. A migration may add columns at the end.
func isChunk(c []any) bool {
	if len(c) < 5 || c[0] != nil || !isBlob(c[1], query.HashSize) || !isInt(c[2]) || !isInt(c[3]) {
		return false
	}
	_, ok := c[4].([]byte)
	return ok
}

func isTombstone(c []any) bool {
	return len(c) >= 5 && c[0] == nil && isBlob(c[1], sha256.Size) && isInt(c[2]) && isText(c[3]) && isInt(c[4])
}

func isDocument(c []any) bool {
	return len(c) == 5 && c[0] == nil && isText(c[1]) && isInt(c[2]) && isInt(c[3]) && isInt(c[4])
}

func isSubagent(c []any) bool {
	if len(c) != 15 || !isInt(c[0]) || !isInt(c[8]) {
		return false
	}
	for _, v := range c[1:8] {
		if !isText(v) {
			return false
		}
	}
	_, ok := c[14].([]byte)
	return ok
}

// subagentOf reads a row of the subagent table.
func subagentOf(c []any) subagentRow {
	text := func(i int) string { return c[i].(string) }
	number := func(i int) *int64 {
		if n, ok := c[i].(int64); ok {
			return &n
		}
		return nil
	}
	row := subagentRow{
		Job: text(1), Task: text(2), Model: text(3), Status: text(4), Result: text(5), Error: text(6), Thinking: text(7),
		Async: c[8] == int64(1), StartedMS: number(9), FinishedMS: number(10), Messages: slices.Clone(c[14].([]byte)),
	}
	if usage, ok := c[11].(string); ok {
		row.Usage = &usage
	}
	switch cost := c[12].(type) {
	case float64:
		row.Cost = cost
	case int64:
		row.Cost = float64(cost) // SQLite stores a real without a fraction so
	}
	if n := number(13); n != nil {
		row.ContextPercent = new(int(*n))
	}
	return row
}

func isSource(c []any) bool {
	if len(c) < 10 || c[0] != nil || !isText(c[1]) || !isText(c[2]) || !isText(c[9]) {
		return false
	}
	for _, v := range c[3:7] {
		if !isInt(v) {
			return false
		}
	}
	return slices.Contains([]any{"present", "missing", "rejected", "deleted"}, c[7])
}

func isSession(c []any) bool {
	if len(c) < 31 || c[0] != nil || !isText(c[1]) || c[2] != nil && !isInt(c[2]) || !isInt(c[13]) {
		return false
	}
	for _, i := range []int{3, 5, 8, 9, 10, 14} {
		if !isInt(c[i]) {
			return false
		}
	}
	if !slices.Contains([]any{string(query.Live), string(query.Missing), string(query.Superseded)}, c[4]) {
		return false
	}
	_, ok := c[11].([]byte)
	return ok
}

func isEntry(c []any) bool {
	if len(c) < 22 || c[0] != nil {
		return false
	}
	for _, v := range c[1:6] {
		if !isInt(v) {
			return false
		}
	}
	return isText(c[6])
}

func sessionOf(key query.Key, c []any) (row sessionState, moved bool) {
	row = sessionState{
		Key: key, ID: c[1].(string), Version: c[3].(int64), State: query.State(c[4].(string)), Native: c[5] == int64(1),
		Bytes: c[8].(int64), Lines: c[9].(int64), Rows: c[10].(int64), SHA256: bytes.Clone(c[11].([]byte)), Headerless: c[14] == int64(1),
	}
	if source, ok := c[2].(int64); ok {
		row.Source = &source
	}
	if leaf, ok := c[25].(int64); ok {
		ref := query.Ref(leaf)
		row.Leaf = &ref
	}
	return row, c[26] == int64(1)
}

func sourceOfRow(key int64, c []any) *sourceRow {
	row := &sourceRow{
		Key: key, Path: c[1].(string), Root: c[2].(string), State: c[7].(string), Detail: c[9].(string),
		stat: stat{Size: c[3].(int64), MtimeNS: c[4].(int64), CtimeNS: c[5].(int64), Inode: c[6].(int64)},
	}
	if problem, ok := c[8].(string); ok {
		code := ProblemCode(problem)
		row.Problem = &code
	}
	return row
}
