package repo

import (
	"context"
	"errors"
	"fmt"

	"pidb/query"
)

// Delete takes a session out of the archive: its lines, its place in listings, its text
// in searches, all in one transaction. A session that came from a file goes with its
// older versions, and a sync does not bring it back; importing the file by name does.
// An older version goes alone. What is deleted is overwritten in the archive and in the
// search index once their write-ahead logs are emptied. Reports whether the session was
// there.
func (a *Archive) Delete(ctx context.Context, session query.Key) (bool, error) {
	deleted := false
	err := a.Update(ctx, func(tx *Tx) (err error) {
		deleted, err = tx.Delete(ctx, session)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("delete session #%d: %w", session, err)
	}
	return deleted, a.UpdateIndex(ctx, nil)
}

// Delete is [Archive.Delete] as part of a transaction. Its text leaves the index when
// that is fed next; no search shows it before.
func (tx *Tx) Delete(ctx context.Context, session query.Key) (bool, error) {
	s, err := tx.sessionState(ctx, session)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	keys := []query.Key{session}
	if s.Source != nil && s.State != query.Superseded {
		if err := tx.tx.SelectContext(ctx, &keys, `SELECT key FROM session WHERE source = ?`, *s.Source); err != nil {
			return false, err
		}
	}
	// What is deleted on purpose is overwritten, not only let go of.
	if _, err := tx.tx.ExecContext(ctx, `PRAGMA secure_delete = ON`); err != nil {
		return false, err
	}
	for _, key := range keys {
		if err := tx.bury(ctx, key); err != nil {
			return false, err
		}
	}
	if _, err := tx.tx.ExecContext(ctx, `PRAGMA secure_delete = OFF`); err != nil {
		return false, err
	}
	if s.Source == nil {
		return true, nil
	}
	return true, tx.endSource(ctx, *s.Source)
}

// endSource marks a source that has no session any more: it is kept only for what it remembers.
func (tx *Tx) endSource(ctx context.Context, source int64) error {
	_, err := tx.exec(ctx, `
		UPDATE source SET state = 'deleted', problem = NULL, detail = ''
		WHERE key = ? AND NOT EXISTS (SELECT 1 FROM session WHERE source = ?)`, source, source)
	if err != nil {
		return err
	}
	// A file that was set aside for this one is in use again.
	return tx.reconcile(ctx)
}

// bury deletes the rows of one session and leaves a tombstone.
func (tx *Tx) bury(ctx context.Context, session query.Key) error {
	s, err := tx.sessionState(ctx, session)
	if err != nil {
		return err
	}
	sum, err := unmarshalHash(s.SHA256)
	if err != nil {
		return fmt.Errorf("%w: hash state: %w", ErrDamaged, err)
	}
	if err := tx.clear(ctx, session); err != nil {
		return err
	}
	if _, err := tx.exec(ctx, `DELETE FROM session WHERE key = ?`, session); err != nil {
		return err
	}
	_, err = tx.exec(ctx, `INSERT INTO tombstone (sha256, bytes, id, deleted_ms) VALUES (?, ?, ?, ?)`, sum.Sum(nil), s.Bytes, s.ID, tx.now.UnixMilli())
	return err
}
