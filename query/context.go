package query

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"pidb/jsonl"
)

// Model names a model as pi does. A part that the session does not give as a string is empty.
type Model struct {
	Provider string
	ModelID  string
}

// Context is what the model would be given at an entry.
type Context struct {
	Model         *Model // of the last model change or assistant message on the branch; nil: none
	ThinkingLevel string // of the last change on the branch, "off" at first
	Entries       []Entry
	Messages      []Message
}

// What the path to an entry gives it, and the first kept row of the latest compaction.
const sqlPath = `
	SELECT e.depth, e.compaction, c.kept, e.setting
	FROM entry e LEFT JOIN entry c ON c.ref = e.compaction
	WHERE e.ref = ?1 AND e.kind = 'entry'`

// pathRow is a row of sqlPath. Where depth is NULL, some ancestor stands before its
// parent in the file, and all else is unknown.
type pathRow struct {
	Depth      *int64 `db:"depth"`
	Compaction *Ref   `db:"compaction"`
	Kept       *Ref   `db:"kept"`
	Setting    *int64 `db:"setting"`
}

func (rx *Rx) pathRow(ctx context.Context, leaf Ref) (*pathRow, error) {
	var row pathRow
	if err := rx.tx.GetContext(ctx, &row, sqlPath, leaf); err != nil {
		return nil, noRows(err, ErrNotFound)
	}
	return &row, nil
}

// The entries that make the context of a branch, as pi's buildContextEntries, in no
// order, for an entry all of whose ancestors stand before it. The walk goes up to ?2, the
// first kept row or the compaction, 0 for the root. From what was kept before the
// compaction ?3, system messages are left out.
const sqlContext = `
	WITH RECURSIVE walk (ref, parent) AS (
		SELECT ref, parent FROM entry WHERE ref = ?1
		UNION ALL
		SELECT a.ref, a.parent
		FROM walk w CROSS JOIN entry a ON a.ref = w.parent
		WHERE w.ref > ?2
	)
	SELECT` + entryColumns + `
	FROM walk w CROSS JOIN entry e ON e.ref = w.ref
	WHERE e.ref >= ?3 OR e.type IS NOT 'message' OR e.role IS NOT 'system'`

