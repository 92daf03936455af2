package main

import (
	"context"
	"errors"
	"math"
	"time"

	"pidb/query"
)

type waitParams struct {
	Session rpcSession `json:"session"`
	Cursor  *int64     `json:"cursor"`
	Timeout *float64   `json:"timeout"`
	Raw     bool       `json:"raw"`
}

// waitJSON is the result of wait: the new lines of a session, or the sessions of the
// archive that have new lines.
type waitJSON struct {
	Cursor   int64          `json:"cursor"`
	TimedOut bool           `json:"timedOut"`
	Entries  []rawEntryJSON `json:"entries,omitempty"`
	Sessions []sessionJSON  `json:"sessions,omitempty"`
}

// wait gives what is new behind a cursor, and waits for it where there is nothing.
func (s *rpcServer) wait(ctx context.Context, p *waitParams) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	if p.Timeout != nil {
		seconds := *p.Timeout
		if seconds < 0 || seconds > math.MaxInt32 {
			return nil, usagef("timeout is a number of seconds")
		}
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
		defer stop()
	}
	if p.Cursor != nil && *p.Cursor < 0 {
		return nil, usagef("cursor is one that wait gave")
	}
	if p.Session != "" {
		return s.waitSession(ctx, p)
	}
	return s.waitArchive(ctx, p)
}

func (s *rpcServer) waitSession(ctx context.Context, p *waitParams) (any, error) {
	now := context.WithoutCancel(ctx) // what takes no time is not cut short by the timeout
	l, err := s.place(now, p.Session)
	if err != nil {
		return nil, err
	}
	// A cursor is the number of lines that were given.
	var after query.Ref
	switch {
	case p.Cursor == nil:
		if after, err = l.session.Last(now); err != nil {
			return nil, err
		}
	case *p.Cursor > 0:
		after = query.MakeRef(l.info.Key, min(*p.Cursor, query.MaxRows)-1)
	}
	var result waitJSON
	if after != 0 {
		result.Cursor = after.Seq() + 1
	}
	entries, err := l.session.Wait(ctx, after)
	if err != nil {
		return result.ended(err)
	}
	err = s.archive.View(now, func(rx *query.Rx) error {
		for i := range entries {
			j, err := entryInJSON(now, rx, &entries[i], p.Raw)
			if err != nil {
				return err
			}
			result.Entries = append(result.Entries, j)
			result.Cursor = entries[i].Ref.Seq() + 1
		}
		return nil
	})
	return result, err
}

func (s *rpcServer) waitArchive(ctx context.Context, p *waitParams) (any, error) {
	after, err := s.archive.Change(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	if p.Cursor != nil {
		after = *p.Cursor
	}
	sessions, next, err := s.archive.Wait(ctx, after)
	if err != nil {
		return waitJSON{Cursor: after}.ended(err)
	}
	result := waitJSON{Cursor: next}
	for i := range sessions {
		result.Sessions = append(result.Sessions, newSessionJSON(&sessions[i]))
	}
	return result, nil
}

// ended is the result of a wait that had nothing to wait for in time.
func (j waitJSON) ended(err error) (any, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		j.TimedOut = true
		return j, nil
	}
	return nil, err
}
