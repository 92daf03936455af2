package repo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pidb/query"
)

// SalvageOptions are the choices of a salvage.
type SalvageOptions struct {
	// Now is the clock of the new archive; nil means time.Now.
	Now func() time.Time
	// Progress is told the sessions done and to be done.
	Progress func(done, total int)
}

// SalvageResult is what a salvage found. Sessions is the sum of Intact, Partial and Lost.
type SalvageResult struct {
	Path     string // of the new archive, absolute
	Sessions int    // of which anything was found, old versions included
	Intact   int    // every byte is there and proved
	Partial  int    // some lines are lost
	Lost     int    // no line could be brought out
	Bytes    int64  // brought out
	Damaged  []SalvageDamage
	// Newer is the version of the schema of the damaged archive where that is newer than the
	// one this package knows; 0: it is not.
	Newer    int
	Duration time.Duration
}

// SalvageDamage is a session that is not intact.
type SalvageDamage struct {
	Session query.Key // in the damaged archive
	ID      string    // empty: unknown
	Path    string    // of the source; empty: none, or unknown
	Saved   query.Key // in the new archive; 0: nothing was brought out
	Lost    []LostRange
	Detail  string
}

// LostRange is a part of a session that is lost.
type LostRange struct {
	From, To            int64 // offsets in the session; To -1: it is not known where it ends
	FirstLine, LastLine int64 // physical lines that it touches, from 1; 0: not known
}

// Salvage brings what is left of the archive at path into a new one, which must not exist.
// It reads the pages of the file by itself: a damaged schema entry, index, tree or row costs
// no more than what it held. The file and its write-ahead log are read, never written, and
// no process may have them open.
//
// A session is intact when its bytes are all there and match the SHA-256 of the session; it
// comes with its source, versions, metadata and moved leaf. Of another one, the bytes come
// that match the hash of their chunk. Where some are missing between or behind them there is
// a line that begins with "# pidb:" and says which; it is malformed on purpose, so that it
// is counted among the problems of the session and no program takes it for an entry. Such a
// session keeps its source, and the next sync takes in the file where it is still there.
// What was deleted stays deleted.
//
// An archive that a newer pidb has written is salvaged too, as its version may be damaged:
// what only the newer one keeps is not brought out, and the result says so.
//
// The new archive is there whole or not at all. Errors wrap [ErrNotFound], [ErrExists],
// a [*DatabaseNameError] where the name of the new one belongs to another database, or
// [ErrForeign] where nothing of an archive was found.
func Salvage(ctx context.Context, path, newPath string, opts *SalvageOptions) (*SalvageResult, error) {
	if opts == nil {
		opts = &SalvageOptions{}
	}
	began := time.Now()
	result, err := salvage(ctx, path, newPath, opts)
	if err != nil {
		return nil, fmt.Errorf("salvage %s: %w", path, mapError(err))
	}
	result.Duration = time.Since(began)
	return result, nil
}

func salvage(ctx context.Context, path, newPath string, opts *SalvageOptions) (*SalvageResult, error) {
	newPath, err := filepath.Abs(newPath)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(newPath); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", newPath, ErrExists)
	}
	if err := freeOfDatabases(newPath); err != nil {
		return nil, fmt.Errorf("%s: %w", newPath, err)
	}
	w, err := openWreck(ctx, path)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if len(w.sessions) == 0 && len(w.seen) == 0 && !slices.Contains(slices.Collect(maps.Values(w.owner)), "session") {
		return nil, ErrForeign
	}
	if err := os.MkdirAll(filepath.Dir(newPath), 0o700); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(newPath), ".pidb-*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	made := filepath.Join(dir, "pidb.db")
	a, err := Open(ctx, made, &OpenOptions{Now: opts.Now})
	if err != nil {
		return nil, err
	}
	s := &salvager{wreck: w, opts: opts, result: &SalvageResult{Path: newPath, Newer: w.newer()}, buried: map[identity]bool{}}
	if s.intake, err = newIntake(a); err == nil {
		err = s.run(ctx)
	}
	if err = errors.Join(err, a.Close()); err != nil {
		return nil, err
	}
	if err := syncFile(made); err != nil {
		return nil, err
	}
	return s.result, place(made, newPath, false)
}

