package repo

import (
	"context"
	"database/sql"
	"errors"

	"pidb/query"
)

// archived answers a builder's questions about the rows of a session that are in the archive.
type archived struct {
	rx      *reading
	session query.Key
}

func (a *archived) last(ctx context.Context, id string) (int64, error) {
	var ref query.Ref
	err := a.rx.get(ctx, &ref, `
		SELECT ref FROM entry WHERE id = ? AND ref >= ? AND ref < ? ORDER BY ref DESC LIMIT 1`,
		id, query.MakeRef(a.session, 0), query.MakeRef(a.session+1, 0))
	if errors.Is(err, sql.ErrNoRows) {
		return none, nil
	}
	return ref.Seq(), err
}

// linkRow is a row of the entry table with its setting and whether it has a child.
type linkRow struct {
	Parent     *query.Ref `db:"parent"`
	Depth      *int64     `db:"depth"`
	Compaction *query.Ref `db:"compaction"`
	HasSetting bool       `db:"has_setting"`
	Provider   *string    `db:"provider"`
	Model      *string    `db:"model"`
	HasModel   *bool      `db:"has_model"`
	Thinking   *string    `db:"thinking"`
	Parented   bool       `db:"parented"`
}

func (a *archived) link(ctx context.Context, seq int64) (link, error) {
	var row linkRow
	ref := query.MakeRef(a.session, seq)
	if err := a.rx.get(ctx, &row, `
		SELECT e.parent, e.depth, e.compaction, t.key IS NOT NULL AS has_setting, t.provider, t.model, t.has_model, t.thinking,
			EXISTS (SELECT 1 FROM entry c WHERE c.parent = e.ref) AS parented
		FROM entry e LEFT JOIN setting t ON t.key = e.setting WHERE e.ref = ?`, ref); err != nil {
		return link{}, err
	}
	l := link{entry: true, parent: seqOf(row.Parent), depth: none, compaction: seqOf(row.Compaction), kept: none, parented: row.Parented}
	if row.Depth != nil {
		l.depth = *row.Depth
	}
	if row.HasSetting {
		l.setting = setting{model{row.Provider, row.Model}, *row.HasModel, row.Thinking}
	}
	return l, nil
}

func (a *archived) awaited(ctx context.Context, id string) (bool, error) {
	var found bool
	err := a.rx.get(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM entry WHERE orphan = ? AND ref >= ? AND ref < ?)`,
		id, query.MakeRef(a.session, 0), query.MakeRef(a.session+1, 0))
	return found, err
}

func (a *archived) rootmost(ctx context.Context, seq int64, id string) (int64, error) {
	var found *query.Ref
	// Parents here point to earlier rows: the path ends.
	err := a.rx.get(ctx, &found, `
		WITH RECURSIVE path (ref, parent, id) AS (
			SELECT ref, parent, id FROM entry WHERE ref = ?
			UNION ALL
			SELECT e.ref, e.parent, e.id FROM path p JOIN entry e ON e.ref = p.parent
		)
		SELECT min(ref) FROM path WHERE id = ?`, query.MakeRef(a.session, seq), id)
	return seqOf(found), err
}

// seqOf returns the seq of a row that may not be there.
func seqOf(ref *query.Ref) int64 {
	if ref == nil {
		return none
	}
	return ref.Seq()
}

// lastLine is the newest row of a session.
type lastLine struct {
	Seq      int64
	Ref      query.Ref `db:"ref"`
	Kind     string    `db:"kind"`
	Part     int64     `db:"part"`
	Start    int64     `db:"start"`
	Size     int64     `db:"size"`
	Ending   int64     `db:"ending"`
	EndsInCR bool
}

// lastRow returns the newest row of a session that has one.
func (rx *reading) lastRow(ctx context.Context, session query.Key) (lastLine, error) {
	var row lastLine
	err := rx.tx.GetContext(ctx, &row, `
		SELECT ref, kind, part, start, size, ending FROM entry WHERE ref >= ? AND ref < ? ORDER BY ref DESC LIMIT 1`,
		query.MakeRef(session, 0), query.MakeRef(session+1, 0))
	if err != nil {
		return row, err
	}
	row.Seq = row.Ref.Seq()
	if row.Ending == 0 && row.Size > 0 {
		end, err := rx.Bytes(ctx, session, row.Start+row.Size-1, 1, nil)
		if err != nil {
			return row, err
		}
		row.EndsInCR = end[0] == '\r'
	}
	return row, nil
}

// pieceRow is a piece of a session without its bytes.
type pieceRow struct {
	Start int64 `db:"start"`
	Size  int64 `db:"size"`
}

// lastPiece returns the last piece of a session that has one.
func (rx *reading) lastPiece(ctx context.Context, session query.Key) (pieceRow, error) {
	var row pieceRow
	err := rx.tx.GetContext(ctx, &row, `
		SELECT p.start, c.size FROM piece p JOIN chunk c ON c.key = p.chunk
		WHERE p.session = ? ORDER BY p.start DESC LIMIT 1`, session)
	return row, err
}
