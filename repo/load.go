package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"pidb/jsonl"
	"pidb/query"
)

// action says what a part does to the archive.
type action uint8

const (
	actReject  action = iota // the file is no session
	actTouch                 // the bytes are those in the archive
	actEmptied               // the file was emptied: what it held is missing now
	actNew                   // a session of a file not seen before
	actVersion               // a new version of a file that was rewritten
	actTail                  // lines after those in the archive
	actBury                  // the file holds what was deleted from the archive
	actReplace               // the session anew under its key: what follows changes what earlier lines mean
)

// partBytes is how much of a file a part covers at most, in bytes of the source.
const partBytes = 32 << 20

// part is what a worker found in a file, or in a piece of a large one. Parts of a file
// come in order.
type part struct {
	job    *job
	action action
	first  bool // the first part of the file
	last   bool // the last part of the file

	head     head
	sum      summary
	before   int64  // rows of the session when this part, not the first, comes
	sha256   []byte // marshalled state
	decoder  []byte // marshalled state
	rows     []row
	fixes    []row
	chunks   []chunk
	from     int64      // pieces that start here or later are replaced
	drop     int64      // seq of a row that the lines here replace, or none
	ending   *row       // a row whose terminator has come
	texts    *documents // of a new session, for the search index; nil: none are kept
	problems []Problem
	reason   *Problem // of actReject

	skipped bool  // not stored: another process was faster
	read    int64 // bytes of the chunks that were let go
}

// head is what a session row holds of the header and the name of the file.
type head struct {
	id         string
	format     int
	headerless bool
	cwd        *string
	parent     *string
	createdMS  *int64
}

// job is a file to be read.
type job struct {
	found
	name     string        // for problems: the path, or what a reader is called
	source   *sourceRow    // nil: not known yet
	session  *sessionState // newest session of the source; nil: none
	covered  bool          // the session holds all of the file, and more
	open     func() (io.ReadCloser, error)
	readAt   time.Time // when its stat was taken
	nonce    int64     // of the session that was made of it
	explicit bool      // brings back a deleted session
	graves   []int64   // tombstones of what the file begins with
	buried   bool      // the file holds what was deleted, or that and more
	counted  int64     // bytes of the file that are in the result
}

// racy reports whether the file could change again without a change of its stat: the
// clock of the file system had not moved on when it was read.
func (j *job) racy() bool {
	const tick = 20 * time.Millisecond
	return max(j.stat.MtimeNS, j.stat.CtimeNS) > j.readAt.Add(-tick).UnixNano()
}

// loader reads files for an import. One goroutine uses it.
type loader struct {
	archive *Archive
	chunker *chunker
	decoder *jsonl.Decoder
	buffer  []byte
	maxLine int64 // bytes of a line; 0: any number
	send    func(*part) error
	sent    int  // parts
	texts   bool // the text of new sessions is kept for the search index
}

func newLoader(a *Archive, send func(*part) error) (*loader, error) {
	chunker, err := newChunker(0)
	if err != nil {
		return nil, err
	}
	l := &loader{archive: a, chunker: chunker, decoder: jsonl.NewDecoder(nil, nil), buffer: make([]byte, 256<<10)}
	l.send = func(p *part) error {
		l.sent++
		return send(p)
	}
	return l, nil
}

// load reads a file and sends what is to be done. Faults of the file become a part that
// rejects it; an error is one of the archive, of send, or of ctx.
func (l *loader) load(ctx context.Context, j *job) error {
	err := l.tryLoad(ctx, j)
	if errors.Is(err, errReparse) {
		err = l.loadWhole(ctx, j, actReplace)
	}
	if errors.Is(err, errNotToGoOn) {
		err = l.loadWhole(ctx, j, actVersion)
	}
	fault, ok := errors.AsType[*sourceError](err)
	if !ok {
		return err
	}
	return l.send(&part{job: j, action: actReject, first: true, last: true, drop: none, reason: &fault.problem})
}

// sourceError is a fault of a file that is being read.
type sourceError struct {
	problem Problem
	cause   error // nil: the problem says all
}

func (e *sourceError) Error() string {
	return fmt.Sprintf("%s: %s", e.problem.Path, e.problem.Detail)
}

func (e *sourceError) Unwrap() error { return e.cause }

func (j *job) fault(code ProblemCode, detail string) error {
	return &sourceError{problem: Problem{Path: j.name, Code: code, Detail: detail}}
}

// unreadable is the fault of a file that could not be read.
func (j *job) unreadable(err error) error {
	return &sourceError{Problem{Path: j.name, Code: CodeUnreadable, Detail: reason(err)}, err}
}