// salvager is one salvage under way.
type salvager struct {
	*intake
	wreck  *wreck
	opts   *SalvageOptions
	result *SalvageResult
	buried map[identity]bool
	rows   map[query.Key][]wreckLine
}

func (s *salvager) run(ctx context.Context) error {
	for _, t := range s.wreck.buried {
		s.buried[t.identity] = true
	}
	if err := s.keepDeletions(ctx); err != nil {
		return err
	}
	keys := slices.SortedFunc(maps.Keys(s.wreck.sessions), s.compare)
	remains := map[query.Key]*remains{}
	need := map[query.Key]bool{}
	for _, key := range keys {
		r, err := s.examine(ctx, key)
		if err != nil {
			return err
		}
		remains[key] = r
		if source := s.source(key); source != nil && !r.whole {
			source.MtimeNS = -1 // no file has it: the next sync reads the file again
		}
		need[key] = len(r.lost) > 0 || s.wreck.sessions[key].moved
	}
	var err error
	if s.rows, err = s.wreck.lines(ctx, need); err != nil {
		return err
	}
	for i, key := range keys {
		if err := s.save(ctx, key, remains[key]); err != nil {
			return err
		}
		if s.opts.Progress != nil {
			s.opts.Progress(i+1, len(keys))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.wreck.seen)) {
		if _, ok := s.wreck.sessions[key]; !ok {
			s.lose(SalvageDamage{Session: key, Detail: "only rows about its lines are left"})
		}
	}
	return nil
}

// compare brings the versions of a source in order.
func (s *salvager) compare(a, b query.Key) int {
	x, y := &s.wreck.sessions[a].row, &s.wreck.sessions[b].row
	return cmp.Or(cmp.Compare(sourceKey(x), sourceKey(y)), cmp.Compare(x.Version, y.Version), cmp.Compare(a, b))
}

func sourceKey(s *sessionState) int64 {
	if s.Source == nil {
		return 0
	}
	return *s.Source
}

// source returns the source of a session, nil where it has none or that is lost.
func (s *salvager) source(key query.Key) *sourceRow {
	if source := s.wreck.sessions[key].row.Source; source != nil {
		return s.wreck.sources[*source]
	}
	return nil
}

// remains is what is left of a session.
type remains struct {
	spans []span
	lost  []LostRange
	whole bool   // the bytes match the hash of the session
	doubt string // what is wrong where no byte is known to be lost
}

// span is a run of a session's bytes that lies in one chunk.
type span struct {
	start, end int64
	chunk      int64
}

// examine lays the chunks of a session end to end.
func (s *salvager) examine(ctx context.Context, key query.Key) (*remains, error) {
	session := s.wreck.sessions[key]
	r := &remains{}
	sum := sha256.New()
	end, gap := int64(0), false
	for _, start := range slices.Sorted(maps.Keys(session.pieces)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if start < end {
			continue // no piece can begin within another
		}
		chunk, data, err := s.fitting(session, start)
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		if start > end {
			r.lost = append(r.lost, LostRange{From: end, To: start})
			gap = true
		}
		sum.Write(data)
		end = start + int64(len(data))
		r.spans = append(r.spans, span{start, end, chunk})
	}
	switch {
	case !session.known:
		r.lost = append(r.lost, LostRange{From: end, To: -1})
	case end < session.row.Bytes:
		r.lost = append(r.lost, LostRange{From: end, To: session.row.Bytes})
	case !gap:
		want, err := identityOf(session.row.Bytes, session.row.SHA256)
		r.whole = err == nil && want == identity{end, [sha256.Size]byte(sum.Sum(nil))}
		if !r.whole {
			r.doubt = "every chunk is right, but together they do not match the hash of the session"
		}
	}
	return r, nil
}

