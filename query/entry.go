package query

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// entryRow is a row of the entry table with the row of its parent, as entryColumns and
// parentColumns list them. NULL is the zero value.
type entryRow struct {
	Ref        Ref
	Line       int64
	Part       int64
	Start      int64
	Size       int64
	Kind       string
	Type       string
	Role       string
	ID         string
	Parent     Ref
	Orphan     string // parent id that no other line has
	Top        bool
	MS         int64
	HasMS      bool
	Target     string
	HasTarget  bool
	Value      string
	ParentID   string
	ParentLine LineNumber
}

const (
	entryColumns = `
	e.ref, e.line, e.part, e.start, e.size, e.kind, e.type, e.role, e.id, e.parent,
	CASE WHEN e.loop = 1 AND e.parent IS NULL THEN e.id ELSE e.orphan END, e.top, e.ms, e.target, e.value`
	parentColumns = `, p.id AS parent_id, p.line AS parent_line, p.part AS parent_part`
)

// How many columns entryColumns and parentColumns are.
const (
	entryWidth  = 15
	parentWidth = 3
)

// entryScan reads rows that begin with entryColumns. It stands in for sqlx's StructScan,
// which would take most of the time of a long branch, and reuses its memory.
type entryScan struct {
	values [entryWidth + parentWidth]any
	dest   []any
}

// newEntryScan returns a scan of rows of entryColumns, with parentColumns behind them or
// not, and then of what more points to.
func newEntryScan(width int, more ...any) *entryScan {
	s := &entryScan{}
	for i := range width {
		s.dest = append(s.dest, &s.values[i])
	}
	s.dest = append(s.dest, more...)
	return s
}

// scan reads a row.
func (s *entryScan) scan(rows *sqlx.Rows) (*entryRow, error) {
	if err := rows.Scan(s.dest...); err != nil {
		return nil, fmt.Errorf("scan entry: %w", Unreadable(err))
	}
	v := &s.values
	row := &entryRow{
		Ref: Ref(number(v[0])), Line: number(v[1]), Part: number(v[2]), Start: number(v[3]), Size: number(v[4]),
		Kind: word(v[5]), Type: word(v[6]), Role: word(v[7]), ID: word(v[8]), Parent: Ref(number(v[9])), Orphan: word(v[10]),
		Top: number(v[11]) != 0, MS: number(v[12]), HasMS: v[12] != nil, Target: word(v[13]), HasTarget: v[13] != nil, Value: word(v[14]),
		ParentID: word(v[15]), ParentLine: LineNumber{number(v[16]), number(v[17])},
	}
	return row, nil
}

// number returns an INTEGER column, 0 for NULL.
func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

// word returns a TEXT column, empty for NULL.
func word(v any) string {
	s, _ := v.(string)
	return s
}

// Kind says what a line of a session is.
type Kind string

const (
	KindEntry     Kind = "entry"
	KindSession   Kind = "session"   // the header, or a later record like one
	KindJSON      Kind = "json"      // JSON that is no entry
	KindBlank     Kind = "blank"     // nothing but white space
	KindMalformed Kind = "malformed" // not JSON
)

// Entry is one physical line of a session, or one entry recovered from a malformed line.
// Lines that are no entries have only Ref, Line, Kind and Size.
type Entry struct {
	Ref        Ref
	Line       LineNumber
	Kind       Kind
	Type       string     // empty: no string
	Role       string     // of a message entry
	ID         string     // not unique; a lone surrogate stands as its escape
	HasID      bool       // ID may be the empty string
	Parent     Ref        // 0: a root of the tree, or an entry that is its own parent
	ParentID   string     // as the entry names it, also where no line has that id
	ParentLine LineNumber // zero: none; the entry's own where it is its own parent
	Timestamp  time.Time  // UTC; zero: none that JavaScript's Date reads
	Recovered  bool       // from a malformed line
	Top        bool       // a root of the tree, or the earliest line of a cycle of parents
	Target     string     // id that a label, a context edit, a compaction or a branch summary names
	Value      string     // label, session name, custom type, or tool name of a tool result
	Size       int64      // bytes, without the line's terminator
}

// Word names what the row is: the type of an entry, the kind of another line.
func (e *Entry) Word() string {
	if e.Kind == KindEntry {
		return e.Type
	}
	return string(e.Kind)
}

