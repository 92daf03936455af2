package query

import (
	"context"
	"fmt"
)

// Label is a label as it stands now.
type Label struct {
	Ref    Ref    // the label entry that set it
	ID     string // the entry id that it names
	Target Ref    // the last entry with that id; 0: no line has it
	Text   string
}

// labelRow is a row of sqlLabels.
type labelRow struct {
	Ref       Ref     `db:"ref"`
	Target    string  `db:"target"`
	Value     *string `db:"value"`
	TargetRef *Ref    `db:"target_ref"`
}

// The last label entry of each target in file order, on whatever branch, as pi's
// _buildIndex; and the line that the target's id means, as a lookup by id gives it. With
// max, SQLite takes the other columns from the row that has the greatest ref.
const sqlLabels = `
	SELECT l.ref, l.target, l.value, (
		SELECT e.ref FROM entry e
		WHERE e.id = l.target AND e.ref >= ?1 AND e.ref < ?2
		ORDER BY e.ref DESC LIMIT 1) AS target_ref
	FROM (
		SELECT max(ref) AS ref, target, value
		FROM entry INDEXED BY entry_type
		WHERE type = 'label' AND type <> 'message' AND ref >= ?1 AND ref < ?2 AND target IS NOT NULL
		GROUP BY target
	) l
	ORDER BY l.ref`

// Labels returns the labels of a session as they stand now, in the order of the entries
// that set them. Those that were cleared are not among them.
func (rx *Rx) Labels(ctx context.Context, session Key) ([]Label, error) {
	first, end := session.refRange()
	var labels []Label
	err := each(ctx, rx, func(row *labelRow) error {
		if row.Value != nil {
			labels = append(labels, Label{row.Ref, row.Target, deref(row.TargetRef), *row.Value})
		}
		return nil
	}, sqlLabels, first, end)
	if err != nil {
		return nil, fmt.Errorf("read labels of session #%d: %w", session, err)
	}
	return labels, nil
}

// The last session_info entry of a session in file order, on whatever branch, as pi's
// getSessionName. One whose name is no string says nothing.
const sqlName = `
	SELECT value FROM entry INDEXED BY entry_type
	WHERE type = 'session_info' AND type <> 'message' AND ref >= ?1 AND ref < ?2 AND value IS NOT NULL
	ORDER BY ref DESC LIMIT 1`

// Name returns the name that the entries of a session give it now, empty for none.
func (rx *Rx) Name(ctx context.Context, session Key) (string, error) {
	first, end := session.refRange()
	var name *string
	if err := noRows(rx.tx.GetContext(ctx, &name, sqlName, first, end), nil); err != nil {
		return "", fmt.Errorf("read name of session #%d: %w", session, err)
	}
	return deref(name), nil
}
