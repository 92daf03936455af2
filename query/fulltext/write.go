package fulltext

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// Write adds a segment to the index. Queries of this Index do not see it.
func (x *Index) Write(ctx context.Context, s *Segment) error { return x.write(ctx, s, Version) }

func (x *Index) write(ctx context.Context, s *Segment, version int) error {
	var key int64
	err := x.tx.QueryRowContext(ctx, `
		INSERT INTO `+x.schema+`segment (version, docs, bytes, sum, rows_sum, runs, directory, seqs, times) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`,
		version, s.Docs, s.Size(), sum(s.Runs, s.Directory), sum(s.Seqs, s.Times), s.Runs, s.Directory, s.Seqs, s.Times).Scan(&key)
	if err != nil {
		return err
	}
	block, err := x.tx.PrepareContext(ctx, `INSERT INTO `+x.schema+`block (key, sum, heads, words, lists) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer block.Close()
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if _, err := block.ExecContext(ctx, key<<keyBits|int64(i), sum(b.Heads, b.Words, b.Lists), b.Heads, b.Words, b.Lists); err != nil {
			return err
		}
	}
	list, err := x.tx.PrepareContext(ctx, `INSERT INTO `+x.schema+`list (key, sum, docs, nexts) VALUES (?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer list.Close()
	for i, l := range s.Lists {
		if _, err := list.ExecContext(ctx, key<<keyBits|int64(i), sum(l.Docs), l.Docs, l.Nexts); err != nil {
			return err
		}
	}
	return nil
}

// Forget makes all documents of a session disappear. What is written for it after that,
// by this version of the package, needs another nonce.
func (x *Index) Forget(ctx context.Context, session int64) error {
	for _, s := range x.segments {
		for i := range s.runs {
			r := &s.runs[i]
			if r.session != session || x.isLost(s, r) {
				continue
			}
			k := lostKey{session, r.nonce, s.version}
			if _, err := x.tx.ExecContext(ctx, `INSERT INTO `+x.schema+`lost (session, nonce, version) VALUES (?, ?, ?)`, k.session, k.nonce, k.version); err != nil {
				return err
			}
			x.lost[k] = true
		}
	}
	return nil
}

// ForgetOld is [Index.Forget] for what other versions of this package have indexed.
func (x *Index) ForgetOld(ctx context.Context, session int64) error {
	all := x.segments
	x.segments = slices.DeleteFunc(slices.Clone(all), func(s *segment) bool { return s.version == Version })
	err := x.Forget(ctx, session)
	x.segments = all
	return err
}

// mergeCount segments of about one size become one, unless it would be larger than
// mergeLimit bytes: that is made in memory.
const (
	mergeCount = 8
	mergeLimit = 40 << 20
)

// level returns the size of a segment in steps of mergeCount.
func (s *segment) level() int {
	n := 0
	for size := s.bytes >> 16; size > 0; size /= mergeCount {
		n++
	}
	return n
}

// alive returns how many documents of a segment are not gone.
func (x *Index) alive(s *segment) int {
	n := 0
	for i := range s.runs {
		end := uint32(s.docs)
		if i+1 < len(s.runs) {
			end = s.runs[i+1].first
		}
		if !x.isLost(s, &s.runs[i]) {
			n += int(end - s.runs[i].first)
		}
	}
	return n
}

// Merge makes one segment of several small ones where there are many, and lets go of
// words of which most documents are gone. It returns whether it did anything.
func (x *Index) Merge(ctx context.Context) (bool, error) {
	levels := map[int][]*segment{}
	for _, s := range x.segments {
		if len(x.lost) > 0 && x.alive(s)*2 < s.docs {
			return true, x.replace(ctx, []*segment{s})
		}
		if s.version == Version {
			levels[s.level()] = append(levels[s.level()], s)
		}
	}
	for _, list := range levels {
		total := int64(0)
		for _, s := range list[:min(len(list), mergeCount)] {
			total += s.bytes
		}
		if len(list) >= mergeCount && total <= mergeLimit {
			return true, x.replace(ctx, list[:mergeCount])
		}
	}
	return false, nil
}

// Purge makes segments anew that hold words of documents that are gone.
func (x *Index) Purge(ctx context.Context) error {
	for _, s := range slices.Clone(x.segments) {
		if x.alive(s) < s.docs {
			if err := x.replace(ctx, []*segment{s}); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace puts one segment in the place of several of one version, without what is gone.
func (x *Index) replace(ctx context.Context, list []*segment) error {
	merged, err := x.merge(ctx, list)
	if err != nil {
		return err
	}
	if merged.Docs > 0 {
		if err := x.write(ctx, merged, list[0].version); err != nil {
			return err
		}
	}
	for _, s := range list {
		for _, statement := range []string{
			`DELETE FROM ` + x.schema + `block WHERE key >= ? AND key < ?`,
			`DELETE FROM ` + x.schema + `list WHERE key >= ? AND key < ?`,
		} {
			if _, err := x.tx.ExecContext(ctx, statement, s.key<<keyBits, (s.key+1)<<keyBits); err != nil {
				return err
			}
		}
		if _, err := x.tx.ExecContext(ctx, `DELETE FROM `+x.schema+`segment WHERE key = ?`, s.key); err != nil {
			return err
		}
	}
	x.segments = slices.DeleteFunc(x.segments, func(s *segment) bool { return slices.Contains(list, s) })
	return x.trimLost(ctx)
}

// trimLost lets go of what is known of documents that no segment has any more.
func (x *Index) trimLost(ctx context.Context) error {
	held := map[lostKey]bool{}
	for _, s := range x.segments {
		for i := range s.runs {
			held[lostKey{s.runs[i].session, s.runs[i].nonce, s.version}] = true
		}
	}
	for k := range x.lost {
		if held[k] {
			continue
		}
		if _, err := x.tx.ExecContext(ctx, `DELETE FROM `+x.schema+`lost WHERE session = ? AND nonce = ? AND version = ?`, k.session, k.nonce, k.version); err != nil {
			return err
		}
		delete(x.lost, k)
	}
	return nil
}

// cursor goes through the words of a segment in order.
type cursor struct {
	s     *segment
	docs  []int64 // for each document its number in the merged segment; -1: gone
	n     int     // block
	words []byte  // of the block, from the word under way on
	heads headReader
	lists []byte // of the block
	word  []byte // empty: at the end
	head  head
}

// next goes to the next word.
func (x *Index) next(ctx context.Context, c *cursor) error {
	for len(c.words) == 0 {
		if c.n == len(c.s.firsts) {
			c.word = nil
			return nil
		}
		var packed, heads []byte
		if err := x.tx.QueryRowContext(ctx, `SELECT words, heads, lists FROM `+x.schema+`block WHERE key = ?`, c.s.key<<keyBits|int64(c.n)).
			Scan(&packed, &heads, &c.lists); err != nil {
			return err
		}
		words, err := unpack(nil, packed)
		if err != nil {
			return err
		}
		c.words, c.heads = words[1:], headReader{heads: heads}
		c.n++
	}
	end := bytes.IndexByte(c.words, separator)
	c.word, c.words = c.words[:end], c.words[end+1:]
	var err error
	c.head, err = c.heads.next()
	if err == nil && !c.head.long && c.head.at+c.head.size > len(c.lists) {
		err = fmt.Errorf("%w: short block of segment %d", ErrDamaged, c.s.key)
	}
	return err
}

// merge returns the documents of segments that are not gone, as one segment.
func (x *Index) merge(ctx context.Context, list []*segment) (*Segment, error) {
	var runs runWriter
	cursors := make([]*cursor, len(list))
	for i, s := range list {
		docs, err := x.renumber(ctx, s, &runs)
		if err != nil {
			return nil, err
		}
		cursors[i] = &cursor{s: s, docs: docs}
		if err := x.next(ctx, cursors[i]); err != nil {
			return nil, err
		}
	}
	e := newEncoder()
	var docs []uint32
	var weights, nexts []byte
	var word []byte
	for {
		var least *cursor
		for _, c := range cursors {
			if len(c.word) > 0 && (least == nil || bytes.Compare(c.word, least.word) < 0) {
				least = c
			}
		}
		if least == nil {
			break
		}
		word = append(word[:0], least.word...)
		docs, weights, nexts = docs[:0], weights[:0], nexts[:0]
		for _, c := range cursors {
			if !bytes.Equal(c.word, word) {
				continue
			}
			postings, behind, err := x.postings(ctx, c)
			if err != nil {
				return nil, err
			}
			at := 0
			if err := readList(postings, c.s.docs, func(doc uint32, weight byte) {
				if n := c.docs[doc]; n >= 0 {
					docs, weights = append(docs, uint32(n)), append(weights, weight)
					if behind != nil {
						nexts = append(nexts, behind[min(at, len(behind)-1)])
					} else {
						nexts = append(nexts, anyNext)
					}
				}
				at++
			}); err != nil {
				return nil, err
			}
			if err := x.next(ctx, c); err != nil {
				return nil, err
			}
		}
		if len(docs) > 0 {
			e.add(word, docs, weights, nexts)
		}
	}
	out := e.end()
	runs.end(out)
	return out, nil
}

// anyNext says that nothing is known of the words behind a word.
const anyNext = 0xff

// postings returns the list of the word that a cursor is at and, of a long one, what is
// known of the words behind it.
func (x *Index) postings(ctx context.Context, c *cursor) (list, nexts []byte, err error) {
	if !c.head.long {
		return c.lists[c.head.at : c.head.at+c.head.size], nil, nil
	}
	p := place{head: c.head}
	if list, err = x.list(ctx, c.s, p); err == nil {
		nexts, err = x.nexts(ctx, c.s, p)
	}
	return list, nexts, err
}

// renumber adds the documents of a segment that are not gone to runs, and returns their
// numbers there.
func (x *Index) renumber(ctx context.Context, s *segment, runs *runWriter) ([]int64, error) {
	if err := x.readTimes(ctx, s); err != nil {
		return nil, err
	}
	if err := x.readSeqs(ctx, s); err != nil {
		return nil, err
	}
	var want int64
	if err := x.one(ctx, s.key, `SELECT rows_sum FROM `+x.schema+`segment WHERE key = ?`, &want); err != nil {
		return nil, err
	}
	if sum(s.seqs, s.times) != want {
		return nil, fmt.Errorf("%w: rows of segment %d", ErrDamaged, s.key)
	}
	numbers := make([]int64, s.docs)
	for i := range s.runs {
		r := &s.runs[i]
		end := uint32(s.docs)
		if i+1 < len(s.runs) {
			end = s.runs[i+1].first
		}
		lost := x.isLost(s, r)
		seqs, seq := s.seqs[min(int(r.seqs), len(s.seqs)):], int64(0)
		for doc := r.first; doc < end; doc++ {
			step, n := uvarint(seqs)
			if n <= 0 {
				return nil, fmt.Errorf("%w: rows of segment %d", ErrDamaged, s.key)
			}
			seqs, seq = seqs[n:], seq+int64(step)
			if lost {
				numbers[doc] = -1
				continue
			}
			numbers[doc] = int64(runs.docs)
			runs.add(r.session, r.nonce, seq, s.ms(doc))
		}
	}
	return numbers, nil
}
