package repo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"pidb/query"
)

// VerifyResult is what a proof of sessions found.
type VerifyResult struct {
	Sessions int // looked at
	OK       int // the stored bytes are those that were imported
	Changed  int // of those: the source is there and has other bytes by now
	Missing  int // of those: the source is gone
	// Unreadable counts, of those, the sessions whose source may be there and cannot be looked at.
	Unreadable int
	Failed     []VerifyFailure // in the order of session keys
}

// VerifyFailure is a session whose stored bytes are not those that were imported.
type VerifyFailure struct {
	Session query.Key
	Path    string // of the source; empty: none
	Line    int64  // first physical line that is damaged; 0: not known
	Err     error
}

// Verify proves that the stored bytes of sessions are those that were imported: every
// chunk against its own hash, the whole against the hash of the file, and against the
// source where that is still there. keys nil means all sessions. progress, if any, is
// told the sessions done and to be done.
func (a *Archive) Verify(ctx context.Context, keys []query.Key, progress func(done, total int)) (*VerifyResult, error) {
	result := &VerifyResult{}
	err := a.view(ctx, func(rx *reading) error {
		if keys == nil {
			if err := rx.tx.SelectContext(ctx, &keys, `SELECT key FROM session ORDER BY key`); err != nil {
				return err
			}
		}
		for i, key := range keys {
			result.Sessions++
			if err := rx.verify(ctx, key, result); err != nil {
				// Whatever stands in the way of one session says nothing of the next.
				if ctx.Err() != nil || errors.Is(err, ErrNotFound) {
					return fmt.Errorf("verify session #%d: %w", key, err)
				}
				result.Failed = append(result.Failed, VerifyFailure{Session: key, Err: mapError(err)})
			}
			if progress != nil {
				progress(i+1, len(keys))
			}
		}
		return nil
	})
	return result, mapError(err)
}

// sourceOf is the source of a session, as far as a proof needs it.
type sourceOf struct {
	Path  *string     `db:"path"`
	State query.State `db:"state"`
}

func (rx *reading) verify(ctx context.Context, key query.Key, result *VerifyResult) error {
	s, err := rx.sessionState(ctx, key)
	if err != nil {
		return err
	}
	var source sourceOf
	if err := rx.tx.GetContext(ctx, &source, `SELECT o.path, s.state FROM session s LEFT JOIN source o ON o.key = s.source WHERE s.key = ?`, key); err != nil {
		return err
	}
	compare, compared := io.Discard, func() sourceState { return sourceNone }
	if source.Path != nil && s.State != query.Superseded {
		compare, compared = compareSource(*source.Path)
	}
	n, err := rx.prove(ctx, s, compare)
	beside := compared()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		failure := VerifyFailure{Session: key, Err: err}
		if source.Path != nil {
			failure.Path = *source.Path
		}
		failure.Line, _ = rx.lineAt(ctx, key, n)
		result.Failed = append(result.Failed, failure)
		return nil
	}
	result.OK++
	switch beside {
	case sourceDiffers:
		result.Changed++
	case sourceGone:
		result.Missing++
	case sourceUnreadable:
		result.Unreadable++
	}
	return nil
}

// verifyRows proves that the rows of the physical lines cover the bytes of a session
// without gap or overlap.
func (rx *reading) verifyRows(ctx context.Context, s *sessionState) error {
	rows, err := rx.tx.QueryContext(ctx, `SELECT line, start, size, ending FROM entry WHERE ref >= ? AND ref < ? AND part = 0 ORDER BY ref`,
		query.MakeRef(s.Key, 0), query.MakeRef(s.Key+1, 0))
	if err != nil {
		return err
	}
	defer rows.Close()
	var count, at int64
	for rows.Next() {
		var line, start, size, ending int64
		if err := rows.Scan(&line, &start, &size, &ending); err != nil {
			return err
		}
		if count++; line != count || start != at {
			return fmt.Errorf("%w: line %d is not where it should be", ErrDamaged, count)
		}
		at += size + ending
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if count != s.Lines || at != s.Bytes {
		return fmt.Errorf("%w: %d of %d lines are there", ErrDamaged, count, s.Lines)
	}
	return nil
}

// lineAt returns the physical line that holds a byte of a session.
func (rx *reading) lineAt(ctx context.Context, session query.Key, offset int64) (int64, error) {
	var line int64
	err := rx.tx.GetContext(ctx, &line, `
		SELECT coalesce(min(line), 0) FROM entry WHERE ref >= ? AND ref < ? AND start + size + ending > ?`,
		query.MakeRef(session, 0), query.MakeRef(session+1, 0), offset)
	return line, err
}

// sourceState is what a source is beside the stored bytes.
type sourceState uint8

const (
	sourceNone sourceState = iota // none to compare with
	sourceSame
	sourceDiffers
	sourceGone
	sourceUnreadable
)

// compareSource returns a writer for the bytes of a session, and a function that says,
// when all were written, what the file at path is beside them.
func compareSource(path string) (io.Writer, func() sourceState) {
	file, err := openRegular(path)
	if err != nil {
		state := sourceUnreadable
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotFolder):
			state = sourceGone
		case errors.Is(err, errNotRegular):
			state = sourceDiffers
		}
		return io.Discard, func() sourceState { return state }
	}
	return compareFile(file)
}

// compareFile is compareSource for an open file, which it closes in the end.
func compareFile(file *os.File) (io.Writer, func() sourceState) {
	c := &comparer{r: bufio.NewReaderSize(file, 256<<10)}
	return c, func() sourceState {
		defer file.Close()
		if _, err := c.r.Peek(1); err == nil || c.differs || c.ended {
			return sourceDiffers
		}
		return sourceSame
	}
}
