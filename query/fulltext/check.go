package fulltext

import (
	"bytes"
	"context"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// sum returns what tells blobs from damaged ones.
func sum(blobs ...[]byte) int64 {
	var d xxhash.Digest
	d.Reset()
	for _, b := range blobs {
		d.Write(b)
	}
	return int64(d.Sum64())
}

// Check reads the whole index and returns an error that wraps [ErrDamaged] for the first
// fault that it finds.
func (x *Index) Check(ctx context.Context) error {
	for _, s := range x.segments {
		if err := x.check(ctx, s); err != nil {
			return fmt.Errorf("segment %d: %w", s.key, err)
		}
	}
	return nil
}

func (x *Index) check(ctx context.Context, s *segment) error {
	if _, err := x.renumber(ctx, s, &runWriter{}); err != nil {
		return err
	}
	var last []byte
	for n := range s.firsts {
		if err := x.checkBlock(ctx, s, n); err != nil {
			return fmt.Errorf("block %d: %w", n, err)
		}
		b, err := x.block(ctx, s, n)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(b.words[1:], s.firsts[n]) {
			return fmt.Errorf("%w: block %d begins with another word", ErrDamaged, n)
		}
		number := 0
		for rest := b.words[1:]; len(rest) > 0; number++ {
			end := bytes.IndexByte(rest, separator)
			word := rest[:end]
			rest = rest[end+1:]
			if last != nil && bytes.Compare(last, word) >= 0 {
				return fmt.Errorf("%w: words out of order in block %d", ErrDamaged, n)
			}
			last = append(last[:0], word...)
			h, err := b.head(number)
			if err != nil {
				return err
			}
			list, err := x.list(ctx, s, place{n, h})
			if err != nil {
				return err
			}
			docs := uint32(0)
			if err := readList(list, s.docs, func(uint32, byte) { docs++ }); err != nil {
				return err
			}
			if docs != h.docs {
				return fmt.Errorf("%w: a list of %d documents in block %d has %d", ErrDamaged, h.docs, n, docs)
			}
		}
		if number != len(b.all) {
			return fmt.Errorf("%w: %d words and %d heads in block %d", ErrDamaged, number, len(b.all), n)
		}
		delete(s.blocks, n)
	}
	return nil
}

// checkBlock proves the bytes of a block.
func (x *Index) checkBlock(ctx context.Context, s *segment, n int) error {
	var want int64
	var heads, words, lists []byte
	err := x.tx.QueryRowContext(ctx, `SELECT sum, heads, words, lists FROM `+x.schema+`block WHERE key = ?`, s.key<<keyBits|int64(n)).
		Scan(&want, &heads, &words, &lists)
	if err != nil {
		return err
	}
	if sum(heads, words, lists) != want {
		return fmt.Errorf("%w: sum", ErrDamaged)
	}
	return nil
}
