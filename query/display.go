package query

import (
	"context"
	"fmt"

	"pidb/jsonl"
)

// Shown is one item of a conversation as a person reads it.
type Shown struct {
	Entry  Entry
	Marker bool   // no message, but something that happened: a compaction
	JSON   []byte // the message, or of a marker {"role":"sessionEvent","event":"compaction",…}
}

// Display returns all messages on the path to an entry, in order, those too that a
// compaction has put out of the context, as they were said: no edit of the context is
// done. Each compaction stands in its place as a marker. Returns [ErrNotFound] for a row
// that is no entry, and errors that wrap [ErrDamaged].
func (rx *Rx) Display(ctx context.Context, leaf Ref) ([]Shown, error) {
	shown, err := rx.display(ctx, leaf)
	if err != nil {
		return nil, fmt.Errorf("read what is shown at entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return shown, nil
}

func (rx *Rx) display(ctx context.Context, leaf Ref) ([]Shown, error) {
	rows, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return nil, err
	}
	var shown []Shown
	var line lineReader
	for _, row := range rows {
		switch row.Type {
		case "message", "custom_message", "branch_summary", "compaction":
		default:
			continue
		}
		v, err := line.read(ctx, rx, row)
		if err != nil {
			return nil, err
		}
		if row.Type == "compaction" {
			shown = append(shown, Shown{Entry: row.entry(), Marker: true, JSON: markerMessage(row, v)})
			continue
		}
		for _, text := range entryMessages(row, v) {
			shown = append(shown, Shown{Entry: row.entry(), JSON: text})
		}
	}
	return shown, nil
}

// markerMessage is what stands for a compaction.
func markerMessage(row *entryRow, v jsonl.Value) []byte {
	b := append([]byte(nil), `{"role":"sessionEvent","event":"compaction"`...)
	b = appendMember(b, "summary", v.Get("summary"))
	b = appendMember(b, "tokensBefore", v.Get("tokensBefore"))
	return appendTimestamp(b, row)
}

// Epoch returns the number of compactions on the path to an entry, itself included.
// Returns [ErrNotFound] for a row that is no entry.
func (rx *Rx) Epoch(ctx context.Context, leaf Ref) (int, error) {
	rows, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return 0, fmt.Errorf("count compactions before entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	n := 0
	for _, row := range rows {
		if row.Type == "compaction" {
			n++
		}
	}
	return n, nil
}

// KeptElsewhere says what a context holds whose latest compaction keeps from an entry on
// that is not on its path.
type KeptElsewhere uint8

const (
	// KeepAfter gives the summary and what came after the compaction, as pi does.
	KeepAfter KeptElsewhere = iota
	// KeepSummary gives the summary alone.
	KeepSummary
)

// ContextOptions are the choices of [Rx.ContextWith].
type ContextOptions struct {
	KeptElsewhere KeptElsewhere
}

// ContextWith is [Rx.Context] with other rules than pi's where pi's have a choice.
func (rx *Rx) ContextWith(ctx context.Context, leaf Ref, opts *ContextOptions) (*Context, error) {
	c, err := rx.context(ctx, leaf)
	if err == nil && opts != nil && opts.KeptElsewhere == KeepSummary && len(c.Entries) > 1 && c.Entries[0].Type == "compaction" {
		err = rx.keepSummary(ctx, leaf, c)
	}
	if err != nil {
		return nil, fmt.Errorf("read context of entry %d of session #%d: %w", leaf.Seq(), leaf.Session(), err)
	}
	return c, nil
}

// keepSummary leaves in a context the compaction alone where its first kept entry is not
// on the path.
func (rx *Rx) keepSummary(ctx context.Context, leaf Ref, c *Context) error {
	rows, err := rx.branchRows(ctx, leaf)
	if err != nil {
		return err
	}
	at := lastCompaction(rows)
	for _, row := range rows[:at+1] {
		// One that names itself keeps none of those before it.
		if row.ID == rows[at].Target && rows[at].HasTarget {
			return nil
		}
	}
	c.Entries = c.Entries[:1]
	for i := range c.Messages {
		if c.Messages[i].Source != c.Entries[0].Ref {
			c.Messages = c.Messages[:i]
			break
		}
	}
	return nil
}
