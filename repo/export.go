package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo/redact"
)

// Export writes the file of a session, byte for byte, from the archive alone. Every
// chunk is proved against its hash before any of it is written, and the whole against the
// hash of the file: an error that wraps [ErrDamaged] means that what was written is not
// the file, or not all of it.
func (a *Archive) Export(ctx context.Context, session query.Key, w io.Writer) error {
	return a.View(ctx, func(rx *query.Rx) error {
		_, err := rx.Write(ctx, session, 0, w)
		return err
	})
}

// ExportFile writes the file of a session to path, which must not exist, through a
// temporary file beside it: path is there whole or not at all. Its mode is 0600. The
// error wraps [ErrExists] where path is taken.
func (a *Archive) ExportFile(ctx context.Context, session query.Key, path string) error {
	return writeFile(path, func(w io.Writer) error { return a.Export(ctx, session, w) })
}

// writeFile makes a new file of what write gives. Its errors name path.
func writeFile(path string, write func(io.Writer) error) error {
	err := tryWrite(path, write)
	if fault, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: fault.Err}
	}
	if fault, ok := errors.AsType[*os.LinkError](err); ok {
		return &fs.PathError{Op: "write", Path: path, Err: fault.Err}
	}
	return err
}

// tryWrite is writeFile with errors that may name a temporary file.
func tryWrite(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".pidb-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if err := write(file); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return place(file.Name(), path, false)
}

// ExportResult is what an export of the whole archive did.
type ExportResult struct {
	Sessions int             // written, or there already
	Present  int             // of Sessions: a file with the same bytes was there
	Bytes    int64           // of Sessions
	Failed   []ExportFailure // in the order of session keys
	Redacted redact.Report   // of Sessions
}

// ExportAllOptions are the options of an export of the whole archive.
type ExportAllOptions struct {
	// Progress is called after each session, of which there are twice as many with Redact.
	Progress func(done, total int)
	// Redact masks what is written. All sessions are searched before the first is written,
	// so that what is found in one is masked in all.
	Redact *redact.Redactor
}

// ExportFailure is a session that could not be written.
type ExportFailure struct {
	Session query.Key
	Path    string // where it was to be written
	Err     error
}

// versionsFolder is where ExportAll puts superseded versions.
const versionsFolder = ".versions"

// exportRow is a session to be exported.
type exportRow struct {
	Key       query.Key   `db:"key"`
	ID        string      `db:"id"`
	Version   int64       `db:"version"`
	State     query.State `db:"state"`
	CWD       *string     `db:"cwd"`
	CreatedMS *int64      `db:"created_ms"`
	Path      *string     `db:"path"`
	Root      *string     `db:"root"`
	Bytes     int64       `db:"bytes"`
}

// ExportAll writes every session below dir: under its source's path relative to the
// folder that was imported, a session in no file where pi would put it, an old version
// under .versions. A name that is taken gets ~2, ~3 and so on before its ending, but for
// a file of an earlier export that has the same bytes. dir is made where needed, and
// nothing outside it is written, whatever paths and ids say; no file in it is replaced. A session that cannot be written is in the result and stops
// nothing. A nil opts writes every byte as it was.
func (a *Archive) ExportAll(ctx context.Context, dir string, opts *ExportAllOptions) (*ExportResult, error) {
	if opts == nil {
		opts = &ExportAllOptions{}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	defer root.Close()
	result := &ExportResult{}
	err = a.view(ctx, func(rx *reading) error {
		var rows []exportRow
		if err := rx.tx.SelectContext(ctx, &rows, `
			SELECT s.key, s.id, s.version, s.state, s.cwd, s.created_ms, o.path, o.root, s.bytes
			FROM session s LEFT JOIN source o ON o.key = s.source ORDER BY s.state = 'superseded', s.key`); err != nil {
			return query.Unreadable(err)
		}
		progress := func(int) {}
		total := len(rows)
		if opts.Progress != nil {
			progress = func(done int) { opts.Progress(done, total) }
		}
		before := 0
		if opts.Redact != nil {
			before, total = len(rows), 2*len(rows)
			for i := range rows {
				learn := opts.Redact.Learn()
				// What fails here fails again when it is written.
				_, _ = rx.Write(ctx, rows[i].Key, 0, learn)
				_ = learn.Close()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				progress(i + 1)
			}
		}
		taken := map[string]bool{}
		for i := range rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			out := &exporting{rx: rx, row: &rows[i], redact: opts.Redact}
			name, present, err := out.into(ctx, root, taken)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				result.Failed = append(result.Failed, ExportFailure{rows[i].Key, filepath.Join(dir, name), mapError(err)})
			} else {
				result.Sessions++
				result.Bytes += out.bytes
				result.Redacted.Add(out.report)
				if present {
					result.Present++
				}
			}
			progress(before + i + 1)
		}
		return nil
	})
	return result, mapError(err)
}

// exporting is a session on its way into a file.
type exporting struct {
	rx     *reading
	row    *exportRow
	redact *redact.Redactor // nil: nothing is masked
	bytes  int64            // written or compared last
	report redact.Report
}

