package repo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"pidb/jsonl"
	"pidb/query"
)

// ImportOptions are the choices of an import.
type ImportOptions struct {
	// Rehash reads every file, also those whose size, times and inode are unchanged.
	Rehash bool
	// NoIndex leaves the search index as it is: a search feeds it later.
	NoIndex bool
	// Progress is called as the work goes on, from one goroutine at a time.
	Progress func(Progress)
}

// Phase is a step of an import.
type Phase string

const (
	PhaseRead  Phase = "read"  // reading files into the archive
	PhaseIndex Phase = "index" // making text searchable
)

// Progress is how far an import is.
type Progress struct {
	Phase      Phase
	Files      int   // finished; 0 in PhaseIndex
	TotalFiles int   // to be read
	Bytes      int64 // finished
	TotalBytes int64 // to be done
}

// ImportResult is what an import did. Files is the sum of Imported, Updated, Unchanged
// and Rejected.
type ImportResult struct {
	Files     int // looked at
	Imported  int // new sessions
	Updated   int // grown or rewritten
	Unchanged int
	Missing   int   // sources found gone
	Rejected  int   // no sessions, or unreadable
	Known     int   // of Rejected: unchanged since they were rejected before
	Skipped   int   // of Unchanged: deleted from the archive before
	Sessions  int   // rows written: new sessions and new versions
	Entries   int64 // entries read
	Bytes     int64 // bytes read into the archive
	Duration  time.Duration
	Problems  []Problem // in the order of files, then lines
}

// Import takes session files in: files by name, folders with all that is below them. A
// file that has not changed costs a stat, a grown one its new lines; a rewritten one
// becomes a new version. Faults of single files are in the result and stop nothing. A
// path that does not exist is a problem with [CodeNotFound]. A source that is gone is
// marked missing, and its session stays.
//
// When ctx ends, what was finished stays, and an error is returned with the result so
// far; the next import goes on from there.
func (a *Archive) Import(ctx context.Context, paths []string, opts *ImportOptions) (*ImportResult, error) {
	return a.importPaths(ctx, paths, opts, true)
}

// Sync takes in what changed below the given folders. Unlike [Archive.Import] it leaves
// alone what was deleted from the archive, and has no problem with a folder that does
// not exist.
func (a *Archive) Sync(ctx context.Context, roots []string, opts *ImportOptions) (*ImportResult, error) {
	return a.importPaths(ctx, roots, opts, false)
}

func (a *Archive) importPaths(ctx context.Context, paths []string, opts *ImportOptions, explicit bool) (*ImportResult, error) {
	if opts == nil {
		opts = &ImportOptions{}
	}
	began := time.Now()
	im := &importer{archive: a, opts: opts, explicit: explicit, result: &ImportResult{}}
	err := im.run(ctx, paths)
	im.result.sortProblems()
	im.result.Duration = time.Since(began)
	return im.result, mapError(err)
}

// ImportReader takes in one session from a reader, under a name for problems. It
// belongs to no file. A session that begins with the bytes of one that came the same
// way, or that was born here, continues it.
func (a *Archive) ImportReader(ctx context.Context, name string, r io.Reader, opts *ImportOptions) (*ImportResult, error) {
	if opts == nil {
		opts = &ImportOptions{}
	}
	began := time.Now()
	// A session is read more than once: for its header, its start, its lines.
	spool, err := os.CreateTemp("", "pidb-import-*")
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	size, err := io.Copy(spool, contextReader{ctx, r})
	if err != nil {
		return nil, fmt.Errorf("import %s: %w", name, err)
	}
	im := &importer{archive: a, opts: opts, explicit: true, result: &ImportResult{Files: 1}}
	j := &job{found: found{path: "", stat: stat{Size: size}}, name: name, open: openFile(spool.Name()), readAt: began, explicit: true}
	if err = im.load(ctx, []*job{j}); err == nil {
		err = im.feed(ctx)
	}
	im.result.Duration = time.Since(began)
	return im.result, mapError(err)
}

// importer is one import under way.
type importer struct {
	archive  *Archive
	opts     *ImportOptions
	explicit bool
	result   *ImportResult
	progress Progress
	byID     map[string][]query.Key // sessions that a file may continue: those in no file
}

