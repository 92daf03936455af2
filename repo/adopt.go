package repo

import (
	"bufio"
	"bytes"
	"context"

	"pidb/query"
)

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
	id, ok := im.headerID(ctx, j)
	if !ok {
		return nil
	}
	candidates := im.byID[id]
	if j.path == "" {
		// What a reader gives may be in the archive as a file too.
		err := im.archive.view(ctx, func(rx *reading) error {
			return rx.tx.SelectContext(ctx, &candidates, `
				SELECT key FROM session WHERE id = ? AND state <> 'superseded' AND (source IS NULL OR bytes = ?) ORDER BY source IS NULL, key`,
				id, j.stat.Size)
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