func (e *exporting) write(ctx context.Context, w io.Writer) error {
	counted := &countingWriter{w: w}
	e.bytes, e.report = 0, redact.Report{}
	if e.redact == nil {
		_, err := e.rx.Write(ctx, e.row.Key, 0, counted)
		e.bytes = counted.n
		return err
	}
	masked := e.redact.Writer(counted)
	_, err := e.rx.Write(ctx, e.row.Key, 0, masked)
	if err == nil {
		err = masked.Close()
	}
	e.bytes, e.report = counted.n, masked.Report()
	return err
}

type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// into writes a session below root under the first name that is free, or finds a file
// there that holds just what it would write.
func (e *exporting) into(ctx context.Context, root *os.Root, taken map[string]bool) (name string, present bool, err error) {
	name = e.row.relativePath()
	for n := 2; ; n++ {
		if !taken[name] {
			file, err := create(root, name)
			if err == nil {
				taken[name] = true
				err = e.write(ctx, file)
				if closeErr := file.Close(); err == nil {
					err = closeErr
				}
				if err != nil {
					root.Remove(name)
				}
				return name, false, err
			}
			if !errors.Is(err, fs.ErrExist) {
				return name, false, err
			}
			same, err := e.heldBy(ctx, root, name)
			if err != nil {
				return name, false, err
			}
			if same {
				taken[name] = true
				return name, true, nil
			}
		}
		name = numbered(e.row.relativePath(), n)
	}
}

// heldBy reports whether a file below root holds what would be written and nothing else.
func (e *exporting) heldBy(ctx context.Context, root *os.Root, name string) (bool, error) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || e.redact == nil && info.Size() != e.row.Bytes {
		return false, nil
	}
	file, err := root.Open(name)
	if err != nil {
		return false, nil
	}
	compare, compared := compareFile(file)
	if err := e.write(ctx, compare); err != nil {
		file.Close()
		return false, err
	}
	return compared() == sourceSame, nil
}

// create makes a new file below root, and the folders above it.
func create(root *os.Root, name string) (*os.File, error) {
	if folder := filepath.Dir(name); folder != "." {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	return root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// numbered puts ~n before the ending of a name.
func numbered(name string, n int) string {
	folder, base := filepath.Split(name)
	stem, rest, ok := strings.Cut(base, ".jsonl")
	if ok {
		rest = ".jsonl" + rest
	}
	return folder + stem + "~" + strconv.Itoa(n) + rest
}

// relativePath is where an export of the archive puts a session.
func (row *exportRow) relativePath() string {
	var name string
	if row.Path != nil && row.Root != nil { // a damaged row may lack one
		relative, err := filepath.Rel(*row.Root, *row.Path)
		if err != nil || !filepath.IsLocal(relative) {
			relative = filepath.Base(*row.Path)
		}
		name = relative
	} else {
		folder := "no-cwd"
		if row.CWD != nil && *row.CWD != "" {
			folder = piFolder(*row.CWD)
		}
		name = filepath.Join(safeName(folder), safeName(row.piName())+".jsonl")
	}
	if row.State == query.Superseded {
		name = filepath.Join(versionsFolder, numberedVersion(name, row.Version))
	}
	return name
}

func numberedVersion(name string, version int64) string {
	folder, base := filepath.Split(name)
	return folder + base + ".v" + strconv.FormatInt(version, 10)
}

// piFolder returns the name of the folder below pi's sessions where pi keeps those of a
// working directory (pi's getDefaultSessionDirPath).
func piFolder(cwd string) string {
	cwd = strings.TrimLeft(cwd[:min(1, len(cwd))], `/\`) + cwd[min(1, len(cwd)):]
	return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(cwd) + "--"
}

// piName returns the name that pi gives to the file of a session, without .jsonl.
func (row *exportRow) piName() string {
	if row.CreatedMS == nil {
		return row.ID
	}
	return strings.NewReplacer(":", "-", ".", "-").Replace(jsonl.FormatTime(*row.CreatedMS)) + "_" + row.ID
}

var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._~+=@%,-]+`)

// safeName makes one harmless path element of any text: no separators, no control
// characters, not hidden, of a bounded length.
func safeName(s string) string {
	s = strings.TrimLeft(unsafeName.ReplaceAllString(s, "_"), ".")
	const limit = 180
	if len(s) > limit {
		s = s[:limit]
	}
	if s == "" {
		s = "_"
	}
	return s
}

// Restore writes the file of a session back to the path of its source, which must be
// gone, and returns that path. The error wraps [ErrNoSource] for a session in no file
// and [ErrExists] where the path is taken.
func (a *Archive) Restore(ctx context.Context, session query.Key) (string, error) {
	var path *string
	err := a.view(ctx, func(rx *reading) error {
		return rx.tx.GetContext(ctx, &path, `SELECT o.path FROM session s LEFT JOIN source o ON o.key = s.source WHERE s.key = ?`, session)
	})
	if err != nil {
		return "", mapError(err)
	}
	if path == nil {
		return "", ErrNoSource
	}
	if err := os.MkdirAll(filepath.Dir(*path), 0o700); err != nil {
		return "", err
	}
	return *path, a.ExportFile(ctx, session, *path)
}
