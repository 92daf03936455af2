package repo

import (
	"context"
	"database/sql"
	"errors"

	"pidb/query"
)

// kept is what a session keeps beside its lines, for a merge and a salvage to carry.
type kept struct {
	metadata    []keptMetadata
	idempotency *string
	agents      []subagentRow
	document    *keptDocument
}

// keptMetadata is a row of the metadata table.
type keptMetadata struct {
	Key   string `db:"key"`
	Value string `db:"value"`
	Fixed bool   `db:"fixed"`
}

// keptDocument is a row of the document table.
type keptDocument struct {
	Store     string `db:"store"`
	CreatedMS int64  `db:"created_ms"`
	UpdatedMS int64  `db:"updated_ms"`
}

func (k *kept) empty() bool {
	return len(k.metadata) == 0 && k.idempotency == nil && len(k.agents) == 0 && k.document == nil
}

// kept reads what a session keeps.
func (rx *reading) kept(ctx context.Context, session query.Key) (kept, error) {
	var k kept
	if err := rx.tx.SelectContext(ctx, &k.metadata, `SELECT key, value, fixed FROM metadata WHERE session = ? ORDER BY key`, session); err != nil {
		return k, err
	}
	if err := rx.tx.SelectContext(ctx, &k.agents, `SELECT `+subagentColumns+` FROM subagent WHERE session = ? ORDER BY job`, session); err != nil {
		return k, err
	}
	var key string
	switch err := rx.tx.GetContext(ctx, &key, `SELECT key FROM idempotency WHERE session = ?`, session); {
	case err == nil:
		k.idempotency = &key
	case !errors.Is(err, sql.ErrNoRows):
		return k, err
	}
	var document keptDocument
	switch err := rx.tx.GetContext(ctx, &document, `SELECT store, created_ms, updated_ms FROM document WHERE session = ?`, session); {
	case err == nil:
		k.document = &document
	case !errors.Is(err, sql.ErrNoRows):
		return k, err
	}
	return k, nil
}

// addKept stores what a session lacks of what another archive keeps with it. An
// idempotency key that stands for another session here goes on to stand for that; of two
// subagents of one job the later one stays.
func (tx *Tx) addKept(ctx context.Context, session query.Key, k *kept) error {
	for _, row := range k.metadata {
		if _, err := tx.exec(ctx, `INSERT INTO metadata (session, key, value, fixed) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`,
			session, row.Key, row.Value, row.Fixed); err != nil {
			return err
		}
	}
	if k.idempotency != nil {
		if _, err := tx.exec(ctx, `INSERT INTO idempotency (key, session) VALUES (?, ?) ON CONFLICT DO NOTHING`, *k.idempotency, session); err != nil {
			return err
		}
	}
	for i := range k.agents {
		a := &k.agents[i]
		if _, err := tx.exec(ctx, `
			INSERT INTO subagent (session, `+subagentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (session, job) DO UPDATE SET task = excluded.task, model = excluded.model, status = excluded.status,
				result = excluded.result, error = excluded.error, thinking = excluded.thinking, async = excluded.async,
				started_ms = excluded.started_ms, finished_ms = excluded.finished_ms, usage = excluded.usage, cost = excluded.cost,
				context_percent = excluded.context_percent, messages = excluded.messages
			WHERE coalesce(excluded.finished_ms, excluded.started_ms, 0) > coalesce(finished_ms, started_ms, 0)`,
			session, a.Job, a.Task, a.Model, a.Status, a.Result, a.Error, a.Thinking, a.Async,
			a.StartedMS, a.FinishedMS, a.Usage, a.Cost, a.ContextPercent, a.Messages); err != nil {
			return err
		}
	}
	if d := k.document; d != nil {
		_, err := tx.exec(ctx, `
			INSERT INTO document (session, store, created_ms, updated_ms, save)
			VALUES (?, ?, ?, ?, (SELECT coalesce(max(save), 0) + 1 FROM document))
			ON CONFLICT (session) DO UPDATE SET updated_ms = max(updated_ms, excluded.updated_ms)`,
			session, d.Store, d.CreatedMS, d.UpdatedMS)
		return err
	}
	return nil
}
