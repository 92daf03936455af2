package repo

import (
	"context"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

const (
	// checkpointPages is about how many pages are written before the write-ahead log is
	// emptied into the archive, by the side of the writes.
	checkpointPages = 4000
	// checkpointAtMost is how long the log grows, in pages, before a commit empties it
	// itself: a writer that never rests is faster than what runs by its side.
	checkpointAtMost = "16000"
	// commitPages is how many pages a commit writes beside those of its chunks.
	commitPages = 12
)

// checkpointer empties the write-ahead log by the side of the writes, so that no append
// waits for that.
type checkpointer struct {
	written atomic.Int64 // pages since the last time, about

	mu     sync.Mutex
	closed bool
	db     *sqlx.DB      // one connection; nil: not begun yet
	wake   chan struct{} // of capacity one
	ended  chan struct{}
}

// wrote tells that a commit has written so many pages.
func (c *checkpointer) wrote(a *Archive, pages int64) {
	if c.written.Add(pages) < checkpointPages {
		return
	}
	c.written.Store(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.db == nil {
		db, err := openDB(a.path, "", 1, url.Values{"_synchronous": {"NORMAL"}})
		if err != nil {
			return // the commits do it
		}
		c.db, c.wake, c.ended = db, make(chan struct{}, 1), make(chan struct{})
		go c.run()
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run empties the log whenever it is woken. Where it cannot, a commit will.
func (c *checkpointer) run() {
	defer close(c.ended)
	for range c.wake {
		_, _ = c.db.ExecContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`)
	}
}

// close waits for what is under way.
func (c *checkpointer) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.db == nil {
		return nil
	}
	close(c.wake)
	<-c.ended
	err := c.db.Close()
	c.db = nil
	return err
}
