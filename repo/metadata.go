package repo

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"pidb/jsonl"
	"pidb/query"
)

// metadataRow is a row of the metadata table without its session.
type metadataRow struct {
	Key   string `db:"key"`
	Value string `db:"value"`
}

// Metadata returns the values that the program keeps with the session, as JSON. They are
// in no line and so in no export.
func (s *Session) Metadata(ctx context.Context) (map[string]json.RawMessage, error) {
	var metadata map[string]json.RawMessage
	err := s.archive.view(ctx, func(rx *reading) (err error) {
		metadata, err = rx.metadata(ctx, s.key)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read metadata of session #%d: %w", s.key, err)
	}
	return metadata, nil
}

// SetMetadata keeps values with the session under their names; [jsonl.Undefined] takes
// one away. Those not named stay, and so do those that are fixed, named or not.
func (s *Session) SetMetadata(ctx context.Context, values map[string]any) error {
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		return tx.putMetadata(ctx, s.key, values)
	})
	if err != nil {
		return fmt.Errorf("set metadata of session #%d: %w", s.key, err)
	}
	return nil
}

// ReplaceMetadata makes values all that is kept with the session but what is fixed, which
// stays as it is.
func (s *Session) ReplaceMetadata(ctx context.Context, values map[string]any) error {
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		return tx.replaceMetadata(ctx, s.key, values)
	})
	if err != nil {
		return fmt.Errorf("replace metadata of session #%d: %w", s.key, err)
	}
	return nil
}

// FixMetadata keeps values with the session for good: no later write replaces them or
// takes them away. A name that is fixed already keeps its value.
func (s *Session) FixMetadata(ctx context.Context, values map[string]any) error {
	err := s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		if err := tx.putMetadata(ctx, s.key, values); err != nil {
			return err
		}
		return tx.fixMetadata(ctx, s.key, slices.Collect(maps.Keys(values)))
	})
	if err != nil {
		return fmt.Errorf("fix metadata of session #%d: %w", s.key, err)
	}
	return nil
}

// FixedMetadata returns those of the session's values that are fixed.
func (s *Session) FixedMetadata(ctx context.Context) (map[string]json.RawMessage, error) {
	var metadata map[string]json.RawMessage
	err := s.archive.view(ctx, func(rx *reading) (err error) {
		metadata, err = rx.metadata(ctx, s.key)
		if err != nil {
			return err
		}
		fixed, err := rx.fixedMetadata(ctx, s.key)
		maps.DeleteFunc(metadata, func(name string, _ json.RawMessage) bool { return !slices.Contains(fixed, name) })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read metadata of session #%d: %w", s.key, err)
	}
	return metadata, nil
}

// metadataOrigin is the name under which the origin of a session is kept.
const metadataOrigin = "origin"

// OriginUser is the origin of a session that says of none.
const OriginUser = "user"

// Origin returns who made the session, in words of the program that keeps it: what
// [Session.SetOrigin] said, else [OriginUser].
func (s *Session) Origin(ctx context.Context) (string, error) {
	metadata, err := s.Metadata(ctx)
	if err != nil {
		return "", err
	}
	var origin string
	if err := json.Unmarshal(metadata[metadataOrigin], &origin); err != nil || origin == "" {
		return OriginUser, nil
	}
	return origin, nil
}

// SetOrigin says who made the session, as fixed metadata under the name origin: the first
// word holds. An empty origin says nothing.
func (s *Session) SetOrigin(ctx context.Context, origin string) error {
	if origin == "" {
		return nil
	}
	return s.FixMetadata(ctx, map[string]any{metadataOrigin: origin})
}

func (rx *reading) metadata(ctx context.Context, session query.Key) (map[string]json.RawMessage, error) {
	var rows []metadataRow
	if err := rx.tx.SelectContext(ctx, &rows, `SELECT key, value FROM metadata WHERE session = ?`, session); err != nil {
		return nil, err
	}
	metadata := make(map[string]json.RawMessage, len(rows))
	for _, row := range rows {
		metadata[row.Key] = json.RawMessage(row.Value)
	}
	return metadata, nil
}

func (tx *Tx) putMetadata(ctx context.Context, session query.Key, values map[string]any) error {
	for key, value := range values {
		if value == jsonl.Undefined {
			if _, err := tx.exec(ctx, `DELETE FROM metadata WHERE session = ? AND key = ? AND fixed = 0`, session, key); err != nil {
				return err
			}
			continue
		}
		value, err := plain(value)
		if err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
		text, err := jsonl.Append(nil, value)
		if err != nil {
			return fmt.Errorf("metadata %q: %w", key, err)
		}
		if _, err := tx.exec(ctx, `
			INSERT INTO metadata (session, key, value) VALUES (?, ?, ?)
			ON CONFLICT (session, key) DO UPDATE SET value = excluded.value WHERE fixed = 0`,
			session, key, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// replaceMetadata makes values all of a session's metadata but what is fixed.
func (tx *Tx) replaceMetadata(ctx context.Context, session query.Key, values map[string]any) error {
	if _, err := tx.exec(ctx, `DELETE FROM metadata WHERE session = ? AND fixed = 0`, session); err != nil {
		return err
	}
	return tx.putMetadata(ctx, session, values)
}

// fixMetadata fixes the values under some names.
func (tx *Tx) fixMetadata(ctx context.Context, session query.Key, names []string) error {
	for _, name := range names {
		if _, err := tx.exec(ctx, `UPDATE metadata SET fixed = 1 WHERE session = ? AND key = ?`, session, name); err != nil {
			return err
		}
	}
	return nil
}

// fixedMetadata returns the names of the values that are fixed.
func (rx *reading) fixedMetadata(ctx context.Context, session query.Key) ([]string, error) {
	var names []string
	err := rx.tx.SelectContext(ctx, &names, `SELECT key FROM metadata WHERE session = ? AND fixed = 1`, session)
	return names, err
}
