package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) importCommand() *cobra.Command {
	var rehash bool
	cmd := &cobra.Command{
		Use:   "import [PATH…]",
		Short: "take session files in",
		Long: `Take session files in: files by name, folders with all that is below them, standard input
for -. Without a PATH the session folders are taken, those of pi or of --root. In a folder
those files count whose name ends in .jsonl, or has more behind that, as in x.jsonl.bak-1 of
one that was set aside, but for .lock and .tmp; a file that is named counts by any name.

Every byte is kept, of damaged lines too. A file that has not changed costs a look at its
size and times; of one that has grown only the new lines are read; one that was rewritten
becomes a new version, and the old one is kept. Files are read, never written. A session
that was deleted from the archive comes back when its file is named here.

A file with a line of more than 512 MiB is refused. It ends with 0 also where lines are
damaged, 3 when some of the named files are no sessions, 1 when nothing could be imported or
a path named here or by --root does not exist.`,
		Example: `  pidb import
  pidb import ~/backup/sessions old.jsonl
  ssh host cat session.jsonl | pidb import -`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.importPaths(cmd.Context(), args, &repo.ImportOptions{Rehash: rehash})
		},
	}
	cmd.Flags().BoolVar(&rehash, "rehash", false, "read all files, whatever their size and times say")
	jsonHelp(cmd, `{"files":,"imported":,"updated":,"unchanged":,"missing":,"rejected":,"sessions":,"entries":,
 "bytes":,"seconds":,"problems":[{"path":,"line":,"problem":CODE,"detail":}]}

The codes are not-found, unreadable, empty, not-a-session, unsupported-format, too-large,
no-header and malformed-line.`, "one object")
	return cmd
}

// stdinName is the path that stands for standard input.
const stdinName = "-"

func (a *app) importPaths(ctx context.Context, args []string, opts *repo.ImportOptions) error {
	var paths []string
	stdin := false
	named := map[string]bool{}
	for _, arg := range args {
		if arg == stdinName {
			stdin = true
			continue
		}
		if arg == "" {
			return usagef("import: an empty path; the present folder is .")
		}
		path, err := filepath.Abs(arg)
		if err != nil {
			return err
		}
		paths = append(paths, path)
		named[path] = true
	}
	if len(args) == 0 {
		var err error
		if paths, err = a.sessionRoots(); err != nil {
			return err
		}
		if len(paths) == 0 {
			return &commandError{err: fmt.Errorf("import: no path"), code: exitUsage, hint: "name files or folders, or give --root DIR: with --db the folders of pi are not looked at"}
		}
	}
	archive, err := a.open(ctx)
	if err != nil {
		return err
	}
	// An import makes much garbage and keeps little.
	debug.SetGCPercent(50)
	bar := a.newBar()
	opts.Progress = bar.phase
	total := &repo.ImportResult{}
	began := time.Now()
	if len(paths) > 0 {
		// What was deleted from the archive comes back only where it is named.
		take := archive.Import
		if len(args) == 0 {
			take = archive.Sync
		}
		result, takeErr := take(ctx, paths, opts)
		err = takeErr
		addResult(total, result)
		if len(args) == 0 && len(a.roots) > 0 {
			for _, root := range absent(paths) {
				total.Problems = append(total.Problems, repo.Problem{Path: root, Code: repo.CodeNotFound})
			}
		}
	}
	if stdin && err == nil {
		result, readErr := archive.ImportReader(ctx, stdinName, interruptible{ctx, a.stdin}, opts)
		err = readErr
		addResult(total, result)
	}
	bar.end()
	total.Duration = time.Since(began)
	err = errors.Join(err, a.printImport(total))
	a.noteIndex(total.IndexErr)
	a.noteIndexLoss(archive)
	if err != nil {
		return err
	}
	if total.Files == 0 && len(total.Problems) == 0 && len(args)+len(a.roots) > 0 {
		a.note("no session file is in there: in a folder x.jsonl counts, and x.jsonl.bak-1 or the like; name any other file itself")
	}
	return importCode(total, named)
}

// addResult adds the counts of an import to those of one before it.
func addResult(total, r *repo.ImportResult) {
	if r == nil {
		return
	}
	total.Files += r.Files
	total.Imported += r.Imported
	total.Updated += r.Updated
	total.Unchanged += r.Unchanged
	total.Missing += r.Missing
	total.Rejected += r.Rejected
	total.Skipped += r.Skipped
	total.Sessions += r.Sessions
	total.Entries += r.Entries
	total.Bytes += r.Bytes
	total.Problems = append(total.Problems, r.Problems...)
	total.IndexErr = cmp.Or(total.IndexErr, r.IndexErr)
}

// importCode returns the error that gives an import its exit code.
func importCode(r *repo.ImportResult, named map[string]bool) error {
	notFound := slices.ContainsFunc(r.Problems, func(p repo.Problem) bool { return p.Code == repo.CodeNotFound })
	if notFound || r.Rejected > 0 && r.Imported+r.Updated+r.Unchanged == 0 {
		return exitWith(exitFailed)
	}
	for _, p := range r.Problems {
		if isRejection(p.Code) && (named[p.Path] || p.Path == stdinName || p.Path == "") {
			return exitWith(exitPartly)
		}
	}
	return nil
}

// problemsShown is how many problems are printed for people.
const problemsShown = 20

func (a *app) printImport(r *repo.ImportResult) error {
	if a.json {
		j := importJSON{
			Files: r.Files, Imported: r.Imported, Updated: r.Updated, Unchanged: r.Unchanged, Missing: r.Missing, Rejected: r.Rejected,
			Sessions: r.Sessions, Entries: r.Entries, Bytes: r.Bytes, Seconds: float64(r.Duration.Milliseconds()) / 1000, Problems: []problemJSON{},
		}
		for _, p := range r.Problems {
			j.Problems = append(j.Problems, problemJSON{p.Path, p.Line, p.Code, p.Detail})
		}
		return a.emit(j)
	}
	for i := range r.Problems {
		if i == problemsShown {
			a.say("… and %s; --json lists all", count(len(r.Problems)-i, "other problem", "other problems"))
			break
		}
		p := &r.Problems[i]
		place := p.Path
		if p.Line > 0 {
			place += ":" + strconv.FormatInt(p.Line, 10)
		}
		a.say("%s: %s", place, problemText(p))
	}
	if a.quiet {
		return nil
	}
	a.out.printf("%s: %d new, %d updated, %d unchanged, %d missing, %d rejected; %s, %s read in %.1f s\n",
		count(r.Files, "file", "files"), r.Imported, r.Updated, r.Unchanged, r.Missing, r.Rejected,
		count(r.Entries, "entry", "entries"), bytesText(r.Bytes), r.Duration.Seconds())
	return nil
}
