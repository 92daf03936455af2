package repo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"pidb/query"
)

// CreateOnce returns the session that was made for an idempotency key, and makes it, as
// [Archive.Create] does, where there is none; made says which. Of several callers at
// once, in whatever process, one makes it. An empty key is none: a session is made.
func (a *Archive) CreateOnce(ctx context.Context, key, cwd string, opts *CreateOptions) (s *Session, made bool, err error) {
	if key == "" {
		s, err = a.Create(ctx, cwd, opts)
		return s, err == nil, err
	}
	if opts == nil {
		opts = &CreateOptions{}
	}
	b := &birth{header: header{id: opts.ID, cwd: cwd, parent: opts.ParentSession}, metadata: opts.Metadata, fixed: opts.Fixed}
	err = a.Update(ctx, func(tx *Tx) error {
		session, err := tx.keyed(ctx, key)
		if made = errors.Is(err, ErrNotFound); made {
			if session, err = tx.bear(ctx, b); err == nil {
				_, err = tx.exec(ctx, `INSERT INTO idempotency (key, session) VALUES (?, ?)`, key, session)
			}
		}
		if err != nil {
			return err
		}
		found, err := tx.Session(ctx, session)
		s = a.handle(&found)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("create session for %q: %w", key, err)
	}
	return s, made, nil
}

// FindIdempotent returns a handle on the session with an idempotency key. The error wraps
// [ErrNotFound].
func (a *Archive) FindIdempotent(ctx context.Context, key string) (*Session, error) {
	var s *Session
	err := a.view(ctx, func(rx *reading) error {
		session, err := rx.keyed(ctx, key)
		if err != nil {
			return err
		}
		found, err := rx.Session(ctx, session)
		s = a.handle(&found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find session of key %q: %w", key, err)
	}
	return s, nil
}

// SetIdempotencyKey makes the session the one that [Archive.FindIdempotent] returns for a
// key, until it is deleted; it has one key at most, the last one set. An empty key
// changes nothing. The error wraps [ErrExists] where another session has the key.
func (s *Session) SetIdempotencyKey(ctx context.Context, key string) error {
	if key == "" {
		return nil
	}
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		switch other, err := tx.keyed(ctx, key); {
		case err == nil && other != s.key:
			return ErrExists
		case err == nil || !errors.Is(err, ErrNotFound):
			return err
		}
		_, err := tx.exec(ctx, `
			INSERT INTO idempotency (key, session) VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET key = excluded.key`, key, s.key)
		return err
	})
	if err != nil {
		return fmt.Errorf("set key %q of session #%d: %w", key, s.key, err)
	}
	return nil
}

// keyed returns the session with an idempotency key.
func (rx *reading) keyed(ctx context.Context, key string) (query.Key, error) {
	var session query.Key
	err := rx.tx.GetContext(ctx, &session, `SELECT session FROM idempotency WHERE key = ?`, key)
	return session, noRow(err)
}

// noRow turns the driver's word for no row into [ErrNotFound].
func noRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return err
}
