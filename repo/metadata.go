package repo

import (
	"context"
	"encoding/json"
	"fmt"

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
// one away. Those not named stay.
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
			if _, err := tx.exec(ctx, `DELETE FROM metadata WHERE session = ? AND key = ?`, session, key); err != nil {
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
			INSERT INTO metadata (session, key, value) VALUES (?, ?, ?) ON CONFLICT (session, key) DO UPDATE SET value = excluded.value`,
			session, key, string(text)); err != nil {
			return err
		}
	}
	return nil
}
