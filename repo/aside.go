package repo

import (
	"context"
	"path/filepath"
	"strings"

	"pidb/query"
)

// reconcile tells set-aside files from sessions in use: the session of x.jsonl.bak-1 is
// superseded while x.jsonl is there with the same session id.
func (a *Archive) reconcile(ctx context.Context) error {
	var want map[query.Key]query.State
	err := a.view(ctx, func(rx *reading) (err error) {
		want, err = rx.unsettled(ctx)
		return err
	})
	if err != nil || len(want) == 0 {
		return err
	}
	return a.Update(ctx, func(tx *Tx) error { return tx.reconcile(ctx) })
}

// reconcile is [Archive.reconcile] as part of a transaction.
func (tx *Tx) reconcile(ctx context.Context) error {
	want, err := tx.unsettled(ctx)
	if err != nil {
		return err
	}
	for session, state := range want {
		if _, err := tx.exec(ctx, `UPDATE session SET state = ? WHERE key = ?`, state, session); err != nil {
			return err
		}
	}
	return nil
}

// unsettled returns the set-aside sessions whose state is not the one that it should be,
// and that one.
func (rx *reading) unsettled(ctx context.Context) (map[query.Key]query.State, error) {
	type asideRow struct {
		Session query.Key   `db:"session"`
		ID      string      `db:"id"`
		State   query.State `db:"state"`
		Path    string      `db:"path"`
	}
	want := map[query.Key]query.State{}
	var rows []asideRow
	if err := rx.tx.SelectContext(ctx, &rows, `
		SELECT s.key AS session, s.id, s.state, o.path
		FROM source o JOIN session s ON s.source = o.key
		WHERE o.path GLOB '*.jsonl.*' AND o.state = 'present'
			AND s.version = (SELECT max(version) FROM session WHERE source = o.key)`); err != nil {
		return nil, err
	}
	for _, row := range rows {
		base, ok := archivedBase(row.Path)
		if !ok {
			continue
		}
		var replaced bool
		if err := rx.tx.GetContext(ctx, &replaced, `
			SELECT EXISTS (SELECT 1 FROM source o JOIN session s ON s.source = o.key
				WHERE o.path = ? AND o.state = 'present' AND s.id = ?)`, base, row.ID); err != nil {
			return nil, err
		}
		state := query.Live
		if replaced {
			state = query.Superseded
		}
		if state != row.State {
			want[row.Session] = state
		}
	}
	return want, nil
}

// archivedBase returns the name that a set-aside session file had, and false for a
// file that was not set aside.
func archivedBase(path string) (string, bool) {
	i := strings.LastIndex(path, ".jsonl.")
	if i < 0 || i < strings.LastIndexByte(path, filepath.Separator) {
		return "", false
	}
	return path[:i+len(".jsonl")], true
}
