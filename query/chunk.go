package query

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Codecs of chunk.data.
const (
	CodecPlain = 0
	CodecZstd  = 1
)

// HashSize is the length in bytes of a chunk's hash.
const HashSize = 16

// ErrDamaged is wrapped by errors about stored bytes that are not what was stored.
var ErrDamaged = errors.New("damaged archive")

// ChunkHash returns the hash that a chunk of these bytes is stored under: the first
// half of their SHA-256.
func ChunkHash(data []byte) [HashSize]byte {
	sum := sha256.Sum256(data)
	return [HashSize]byte(sum[:HashSize])
}

// chunkCache keeps the chunk read last: neighbouring lines are mostly read together.
type chunkCache struct {
	session Key
	start   int64
	data    []byte
}

// chunkRow is a piece of a session with the chunk behind it.
type chunkRow struct {
	Start int64  `db:"start"`
	Key   int64  `db:"key"`
	Hash  []byte `db:"hash"`
	Size  int64  `db:"size"`
	Codec int    `db:"codec"`
	Data  []byte `db:"data"`
}

// decoder is shared: its DecodeAll may be called by several goroutines at once.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(1<<30))
})

// decode returns the bytes of a chunk, in dst where they fit, and proves them against
// their hash.
func (row *chunkRow) decode(dst []byte) ([]byte, error) {
	data, err := DecodeChunk(row.Codec, row.Data, row.Hash, dst)
	if err == nil && int64(len(data)) != row.Size {
		err = fmt.Errorf("%w: it has another size", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("chunk %d: %w", row.Key, err)
	}
	return data, nil
}

// DecodeChunk returns the bytes of a chunk that is stored as data, in dst where they fit.
// An error wraps [ErrDamaged] where they do not match the hash.
func DecodeChunk(codec int, data, hash, dst []byte) ([]byte, error) {
	if codec == CodecZstd {
		decoder, err := decoder()
		if err != nil {
			return nil, fmt.Errorf("make decoder: %w", err)
		}
		if data, err = decoder.DecodeAll(data, dst[:0]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if got := ChunkHash(data); !bytes.Equal(got[:], hash) {
		return nil, fmt.Errorf("%w: the bytes do not match the hash", ErrDamaged)
	}
	return data, nil
}

// chunkAt returns the bytes of the piece of a session that holds the given offset, and
// the offset of its first byte. The bytes are valid until the next call.
func (rx *Rx) chunkAt(ctx context.Context, session Key, offset int64) ([]byte, int64, error) {
	c := &rx.chunks
	if c.session == session && c.start <= offset && offset < c.start+int64(len(c.data)) {
		return c.data, c.start, nil
	}
	var row chunkRow
	err := rx.tx.GetContext(ctx, &row, `
		SELECT p.start, c.key, c.hash, c.size, c.codec, c.data
		FROM piece p JOIN chunk c ON c.key = p.chunk
		WHERE p.session = ? AND p.start <= ?
		ORDER BY p.start DESC LIMIT 1`, session, offset)
	if err != nil {
		return nil, 0, fmt.Errorf("read session #%d at byte %d: %w", session, offset, Unreadable(noRows(err, ErrDamaged)))
	}
	c.session = 0
	data, err := row.decode(c.data)
	if err != nil {
		return nil, 0, fmt.Errorf("read session #%d at byte %d: %w", session, offset, err)
	}
	if offset >= row.Start+int64(len(data)) {
		return nil, 0, fmt.Errorf("read session #%d at byte %d: %w: no chunk holds it", session, offset, ErrDamaged)
	}
	c.session, c.start, c.data = session, row.Start, data
	return data, row.Start, nil
}

// largestGrowth is for how many bytes room is made at once: a size may be damaged.
const largestGrowth = 1 << 30

// Bytes returns size bytes of a session's file from an offset on, in dst where they
// fit. An error wraps [ErrDamaged] where the archive no longer holds them.
func (rx *Rx) Bytes(ctx context.Context, session Key, offset, size int64, dst []byte) ([]byte, error) {
	dst = slices.Grow(dst[:0], int(min(max(size, 0), largestGrowth)))
	for size > 0 {
		data, start, err := rx.chunkAt(ctx, session, offset)
		if err != nil {
			return nil, err
		}
		data = data[offset-start:]
		data = data[:min(int64(len(data)), size)]
		dst = append(dst, data...)
		offset += int64(len(data))
		size -= int64(len(data))
	}
	return dst, nil
}

// fileRow is how long the file of a session is, and the state of a SHA-256 of it.
type fileRow struct {
	Bytes  int64  `db:"bytes"`
	SHA256 []byte `db:"sha256"`
}

// proof hashes the bytes of a session.
type proof struct {
	hash.Hash
	want []byte
}

func (row *fileRow) proof() (proof, error) {
	p, state := proof{Hash: sha256.New()}, sha256.New()
	if err := state.(encoding.BinaryUnmarshaler).UnmarshalBinary(row.SHA256); err != nil {
		return p, fmt.Errorf("%w: hash state: %w", ErrDamaged, err)
	}
	p.want = state.Sum(nil)
	return p, nil
}

func (p *proof) check() error {
	if !bytes.Equal(p.Sum(nil), p.want) {
		return fmt.Errorf("%w: the bytes do not match the hash of the file", ErrDamaged)
	}
	return nil
}

// Write writes the bytes of a session's file from an offset to its end, streaming.
// Every chunk is proved against its hash before a byte of it is written, and from offset
// 0 on the whole against the hash of the file in the end. It returns the number of bytes
// written, and an error that wraps [ErrDamaged] where the archive does not hold what
// follows them, or where the whole is not the file.
func (rx *Rx) Write(ctx context.Context, session Key, offset int64, w io.Writer) (int64, error) {
	var row fileRow
	if err := rx.tx.GetContext(ctx, &row, `SELECT bytes, sha256 FROM session WHERE key = ?`, session); err != nil {
		return 0, fmt.Errorf("read session #%d: %w", session, Unreadable(noRows(err, ErrNotFound)))
	}
	if offset > 0 {
		return rx.write(ctx, session, offset, row.Bytes, w)
	}
	proof, err := row.proof()
	if err != nil {
		return 0, fmt.Errorf("read session #%d: %w", session, err)
	}
	n, err := rx.write(ctx, session, 0, row.Bytes, io.MultiWriter(proof, w))
	if err == nil {
		if err = proof.check(); err != nil {
			err = fmt.Errorf("read session #%d: %w", session, err)
		}
	}
	return n, err
}

func (rx *Rx) write(ctx context.Context, session Key, offset, end int64, w io.Writer) (written int64, err error) {
	for offset < end {
		data, start, err := rx.chunkAt(ctx, session, offset)
		if err != nil {
			return written, err
		}
		data = data[offset-start:]
		n, err := w.Write(data[:min(int64(len(data)), end-offset)])
		written += int64(n)
		offset += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Reader returns the bytes of a session's file as a stream. It reads within the
// transaction: nothing else may be asked of rx between the start and the end of a Read.
func (rx *Rx) Reader(ctx context.Context, session Key) io.Reader {
	return &reader{ctx: ctx, rx: rx, session: session, end: -1}
}

type reader struct {
	ctx     context.Context // of the one stream that this is
	rx      *Rx
	session Key
	offset  int64
	end     int64 // -1: not known yet
}

func (r *reader) Read(p []byte) (int, error) {
	if r.end < 0 {
		if err := r.rx.tx.GetContext(r.ctx, &r.end, `SELECT bytes FROM session WHERE key = ?`, r.session); err != nil {
			return 0, fmt.Errorf("read session #%d: %w", r.session, noRows(err, ErrNotFound))
		}
	}
	if r.offset >= r.end {
		return 0, io.EOF
	}
	data, start, err := r.rx.chunkAt(r.ctx, r.session, r.offset)
	if err != nil {
		return 0, err
	}
	data = data[r.offset-start:]
	n := copy(p, data[:min(int64(len(data)), r.end-r.offset)])
	r.offset += int64(n)
	return n, nil
}
