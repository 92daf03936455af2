package query

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"
)

// ErrBadCursor is returned for a cursor that no call gave out, or one of a listing in
// another order.
var ErrBadCursor = errors.New("bad cursor")

// Sort is an order of sessions. Each is descending.
type Sort string

const (
	SortModified Sort = "modified" // last activity, the default
	SortCreated  Sort = "created"  // sessions whose time of creation is unknown come last
	SortSize     Sort = "size"
	SortCost     Sort = "cost"
)

// sortColumns gives the column that each order sorts by.
var sortColumns = map[Sort]string{
	SortModified: "s.modified_ms",
	SortCreated:  "coalesce(s.created_ms, -9007199254740992)",
	SortSize:     "s.bytes",
	SortCost:     "s.cost",
}

// DefaultListLimit is the number of sessions on a page where none is asked for.
const DefaultListLimit = 50

// ListOptions say which sessions a listing holds. A zero field asks for nothing.
type ListOptions struct {
	CWD      string    // this folder or one below it
	Since    time.Time // last activity at this time or later
	Until    time.Time // last activity before this time
	Name     string    // part of the name, in any case
	Model    string    // part of provider/model, in any case
	Sort     Sort
	Limit    int    // of a page; 0: DefaultListLimit
	All      bool   // one page with all sessions, whatever Limit says
	After    string // the cursor that came with the page before
	Archived bool   // missing and superseded sessions too
}

// List returns a page of sessions, and the cursor of the next page or "" on the last
// one. Files without a byte are not listed. Only session rows are read. Returns
// [ErrBadCursor] for an After of another listing.
func (rx *Rx) List(ctx context.Context, opts *ListOptions) ([]Session, string, error) {
	if opts == nil {
		opts = &ListOptions{}
	}
	order := opts.Sort
	if order == "" {
		order = SortModified
	}
	column, ok := sortColumns[order]
	if !ok {
		return nil, "", fmt.Errorf("list sessions: unknown order %q", order)
	}
	limit := opts.Limit
	if limit <= 0 {
		limit = DefaultListLimit
	}
	if opts.All {
		limit = math.MaxInt32
	}
	where := filter{}
	where.add(`s.bytes > 0`)
	where.folder(opts.CWD)
	where.model(opts.Model)
	if !opts.Since.IsZero() {
		where.add(`s.modified_ms >= ?`, ceilMilli(opts.Since))
	}
	if !opts.Until.IsZero() {
		where.add(`s.modified_ms < ?`, ceilMilli(opts.Until))
	}
	if opts.Name != "" {
		keys, err := rx.named(ctx, opts.Name)
		if err != nil {
			return nil, "", fmt.Errorf("list sessions: %w", err)
		}
		where.add(`s.key IN (SELECT value FROM json_each(?))`, keys)
	}
	if opts.After != "" {
		value, key, err := decodeCursor(order, opts.After)
		if err != nil {
			return nil, "", fmt.Errorf("list sessions: %w", err)
		}
		where.add(`(`+column+`, s.key) < (?, ?)`, value, key)
	}
	// Each state is a range of the index session_modified; SQLite merges the ranges in order.
	states := []State{Live}
	if opts.Archived {
		states = append(states, Missing, Superseded)
	}
	var parts []string
	var args []any
	for _, state := range states {
		parts = append(parts, `SELECT s.key, `+column+` AS value FROM session s WHERE s.state = '`+string(state)+`'`+where.and())
		args = append(args, where.args...)
	}
	query := `
		SELECT ` + sessionColumns + `
		FROM (` + strings.Join(parts, ` UNION ALL `) + ` ORDER BY value DESC, key DESC LIMIT ?) page
		CROSS JOIN ` + sessionTables + `
		WHERE s.key = page.key
		ORDER BY page.value DESC, page.key DESC`
	list := []Session{}
	more := false
	err := each(ctx, rx, func(row *sessionRow) error {
		if len(list) == limit {
			more = true
			return nil
		}
		list = append(list, row.session())
		return nil
	}, query, append(args, limit+1)...)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions: %w", err)
	}
	next := ""
	if more {
		next = encodeCursor(order, &list[len(list)-1])
	}
	return list, next, nil
}

