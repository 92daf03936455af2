package jsonl

import (
	"bytes"
	"fmt"
	"io"
)

// A Terminator is what ends a physical line.
type Terminator uint8

// The terminators. Only a line feed ends a line; a carriage return directly before it belongs to it.
const (
	None Terminator = iota // the last line of a file without final newline
	LF
	CRLF
)

// String returns the terminator's bytes.
func (t Terminator) String() string {
	switch t {
	case LF:
		return "\n"
	case CRLF:
		return "\r\n"
	default:
		return ""
	}
}

// Len returns the number of the terminator's bytes.
func (t Terminator) Len() int { return int(t) }

// A Line is one physical line.
type Line struct {
	Number     int    // 1 for the first line of the file
	Offset     int64  // of the first byte, in the file
	Data       []byte // without the terminator; valid until the next call of Next
	Terminator Terminator
}

// Size returns the bytes of the line, its terminator included.
func (l Line) Size() int64 { return int64(len(l.Data) + l.Terminator.Len()) }

const (
	readSize  = 512 << 10 // the buffer's usual size
	largeSize = 4 << 20   // a buffer above this is given up once its long line is done
)

// A LineReader splits a stream into physical lines. Its memory follows the longest line.
type LineReader struct {
	r      io.Reader
	err    error // what the reader returned last
	buf    []byte
	start  int // of the unread bytes in buf
	end    int
	number int // of the next line
	offset int64
	max    int64 // bytes of a line; 0: any number
}

// A LineTooLongError says that a line has more bytes than a decoder was to take.
type LineTooLongError struct {
	Line  int   // its number, 1 for the first line of the file
	Limit int64 // bytes
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("line %d is longer than %d bytes", e.Line, e.Limit)
}

// NewLineReader reads the lines of r, whose first byte is at offset in its file and begins line firstNumber.
func NewLineReader(r io.Reader, firstNumber int, offset int64) *LineReader {
	return &LineReader{r: r, number: firstNumber, offset: offset}
}

// Reset makes lr read another stream, with the memory it has.
func (lr *LineReader) Reset(r io.Reader, firstNumber int, offset int64) {
	*lr = LineReader{r: r, buf: lr.buf, number: firstNumber, offset: offset}
}

// Next returns the next line, or io.EOF after the last. Any other error is the reader's, and the bytes before it
// that belong to no complete line are not returned.
func (lr *LineReader) Next() (Line, error) {
	scanned := 0
	for {
		if n := bytes.IndexByte(lr.buf[lr.start+scanned:lr.end], '\n'); n >= 0 {
			n += scanned
			data := lr.buf[lr.start : lr.start+n : lr.start+n]
			term := LF
			if n > 0 && data[n-1] == '\r' {
				data, term = data[:n-1:n-1], CRLF
			}
			if lr.tooLong(len(data)) {
				return Line{}, lr.err
			}
			return lr.take(data, term), nil
		}
		scanned = lr.end - lr.start
		// The last byte may be the first one of a terminator.
		if lr.err == nil && lr.tooLong(scanned-1) || lr.err == io.EOF && lr.tooLong(scanned) {
			return Line{}, lr.err
		}
		if lr.err != nil {
			if lr.err == io.EOF && scanned > 0 {
				return lr.take(lr.buf[lr.start:lr.end:lr.end], None), nil
			}
			return Line{}, lr.err
		}
		lr.fill()
	}
}

// tooLong makes it an error of lr that a line has n bytes or more, where that is too many.
func (lr *LineReader) tooLong(n int) bool {
	if lr.max == 0 || int64(n) <= lr.max {
		return false
	}
	lr.err = &LineTooLongError{Line: lr.number, Limit: lr.max}
	return true
}

func (lr *LineReader) take(data []byte, term Terminator) Line {
	l := Line{Number: lr.number, Offset: lr.offset, Data: data, Terminator: term}
	lr.start += int(l.Size())
	lr.offset += l.Size()
	lr.number++
	return l
}

// fill reads once more behind the unread bytes. It makes room first: at the front of the buffer, or in a larger one.
func (lr *LineReader) fill() {
	pending := lr.buf[lr.start:lr.end]
	switch {
	case len(lr.buf) > largeSize && len(pending) < readSize/2, lr.buf == nil:
		lr.move(make([]byte, readSize))
	case len(lr.buf)-lr.end >= readSize/2:
	case len(pending) <= len(lr.buf)/2:
		lr.move(lr.buf)
	default:
		lr.move(make([]byte, 2*len(lr.buf)))
	}
	for range 100 {
		n, err := lr.r.Read(lr.buf[lr.end:])
		lr.end += n
		lr.err = err
		if n > 0 || err != nil {
			return
		}
	}
	lr.err = io.ErrNoProgress
}

func (lr *LineReader) move(to []byte) {
	lr.end = copy(to, lr.buf[lr.start:lr.end])
	lr.start = 0
	lr.buf = to
}