func (l *loader) tryLoad(ctx context.Context, j *job) error {
	if j.buried {
		return l.send(&part{job: j, action: actBury, first: true, last: true, drop: none})
	}
	if j.covered {
		return l.send(&part{job: j, action: actTouch, first: true, last: true, drop: none})
	}
	if err := l.measure(ctx, j); err != nil {
		return err
	}
	if j.session == nil {
		return l.loadWhole(ctx, j, actNew)
	}
	file, err := j.open()
	if err != nil {
		return j.unreadable(err)
	}
	defer file.Close()
	sum, err := unmarshalHash(j.session.SHA256)
	if err != nil {
		return errNotToGoOn
	}
	prefix := sha256.New()
	n, err := io.CopyBuffer(onlyWriter{prefix}, contextReader{ctx, io.LimitReader(file, j.session.Bytes)}, l.buffer)
	if err != nil {
		return l.readFault(ctx, j, err)
	}
	if n < j.session.Bytes || !bytes.Equal(prefix.Sum(nil), sum.Sum(nil)) {
		if n == 0 {
			return l.send(&part{job: j, action: actEmptied, first: true, last: true, drop: none})
		}
		return l.loadWhole(ctx, j, actVersion)
	}
	// The first byte behind the prefix decides how the last line goes on.
	ahead, err := io.ReadFull(contextReader{ctx, file}, l.buffer[:2])
	switch {
	case errors.Is(err, io.EOF):
		return l.send(&part{job: j, action: actTouch, first: true, last: true, drop: none})
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return l.readFault(ctx, j, err)
	}
	tail := io.MultiReader(bytes.NewReader(bytes.Clone(l.buffer[:ahead])), file)
	sent := l.sent
	err = l.archive.view(ctx, func(rx *reading) error {
		return l.loadTail(ctx, j, rx, prefix, l.buffer[:ahead], tail)
	})
	if errors.Is(err, ErrDamaged) && l.sent == sent {
		return errNotToGoOn
	}
	return err
}

// errNotToGoOn says that what the archive has of a file is damaged: the file becomes a new
// version beside it.
var errNotToGoOn = errors.New("the session is damaged")

// measure looks for a line that is too long, so that its file is refused before any of it is stored.
func (l *loader) measure(ctx context.Context, j *job) error {
	if l.maxLine == 0 || j.stat.Size <= l.maxLine {
		return nil
	}
	file, err := j.open()
	if err != nil {
		return j.unreadable(err)
	}
	defer file.Close()
	number, size := 1, int64(0)
	for {
		n, err := contextReader{ctx, file}.Read(l.buffer)
		for rest := l.buffer[:n]; len(rest) > 0; {
			i := bytes.IndexByte(rest, '\n')
			if i < 0 {
				i = len(rest)
			}
			// The last byte may be the first one of a terminator.
			if size += int64(i); size > l.maxLine+1 {
				return j.tooLong(&jsonl.LineTooLongError{Line: number, Limit: l.maxLine})
			}
			if i == len(rest) {
				break
			}
			rest = rest[i+1:]
			number, size = number+1, 0
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return l.readFault(ctx, j, err)
		}
	}
}

// tooLong is the fault of a file with a line that is too long.
func (j *job) tooLong(err *jsonl.LineTooLongError) error {
	return &sourceError{problem: Problem{
		Path: j.name, Line: int64(err.Line), Code: CodeTooLarge, Detail: fmt.Sprintf("the line has more than %d bytes", err.Limit),
	}}
}

// onlyWriter hides every method but Write, so that a copy goes through its buffer.
type onlyWriter struct{ io.Writer }

// contextReader stops to read when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

func (l *loader) readFault(ctx context.Context, j *job, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return j.unreadable(err)
}

// loadWhole reads a file from its first byte.
func (l *loader) loadWhole(ctx context.Context, j *job, act action) error {
	file, err := j.open()
	if err != nil {
		return j.unreadable(err)
	}
	defer file.Close()
	decoder := l.decoder
	decoder.Reset(contextReader{ctx, file}, &jsonl.DecoderOptions{MaxLine: l.maxLine})
	f := &fill{
		loader: l, ctx: ctx, job: j, action: act, decoder: decoder,
		builder: newBuilder(0, nil, summary{leaf: none}), hash: sha256.New(), drop: none, first: true,
	}
	if l.texts && act == actNew {
		f.builder.texts = &documents{}
	}
	l.chunker.reset(0)
	rec, err := decoder.Next()
	if errors.Is(err, io.EOF) {
		if act == actVersion {
			return l.send(&part{job: j, action: actEmptied, first: true, last: true, drop: none})
		}
		f.head = head{id: nameID(j.name), headerless: true, format: 3}
		f.problems = append(f.problems, Problem{Path: j.name, Code: CodeEmpty, Detail: "the file is empty"})
		return f.end()
	}
	if err != nil {
		return f.fault(err)
	}
	if header, ok := decoder.Header(); ok {
		f.head = headOf(header)
	} else {
		qualifies, err := l.qualifies(ctx, j)
		if err != nil {
			return err
		}
		if !qualifies {
			return j.fault(CodeNotASession, "no session header and no entry among its lines")
		}
		f.head = head{id: nameID(j.name), headerless: true, format: 3}
		f.builder.sum.problems++
		f.problems = append(f.problems, Problem{Path: j.name, Code: CodeNoHeader, Detail: "no session header: the id is made from the name of the file"})
	}
	for err == nil {
		if err = f.add(rec); err != nil {
			return err
		}
		rec, err = decoder.Next()
	}
	if !errors.Is(err, io.EOF) {
		return f.fault(err)
	}
	return f.end()
}

