package main

import (
	"context"
	"errors"
	"time"

	"github.com/schollz/progressbar/v3"

	"pidb/repo"
)

// indexing says whether a command needs the search index to be up to date.
type indexing bool

const (
	withIndex    indexing = true
	withoutIndex indexing = false
)

// sync takes in what changed in the session folders. Its problems are not those of the
// command: only an interruption is an error.
func (a *app) sync(ctx context.Context, archive *repo.Archive, index indexing) error {
	if a.noSync {
		if index == withIndex {
			return a.updateIndex(ctx, archive)
		}
		return nil
	}
	roots, err := a.sessionRoots()
	if err != nil {
		return err
	}
	if len(roots) == 0 {
		if index == withIndex {
			return a.updateIndex(ctx, archive)
		}
		return nil
	}
	a.noteAbsent(roots)
	bar := a.newBar()
	result, err := archive.Sync(ctx, roots, &repo.ImportOptions{NoIndex: index == withoutIndex, Progress: bar.phase})
	bar.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		a.say("what changed could not be taken in: %v", err)
		return nil
	}
	a.noteRejected(result)
	a.noteIndex(result.IndexErr)
	a.noteIndexLoss(archive)
	return nil
}

// updateIndex makes text searchable that an earlier command took in. What it cannot add
// a search tells of; only an interruption is an error.
func (a *app) updateIndex(ctx context.Context, archive *repo.Archive) error {
	bar := a.newBar()
	defer bar.end()
	err := archive.UpdateIndex(ctx, bar.bytes)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.noteIndex(err)
	a.noteIndexLoss(archive)
	return nil
}

// renewIndex indexes again what another version of pidb has indexed, once the command has
// its answer.
func (a *app) renewIndex(ctx context.Context, archive *repo.Archive) error {
	old, err := archive.IndexIsOld(ctx)
	if err != nil || !old {
		return err
	}
	a.out.flush()
	a.note("making the search index anew for this version; it serves meanwhile")
	bar := a.newBar()
	defer bar.end()
	err = archive.RenewIndex(ctx, func(done, total int64) {
		bar.phase(repo.Progress{Phase: repo.PhaseIndex, Bytes: done, TotalBytes: total})
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.noteIndex(err)
	return nil
}

// repairIndex makes a damaged search index anew, and says so. It returns the error that it
// is called for where nothing of the index is damaged.
func (a *app) repairIndex(ctx context.Context, archive *repo.Archive, err error) error {
	bar := a.newBar()
	repaired, repairErr := archive.RepairIndex(ctx, bar.bytes)
	bar.end()
	if repairErr != nil || !repaired {
		return errors.Join(err, repairErr)
	}
	a.noteIndexLoss(archive)
	return nil
}

// noteIndexLoss says once that the search index was damaged.
func (a *app) noteIndexLoss(archive *repo.Archive) {
	aside, lost := archive.IndexLoss()
	if !lost || a.lossNoted {
		return
	}
	a.lossNoted = true
	a.note("the search index was damaged and has been made anew")
	if aside != "" {
		a.note("what was in its place is now %s", a.displayPath(aside))
	}
}

// noteIndex says what kept the search index behind.
func (a *app) noteIndex(err error) {
	if err != nil {
		a.say("words may be missed in what changed: %v", err)
	}
}

// noteRejected says that files are no sessions, when they were looked at just now.
func (a *app) noteRejected(result *repo.ImportResult) {
	fresh := result.Rejected - result.Known
	if fresh <= 0 {
		return
	}
	for _, p := range result.Problems {
		if !isRejection(p.Code) {
			continue
		}
		if fresh == 1 && result.Rejected == 1 {
			a.note("not taken in: %s: %s", a.displayPath(p.Path), problemText(&p))
		} else {
			a.note("%s not taken in; pidb import lists them", count(fresh, "file was", "files were"))
		}
		return
	}
}

// isRejection reports whether a problem kept a file out of the archive.
func isRejection(code repo.ProblemCode) bool {
	switch code {
	case repo.CodeUnreadable, repo.CodeNotASession, repo.CodeUnsupportedFormat, repo.CodeTooLarge:
		return true
	}
	return false
}

// barDelay is how long a command may take before it shows a bar.
const barDelay = 500 * time.Millisecond

// bar shows on a terminal how far something is that takes long.
type bar struct {
	app   *app
	began time.Time
	what  string
	bar   *progressbar.ProgressBar
}

func (a *app) newBar() *bar { return &bar{app: a, began: time.Now()} }

// phase shows the progress of an import.
func (b *bar) phase(p repo.Progress) {
	what := "reading"
	if p.Phase == repo.PhaseIndex {
		what = "indexing"
	}
	b.show(what, p.Bytes, p.TotalBytes, true)
}

// bytes shows how much text is searchable.
func (b *bar) bytes(done, total int64) {
	b.phase(repo.Progress{Phase: repo.PhaseIndex, Bytes: done, TotalBytes: total})
}

// count shows the progress of something that goes from session to session.
func (b *bar) count(what string) func(done, total int) {
	return func(done, total int) { b.show(what, int64(done), int64(total), false) }
}

func (b *bar) show(what string, done, total int64, bytes bool) {
	if !b.app.term.err || b.app.quiet || total <= 0 || time.Since(b.began) < barDelay {
		return
	}
	if b.bar == nil || b.what != what {
		b.end()
		b.what = what
		options := []progressbar.Option{
			progressbar.OptionSetWriter(b.app.stderr), progressbar.OptionSetDescription(what), progressbar.OptionSetWidth(24),
			progressbar.OptionThrottle(100 * time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true),
			progressbar.OptionShowCount(),
		}
		if bytes {
			options = append(options, progressbar.OptionShowBytes(true))
		} else {
			options = append(options, progressbar.OptionShowIts(), progressbar.OptionSetItsString("sessions"))
		}
		b.bar = progressbar.NewOptions64(total, options...)
	}
	b.bar.ChangeMax64(total)
	_ = b.bar.Set64(min(done, total))
}

// end takes the bar away.
func (b *bar) end() {
	if b.bar != nil {
		_ = b.bar.Clear()
		b.bar = nil
	}
}
