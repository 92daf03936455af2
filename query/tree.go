package query

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"
)

// The entries whose parent is a given row, in file order, as pi's getChildren.
const sqlChildren = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.parent = ?1
	ORDER BY e.ref`

// Children returns the entries whose parent is the given one, in file order.
func (rx *Rx) Children(ctx context.Context, ref Ref) ([]Entry, error) {
	var children []Entry
	for row, err := range rx.entryRows(ctx, sqlChildren, ref) {
		if err != nil {
			return nil, fmt.Errorf("read children of entry %d of session #%d: %w", ref.Seq(), ref.Session(), err)
		}
		children = append(children, row.entry())
	}
	return children, nil
}

// Tip is an entry without a child: the end of a branch.
type Tip struct {
	Entry
	Activity time.Time // newest timestamp among its own entries; zero: none
	Own      int64     // entries that are on no other branch
}

// The entries without a child, in file order. From each a walk goes up as long as the
// parent has no other child: these rows are on no other branch. A row of a cycle from
// which a branch hangs has two children, so no walk goes round.
const sqlTips = `
	WITH RECURSIVE own (tip, ref, parent, ms) AS (
		SELECT e.ref, e.ref, e.parent, e.ms
		FROM entry e
		WHERE e.ref >= ?1 AND e.ref < ?2 AND e.kind = 'entry' AND NOT EXISTS (SELECT 1 FROM entry c WHERE c.parent = e.ref)
		UNION ALL
		SELECT o.tip, a.ref, a.parent, a.ms
		FROM own o CROSS JOIN entry a ON a.ref = o.parent
		WHERE NOT EXISTS (SELECT 1 FROM entry c WHERE c.parent = a.ref AND c.ref <> o.ref)
	)
	SELECT` + entryColumns + parentColumns + `, t.activity, t.own
	FROM (SELECT tip, max(ms) AS activity, count(*) AS own FROM own GROUP BY tip) t
	CROSS JOIN entry e ON e.ref = t.tip LEFT JOIN entry p ON p.ref = e.parent
	ORDER BY e.ref`

// Tips returns the entries of a session without a child, in file order.
func (rx *Rx) Tips(ctx context.Context, session Key) ([]Tip, error) {
	tips, err := rx.tips(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("read tips of session #%d: %w", session, err)
	}
	return tips, nil
}

func (rx *Rx) tips(ctx context.Context, session Key) ([]Tip, error) {
	first, end := session.refRange()
	var tips []Tip
	var activity *int64
	var own int64
	scan := newEntryScan(entryWidth+parentWidth, &activity, &own)
	err := rx.scanRows(ctx, func(rows *sqlx.Rows) error {
		row, err := scan.scan(rows)
		if err != nil {
			return err
		}
		tip := Tip{Entry: row.entry(), Own: own}
		if activity != nil {
			tip.Activity = time.UnixMilli(*activity).UTC()
		}
		tips = append(tips, tip)
		return nil
	}, sqlTips, first, end)
	return tips, err
}

// Node is an entry in the tree of its session.
type Node struct {
	Entry
	Depth int    // 0: a root
	Label string // as it stands now; empty: none
	Tip   bool   // no entry has it as its parent
}

// The tree of a session from its roots down, as pi's getTree: roots in file order,
// children by time. Taking the deepest row first makes the walk pre-order, and all rows
// of one depth that wait at one time are children of one row, so the other sort columns
// order siblings. Siblings that JavaScript's sort would not put by time alone have their
// place in ?3, {ref: place}. The earliest row of a cycle is a root, so never a child.
const sqlTree = `
	WITH RECURSIVE odd (ref, place) AS MATERIALIZED (
		SELECT CAST(key AS INTEGER), value FROM json_each(?3)
	), node (ref, depth, place) AS (
		SELECT ref, 0, ref FROM entry INDEXED BY entry_top WHERE top = 1 AND ref >= ?1 AND ref < ?2
		UNION ALL
		SELECT c.ref, n.depth + 1, coalesce(o.place, c.ms)
		FROM node n CROSS JOIN entry c ON c.parent = n.ref AND c.top = 0 LEFT JOIN odd o ON o.ref = c.ref
		ORDER BY 2 DESC, 3, 1
	)
	SELECT` + entryColumns + parentColumns + `, n.depth, NOT EXISTS (SELECT 1 FROM entry c WHERE c.parent = e.ref) AS tip
	FROM node n CROSS JOIN entry e ON e.ref = n.ref LEFT JOIN entry p ON p.ref = e.parent`

// Tree yields the entries of a session in pre-order: roots in file order, the children
// of an entry by time, those of one time in file order. A cycle of parents that hangs
// from no root stands under its earliest line. Nodes come as they are asked for, and an
// early break frees them.
//
// Children without a readable time stand where pi's sort puts them. Of 64 siblings and
// more they stand beside the sibling before them in the file.
func (rx *Rx) Tree(ctx context.Context, session Key) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		err := rx.tree(ctx, session, func(n Node) bool { return yield(n, nil) })
		if err != nil {
			yield(Node{}, fmt.Errorf("read tree of session #%d: %w", session, err))
		}
	}
}

func (rx *Rx) tree(ctx context.Context, session Key, yield func(Node) bool) error {
	labels, err := rx.Labels(ctx, session)
	if err != nil {
		return err
	}
	text := make(map[Ref]string, len(labels))
	for _, label := range labels {
		text[label.Target] = label.Text
	}
	odd, err := rx.oddSiblings(ctx, session)
	if err != nil {
		return err
	}
	first, end := session.refRange()
	var depth int
	var tip bool
	scan := newEntryScan(entryWidth+parentWidth, &depth, &tip)
	err = rx.scanRows(ctx, func(rows *sqlx.Rows) error {
		row, err := scan.scan(rows)
		if err != nil {
			return err
		}
		if !yield(Node{Entry: row.entry(), Depth: depth, Label: text[row.Ref], Tip: tip}) {
			return errEnough
		}
		return nil
	}, sqlTree, first, end, odd)
	if err == errEnough {
		return nil
	}
	return err
}

// sibling is a row of sqlOddSiblings.
type sibling struct {
	Parent Ref    `db:"parent"`
	Ref    Ref    `db:"ref"`
	MS     *int64 `db:"ms"`
}

// The children of each entry that has a child whose time Date does not read, in file order.
const sqlOddSiblings = `
	SELECT c.parent, c.ref, c.ms
	FROM entry c
	WHERE c.top = 0 AND c.parent IN (
		SELECT parent FROM entry
		WHERE ref >= ?1 AND ref < ?2 AND kind = 'entry' AND ms IS NULL AND parent IS NOT NULL)
	ORDER BY c.parent, c.ref`

// oddSiblings returns the places of siblings that time alone does not order, as a JSON
// object by ref.
func (rx *Rx) oddSiblings(ctx context.Context, session Key) (string, error) {
	first, end := session.refRange()
	places := map[string]int{}
	var family []sibling
	settle := func() {
		sortSiblings(family)
		for place, s := range family {
			places[strconv.FormatInt(int64(s.Ref), 10)] = place
		}
		family = family[:0]
	}
	err := each(ctx, rx, func(s *sibling) error {
		if len(family) > 0 && family[0].Parent != s.Parent {
			settle()
		}
		family = append(family, *s)
		return nil
	}, sqlOddSiblings, first, end)
	if err != nil {
		return "", err
	}
	settle()
	text, err := json.Marshal(places)
	return string(text), err
}

// timSortRun is the length below which V8 sorts an array as one run.
const timSortRun = 64

// sortSiblings sorts by time as JavaScript's Array.prototype.sort does with a comparator
// that subtracts times: one that is NaN compares equal to all, so the result depends on
// the comparisons that V8 makes. For short arrays these are a first run, turned round
// where it strictly falls, and binary insertion of the rest.
func sortSiblings(s []sibling) {
	if len(s) >= timSortRun {
		sortBesideBrother(s)
		return
	}
	if len(s) < 2 {
		return
	}
	less := func(a, b sibling) bool { return a.MS != nil && b.MS != nil && *a.MS < *b.MS }
	run := 2
	falls := less(s[1], s[0])
	for run < len(s) && less(s[run], s[run-1]) == falls {
		run++
	}
	if falls {
		slices.Reverse(s[:run])
	}
	for i := run; i < len(s); i++ {
		pivot := s[i]
		left, right := 0, i
		for left < right {
			mid := left + (right-left)/2
			if less(pivot, s[mid]) {
				right = mid
			} else {
				left = mid + 1
			}
		}
		copy(s[left+1:i+1], s[left:i])
		s[left] = pivot
	}
}

// sortBesideBrother sorts by time and gives those without one the time of the sibling
// before them, at the beginning that of the first that has one.
func sortBesideBrother(s []sibling) {
	type timed struct {
		sibling
		at int64
	}
	all := make([]timed, len(s))
	var at int64
	if i := slices.IndexFunc(s, func(s sibling) bool { return s.MS != nil }); i >= 0 {
		at = *s[i].MS
	}
	for i := range s {
		if s[i].MS != nil {
			at = *s[i].MS
		}
		all[i] = timed{s[i], at}
	}
	slices.SortStableFunc(all, func(a, b timed) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return 0
	})
	for i := range all {
		s[i] = all[i].sibling
	}
}
