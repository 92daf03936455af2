package fulltext

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Segment is a part of the index as it is stored.
type Segment struct {
	Docs      int
	Runs      []byte // see runSize
	Seqs      []byte // for each run the distances of its rows as varints
	Times     []byte // timeBytes a document: Unix milliseconds, little endian; 0 for none
	Directory []byte // the first word of each block: its length as a varint, its bytes
	Blocks    []Block
	Lists     []List // of documents that are many: see listLong
}

// List is documents of a word that stand by themselves.
type List struct {
	Docs  []byte
	Nexts []byte // a zstd frame: for each document which words come behind the word, see nextBit
}

// Block is words that follow each other, and their documents.
type Block struct {
	Words []byte // a zstd frame: words in order, a separator before and behind each
	Heads []byte // for each word how many documents have it, and where its list is
	Lists []byte // lists of documents that are short, one after the other
}

// Size returns the number of bytes of the segment.
func (s *Segment) Size() int {
	n := len(s.Runs) + len(s.Seqs) + len(s.Times) + len(s.Directory)
	for i := range s.Blocks {
		n += len(s.Blocks[i].Words) + len(s.Blocks[i].Heads) + len(s.Blocks[i].Lists)
	}
	for _, list := range s.Lists {
		n += len(list.Docs) + len(list.Nexts)
	}
	return n
}

// ErrDamaged is returned for what is no part of an index.
var ErrDamaged = errors.New("damaged search index")

// A run is documents of one session that follow each other: the session, its nonce, the
// first document, and where its rows begin in Segment.Seqs.
type run struct {
	session, nonce int64
	first          uint32
	seqs           uint32
}

const (
	runSize   = 24
	runDocs   = 512 // at most
	timeBytes = 6
)

// runWriter gathers the documents of a segment.
type runWriter struct {
	runs, seqs, times []byte
	last              run
	docs              uint32
	seq               int64
}

func (w *runWriter) add(session, nonce, seq, ms int64) {
	if w.docs == 0 || w.last.session != session || w.last.nonce != nonce || w.docs-w.last.first >= runDocs {
		w.last = run{session, nonce, w.docs, uint32(len(w.seqs))}
		w.seq = 0
		w.runs = binary.LittleEndian.AppendUint64(w.runs, uint64(session))
		w.runs = binary.LittleEndian.AppendUint64(w.runs, uint64(nonce))
		w.runs = binary.LittleEndian.AppendUint32(w.runs, w.last.first)
		w.runs = binary.LittleEndian.AppendUint32(w.runs, w.last.seqs)
	}
	w.seqs = binary.AppendUvarint(w.seqs, uint64(seq-w.seq))
	w.seq = seq
	var t [8]byte
	binary.LittleEndian.PutUint64(t[:], uint64(min(max(ms, 0), 1<<(8*timeBytes)-1)))
	w.times = append(w.times, t[:timeBytes]...)
	w.docs++
}

func (w *runWriter) end(s *Segment) {
	s.Docs, s.Runs, s.Seqs, s.Times = int(w.docs), w.runs, w.seqs, w.times
	*w = runWriter{}
}

func parseRuns(b []byte) ([]run, error) {
	if len(b)%runSize != 0 {
		return nil, fmt.Errorf("%w: runs of %d bytes", ErrDamaged, len(b))
	}
	runs := make([]run, len(b)/runSize)
	for i := range runs {
		r := b[i*runSize:]
		runs[i] = run{
			int64(binary.LittleEndian.Uint64(r)), int64(binary.LittleEndian.Uint64(r[8:])),
			binary.LittleEndian.Uint32(r[16:]), binary.LittleEndian.Uint32(r[20:]),
		}
	}
	return runs, nil
}

// Sizes of blocks. A block of words takes some 20 microseconds to read.
const (
	blockWords = 16 << 10 // bytes of words
	blockLists = 128 << 10
	listLong   = 1 << 10 // bytes of a list that stands by itself
)

// encoder writes words that come in order.
type encoder struct {
	segment *Segment
	zstd    *zstd.Encoder
	first   []byte // word of the block
	words   []byte
	heads   []byte
	lists   []byte
	list    []byte // scratch
}

var newZstd = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(true))
	if err != nil {
		panic(err) // an option is wrong
	}
	return encoder
})

func newEncoder() *encoder { return &encoder{segment: &Segment{}, zstd: newZstd()} }

