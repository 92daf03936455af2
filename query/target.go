package query

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pidb/jsonl"
)

// ErrUnanswered is wrapped by [UnansweredError].
var ErrUnanswered = errors.New("a tool call has no result")

// UnansweredError is returned for an entry at which no branch may begin.
type UnansweredError struct {
	Entry      string // id of the entry
	CallID     string // the least id of a call without a result; of a tool result, the call that it is for
	ToolResult bool   // the entry is a tool result
}

func (e *UnansweredError) Error() string {
	if e.ToolResult {
		return fmt.Sprintf("entry %q is the result of tool call %q, not a place for a branch", e.Entry, e.CallID)
	}
	return fmt.Sprintf("entry %q leaves tool call %q without its result", e.Entry, e.CallID)
}

// Unwrap returns [ErrUnanswered].
func (e *UnansweredError) Unwrap() error { return ErrUnanswered }

// toolUse is what an entry has to do with tools.
type toolUse struct {
	calls  []string // ids of calls that it makes
	result string   // id of the call that it is the result of
	isFor  bool     // it is a result
}

// readToolUse reads messages in the forms of pi (toolCall, toolResult) and of moa
// (tool_call, tool_result).
func readToolUse(message jsonl.Value) toolUse {
	var use toolUse
	content := message.Get("content")
	switch role := message.Get("role"); {
	case role.IsString("toolResult"):
		use.isFor, use.result = true, textOf(message.Get("toolCallId"))
	case role.IsString("tool_result"):
		use.isFor, use.result = true, textOf(message.Get("tool_call_id"))
	case role.IsString("assistant") && content.Kind() == jsonl.KindArray:
		for block := range content.Elements() {
			switch typ := block.Get("type"); {
			case typ.IsString("toolCall"):
				use.calls = append(use.calls, textOf(block.Get("id")))
			case typ.IsString("tool_call"):
				use.calls = append(use.calls, textOf(block.Get("tool_call_id")))
			}
		}
	}
	return use
}

// toolUse reads what an entry has to do with tools.
func (rx *Rx) toolUse(ctx context.Context, line *lineReader, e *Entry) (toolUse, error) {
	if e.Type != "message" {
		return toolUse{}, nil
	}
	switch e.Role {
	case "assistant", "toolResult", "tool_result":
	default:
		return toolUse{}, nil
	}
	row, err := rx.entryRow(ctx, sqlEntry, e.Ref)
	if err != nil {
		return toolUse{}, err
	}
	v, err := line.read(ctx, rx, row)
	if err != nil {
		return toolUse{}, err
	}
	return readToolUse(v.Get("message")), nil
}

// check returns why no branch may begin at an entry with this use, after which some calls
// have no result.
func (use *toolUse) check(entry string, open []string) error {
	switch {
	case use.isFor:
		return &UnansweredError{Entry: entry, CallID: use.result, ToolResult: true}
	case len(open) > 0:
		return &UnansweredError{Entry: entry, CallID: slices.Min(open)}
	}
	return nil
}

// CheckTarget returns an [UnansweredError] where a branch that begins at an entry would
// leave a tool call without its result: where the entry is a tool result, or a call in
// its context has none after it. Calls before the boundary of a compaction are not in the
// context; edits of the context are not looked at. Returns [ErrNotFound] for a row that
// is no entry.
func (rx *Rx) CheckTarget(ctx context.Context, ref Ref) error {
	err := rx.checkTarget(ctx, ref)
	if err != nil {
		return fmt.Errorf("branch at entry %d of session #%d: %w", ref.Seq(), ref.Session(), err)
	}
	return nil
}

func (rx *Rx) checkTarget(ctx context.Context, ref Ref) error {
	entry, err := rx.Entry(ctx, ref)
	if err != nil {
		return err
	}
	var line lineReader
	own, err := rx.toolUse(ctx, &line, &entry)
	if err != nil {
		return err
	}
	var open []string
	if !own.isFor {
		rows, err := rx.contextRows(ctx, ref)
		if err != nil {
			return err
		}
		for _, e := range entriesOf(rows.rows) {
			use, err := rx.toolUse(ctx, &line, &e)
			if err != nil {
				return err
			}
			open = use.apply(open)
		}
	}
	return own.check(entry.ID, open)
}

// Targets returns the entries of a session at which a branch may begin by the rule of
// [Rx.CheckTarget], in the order of the file.
func (rx *Rx) Targets(ctx context.Context, session Key) ([]Entry, error) {
	targets, err := rx.targets(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("list places for branches in session #%d: %w", session, err)
	}
	return targets, nil
}

// pathStep is an entry on the path to the node at hand.
type pathStep struct {
	node Entry
	use  toolUse
	open []string // calls in the context here that have no result
}

func (rx *Rx) targets(ctx context.Context, session Key) ([]Entry, error) {
	// In file order each chunk is read once.
	uses := map[Ref]toolUse{}
	var line lineReader
	for e, err := range rx.Entries(ctx, session, &EntriesOptions{Types: []string{"message"}}) {
		if err != nil {
			return nil, err
		}
		use, err := rx.toolUse(ctx, &line, &e)
		if err != nil {
			return nil, err
		}
		if use.isFor || len(use.calls) > 0 {
			uses[e.Ref] = use
		}
	}
	var targets []Entry
	var path []pathStep
	for n, err := range rx.Tree(ctx, session) {
		if err != nil {
			return nil, err
		}
		path = path[:n.Depth]
		step := pathStep{node: n.Entry, use: uses[n.Ref]}
		if n.Depth > 0 {
			step.open = path[n.Depth-1].open
		}
		path = append(path, step)
		last := &path[n.Depth]
		if n.Type == "compaction" {
			last.open = openSince(path[:n.Depth], n.Target)
		} else {
			last.open = last.use.apply(last.open)
		}
		if last.use.check(n.ID, last.open) == nil {
			targets = append(targets, n.Entry)
		}
	}
	slices.SortFunc(targets, func(a, b Entry) int { return int(a.Ref - b.Ref) })
	return targets, nil
}

// apply returns the open calls after an entry. The slice it is given stays as it is.
func (use *toolUse) apply(open []string) []string {
	if use.isFor {
		return slices.DeleteFunc(slices.Clone(open), func(call string) bool { return call == use.result })
	}
	return append(slices.Clip(open), use.calls...)
}

// openSince returns the calls without a result from the kept entry of a path on.
func openSince(path []pathStep, kept string) []string {
	at := slices.IndexFunc(path, func(step pathStep) bool { return kept != "" && step.node.ID == kept })
	if at < 0 {
		return nil
	}
	var open []string
	for _, step := range path[at:] {
		open = step.use.apply(open)
	}
	return open
}
