package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pidb/query"
)

// ImportOptions are the choices of an import.
type ImportOptions struct {
	// Rehash reads every file, also those whose size, times and inode are unchanged.
	Rehash bool
	// MaxLine is how many bytes a line may have; 0 means [DefaultMaxLine]. A file with a longer one is refused
	// whole, with [CodeTooLarge].
	MaxLine int64
	// NoIndex leaves the search index as it is: a search feeds it later.
	NoIndex bool
	// Progress is called as the work goes on, from one goroutine at a time.
	Progress func(Progress)
}

// DefaultMaxLine is how many bytes a line of an imported file may have where nothing else is asked for. An import holds a
// few times its longest line in memory.
const DefaultMaxLine = 512 << 20

// maxLine returns how many bytes a line may have.
func (opts *ImportOptions) maxLine() int64 {
	if opts.MaxLine > 0 {
		return opts.MaxLine
	}
	return DefaultMaxLine
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
// and Rejected, also where it was broken off.
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
	Bytes     int64 // bytes that the archive did not have of these sources
	Duration  time.Duration
	Problems  []Problem // in the order of files, then lines
	IndexErr  error     // what kept the search index behind; the sessions are in all the same
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
	if err != nil {
		im.result.Files = im.result.Imported + im.result.Updated + im.result.Unchanged + im.result.Rejected
	}
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
		err = im.index(ctx, im.feed(ctx))
	} else {
		im.result.Files = im.result.Imported + im.result.Updated + im.result.Unchanged + im.result.Rejected
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
	graves   graves
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
	return im.index(ctx, im.feed(ctx))
}

// index notes that the search index could not be fed: it is derived, and fed again by
// whoever searches. Only the end of ctx is an error.
func (im *importer) index(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		im.result.IndexErr, err = mapError(err), nil
	}
	return err
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
	for _, f := range s.aliases {
		// It is a source of its own only if it was one before.
		if known[f.path] != nil {
			im.result.Files++
			s.files = append(s.files, f)
		}
	}
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
		case source.State == "deleted" && !explicit && source.stat == f.stat:
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
		if seen[path] || source.State == "deleted" || source.State == "missing" || !gone(s, path) || stays(path) {
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

// stays reports whether a path that was not found below its root may be there all the
// same: behind a link to what was found elsewhere, or where it cannot be looked at.
func stays(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotFolder)
	}
	return info.Mode().IsRegular()
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
	// A session that was born here does not go with a copy of it.
	_, err := tx.exec(ctx, `UPDATE session SET state = ? WHERE source = ? AND state <> 'superseded' AND state <> ? AND (native = 0 OR ? = 'live')`,
		session, source, session, session)
	return err
}

// sortProblems brings problems in the order of paths, then lines.
func (r *ImportResult) sortProblems() {
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
}