// named returns the keys of the sessions whose name contains part in any case, as a
// JSON array. SQLite knows the case of ASCII letters only.
func (rx *Rx) named(ctx context.Context, part string) (string, error) {
	keys := []Key{}
	part = strings.ToLower(part)
	err := each(ctx, rx, func(row *struct {
		Key  Key    `db:"key"`
		Name string `db:"name"`
	},
	) error {
		if strings.Contains(strings.ToLower(row.Name), part) {
			keys = append(keys, row.Key)
		}
		return nil
	}, `SELECT key, name FROM session WHERE name IS NOT NULL`)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(keys)
	return string(list), err
}

// A cursor is the name of the order, a zero byte, the value of the last row by which it
// is sorted, and its key.

func encodeCursor(order Sort, last *Session) string {
	var value uint64
	switch order {
	case SortModified:
		value = uint64(last.Modified.UnixMilli())
	case SortCreated:
		value = uint64(createdValue(last))
	case SortSize:
		value = uint64(last.Bytes)
	case SortCost:
		value = math.Float64bits(last.Cost)
	}
	raw := append([]byte(order), 0)
	raw = binary.BigEndian.AppendUint64(raw, value)
	raw = binary.BigEndian.AppendUint64(raw, uint64(last.Key))
	return base64.RawURLEncoding.EncodeToString(raw)
}

// createdValue is what the column of SortCreated has for a session.
func createdValue(s *Session) int64 {
	if s.Created.IsZero() {
		return -9007199254740992
	}
	return s.Created.UnixMilli()
}

func decodeCursor(order Sort, cursor string) (value any, key Key, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return nil, 0, ErrBadCursor
	}
	name, rest, ok := strings.Cut(string(raw), "\x00")
	if !ok || len(rest) != 16 {
		return nil, 0, ErrBadCursor
	}
	if name != string(order) {
		return nil, 0, fmt.Errorf("%w: of another order", ErrBadCursor)
	}
	bits := binary.BigEndian.Uint64([]byte(rest[:8]))
	key = Key(binary.BigEndian.Uint64([]byte(rest[8:])))
	if order == SortCost {
		return math.Float64frombits(bits), key, nil
	}
	return int64(bits), key, nil
}

// filter collects conditions of a statement with their arguments.
type filter struct {
	clauses []string
	args    []any
}

func (f *filter) add(clause string, args ...any) {
	f.clauses = append(f.clauses, clause)
	f.args = append(f.args, args...)
}

// and returns the conditions, each behind an AND.
func (f *filter) and() string {
	var b strings.Builder
	for _, clause := range f.clauses {
		b.WriteString(" AND ")
		b.WriteString(clause)
	}
	return b.String()
}

// folder asks for sessions s of a folder or one below it.
func (f *filter) folder(dir string) {
	if dir == "" {
		return
	}
	separator := "/"
	if !strings.Contains(dir, "/") && strings.Contains(dir, `\`) {
		separator = `\`
	} else {
		dir = filepath.ToSlash(filepath.Clean(dir))
	}
	below := strings.TrimSuffix(dir, separator) + separator
	f.add(`(s.cwd = ? OR s.cwd >= ? AND s.cwd < ?)`, dir, below, successor(below))
}

// model asks for sessions s whose model contains part, in any case.
func (f *filter) model(part string) {
	if part != "" {
		f.add(`instr(lower(s.model), ?) > 0`, asciiLower(part))
	}
}

// successor returns the least string that is greater than all that begin with prefix,
// in the order of bytes, or "" where there is none.
func successor(prefix string) string {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			return prefix[:i] + string([]byte{prefix[i] + 1})
		}
	}
	return ""
}

// asciiLower does what SQLite's lower does.
func asciiLower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// ceilMilli returns the first millisecond that is not before t.
func ceilMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// CountSessions returns how many sessions a search looks at with these options, of which
// CWD and Session count, and how many the archive has.
func (rx *Rx) CountSessions(ctx context.Context, opts *SearchOptions) (searched, all int, err error) {
	s := &search{rx: rx, opts: *opts}
	where := s.sessionFilter()
	if err := rx.tx.GetContext(ctx, &searched, `SELECT count(*) FROM session s WHERE TRUE`+where.and(), where.args...); err != nil {
		return 0, 0, err
	}
	err = rx.tx.GetContext(ctx, &all, `SELECT count(*) FROM session`)
	return searched, all, err
}
