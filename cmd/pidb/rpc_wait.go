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

// wait gives what is new behind a cursor, and waits for it where there is nothing. Where
// it begins is settled before the next request.
func (s *rpcServer) wait(ctx context.Context, p *waitParams) (any, error) {
	if p.Timeout != nil && (*p.Timeout < 0 || *p.Timeout > math.MaxInt32) {
		return nil, usagef("timeout is a number of seconds")
	}
	if p.Cursor != nil && *p.Cursor < 0 {
		return nil, usagef("cursor is one that wait gave")
	}
	var wait func(context.Context) (any, error)
	var err error
	if p.Session != "" {
		wait, err = s.waitSession(ctx, p)
	} else {
		wait, err = s.waitArchive(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return pending(func() (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)()
		if p.Timeout != nil {
			var stop context.CancelFunc
			ctx, stop = context.WithTimeout(ctx, time.Duration(*p.Timeout*float64(time.Second)))
			defer stop()
		}
		return wait(ctx)
	}), nil
}

func (s *rpcServer) waitSession(ctx context.Context, p *waitParams) (func(context.Context) (any, error), error) {
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	// A cursor is the number of lines that were given.
	var after query.Ref
	switch {
	case p.Cursor == nil:
		if after, err = l.session.Last(ctx); err != nil {
			return nil, err
		}
	case *p.Cursor > 0:
		after = query.MakeRef(l.info.Key, min(*p.Cursor, query.MaxRows)-1)
	}
	var result waitJSON
	if after != 0 {
		result.Cursor = after.Seq() + 1
	}
	return func(ctx context.Context) (any, error) {
		entries, err := l.session.Wait(ctx, after)
		if err != nil {
			return result.ended(err)
		}
		now := context.WithoutCancel(ctx) // what takes no time is not cut short by the timeout
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
	}, nil
}

func (s *rpcServer) waitArchive(ctx context.Context, p *waitParams) (func(context.Context) (any, error), error) {
	after, err := s.archive.Change(ctx)
	if err != nil {
		return nil, err
	}
	if p.Cursor != nil {
		after = *p.Cursor
	}
	return func(ctx context.Context) (any, error) {
		sessions, next, err := s.archive.Wait(ctx, after)
		if err != nil {
			return waitJSON{Cursor: after}.ended(err)
		}
		result := waitJSON{Cursor: next}
		for i := range sessions {
			result.Sessions = append(result.Sessions, newSessionJSON(&sessions[i]))
		}
		return result, nil
	}, nil
}

// ended is the result of a wait that had nothing to wait for in time.
func (j waitJSON) ended(err error) (any, error) {
	if errors.Is(err, context.DeadlineExceeded) {
		j.TimedOut = true
		return j, nil
	}
	return nil, err
}