// add takes a word and its documents, of which there is at least one, with their weights
// and what is known of the words behind it.
func (e *encoder) add(word []byte, docs []uint32, weights, nexts []byte) {
	if len(e.words) == 0 {
		e.first = append(e.first[:0], word...)
		e.words = append(e.words, separator)
	}
	e.words = append(append(e.words, word...), separator)
	e.list = appendList(e.list[:0], docs, weights)
	e.heads = binary.AppendUvarint(e.heads, uint64(len(docs)))
	if len(e.list) >= listLong {
		e.heads = binary.AppendUvarint(e.heads, uint64(len(e.segment.Lists))<<1|1)
		e.segment.Lists = append(e.segment.Lists, List{bytes.Clone(e.list), e.zstd.EncodeAll(nexts, nil)})
	} else {
		e.heads = binary.AppendUvarint(e.heads, uint64(len(e.list))<<1)
		e.lists = append(e.lists, e.list...)
	}
	if len(e.words) >= blockWords || len(e.lists) >= blockLists {
		e.cut()
	}
}

func (e *encoder) cut() {
	if len(e.words) == 0 {
		return
	}
	s := e.segment
	s.Directory = binary.AppendUvarint(s.Directory, uint64(len(e.first)))
	s.Directory = append(s.Directory, e.first...)
	s.Blocks = append(s.Blocks, Block{e.zstd.EncodeAll(e.words, nil), bytes.Clone(e.heads), append([]byte{}, e.lists...)})
	e.words, e.heads, e.lists = e.words[:0], e.heads[:0], e.lists[:0]
}

// end returns the segment, but for its documents.
func (e *encoder) end() *Segment {
	e.cut()
	return e.segment
}

// appendList appends a list of documents in order: for each the distance from the one
// before, doubled, with the weight behind it and one added where the weight is another
// than the last.
func appendList(dst []byte, docs []uint32, weights []byte) []byte {
	before, weight := uint32(0), byte(0)
	for i, doc := range docs {
		v := uint64(doc-before) << 1
		if weights[i] != weight {
			weight = weights[i]
			dst = binary.AppendUvarint(dst, v|1)
			dst = append(dst, weight)
		} else {
			dst = binary.AppendUvarint(dst, v)
		}
		before = doc
	}
	return dst
}

// readList calls f for the documents of a list, in order.
func readList(list []byte, docs int, f func(doc uint32, weight byte)) error {
	doc, weight := uint64(0), byte(0)
	for len(list) > 0 {
		v := uint64(list[0])
		n := 1
		if v >= 0x80 {
			v, n = binary.Uvarint(list)
		}
		if n <= 0 {
			return fmt.Errorf("%w: list", ErrDamaged)
		}
		list = list[n:]
		if v&1 != 0 {
			if len(list) == 0 {
				return fmt.Errorf("%w: list", ErrDamaged)
			}
			weight, list = list[0], list[1:]
		}
		if doc += v >> 1; doc >= uint64(docs) {
			return fmt.Errorf("%w: list", ErrDamaged)
		}
		f(uint32(doc), weight)
	}
	return nil
}

// parseDirectory returns the first word of each block.
func parseDirectory(b []byte) ([][]byte, error) {
	var list [][]byte
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return nil, fmt.Errorf("%w: directory", ErrDamaged)
		}
		list = append(list, b[size:size+int(n)])
		b = b[size+int(n):]
	}
	return list, nil
}

// head says of a word how many documents have it and where their list is.
type head struct {
	docs uint32
	long bool
	at   int // in the lists of the block, or the number of the long list
	size int // of a short one
}

// headReader reads the heads of a block one after the other.
type headReader struct {
	heads []byte
	at    int
}

func (r *headReader) next() (head, error) {
	docs, n := binary.Uvarint(r.heads)
	v, m := binary.Uvarint(r.heads[max(n, 0):])
	if n <= 0 || m <= 0 || docs > math.MaxUint32 || v > math.MaxInt32 {
		return head{}, fmt.Errorf("%w: block", ErrDamaged)
	}
	r.heads = r.heads[n+m:]
	if v&1 != 0 {
		return head{docs: uint32(docs), long: true, at: int(v >> 1)}, nil
	}
	h := head{docs: uint32(docs), at: r.at, size: int(v >> 1)}
	r.at += h.size
	return h, nil
}

var newUnzstd = sync.OnceValue(func() *zstd.Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		panic(err) // an option is wrong
	}
	return decoder
})

// unpackNexts returns what is known of the words behind a word of so many documents.
func unpackNexts(packed []byte, docs int) ([]byte, error) {
	nexts, err := newUnzstd().DecodeAll(packed, make([]byte, 0, docs))
	if err != nil {
		return nil, fmt.Errorf("%w: next words: %w", ErrDamaged, err)
	}
	if len(nexts) != docs {
		return nil, fmt.Errorf("%w: next words", ErrDamaged)
	}
	return nexts, nil
}

// unpack returns the words of a block.
func unpack(dst, packed []byte) ([]byte, error) {
	words, err := newUnzstd().DecodeAll(packed, dst)
	if err != nil {
		return nil, fmt.Errorf("%w: words: %w", ErrDamaged, err)
	}
	if len(words) < 2 || words[0] != separator || words[len(words)-1] != separator {
		return nil, fmt.Errorf("%w: words", ErrDamaged)
	}
	return words, nil
}