// fitting returns the chunk that stands at an offset of a session, and its bytes; nil where
// none does. Of several it takes the one that the next piece follows, and what may be no
// piece at all it takes only so.
func (s *salvager) fitting(session *wreckSession, start int64) (int64, []byte, error) {
	var best int64
	var bytes []byte
	for _, piece := range session.pieces[start] {
		data, err := s.wreck.chunk(piece.chunk)
		if err != nil {
			return 0, nil, err
		}
		end := start + int64(len(data))
		if data == nil || session.known && end > session.row.Bytes {
			continue
		}
		if _, followed := session.pieces[end]; followed || session.known && end == session.row.Bytes {
			return piece.chunk, data, nil
		}
		if bytes == nil && (!piece.stray || start == 0) {
			best, bytes = piece.chunk, data
		}
	}
	return best, bytes, nil
}

// save brings a session into the new archive.
func (s *salvager) save(ctx context.Context, key query.Key, r *remains) error {
	session := s.wreck.sessions[key]
	in := &incoming{key: key, id: session.row.ID, headerless: session.row.Headerless, version: max(session.row.Version, 1), state: query.Live}
	if session.known {
		in.state, in.native = session.row.State, session.row.Native
		if k := s.wreck.kept[key]; k != nil {
			in.kept = *k
		}
	}
	damage := SalvageDamage{Session: key, ID: in.id, Lost: r.lost, Detail: r.doubt}
	if in.source = s.source(key); in.source != nil {
		damage.Path = in.source.Path
	} else if session.row.Source != nil {
		damage.Detail = "the row of its source is lost"
	}
	if !r.whole {
		s.name(in, session, r, &damage)
	}
	content := &salvaged{ctx: ctx, wreck: s.wreck, remains: r, lost: damage.Lost}
	in.open = func() (io.ReadCloser, error) { return content.reader(), nil }
	if r.whole {
		id, err := identityOf(session.row.Bytes, session.row.SHA256)
		if err != nil {
			return err
		}
		in.identity = id
		in.moved = s.movedLeaf(key, session, &damage)
	} else {
		if len(r.spans) == 0 {
			s.lose(damage)
			return nil
		}
		sum := sha256.New()
		n, err := io.Copy(sum, content.reader())
		if err != nil {
			return err
		}
		in.identity = identity{n, [sha256.Size]byte(sum.Sum(nil))}
	}
	if s.buried[in.identity] && in.bytes > 0 {
		return nil
	}
	saved, _, err := s.take(ctx, in, nil)
	if err != nil {
		if _, fault := errors.AsType[*sourceError](err); ctx.Err() != nil || !fault {
			return err
		}
		damage.Detail = err.Error()
		s.lose(damage)
		return nil
	}
	s.result.Sessions++
	s.result.Bytes += in.bytes
	damage.Saved = saved
	if r.whole {
		s.result.Intact++
	} else {
		s.result.Partial++
	}
	if !r.whole || damage.Detail != "" {
		s.result.Damaged = append(s.result.Damaged, damage)
	}
	return nil
}

// name settles what a session that is not whole is called, and which lines are lost.
func (s *salvager) name(in *incoming, session *wreckSession, r *remains, damage *SalvageDamage) {
	if !session.known {
		in.id = fmt.Sprintf("salvaged-%d", in.key)
		damage.Detail = "the row of the session is lost"
	}
	rows := s.rows[in.key]
	damage.Lost = slices.Clone(r.lost)
	for i := range damage.Lost {
		lost := &damage.Lost[i]
		for _, row := range rows {
			if row.part != 0 || row.end <= lost.From || lost.To >= 0 && row.start >= lost.To {
				continue
			}
			if lost.FirstLine == 0 {
				lost.FirstLine = row.line
			}
			lost.LastLine = max(lost.LastLine, row.line)
		}
	}
	if len(r.spans) == 0 || r.spans[0].start > 0 {
		in.headerless = true // the header is lost, its id is not
	}
}

