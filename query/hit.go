package query

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"pidb/jsonl"
)

// hitRow is an entry that may be a hit, as hitColumns lists it.
type hitRow struct {
	Ref    Ref
	Line   int64
	Part   int64
	Start  int64
	Size   int64
	Type   *string
	Role   *string
	ID     *string
	MS     *int64
	Digest *int64
	Value  *string
}

const hitColumns = `e.ref, e.line, e.part, e.start, e.size, e.type, e.role, e.id, e.ms, e.digest, e.value`

func (row *hitRow) scan(rows interface{ Scan(...any) error }) error {
	return Unreadable(rows.Scan(&row.Ref, &row.Line, &row.Part, &row.Start, &row.Size, &row.Type, &row.Role, &row.ID, &row.MS, &row.Digest, &row.Value))
}

// onlyTools reports whether only what tools got and gave is asked for.
func (s *search) onlyTools() bool {
	return len(s.opts.Tools) > 0 || len(s.opts.Roles) == 1 && s.opts.Roles[0] == "tool"
}

// onlyCalls reports whether of an entry only what tools got and gave is asked for.
func (s *search) onlyCalls(row *hitRow) bool {
	return s.onlyTools() || deref(row.Role) == "assistant" && slices.Contains(s.opts.Roles, "tool") && !slices.Contains(s.opts.Roles, "assistant")
}

// looksAt reports whether the search looks at a segment of an entry.
func (s *search) looksAt(row *hitRow, segment *jsonl.Segment) bool {
	if segment.Kind == jsonl.SegThinking && !s.opts.Thinking {
		return false
	}
	if s.onlyCalls(row) {
		switch segment.Kind {
		case jsonl.SegToolName, jsonl.SegToolArguments, jsonl.SegToolOutput:
		default:
			return false
		}
	}
	return len(s.opts.Tools) == 0 || slices.ContainsFunc(s.opts.Tools, func(name string) bool { return strings.EqualFold(name, segment.Tool) })
}

// add makes a hit of an entry, if it is one and no copy of an earlier hit, and reports
// whether there are hits enough.
func (s *search) add(ctx context.Context, row *hitRow, score float64) (full bool, err error) {
	if row.ID != nil && row.Digest != nil {
		key := entryKey{*row.ID, deref(row.MS), *row.Digest}
		if s.seen[key] {
			return false, nil
		}
		s.seen[key] = true
	}
	segments, err := s.text.read(ctx, s.rx, row, nil)
	if errors.Is(err, ErrDamaged) {
		s.result.Damaged++
		return false, nil
	}
	if err != nil {
		return false, err
	}
	hit := Hit{
		Ref: row.Ref, Line: LineNumber{row.Line, row.Part}, EntryID: deref(row.ID),
		Type: deref(row.Type), Role: deref(row.Role), Score: score,
	}
	if row.MS != nil {
		hit.Timestamp = time.UnixMilli(*row.MS).UTC()
	}
	if !s.describe(&hit, row, segments) {
		return false, nil
	}
	if s.opts.PerSession == 0 && len(s.result.Hits) == s.limit {
		s.result.More = true
		return true, nil
	}
	if err := s.place(ctx, &hit, row); err != nil {
		return false, err
	}
	if s.opts.PerSession > 0 {
		key := hit.Ref.Session()
		n := s.perSession[key]
		if n == 0 && len(s.perSession) >= s.limit {
			s.result.More = true
			return false, nil
		}
		if n >= s.opts.PerSession {
			return false, nil
		}
		s.perSession[key]++
	}
	if s.yield == nil {
		s.result.Hits = append(s.result.Hits, hit)
		return false, nil
	}
	found, _, err := s.rx.sessions(ctx, 1, `s.key = ?`, hit.Ref.Session())
	if err != nil || len(found) == 0 {
		return false, err
	}
	hit.Session = found[0]
	s.ended = !s.yield(hit, nil)
	return s.ended, nil
}

// describe sets the snippet of a hit and the tool that it is of: of the segment with most
// of what is asked for. It returns false where the entry is no hit after all: its words
// do not follow each other as a phrase asks, or are not where the search looks.
func (s *search) describe(hit *Hit, row *hitRow, segments []jsonl.Segment) bool {
	best, score := -1, [2]int{}
	var marks []mark
	all := make([]bool, s.terms)
	found := make([]bool, s.terms)
	for i := range segments {
		if !s.looksAt(row, &segments[i]) {
			continue
		}
		clear(found)
		places := s.find(segments[i].Text, found)
		terms := 0
		for n, ok := range found {
			if ok {
				terms++
				all[n] = true
			}
		}
		rank := [2]int{terms, len(places)}
		if s.terms == 0 && segments[i].Kind != jsonl.SegToolName {
			rank[0] = 1 // What it was called with tells more than its name.
		}
		if best < 0 || rank[0] > score[0] || rank[0] == score[0] && rank[1] > score[1] {
			best, score, marks = i, rank, places
		}
	}
	if best < 0 || !s.wants(all) {
		return false
	}
	hit.Snippet = makeSnippet(segments[best].Text, marks)
	hit.Tool = string(bytes.ToValidUTF8([]byte(segments[best].Tool), []byte(string(utf8.RuneError))))
	if hit.Tool == "" && hit.Role == "toolResult" {
		hit.Tool = deref(row.Value)
	}
	return true
}