// qualifies reads a file without header to its end to see whether it holds an entry.
func (l *loader) qualifies(ctx context.Context, j *job) (bool, error) {
	file, err := j.open()
	if err != nil {
		return false, j.unreadable(err)
	}
	defer file.Close()
	decoder := jsonl.NewDecoder(contextReader{ctx, file}, &jsonl.DecoderOptions{MaxLine: l.maxLine})
	for {
		if _, err := decoder.Next(); err != nil {
			if errors.Is(err, io.EOF) {
				return decoder.HeaderlessSession(), nil
			}
			return false, (&fill{loader: l, ctx: ctx, job: j}).fault(err)
		}
		if decoder.HeaderlessSession() {
			return true, nil
		}
	}
}

// loadTail reads the lines that a file has got since it was read last. start holds the
// first bytes of tail, one or two.
func (l *loader) loadTail(ctx context.Context, j *job, rx *reading, sum hash.Hash, start []byte, tail io.Reader) error {
	s := j.session
	if s.Format < 2 || s.Lines == 0 || s.Headerless {
		return errReparse
	}
	f := &fill{loader: l, ctx: ctx, job: j, action: actTail, head: s.head(), hash: sum, drop: none, first: true, from: s.Bytes}
	var state jsonl.State
	if err := json.Unmarshal(s.Decoder, &state); err != nil {
		return fmt.Errorf("%w: decoder state of session #%d: %w", query.ErrDamaged, s.Key, err)
	}
	total := s.summary()
	last, err := rx.lastRow(ctx, s.Key)
	if err != nil {
		return err
	}
	if last.Ending == 0 {
		switch {
		case last.EndsInCR, last.Part > 0:
			return errReparse
		case start[0] == '\n', start[0] == '\r' && len(start) == 2 && start[1] == '\n':
			// Only the terminator was missing.
			width := int64(1)
			if start[0] == '\r' {
				width = 2
			}
			terminator := make([]byte, width)
			if _, err := io.ReadFull(tail, terminator); err != nil {
				return l.readFault(ctx, j, err)
			}
			sum.Write(terminator)
			f.ending = &row{seq: last.Seq, ending: width}
			f.carry = terminator
			total.bytes += width
			state.Offset += width
		case last.Kind == "malformed":
			// The rest of a line that was cut.
			f.drop = last.Seq
			f.carryLine = true
		default:
			return errReparse
		}
	}
	piece, err := rx.lastPiece(ctx, s.Key)
	if err != nil {
		return err
	}
	l.chunker.reset(s.Bytes)
	if piece.Size < chunkMin {
		data, err := rx.Bytes(ctx, s.Key, piece.Start, piece.Size, nil)
		if err != nil {
			return err
		}
		l.chunker.reset(piece.Start)
		l.chunker.buffer = append(l.chunker.buffer, data...)
		f.from = piece.Start
	}
	l.chunker.buffer = append(l.chunker.buffer, f.carry...)
	if f.carryLine {
		// The decoder reads the line from its start, the archive has its first bytes.
		begun, err := rx.Bytes(ctx, s.Key, last.Start, s.Bytes-last.Start, nil)
		if err != nil {
			return err
		}
		f.begun = int64(len(begun))
		tail = io.MultiReader(bytes.NewReader(begun), tail)
		state.Offset = last.Start
		state.Lines--
		total.lines--
		total.problems--
		total.bytes -= f.begun
	}
	f.builder = newBuilder(s.Rows, &archived{rx, s.Key}, total)
	f.decoder = l.decoder
	f.decoder.Reset(contextReader{ctx, tail}, &jsonl.DecoderOptions{Resume: &state, MaxLine: l.maxLine})
	for {
		rec, err := f.decoder.Next()
		if errors.Is(err, io.EOF) {
			return f.end()
		}
		if err != nil {
			return f.fault(err)
		}
		if err := f.add(rec); err != nil {
			return err
		}
	}
}