// ContextEntries returns the entries that make the context of the branch that ends at an
// entry, in order, those that give no message included: the latest compaction, then what
// it kept but for system messages, then what came after it; the whole branch where there
// is no compaction. Returns [ErrNotFound] for a row that is no entry.
//
// Where no entry of the branch stands before its parent, as in all files that pi writes
// by itself, the cost follows the walk up to the first kept entry.
func (rx *Rx) ContextEntries(ctx context.Context, leaf Ref) ([]Entry, error) {
	c, err := rx.contextRows(ctx, leaf)
	if err != nil {
		return nil, fmt.Errorf("read context of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return entriesOf(c.rows), nil
}

// contextRows is the context of a branch before its lines are read.
type contextRows struct {
	path   *pathRow
	rows   []*entryRow
	branch []*entryRow // the whole of it, where path has no depth
}

func (rx *Rx) contextRows(ctx context.Context, leaf Ref) (*contextRows, error) {
	path, err := rx.pathRow(ctx, leaf)
	if err != nil {
		return nil, err
	}
	c := &contextRows{path: path}
	if path.Depth == nil {
		if c.branch, err = rx.branchRows(ctx, leaf); err != nil {
			return nil, err
		}
		c.rows = selectContext(c.branch)
		return c, nil
	}
	compaction, stop := deref(path.Compaction), deref(path.Compaction)
	if path.Kept != nil {
		stop = *path.Kept
	}
	scan := newEntryScan(entryWidth)
	err = rx.scanRows(ctx, func(rows *sqlx.Rows) error {
		row, err := scan.scan(rows)
		c.rows = append(c.rows, row)
		return err
	}, sqlContext, leaf, stop, compaction)
	if err != nil {
		return nil, err
	}
	// Every parent stands before its child, so the path is in file order.
	slices.SortFunc(c.rows, func(a, b *entryRow) int { return int(a.Ref - b.Ref) })
	if err := rx.linkParents(ctx, c.rows); err != nil {
		return nil, err
	}
	if at := slices.IndexFunc(c.rows, func(row *entryRow) bool { return row.Ref == compaction }); at > 0 {
		first := c.rows[at]
		copy(c.rows[1:at+1], c.rows[:at])
		c.rows[0] = first
	}
	return c, nil
}

// selectContext is pi's buildContextEntries over a whole branch.
func selectContext(branch []*entryRow) []*entryRow {
	at := lastCompaction(branch)
	if at < 0 {
		return branch
	}
	compaction := branch[at]
	rows := []*entryRow{compaction}
	if kept := slices.IndexFunc(branch[:at], func(row *entryRow) bool {
		return compaction.Target != "" && row.ID == compaction.Target
	}); kept >= 0 {
		for _, row := range branch[kept:at] {
			if row.Type != "message" || row.Role != "system" {
				rows = append(rows, row)
			}
		}
	}
	return append(rows, branch[at+1:]...)
}

// Context returns what the model would be given at an entry, by the rules of pi's
// buildSessionProjection. An entry that pi would throw at gives no message. Returns
// [ErrNotFound] for a row that is no entry, and errors that wrap [ErrDamaged].
func (rx *Rx) Context(ctx context.Context, leaf Ref) (*Context, error) {
	c, err := rx.context(ctx, leaf)
	if err != nil {
		return nil, fmt.Errorf("read context of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return c, nil
}

func (rx *Rx) context(ctx context.Context, leaf Ref) (*Context, error) {
	rows, err := rx.contextRows(ctx, leaf)
	if err != nil {
		return nil, err
	}
	c := &Context{Entries: entriesOf(rows.rows)}
	if c.Model, c.ThinkingLevel, err = rx.settings(ctx, rows); err != nil {
		return nil, err
	}
	c.Messages, err = rx.messages(ctx, rows.rows)
	return c, err
}

// What holds at an entry all of whose ancestors stand before it.
const sqlSetting = `SELECT provider, model, has_model, thinking FROM setting WHERE key = ?1`

// settings returns model and thinking level at the end of a branch, as pi's
// getSessionContextSettings.
func (rx *Rx) settings(ctx context.Context, c *contextRows) (*Model, string, error) {
	if c.branch != nil {
		return rx.walkSettings(ctx, c.branch)
	}
	if c.path.Setting == nil {
		return nil, "off", nil
	}
	var row struct {
		Provider *string `db:"provider"`
		Model    *string `db:"model"`
		HasModel bool    `db:"has_model"`
		Thinking *string `db:"thinking"`
	}
	if err := rx.tx.GetContext(ctx, &row, sqlSetting, *c.path.Setting); err != nil {
		return nil, "", fmt.Errorf("read its setting: %w", noRows(err, ErrDamaged))
	}
	if !row.HasModel {
		return nil, deref(row.Thinking), nil
	}
	return &Model{deref(row.Provider), deref(row.Model)}, deref(row.Thinking), nil
}

// walkSettings finds model and thinking level in a whole branch.
func (rx *Rx) walkSettings(ctx context.Context, branch []*entryRow) (*Model, string, error) {
	var model *Model
	level := "off"
	needModel, needLevel := true, true
	var line lineReader
	for i := len(branch) - 1; i >= 0 && (needModel || needLevel); i-- {
		row := branch[i]
		word := row.Type
		assistant := word == "message" && row.Role == "assistant"
		if !(needLevel && word == "thinking_level_change") && !(needModel && (word == "model_change" || assistant)) {
			continue
		}
		v, err := line.read(ctx, rx, row)
		if err != nil {
			return nil, "", err
		}
		switch {
		case word == "thinking_level_change":
			level, needLevel = textOf(v.Get("thinkingLevel")), false
		case assistant:
			message := v.Get("message")
			model, needModel = &Model{textOf(message.Get("provider")), textOf(message.Get("model"))}, false
		default:
			model, needModel = &Model{textOf(v.Get("provider")), textOf(v.Get("modelId"))}, false
		}
	}
	return model, level, nil
}

func textOf(v jsonl.Value) string {
	s, _ := v.Text()
	return s
}

// lineReader parses lines one after the other, reusing its memory.
type lineReader struct {
	buf []byte
	doc jsonl.Doc
}

// read returns the value of an entry, valid until the next call.
func (l *lineReader) read(ctx context.Context, rx *Rx, row *entryRow) (jsonl.Value, error) {
	var err error
	if l.buf, err = rx.Bytes(ctx, row.Ref.Session(), row.Start, row.Size, l.buf); err != nil {
		return jsonl.Value{}, err
	}
	text := l.buf
	if row.Start == 0 {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	if err := l.doc.Parse(text); err != nil {
		return jsonl.Value{}, fmt.Errorf("%w: line %d is not the entry that was stored: %w", ErrDamaged, row.Line, err)
	}
	return l.doc.Root(), nil
}

// messages returns the messages that the entries of a context give.
func (rx *Rx) messages(ctx context.Context, rows []*entryRow) ([]Message, error) {
	// Lines are read in file order, which reads each chunk once.
	order := make([]int, 0, len(rows))
	for i, row := range rows {
		switch row.Type {
		case "message", "custom_message", "branch_summary", "context_edit":
			order = append(order, i)
		case "compaction":
			// An older compaction inside the kept range gives nothing.
			if i == 0 {
				order = append(order, i)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(rows[a].Ref - rows[b].Ref) })

	edits, last := map[string]edit{}, map[string]int{}
	made := make([][][]byte, len(rows))
	var line lineReader
	for _, i := range order {
		row := rows[i]
		v, err := line.read(ctx, rx, row)
		if err != nil {
			return nil, err
		}
		if row.Type != "context_edit" {
			made[i] = entryMessages(row, v)
			continue
		}
		if !row.HasTarget {
			continue
		}
		// The last in the order of the context wins, which need not be that of the file.
		if before, ok := last[row.Target]; ok && before > i {
			continue
		}
		if e, ok := readEdit(v.Get("replacement")); ok {
			edits[row.Target], last[row.Target] = e, i
		}
	}

	var messages []Message
	for i, row := range rows {
		texts := made[i]
		if e, ok := edits[row.ID]; ok && len(texts) > 0 {
			var err error
			if texts, err = e.apply(texts); err != nil {
				return nil, fmt.Errorf("edit line %d: %w", row.Line, err)
			}
		}
		for _, text := range texts {
			messages = append(messages, Message{Source: row.Ref, JSON: text})
		}
	}
	return messages, nil
}