// searchStatements run for each hit.
type searchStatements struct {
	row    *sql.Stmt // an entry
	copies *sql.Stmt // entries that are the same
}

func (s *searchStatements) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{s.row, s.copies} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// row reads an entry of a session that is searched, nil if the filters that the index
// does not know leave it out.
func (s *search) row(ctx context.Context, ref Ref) (*hitRow, error) {
	where := s.sessionFilter()
	entries := s.entryFilter()
	if s.statements.row == nil {
		var err error
		s.statements.row, err = s.rx.tx.PrepareContext(ctx, `
			SELECT `+hitColumns+` FROM session s CROSS JOIN entry e
			WHERE e.ref = ? AND s.key = ?`+where.and()+entries.and())
		if err != nil {
			return nil, err
		}
	}
	row := new(hitRow)
	err := row.scan(s.statements.row.QueryRowContext(ctx, slices.Concat([]any{ref, ref.Session()}, where.args, entries.args)...))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return row, err
}

// place counts the copies of a hit in other sessions, and moves the hit to the one that
// is to stand for all: of those that the search looks at the live one that was created
// first; in it the last line.
func (s *search) place(ctx context.Context, hit *Hit, row *hitRow) error {
	if row.ID == nil || row.Digest == nil {
		return nil
	}
	if s.statements.copies == nil {
		var err error
		s.statements.copies, err = s.rx.tx.PrepareContext(ctx, `
			SELECT e.ref, e.line, e.part, coalesce(TRUE`+s.sessionFilter().and()+`, FALSE)
			FROM entry e CROSS JOIN session s
			WHERE e.id = ? AND e.ms IS ? AND e.digest = ? AND s.key = e.ref >> 26 AND (s.state <> 'superseded' OR s.key = ?)
			ORDER BY s.state = 'live' DESC, s.created_ms IS NULL, s.created_ms, s.key, e.ref DESC`)
		if err != nil {
			return err
		}
	}
	rows, err := s.statements.copies.QueryContext(ctx, slices.Concat(s.sessionFilter().args, []any{*row.ID, row.MS, *row.Digest, s.opts.Session})...)
	if err != nil {
		return err
	}
	defer rows.Close()
	others := map[Key]bool{}
	chosen := false
	for rows.Next() {
		var ref Ref
		var line LineNumber
		var wanted bool
		if err := rows.Scan(&ref, &line.Line, &line.Part, &wanted); err != nil {
			return err
		}
		if wanted && !chosen {
			hit.Ref, hit.Line, chosen = ref, line, true
		}
		others[ref.Session()] = true
	}
	delete(others, hit.Ref.Session())
	hit.Copies = len(others)
	return rows.Err()
}

// addSessions gives the hits the sessions that they are in.
func (s *search) addSessions(ctx context.Context) error {
	sessions := map[Key]Session{}
	for i := range s.result.Hits {
		sessions[s.result.Hits[i].Ref.Session()] = Session{}
	}
	keys, err := json.Marshal(slices.Collect(maps.Keys(sessions)))
	if err != nil {
		return err
	}
	err = each(ctx, s.rx, func(row *sessionRow) error {
		sessions[row.Key] = row.session()
		return nil
	}, `SELECT `+sessionColumns+` FROM `+sessionTables+` WHERE s.key IN (SELECT value FROM json_each(?))`, string(keys))
	for i := range s.result.Hits {
		hit := &s.result.Hits[i]
		hit.Session = sessions[hit.Ref.Session()]
	}
	return err
}

// lineText reads the text of entries. What it returns is valid until the next call.
type lineText struct {
	raw      []byte
	doc      jsonl.Doc
	segments []jsonl.Segment
	buffer   []byte
}

// read returns what can be read in an entry, or nothing where maybe, if given, tells from
// the bytes that there is no need.
func (t *lineText) read(ctx context.Context, rx *Rx, row *hitRow, maybe func(line []byte) bool) ([]jsonl.Segment, error) {
	var err error
	if t.raw, err = rx.Bytes(ctx, row.Ref.Session(), row.Start, row.Size, t.raw); err != nil {
		return nil, err
	}
	line := t.raw
	if row.Start == 0 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if maybe != nil && !maybe(line) {
		return nil, nil
	}
	if err := t.doc.Parse(line); err != nil {
		return nil, fmt.Errorf("%w: line %d of session #%d: %w", ErrDamaged, row.Line, row.Ref.Session(), err)
	}
	t.segments, t.buffer = jsonl.NewObject(t.doc.Root()).AppendSegments(t.segments[:0], t.buffer[:0])
	return t.segments, nil
}