// fill gathers the lines of one file into parts.
type fill struct {
	loader  *loader
	ctx     context.Context
	job     *job
	action  action
	head    head
	decoder *jsonl.Decoder
	builder *builder
	hash    hash.Hash
	from    int64
	drop    int64
	ending  *row
	first   bool
	since   int64 // bytes since the last part
	before  int64 // rows at the last part

	carry     []byte // terminator that belongs to the last line in the archive
	carryLine bool   // the first line is one that the archive has the start of
	begun     int64  // length of that start

	problems []Problem
}

// fault turns an error of the decoder into one of the file.
func (f *fill) fault(err error) error {
	if f.ctx.Err() != nil {
		return f.ctx.Err()
	}
	if errors.Is(err, jsonl.ErrUnsupportedFormat) {
		return f.job.fault(CodeUnsupportedFormat, err.Error())
	}
	if tooLong, ok := errors.AsType[*jsonl.LineTooLongError](err); ok {
		return f.job.tooLong(tooLong)
	}
	return f.job.unreadable(err)
}

func (f *fill) add(rec *jsonl.Record) error {
	data, terminator := rec.Line.Data, rec.Line.Terminator.String()
	// Of a line that goes on, the archive has the hash and the bytes of its start.
	fresh := data[min(f.begun, int64(len(data))):]
	f.hash.Write(fresh)
	f.hash.Write([]byte(terminator))
	f.loader.chunker.add(fresh, terminator)
	f.begun = 0
	f.since += rec.Line.Size()
	if err := f.builder.add(f.ctx, rec); err != nil {
		return err
	}
	if rec.Kind == jsonl.LineMalformed {
		f.problems = append(f.problems, Problem{
			Path: f.job.name, Line: int64(rec.Line.Number), Code: CodeMalformedLine, Detail: malformed(rec),
		})
	}
	if f.builder.sum.rows >= query.MaxRows {
		return f.job.fault(CodeTooLarge, fmt.Sprintf("more than %d lines", query.MaxRows))
	}
	if f.since >= partBytes && f.action != actReplace {
		return f.flush(false)
	}
	return nil
}

// malformed says why a line is no JSON, and what was saved from it.
func malformed(rec *jsonl.Record) string {
	detail := rec.Err.Error()
	switch n := len(rec.Recovered); n {
	case 0:
		return detail
	case 1:
		return detail + "; 1 entry recovered from the line"
	default:
		return fmt.Sprintf("%s; %d entries recovered from the line", detail, n)
	}
}

// end sends the last part.
func (f *fill) end() error {
	f.builder.finish()
	return f.flush(true)
}

// flush sends what was gathered since the last part.
func (f *fill) flush(last bool) error {
	b := f.builder
	f.loader.chunker.cut()
	p := &part{
		job: f.job, action: f.action, first: f.first, last: last, head: f.head, sum: b.sum, before: f.before,
		rows: b.rows, fixes: b.fixes, chunks: f.loader.chunker.take(), from: f.from, drop: f.drop, ending: f.ending, problems: f.problems,
	}
	if b.texts != nil {
		p.texts, b.texts = b.texts, &documents{lacking: b.texts.lacking}
	}
	var err error
	if p.sha256, err = f.hash.(encoding.BinaryMarshaler).MarshalBinary(); err != nil {
		return err
	}
	if p.decoder, err = json.Marshal(f.decoder.State()); err != nil {
		return err
	}
	b.rows, b.fixes, b.sent = nil, nil, b.first+int64(len(b.links))
	f.problems, f.first, f.drop, f.ending, f.since = nil, false, none, nil, 0
	f.from, f.before = f.loader.chunker.start, b.sum.rows
	return f.loader.send(p)
}

func unmarshalHash(state []byte) (hash.Hash, error) {
	h := sha256.New()
	return h, h.(encoding.BinaryUnmarshaler).UnmarshalBinary(state)
}

func headOf(h jsonl.Header) head {
	out := head{id: h.ID, format: h.Version}
	if h.HasCWD {
		out.cwd = &h.CWD
	}
	if h.ParentSession != "" {
		out.parent = &h.ParentSession
	}
	if h.HasCreated {
		out.createdMS = &h.CreatedMS
	}
	return out
}

var piFileName = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d-]+Z_(.+)$`)

// nameID makes a session id of the name of a file: what pi writes behind the time, else
// the whole name up to .jsonl.
func nameID(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".jsonl")
	if m := piFileName.FindStringSubmatch(name); m != nil {
		name = m[1]
	}
	return strings.ToValidUTF8(name, "\uFFFD")
}

// openFile opens the file of a job for reading.
func openFile(path string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return openRegular(path) }
}

var errNotRegular = errors.New("not a regular file")

// openRegular opens a regular file for reading. What has taken its place since it was
// found, a pipe or a device, is refused at once.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|quiet, 0)
	if errors.Is(err, fs.ErrPermission) {
		file, err = os.OpenFile(path, os.O_RDONLY|unquiet, 0)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