func (row *entryRow) entry() Entry {
	e := Entry{
		Ref: row.Ref, Line: row.at(), Kind: Kind(row.Kind), Type: row.Type, Role: row.Role, ID: row.ID,
		HasID: row.Kind == string(KindEntry), Parent: row.Parent, ParentID: row.Orphan, Recovered: row.Part > 0, Top: row.Top,
		Target: row.Target, Value: row.Value, Size: row.Size,
	}
	switch {
	case row.Parent != 0:
		e.ParentID, e.ParentLine = row.ParentID, row.ParentLine
	case row.Orphan != "" && row.Orphan == row.ID:
		e.ParentLine = row.at()
	}
	if row.HasMS {
		e.Timestamp = time.UnixMilli(row.MS).UTC()
	}
	return e
}

// at names the row's place in its file.
func (row *entryRow) at() LineNumber { return LineNumber{row.Line, row.Part} }

// scanRows calls scan for each row of a query.
func (rx *Rx) scanRows(ctx context.Context, scan func(*sqlx.Rows) error, query string, args ...any) error {
	rows, err := rx.tx.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// entryRows yields the rows of a query that selects entryColumns and parentColumns.
func (rx *Rx) entryRows(ctx context.Context, query string, args ...any) iter.Seq2[*entryRow, error] {
	return func(yield func(*entryRow, error) bool) {
		scan := newEntryScan(entryWidth + parentWidth)
		err := rx.scanRows(ctx, func(rows *sqlx.Rows) error {
			row, err := scan.scan(rows)
			if err != nil {
				return err
			}
			if !yield(row, nil) {
				return errEnough
			}
			return nil
		}, query, args...)
		if err != nil && err != errEnough {
			yield(nil, err)
		}
	}
}

// errEnough ends scanRows where the caller wants no more.
var errEnough = errors.New("enough")

// entryRow returns the first row of such a query, or [ErrNotFound].
func (rx *Rx) entryRow(ctx context.Context, query string, args ...any) (*entryRow, error) {
	for row, err := range rx.entryRows(ctx, query, args...) {
		return row, err
	}
	return nil, ErrNotFound
}

// One row by its key.
const sqlEntry = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.ref = ?1`

// The last line with an entry id, as pi's getEntry: a later line with the same id takes
// its place in the index by id.
const sqlEntryByID = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.id = ?1 AND e.ref >= ?2 AND e.ref < ?3
	ORDER BY e.ref DESC LIMIT 1`

// The first row from a given one on that stands on a given line or after it. Rows are in
// line order and a line has at least one, so line N is not before the row with seq N - 1.
const sqlEntryAt = `
	SELECT e.ref, e.line
	FROM entry e
	WHERE e.ref >= ?1 AND e.ref < ?2 AND e.line >= ?3
	ORDER BY e.ref LIMIT 1`

// Entry returns a row, or [ErrNotFound].
func (rx *Rx) Entry(ctx context.Context, ref Ref) (Entry, error) {
	row, err := rx.entryRow(ctx, sqlEntry, ref)
	if err != nil {
		return Entry{}, fmt.Errorf("read entry %d of session #%d: %w", ref.Seq(), ref.Session(), err)
	}
	return row.entry(), nil
}

// EntryByID returns the last entry of a session with the given id, or [ErrNotFound].
func (rx *Rx) EntryByID(ctx context.Context, session Key, id string) (Entry, error) {
	first, end := session.refRange()
	row, err := rx.entryRow(ctx, sqlEntryByID, id, first, end)
	if err != nil {
		return Entry{}, fmt.Errorf("read entry %q of session #%d: %w", id, session, err)
	}
	return row.entry(), nil
}

// EntryAt returns the row of a physical line, or of an entry recovered from it, or
// [ErrNotFound].
func (rx *Rx) EntryAt(ctx context.Context, session Key, line LineNumber) (Entry, error) {
	e, err := rx.entryAt(ctx, session, line)
	if err != nil {
		return Entry{}, fmt.Errorf("read line %d of session #%d: %w", line.Line, session, err)
	}
	return e, nil
}

func (rx *Rx) entryAt(ctx context.Context, session Key, line LineNumber) (Entry, error) {
	if line.Line < 1 || line.Line > MaxRows || line.Part < 0 || line.Part > MaxRows {
		return Entry{}, ErrNotFound
	}
	var at struct {
		Ref  Ref   `db:"ref"`
		Line int64 `db:"line"`
	}
	_, end := session.refRange()
	err := rx.tx.GetContext(ctx, &at, sqlEntryAt, MakeRef(session, line.Line-1), end, line.Line)
	if err != nil {
		return Entry{}, noRows(err, ErrNotFound)
	}
	// What was recovered from a line comes just after the line, in order.
	row, err := rx.entryRow(ctx, sqlEntry, at.Ref+Ref(line.Part))
	if err != nil {
		return Entry{}, err
	}
	if row.Line != line.Line || row.Part != line.Part {
		return Entry{}, ErrNotFound
	}
	return row.entry(), nil
}

// EntriesOptions choose among the rows of a session.
type EntriesOptions struct {
	// Types are the types of entries and the kinds of other lines to give; none means all.
	Types []string
	// Leaf asks for the entries on the branch that ends there; 0 means all.
	Leaf Ref
}

// The rows of a session in file order.
const sqlEntries = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.ref >= ?1 AND e.ref < ?2
	ORDER BY e.ref`

// The rows of a session in file order that are of some types or kinds.
const sqlEntriesOf = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.ref >= ?1 AND e.ref < ?2
	  AND CASE e.kind WHEN 'entry' THEN e.type ELSE e.kind END IN (SELECT value FROM json_each(?3))
	ORDER BY e.ref`

// The entries of a session of one type that is not message.
const sqlEntriesOfType = `
	SELECT` + entryColumns + parentColumns + `
	FROM entry e INDEXED BY entry_type LEFT JOIN entry p ON p.ref = e.parent
	WHERE e.type = ?3 AND e.type <> 'message' AND e.ref >= ?1 AND e.ref < ?2
	ORDER BY e.ref`

// Entries yields the rows of a session in file order, lines that are no entries
// included. The session is not loaded: rows come as they are asked for, and an early
// break frees them.
func (rx *Rx) Entries(ctx context.Context, session Key, opts *EntriesOptions) iter.Seq2[Entry, error] {
	if opts == nil {
		opts = &EntriesOptions{}
	}
	return func(yield func(Entry, error) bool) {
		for e, err := range rx.entries(ctx, session, opts) {
			if err != nil {
				err = fmt.Errorf("read entries of session #%d: %w", session, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (rx *Rx) entries(ctx context.Context, session Key, opts *EntriesOptions) iter.Seq2[Entry, error] {
	if opts.Leaf != 0 {
		return rx.branchEntries(ctx, session, opts)
	}
	first, end := session.refRange()
	query, args := sqlEntries, []any{first, end}
	switch {
	case len(opts.Types) == 1 && opts.Types[0] != "message" && !opts.namesKind():
		query, args = sqlEntriesOfType, append(args, opts.Types[0])
	case len(opts.Types) > 0:
		types, err := json.Marshal(opts.Types)
		if err != nil {
			return failed[Entry](err)
		}
		query, args = sqlEntriesOf, append(args, string(types))
	}
	return func(yield func(Entry, error) bool) {
		for row, err := range rx.entryRows(ctx, query, args...) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(row.entry(), nil) {
				return
			}
		}
	}
}

// namesKind reports whether one of the types is a kind of line.
func (opts *EntriesOptions) namesKind() bool {
	return slices.ContainsFunc(opts.Types, func(t string) bool {
		return slices.Contains([]Kind{KindSession, KindJSON, KindBlank, KindMalformed}, Kind(t))
	})
}

// branchEntries yields the entries of a branch in file order.
func (rx *Rx) branchEntries(ctx context.Context, session Key, opts *EntriesOptions) iter.Seq2[Entry, error] {
	if opts.Leaf.Session() != session {
		return failed[Entry](ErrNotFound)
	}
	rows, err := rx.branchRows(ctx, opts.Leaf)
	if err != nil {
		return failed[Entry](err)
	}
	slices.SortFunc(rows, func(a, b *entryRow) int { return int(a.Ref - b.Ref) })
	return func(yield func(Entry, error) bool) {
		for _, row := range rows {
			if len(opts.Types) > 0 && !slices.Contains(opts.Types, row.Type) {
				continue
			}
			if !yield(row.entry(), nil) {
				return
			}
		}
	}
}

// failed yields an error alone.
func failed[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		yield(zero, err)
	}
}

// Where a row's bytes are.
const sqlPlace = `SELECT start, size FROM entry WHERE ref = ?1`

// Raw returns the bytes of a row as they stand in its file: of a line all but the
// terminator, of a recovered entry its JSON. Returns [ErrNotFound], and errors that wrap
// [ErrDamaged].
func (rx *Rx) Raw(ctx context.Context, ref Ref) ([]byte, error) {
	var start, size int64
	err := rx.tx.QueryRowContext(ctx, sqlPlace, ref).Scan(&start, &size)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read entry %d of session #%d: %w", ref.Seq(), ref.Session(), err)
	}
	return rx.Bytes(ctx, ref.Session(), start, size, nil)
}
