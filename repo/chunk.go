package repo

import (
	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"pidb/query"
)

// Sizes of chunks in bytes. A chunk ends with a line, and where the line's own hash
// says so: then files that share lines share chunks, whatever stands before them.
const (
	chunkMin  = 64 << 10  // no end before
	chunkMax  = 256 << 10 // an end with the next line
	chunkLine = 1 << 20   // a line longer than chunkMax is cut into pieces of this size
	chunkMask = 31        // one line in 32 may end a chunk
)

// chunk is a row of the chunk table in the making, with its place in the session.
type chunk struct {
	start int64
	size  int64
	hash  [query.HashSize]byte
	codec int
	data  []byte
}

// chunker cuts the bytes of a session into chunks.
type chunker struct {
	encoder *zstd.Encoder
	start   int64 // offset of buffer in the session
	buffer  []byte
	chunks  []chunk // not taken yet
}

func newChunker(start int64) (*chunker, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	return &chunker{encoder: encoder, start: start}, nil
}

// reset makes the chunker start at an offset of another session.
func (c *chunker) reset(start int64) {
	c.start, c.buffer, c.chunks = start, c.buffer[:0], nil
}

// add takes a line and its terminator.
func (c *chunker) add(data []byte, terminator string) {
	if len(data) > chunkMax {
		c.cut()
		for len(data) > chunkLine {
			c.emit(data[:chunkLine])
			data = data[chunkLine:]
		}
	}
	c.buffer = append(append(c.buffer, data...), terminator...)
	if len(c.buffer) >= chunkMax || len(c.buffer) >= chunkMin && xxhash.Sum64(data)&chunkMask == 0 {
		c.cut()
	}
}

// cut ends the chunk here.
func (c *chunker) cut() {
	if len(c.buffer) > 0 {
		c.emit(c.buffer)
		c.buffer = c.buffer[:0]
	}
}

func (c *chunker) emit(data []byte) {
	out := chunk{start: c.start, size: int64(len(data)), hash: query.ChunkHash(data), codec: query.CodecZstd}
	out.data = c.encoder.EncodeAll(data, make([]byte, 0, len(data)/2))
	if len(out.data) >= len(data) {
		out.codec, out.data = query.CodecPlain, append(out.data[:0], data...)
	}
	c.start += out.size
	c.chunks = append(c.chunks, out)
}

// take returns the chunks that are done.
func (c *chunker) take() []chunk {
	chunks := c.chunks
	c.chunks = nil
	return chunks
}
