package fulltext

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
)

// keyBits is the room for the number of a block or of a long list in its key.
const keyBits = 24

// segmentRow is a row of the segment table, without what only a hit needs.
type segmentRow struct {
	Key       int64  `db:"key"`
	Version   int    `db:"version"`
	Docs      int    `db:"docs"`
	Bytes     int64  `db:"bytes"`
	Sum       int64  `db:"sum"`
	Runs      []byte `db:"runs"`
	Directory []byte `db:"directory"`
}

// Index reads and writes the segments of a database within one transaction, and must not
// be used after it, nor by two goroutines at once.
type Index struct {
	tx       *sqlx.Tx
	schema   string // of the tables, with a dot behind it; "" for the main one
	segments []*segment
	lost     map[lostKey]bool
	stmts    map[string]*sql.Stmt
}

// segment is a segment that is being read.
type segment struct {
	key     int64
	version int
	docs    int
	bytes   int64
	runs    []run
	firsts  [][]byte
	blocks  map[int]*block
	seqs    []byte // nil: not read yet
	times   []byte
}

// block is a block that has been read.
type block struct {
	words []byte
	heads []byte
	all   []head // nil: not parsed yet
	lists []byte // nil: not read yet
	asked int    // how many lists were read one by one
}

// lostKey names documents that are gone. Those of a segment that another version of this
// package made go by themselves.
type lostKey struct {
	session, nonce int64
	version        int
}

// Open returns the index in a database that tx reads or writes. schema is the name under
// which it is attached, "" if it is the main database.
func Open(ctx context.Context, tx *sqlx.Tx, schema string) (*Index, error) {
	x := &Index{tx: tx, lost: map[lostKey]bool{}, stmts: map[string]*sql.Stmt{}}
	if schema != "" {
		x.schema = schema + "."
	}
	var rows []segmentRow
	if err := tx.SelectContext(ctx, &rows, `SELECT key, version, docs, bytes, sum, runs, directory FROM `+x.schema+`segment ORDER BY key`); err != nil {
		return nil, err
	}
	for _, row := range rows {
		s := &segment{key: row.Key, version: row.Version, docs: row.Docs, bytes: row.Bytes, blocks: map[int]*block{}}
		if sum(row.Runs, row.Directory) != row.Sum {
			return nil, fmt.Errorf("%w: sum of segment %d", ErrDamaged, s.key)
		}
		var err error
		if s.runs, err = parseRuns(row.Runs); err != nil {
			return nil, err
		}
		if s.firsts, err = parseDirectory(row.Directory); err != nil {
			return nil, err
		}
		if len(s.runs) == 0 || s.runs[0].first != 0 || !slices.IsSortedFunc(s.runs, func(a, b run) int { return int(a.first) - int(b.first) }) ||
			int(s.runs[len(s.runs)-1].first) >= s.docs {
			return nil, fmt.Errorf("%w: runs of segment %d", ErrDamaged, s.key)
		}
		x.segments = append(x.segments, s)
	}
	lost, err := tx.QueryContext(ctx, `SELECT session, nonce, version FROM `+x.schema+`lost`)
	if err != nil {
		return nil, err
	}
	defer lost.Close()
	for lost.Next() {
		var k lostKey
		if err := lost.Scan(&k.session, &k.nonce, &k.version); err != nil {
			return nil, err
		}
		x.lost[k] = true
	}
	return x, lost.Err()
}

// isLost reports whether the documents of a run are gone.
func (x *Index) isLost(s *segment, r *run) bool {
	return x.lost[lostKey{r.session, r.nonce, s.version}]
}

// Docs returns how many documents the index has, those that are gone included.
func (x *Index) Docs() int {
	n := 0
	for _, s := range x.segments {
		n += s.docs
	}
	return n
}

// Close lets go of what reading needed. The transaction stays the caller's.
func (x *Index) Close() {
	for _, stmt := range x.stmts {
		stmt.Close()
	}
	clear(x.stmts)
}

// one reads one row of a statement that is prepared once.
func (x *Index) one(ctx context.Context, key int64, statement string, into ...any) error {
	stmt := x.stmts[statement]
	if stmt == nil {
		var err error
		if stmt, err = x.tx.PrepareContext(ctx, statement); err != nil {
			return err
		}
		x.stmts[statement] = stmt
	}
	err := stmt.QueryRowContext(ctx, key).Scan(into...)
	if err == sql.ErrNoRows {
		return fmt.Errorf("%w: no row %d", ErrDamaged, key)
	}
	return err
}

// block reads a block.
func (x *Index) block(ctx context.Context, s *segment, n int) (*block, error) {
	if b := s.blocks[n]; b != nil {
		return b, nil
	}
	b := &block{}
	var packed []byte
	err := x.one(ctx, s.key<<keyBits|int64(n), `SELECT words, heads FROM `+x.schema+`block WHERE key = ?`, &packed, &b.heads)
	if err != nil {
		return nil, fmt.Errorf("block %d of segment %d: %w", n, s.key, err)
	}
	if b.words, err = unpack(nil, packed); err != nil {
		return nil, err
	}
	s.blocks[n] = b
	return b, nil
}

