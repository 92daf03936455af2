package repo

import (
	"context"
	"encoding/json"
	"fmt"

	"pidb/jsonl"
	"pidb/query"
)

// replacement returns what a context edit writes, or why pi would refuse it.
func (a *appending) replacement(ctx context.Context, e *NewEntry) (any, error) {
	value, err := plain(e.value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	text, err := jsonl.Append(nil, value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	var doc jsonl.Doc
	if err := doc.Parse(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	replacement := doc.Root()
	content := replacement.Get("content")
	kind := content.Kind()
	if replacement.Kind() != jsonl.KindNull && kind != jsonl.KindString && kind != jsonl.KindArray {
		return nil, fmt.Errorf("%w: the replacement is neither null nor an object whose content is a string or an array", ErrInvalidEntry)
	}
	target, err := a.find(ctx, e.target)
	if err != nil {
		return nil, err
	}
	if err := a.flush(ctx); err != nil {
		return nil, err
	}
	entry, err := a.tx.Entry(ctx, target)
	if err != nil {
		return nil, err
	}
	on, err := a.tx.onBranch(ctx, a.leaf, e.target)
	if err != nil {
		return nil, err
	}
	if !on {
		return nil, fmt.Errorf("%w: entry %q is not on the branch", ErrInvalidEntry, e.target)
	}
	switch {
	case entry.Type == "custom_message", entry.Type == "message" && entry.Role == "user":
	case entry.Type == "message" && (entry.Role == "assistant" || entry.Role == "toolResult"):
		if kind == jsonl.KindString {
			block := jsonl.Members{{Key: "type", Value: "text"}, {Key: "text", Value: content}}
			return jsonl.Members{{Key: "content", Value: []any{block}}}, nil
		}
	default:
		return nil, fmt.Errorf("%w: entry %q has no content that could be edited", ErrInvalidEntry, e.target)
	}
	return json.RawMessage(replacement.Raw()), nil
}

// onBranch reports whether an entry with the given id is on the path to a leaf. The walk
// ends at the first repeat: UNION drops a row that was there.
func (rx *reading) onBranch(ctx context.Context, leaf query.Ref, id string) (bool, error) {
	var found bool
	err := rx.tx.GetContext(ctx, &found, `
		WITH RECURSIVE walk (ref, parent, id) AS (
			SELECT ref, parent, id FROM entry WHERE ref = ?
			UNION
			SELECT e.ref, e.parent, e.id FROM walk w CROSS JOIN entry e ON e.ref = w.parent
		)
		SELECT EXISTS (SELECT 1 FROM walk WHERE id = ?)`, leaf, id)
	return found, err
}