// movedLeaf returns the leaf that a branch has set.
func (s *salvager) movedLeaf(key query.Key, session *wreckSession, damage *SalvageDamage) movedLeaf {
	if !session.moved {
		return movedLeaf{}
	}
	if session.row.Leaf == nil {
		return movedLeaf{Moved: true}
	}
	for _, row := range s.rows[key] {
		if row.seq == session.row.Leaf.Seq() {
			return movedLeaf{Moved: true, Line: &row.line, Part: &row.part}
		}
	}
	damage.Detail = "its leaf had been moved; where to is lost"
	return movedLeaf{}
}

func (s *salvager) lose(damage SalvageDamage) {
	s.result.Sessions++
	s.result.Lost++
	s.result.Damaged = append(s.result.Damaged, damage)
}

// keepDeletions remembers in the new archive what was deleted from the old one.
func (s *salvager) keepDeletions(ctx context.Context) error {
	return s.archive.Update(ctx, func(tx *Tx) error {
		for _, t := range s.wreck.buried {
			if _, err := tx.exec(ctx, `INSERT INTO tombstone (sha256, bytes, id, deleted_ms) VALUES (?, ?, ?, ?)`, t.sum[:], t.bytes, t.id, t.ms); err != nil {
				return err
			}
		}
		for _, key := range slices.Sorted(maps.Keys(s.wreck.sources)) {
			if source := s.wreck.sources[key]; source.State == "deleted" {
				if _, err := tx.putSource(ctx, source); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// salvaged is what is left of a session, with a line in each place where something is lost.
type salvaged struct {
	ctx     context.Context // of the one salvage that reads it
	wreck   *wreck
	remains *remains
	lost    []LostRange
}

func (c *salvaged) reader() io.ReadCloser {
	return io.NopCloser(&salvagedReader{salvaged: c, lost: c.lost, ended: true})
}

// salvagedReader reads a salvaged session as a stream.
type salvagedReader struct {
	*salvaged
	next  int         // of the spans
	lost  []LostRange // not told yet
	rest  []byte
	ended bool // what was read so far ends with a line
	doubt bool // was told
}

func (r *salvagedReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
		r.ended = bytes.HasSuffix(r.rest, []byte("\n"))
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *salvagedReader) fill() error {
	spans := r.remains.spans
	switch {
	case len(r.lost) > 0 && (r.next == len(spans) || r.lost[0].From < spans[r.next].start):
		r.rest = r.mark(r.lost[0].String())
		r.lost = r.lost[1:]
	case r.next < len(spans):
		data, err := r.wreck.chunk(spans[r.next].chunk)
		if err != nil {
			return err
		}
		r.rest = data
		r.next++
	case r.remains.doubt != "" && !r.doubt:
		r.rest, r.doubt = r.mark(r.remains.doubt), true
	default:
		return io.EOF
	}
	return nil
}

// mark returns a line that is no JSON, and ends the one before.
func (r *salvagedReader) mark(text string) []byte {
	line := []byte("# pidb: " + text + "\n")
	if !r.ended {
		line = append([]byte("\n"), line...)
	}
	return line
}

// String says in words what is lost.
func (l LostRange) String() string {
	text := fmt.Sprintf("bytes %d to %d are lost here", l.From, l.To)
	if l.To < 0 {
		text = fmt.Sprintf("what came behind byte %d is lost, if there was anything", l.From)
	}
	switch {
	case l.FirstLine == 0:
	case l.FirstLine == l.LastLine:
		text += fmt.Sprintf(", of line %d", l.FirstLine)
	default:
		text += fmt.Sprintf(", of lines %d to %d", l.FirstLine, l.LastLine)
	}
	return text
}