// head returns the head of the i-th word of a block.
func (b *block) head(i int) (head, error) {
	if b.all == nil {
		r := headReader{heads: b.heads}
		for len(r.heads) > 0 {
			h, err := r.next()
			if err != nil {
				return head{}, err
			}
			b.all = append(b.all, h)
		}
	}
	if i >= len(b.all) {
		return head{}, fmt.Errorf("%w: block with fewer heads than words", ErrDamaged)
	}
	return b.all[i], nil
}

// place is where the list of a word is.
type place struct {
	block int
	head
}

// list reads a list of documents.
func (x *Index) list(ctx context.Context, s *segment, p place) ([]byte, error) {
	var list []byte
	if p.long {
		var want int64
		err := x.one(ctx, s.key<<keyBits|int64(p.at), `SELECT sum, docs FROM `+x.schema+`list WHERE key = ?`, &want, &list)
		if err == nil && sum(list) != want {
			err = fmt.Errorf("%w: list %d of segment %d", ErrDamaged, p.at, s.key)
		}
		return list, err
	}
	short := fmt.Errorf("%w: short block %d of segment %d", ErrDamaged, p.block, s.key)
	b := s.blocks[p.block]
	if b != nil && b.lists == nil {
		// The third list of a block is worth reading them all.
		if b.asked++; b.asked > 2 {
			if err := x.one(ctx, s.key<<keyBits|int64(p.block), `SELECT lists FROM `+x.schema+`block WHERE key = ?`, &b.lists); err != nil {
				return nil, err
			}
		}
	}
	if b != nil && b.lists != nil {
		if p.at+p.size > len(b.lists) {
			return nil, short
		}
		return b.lists[p.at : p.at+p.size], nil
	}
	err := x.tx.QueryRowContext(ctx, `SELECT substr(lists, ?, ?) FROM `+x.schema+`block WHERE key = ?`,
		p.at+1, p.size, s.key<<keyBits|int64(p.block)).Scan(&list)
	if err == nil && len(list) != p.size {
		err = short
	}
	return list, err
}

// nexts returns for each document of a long list what is known of the words behind the
// word of the list.
func (x *Index) nexts(ctx context.Context, s *segment, p place) ([]byte, error) {
	var packed []byte
	if err := x.one(ctx, s.key<<keyBits|int64(p.at), `SELECT nexts FROM `+x.schema+`list WHERE key = ?`, &packed); err != nil {
		return nil, err
	}
	return unpackNexts(packed, int(p.docs))
}

// find returns where the list of a word is.
func (x *Index) find(ctx context.Context, s *segment, word []byte) (p place, found bool, err error) {
	n, exact := slices.BinarySearchFunc(s.firsts, word, bytes.Compare)
	if !exact {
		n--
	}
	if n < 0 {
		return p, false, nil
	}
	b, err := x.block(ctx, s, n)
	if err != nil {
		return p, false, err
	}
	pattern := append(append([]byte{separator}, word...), separator)
	at := bytes.Index(b.words, pattern)
	if at < 0 {
		return p, false, nil
	}
	p.block = n
	p.head, err = b.head(bytes.Count(b.words[:at], []byte{separator}))
	return p, err == nil, err
}

// Position returns what a document of a segment is.
func (x *Index) position(ctx context.Context, s *segment, doc uint32) (session, seq int64, err error) {
	if err := x.readSeqs(ctx, s); err != nil {
		return 0, 0, err
	}
	r := s.runs[s.runOf(doc)]
	seqs := s.seqs[min(int(r.seqs), len(s.seqs)):]
	for at := r.first; at <= doc; at++ {
		step, n := uvarint(seqs)
		if n <= 0 {
			return 0, 0, fmt.Errorf("%w: rows of segment %d", ErrDamaged, s.key)
		}
		seq += int64(step)
		seqs = seqs[n:]
	}
	return r.session, seq, nil
}

// runOf returns the number of the run that a document is in.
func (s *segment) runOf(doc uint32) int {
	i, exact := slices.BinarySearchFunc(s.runs, doc, func(r run, doc uint32) int { return int(r.first) - int(doc) })
	if !exact {
		i--
	}
	return i
}

func (x *Index) readSeqs(ctx context.Context, s *segment) error {
	if s.seqs != nil {
		return nil
	}
	return x.one(ctx, s.key, `SELECT seqs FROM `+x.schema+`segment WHERE key = ?`, &s.seqs)
}

func (x *Index) readTimes(ctx context.Context, s *segment) error {
	if s.times != nil {
		return nil
	}
	err := x.one(ctx, s.key, `SELECT times FROM `+x.schema+`segment WHERE key = ?`, &s.times)
	if err == nil && len(s.times) != timeBytes*s.docs {
		err = fmt.Errorf("%w: times of segment %d", ErrDamaged, s.key)
	}
	return err
}

// ms returns the time of a document, 0 for none.
func (s *segment) ms(doc uint32) int64 {
	t := s.times[timeBytes*doc:]
	return int64(t[0]) | int64(t[1])<<8 | int64(t[2])<<16 | int64(t[3])<<24 | int64(t[4])<<32 | int64(t[5])<<40
}