func (im *importer) run(ctx context.Context, paths []string) error {
	s, err := findFiles(ctx, paths)
	if err != nil {
		return err
	}
	if im.explicit {
		for _, path := range s.gone {
			im.result.Problems = append(im.result.Problems, Problem{Path: path, Code: CodeNotFound, Detail: "no such file or folder"})
		}
	}
	im.result.Problems = append(im.result.Problems, s.problems...)
	im.result.Files = len(s.files)
	for _, p := range s.problems {
		if p.Code == CodeUnreadable {
			im.result.Files++
			im.result.Rejected++
		}
	}
	jobs, plan, err := im.plan(ctx, s)
	if err != nil {
		return err
	}
	if err := im.mark(ctx, plan); err != nil {
		return err
	}
	if err := im.load(ctx, jobs); err != nil {
		return err
	}
	if len(jobs)+len(plan.missing)+len(plan.back) > 0 {
		if err := im.archive.reconcile(ctx); err != nil {
			return err
		}
	}
	return im.feed(ctx)
}

// changes are rows to be changed for files that are not read.
type changes struct {
	missing []int64 // sources whose file is gone
	back    []int64 // sources whose file is there again, unchanged
	forget  []int64 // rejected files that are gone
}

// plan compares the files that were found with the sources in the archive.
func (im *importer) plan(ctx context.Context, s *scan) ([]*job, *changes, error) {
	known := map[string]*sourceRow{}
	err := im.archive.view(ctx, func(rx *reading) error {
		var sources []*sourceRow
		err := rx.tx.SelectContext(ctx, &sources, `SELECT key, path, root, size, mtime_ns, ctime_ns, inode, state, problem, detail FROM source`)
		for _, source := range sources {
			known[source.Path] = source
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	roots := map[string]bool{}
	for _, source := range known {
		roots[source.Root] = true
	}
	var jobs []*job
	plan := &changes{}
	readAt := time.Now()
	seen := make(map[string]bool, len(s.files))
	for _, f := range s.files {
		if seen[f.path] {
			im.result.Files--
			continue
		}
		seen[f.path] = true
		source := known[f.path]
		explicit := im.explicit && f.named
		switch {
		case source == nil:
		case source.State == "deleted" && !explicit:
			im.result.Unchanged++
			im.result.Skipped++
			continue
		case source.State == "deleted", im.opts.Rehash, source.stat != f.stat:
		case source.State == "rejected":
			im.result.Known++
			im.reject(Problem{Path: f.path, Code: *source.Problem, Detail: source.Detail})
			continue
		default:
			im.result.Unchanged++
			if source.State == "missing" && f.stat.Size > 0 {
				plan.back = append(plan.back, source.Key)
			}
			continue
		}
		if f.named {
			f.root = knownRoot(f, source, roots)
		}
		jobs = append(jobs, &job{found: f, name: f.path, source: source, open: openFile(f.path), readAt: readAt, explicit: explicit})
	}
	// Oldest first: keys grow with time, and a search that ranks only the newest hits takes those with the greatest.
	slices.SortStableFunc(jobs, func(a, b *job) int { return cmp.Compare(a.stat.MtimeNS, b.stat.MtimeNS) })
	for path, source := range known {
		if seen[path] || source.State == "deleted" || source.State == "missing" || !gone(s, path) {
			continue
		}
		if source.State == "rejected" {
			plan.forget = append(plan.forget, source.Key)
		} else {
			plan.missing = append(plan.missing, source.Key)
		}
	}
	return jobs, plan, nil
}

// knownRoot returns the root for a file that was named by itself: the folder that it
// was imported with before, else the longest folder imported before that holds it, else
// its own. So it keeps its place in an export of the archive.
func knownRoot(f found, source *sourceRow, roots map[string]bool) string {
	if source != nil && within(source.Root, f.path) {
		return source.Root
	}
	for folder := f.root; ; folder = filepath.Dir(folder) {
		if roots[folder] || folder == filepath.Dir(folder) {
			if roots[folder] {
				return folder
			}
			return f.root
		}
	}
}

// gone reports whether a path was looked for and is not there.
func gone(s *scan, path string) bool {
	for _, root := range s.roots {
		if within(root, path) {
			return true
		}
	}
	for _, root := range s.gone {
		if within(root, path) {
			return true
		}
	}
	return false
}

// mark changes the rows of files that are not read.
func (im *importer) mark(ctx context.Context, plan *changes) error {
	im.result.Missing += len(plan.missing)
	if len(plan.missing)+len(plan.back)+len(plan.forget) == 0 {
		return nil
	}
	return im.archive.Update(ctx, func(tx *Tx) error {
		for _, source := range plan.missing {
			if err := tx.setState(ctx, source, "missing", query.Missing); err != nil {
				return err
			}
		}
		for _, source := range plan.back {
			if err := tx.setState(ctx, source, "present", query.Live); err != nil {
				return err
			}
		}
		for _, source := range plan.forget {
			// Its session, if it had one before it was rejected, stays without a source path to go to.
			if err := tx.setState(ctx, source, "missing", query.Missing); err != nil {
				return err
			}
		}
		return nil
	})
}

// setState changes the state of a source and of its newest session.
func (tx *Tx) setState(ctx context.Context, source int64, state string, session query.State) error {
	if _, err := tx.exec(ctx, `UPDATE source SET state = ?, problem = NULL, detail = '' WHERE key = ?`, state, source); err != nil {
		return err
	}
	_, err := tx.exec(ctx, `UPDATE session SET state = ? WHERE source = ? AND state <> 'superseded' AND state <> ?`, session, source, session)
	return err
}

// load reads files in parallel and writes what comes of them.
func (im *importer) load(ctx context.Context, jobs []*job) error {
	im.progress = Progress{Phase: PhaseRead, TotalFiles: len(jobs)}
	for _, j := range jobs {
		im.progress.TotalBytes += j.stat.Size
	}
	if len(jobs) == 0 {
		return nil
	}
	if err := im.findSourceless(ctx); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	queue := make(chan *job)
	parts := make(chan *part, 4)
	var workers sync.WaitGroup
	var failed error
	var once sync.Once
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			if err := im.work(reading, queue, parts); err != nil {
				once.Do(func() { failed = err })
				stop()
			}
		})
	}
	go func() {
		defer close(queue)
		for _, j := range jobs {
			select {
			case queue <- j:
			case <-reading.Done():
				return
			}
		}
	}()
	go func() {
		workers.Wait()
		close(parts)
	}()
	follow := im.follow(ctx)
	err := im.write(ctx, parts, follow.kick)
	stop()
	for range parts {
	}
	if followErr := follow.wait(); err == nil {
		err = followErr
	}
	if err == nil && failed != nil {
		err = failed
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// work reads the files of a queue.
func (im *importer) work(ctx context.Context, queue <-chan *job, parts chan<- *part) error {
	l, err := newLoader(im.archive, func(p *part) error {
		select {
		case parts <- p:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return err
	}
	for j := range queue {
		if err := im.prepare(ctx, j); err != nil {
			return err
		}
		if err := l.load(ctx, j); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("import %s: %w", j.name, err)
		}
	}
	return nil
}

// prepare finds the session that a file goes on with.
func (im *importer) prepare(ctx context.Context, j *job) error {
	if j.source != nil {
		err := im.archive.view(ctx, func(rx *reading) (err error) {
			j.session, err = rx.newestSession(ctx, j.source.Key)
			return err
		})
		if err != nil || j.session != nil {
			return err
		}
	}
	if len(im.byID) == 0 && j.path != "" {
		return nil
	}
	return im.adopt(ctx, j)
}

// batchBytes is how much of the sources one transaction stores.
const batchBytes = 24 << 20

// write stores parts in transactions of some size until there are no more, and calls
// committed after each. When ctx ends it commits what it has.
func (im *importer) write(ctx context.Context, parts <-chan *part, committed func()) error {
	steady := context.WithoutCancel(ctx)
	w := newWriter()
	for {
		p, ok := <-parts
		if !ok {
			return nil
		}
		var done []*part
		err := im.archive.Update(steady, func(tx *Tx) error {
			var bytes int64
			for ok {
				written, err := w.store(steady, tx, p)
				if err != nil {
					return err
				}
				p.skipped = !written
				done = append(done, p)
				for i := range p.chunks {
					bytes += p.chunks[i].size
				}
				if bytes >= batchBytes || ctx.Err() != nil {
					return nil
				}
				p.release()
				p, ok = <-parts
			}
			return nil
		})
		if err != nil {
			return err
		}
		committed()
		for _, p := range done {
			im.count(p)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// release lets go of what a part holds beyond what is counted.
func (p *part) release() {
	for i := range p.chunks {
		p.read += p.chunks[i].size
	}
	p.rows, p.fixes, p.chunks = nil, nil, nil
}

func (im *importer) reject(p Problem) {
	im.result.Rejected++
	im.result.Problems = append(im.result.Problems, p)
}

// count adds a stored part to the result.
func (im *importer) count(p *part) {
	r := im.result
	p.release()
	if p.last {
		im.progress.Files++
	}
	im.progress.Bytes = min(im.progress.Bytes+max(p.read, 0), im.progress.TotalBytes)
	if p.last && (p.action == actTouch || p.skipped) {
		im.progress.Bytes = min(im.progress.Bytes+p.job.stat.Size, im.progress.TotalBytes)
	}
	if im.opts.Progress != nil {
		im.opts.Progress(im.progress)
	}
	if p.skipped {
		if p.last {
			r.Unchanged++
		}
		return
	}
	r.Problems = append(r.Problems, p.problems...)
	r.Bytes += p.read
	if !p.last {
		return
	}
	switch p.action {
	case actReject:
		im.reject(*p.reason)
	case actTouch:
		r.Unchanged++
	case actEmptied:
		r.Missing++
		r.Updated++
	case actNew:
		r.Imported++
		if p.sum.bytes > 0 {
			r.Sessions++
		}
		r.Entries += p.sum.entries
	case actVersion:
		r.Updated++
		r.Sessions++
		r.Entries += p.sum.entries
	case actTail, actReplace:
		r.Updated++
		r.Entries += p.sum.entries - p.job.session.Entries
	}
}

// follower feeds the search index with what an import has committed so far, beside it.
type follower struct {
	kick func()       // there is more
	wait func() error // there will be no more
}

func (im *importer) follow(ctx context.Context) follower {
	if im.opts.NoIndex {
		return follower{func() {}, func() error { return nil }}
	}
	more := make(chan struct{}, 1)
	failed := make(chan error, 1)
	go func() {
		var err error
		for range more {
			if err == nil {
				err = im.archive.UpdateIndex(ctx, nil)
			}
		}
		failed <- err
	}()
	return follower{
		kick: func() {
			select {
			case more <- struct{}{}:
			default:
			}
		},
		wait: func() error {
			close(more)
			return <-failed
		},
	}
}

// feed brings the search index up to the archive.
func (im *importer) feed(ctx context.Context) error {
	if im.opts.NoIndex {
		return nil
	}
	return im.archive.UpdateIndex(ctx, func(done, total int64) {
		if im.opts.Progress != nil {
			im.opts.Progress(Progress{Phase: PhaseIndex, Bytes: done, TotalBytes: total})
		}
	})
}

// findSourceless lists the sessions that a file may continue: those that are in no file.
func (im *importer) findSourceless(ctx context.Context) error {
	im.byID = map[string][]query.Key{}
	return im.archive.view(ctx, func(rx *reading) error {
		rows, err := rx.tx.QueryContext(ctx, `SELECT id, key FROM session WHERE source IS NULL ORDER BY key`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id string
			var key query.Key
			if err := rows.Scan(&id, &key); err != nil {
				return err
			}
			im.byID[id] = append(im.byID[id], key)
		}
		return rows.Err()
	})
}

// adopt finds, among the sessions in no file, the one that a file begins with.
func (im *importer) adopt(ctx context.Context, j *job) error {
	file, err := j.open()
	if err != nil {
		return nil // loading it says why
	}
	defer file.Close()
	decoder := jsonl.NewDecoder(contextReader{ctx, file}, nil)
	if _, err := decoder.Next(); err != nil {
		return nil
	}
	header, ok := decoder.Header()
	if !ok {
		return nil
	}
	candidates := im.byID[header.ID]
	if j.path == "" {
		// What a reader gives may be in the archive as a file too.
		err := im.archive.view(ctx, func(rx *reading) error {
			return rx.tx.SelectContext(ctx, &candidates, `
				SELECT key FROM session WHERE id = ? AND state <> 'superseded' AND (source IS NULL OR bytes = ?) ORDER BY source IS NULL, key`,
				header.ID, j.stat.Size)
		})
		if err != nil {
			return err
		}
	}
	for _, key := range candidates {
		err := im.archive.view(ctx, func(rx *reading) error {
			s, err := rx.sessionState(ctx, key)
			if err != nil {
				return err
			}
			same, err := rx.sharesStart(ctx, j, s)
			if err == nil && same {
				j.session, j.covered = s, j.stat.Size <= s.Bytes
			}
			return err
		})
		if err != nil || j.session != nil {
			return err
		}
	}
	return nil
}

// sharesStart reports whether a file and a session begin alike, as far as the shorter goes.
func (rx *reading) sharesStart(ctx context.Context, j *job, s *sessionState) (bool, error) {
	file, err := j.open()
	if err != nil {
		return false, nil
	}
	defer file.Close()
	compare := &comparer{r: bufio.NewReaderSize(file, 256<<10)}
	if _, err := rx.Write(ctx, s.Key, 0, compare); err != nil {
		return false, err
	}
	return !compare.differs, nil
}

// comparer is a writer that compares what is written to it with a reader. It never fails.
type comparer struct {
	r       *bufio.Reader
	differs bool // a byte is not the same
	ended   bool // the reader had less
}

func (c *comparer) Write(p []byte) (int, error) {
	for rest := p; !c.differs && !c.ended && len(rest) > 0; {
		if _, err := c.r.Peek(1); err != nil {
			c.ended = true
			break
		}
		have, _ := c.r.Peek(min(c.r.Buffered(), len(rest)))
		c.differs = !bytes.Equal(have, rest[:len(have)])
		c.r.Discard(len(have))
		rest = rest[len(have):]
	}
	return len(p), nil
}

// sortProblems brings problems in the order of paths, then lines.
func (r *ImportResult) sortProblems() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
}

// reconcile tells set-aside files from sessions in use: the session of x.jsonl.bak-1 is
// superseded while x.jsonl is there with the same session id.
func (a *Archive) reconcile(ctx context.Context) error {
	type asideRow struct {
		Session query.Key   `db:"session"`
		ID      string      `db:"id"`
		State   query.State `db:"state"`
		Path    string      `db:"path"`
	}
	want := map[query.Key]query.State{}
	err := a.view(ctx, func(rx *reading) error {
		var rows []asideRow
		if err := rx.tx.SelectContext(ctx, &rows, `
			SELECT s.key AS session, s.id, s.state, o.path
			FROM source o JOIN session s ON s.source = o.key
			WHERE o.path GLOB '*.jsonl.*' AND o.state = 'present'
				AND s.version = (SELECT max(version) FROM session WHERE source = o.key)`); err != nil {
			return err
		}
		for _, row := range rows {
			base, ok := archivedBase(row.Path)
			if !ok {
				continue
			}
			var replaced bool
			if err := rx.tx.GetContext(ctx, &replaced, `
				SELECT EXISTS (SELECT 1 FROM source o JOIN session s ON s.source = o.key
					WHERE o.path = ? AND o.state = 'present' AND s.id = ?)`, base, row.ID); err != nil {
				return err
			}
			state := query.Live
			if replaced {
				state = query.Superseded
			}
			if state != row.State {
				want[row.Session] = state
			}
		}
		return nil
	})
	if err != nil || len(want) == 0 {
		return err
	}
	return a.Update(ctx, func(tx *Tx) error {
		for session, state := range want {
			if _, err := tx.exec(ctx, `UPDATE session SET state = ? WHERE key = ?`, state, session); err != nil {
				return err
			}
		}
		return nil
	})
}
