package repo

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

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
	if err := im.findGraves(ctx); err != nil {
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
	err := im.write(ctx, parts, follow.committed)
	stop()
	for range parts {
	}
	// Who called feeds the index with all that is missing yet, and sees what stands against it.
	_ = follow.wait()
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
	l.maxLine, l.texts = im.opts.maxLine(), !im.opts.NoIndex
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
	if len(im.byID) > 0 || j.path == "" {
		if err := im.adopt(ctx, j); err != nil || j.session != nil {
			return err
		}
	}
	return im.bury(ctx, j)
}

// batchBytes is how much of the sources one transaction stores.
const batchBytes = 12 << 20

// write stores parts in transactions of some size until there are no more, and calls
// committed with those of each. When ctx ends it commits what it has.
func (im *importer) write(ctx context.Context, parts <-chan *part, committed func(w *writer, parts []*part)) error {
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
		committed(w, done)
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

// fresh returns how many bytes of the source a part adds to the archive. The bytes of a
// chunk that goes on are stored again, but are not new.
func (p *part) fresh() int64 {
	before := p.job.counted
	if before == 0 && p.job.session != nil && (p.action == actTail || p.action == actReplace) {
		before = p.job.session.Bytes
	}
	if p.sum.bytes <= before {
		return 0
	}
	p.job.counted = p.sum.bytes
	return p.sum.bytes - before
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
	if p.last && (p.action == actTouch || p.action == actBury || p.skipped) {
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
	r.Bytes += p.fresh()
	if !p.last {
		return
	}
	switch p.action {
	case actBury:
		r.Unchanged++
		r.Skipped++
	case actReject:
		im.reject(*p.reason)
	case actTouch:
		r.Unchanged++
	case actEmptied:
		r.Updated++
		r.Problems = append(r.Problems, Problem{Path: p.job.name, Code: CodeEmpty, Detail: "the file is empty now: the archive has what it held"})
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
	committed func(w *writer, parts []*part) // these are in the archive
	wait      func() error                   // there will be no more
}

func (im *importer) follow(ctx context.Context) follower {
	if im.opts.NoIndex {
		return follower{func(*writer, []*part) {}, func() error { return nil }}
	}
	h := &hand{more: make(chan struct{}, 1)}
	failed := make(chan error, 1)
	go func() { failed <- im.feedFrom(ctx, h) }()
	return follower{
		committed: func(w *writer, parts []*part) {
			for _, p := range parts {
				if p.texts != nil && !p.texts.lacking && !p.skipped {
					h.give(handed{
						session: w.keys[p.job], nonce: p.job.nonce, before: p.before, rows: p.sum.rows, bytes: p.sum.bytes, documents: *p.texts,
					})
				}
				p.texts = nil
			}
		},
		wait: func() error {
			close(h.more)
			return <-failed
		},
	}
}

// feedFrom feeds the search index from a queue until that is closed, and then with
// whatever else it lacks.
func (im *importer) feedFrom(ctx context.Context, h *hand) error {
	a := im.archive
	a.indexing.Lock()
	defer a.indexing.Unlock()
	f := &feeder{archive: a}
	for open := true; open; {
		_, open = <-h.more
		for {
			d, ok := h.take()
			if !ok {
				break
			}
			if err := f.put(ctx, &d); errors.Is(err, errOvertaken) {
				f.reset()
			} else if err != nil {
				return err
			}
		}
	}
	f.progress = im.indexProgress()
	return f.update(ctx)
}

// feed brings the search index up to the archive.
func (im *importer) feed(ctx context.Context) error {
	if im.opts.NoIndex {
		return nil
	}
	return im.archive.UpdateIndex(ctx, im.indexProgress())
}

func (im *importer) indexProgress() func(done, total int64) {
	return func(done, total int64) {
		if im.opts.Progress != nil {
			im.opts.Progress(Progress{Phase: PhaseIndex, Bytes: done, TotalBytes: total})
		}
	}
}
