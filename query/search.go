package query

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
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
	return rows.Scan(&row.Ref, &row.Line, &row.Part, &row.Start, &row.Size, &row.Type, &row.Role, &row.ID, &row.MS, &row.Digest, &row.Value)
}

// Mode says how a query is read.
type Mode uint8

const (
	Words     Mode = iota // words and phrases; case and accents do not matter
	Substring             // the query is a text, to be found byte by byte
	Regexp                // the query is a regular expression in the syntax of RE2
)

// SearchSort is an order of hits.
type SearchSort string

const (
	SortRelevance SearchSort = "relevance" // the default
	SortRecent    SearchSort = "recent"    // newest entry first
)

// DefaultSearchLimit is the number of hits where none is asked for.
const DefaultSearchLimit = 20

// SearchOptions say where to search. A zero field asks for nothing.
type SearchOptions struct {
	// Roles of which one has to fit: user, assistant, system, bash (runs of the user's
	// own), tool (results of tools, and calls in assistant messages), custom, summary,
	// label, name; or a role as it stands in messages.
	Roles    []string
	Tools    []string  // names of tools, in any case: their results and calls
	CWD      string    // sessions of this folder or one below it
	Model    string    // part of the provider/model that was chosen at the entry, in any case
	Since    time.Time // entries of this time or later; one without a time has that of its session's last activity
	Until    time.Time // entries before this time
	Session  Key       // only this session, an old version too
	Thinking bool      // search what models thought too
	Mode     Mode
	Sort     SearchSort
	Limit    int  // 0: DefaultSearchLimit
	All      bool // every hit, whatever Limit says
}

// Hit is an entry that answers a query.
type Hit struct {
	Session   Session
	Ref       Ref
	Line      LineNumber
	EntryID   string
	Type      string
	Role      string    // of a message entry
	Tool      string    // whose output or call was found
	Timestamp time.Time // zero: none
	Snippet   Snippet
	Score     float64 // higher is better; 0 where hits are not ranked
	Copies    int     // other sessions that hold the same entry
}

// SearchResult is what a search found.
type SearchResult struct {
	Hits    []Hit
	More    bool     // there are hits beyond the limit
	Ignored []string // terms of the query that hold no word: no letter and no digit
	Capped  bool     // so many entries answer that only the newest were ranked
	Scanned bool     // no whole word of the pattern narrowed the search: all text was read
	Damaged int      // entries whose bytes the archive no longer holds: they could not be looked at
	Behind  int      // sessions of which the index lacks lines yet: there words may be missed
}

// Search returns the best hits for a query.
//
// In mode Words each word or "phrase" has to be in the entry, -word must not be, a OR b
// asks for either, and word* for words that begin so. A query that begins with re: is
// the regular expression that follows, in any case. Every string is a query; one without
// a word has no hits. In the modes Substring and Regexp every entry with a match is
// found, also where the match is a part of words; sessions with the newest activity come
// first, and in a session later lines.
//
// An entry that several sessions share is one hit: of the live session that was created
// first. Old versions of sessions are not searched. Returns [ErrBadPattern] for a regular
// expression that is none.
func (rx *Rx) Search(ctx context.Context, query string, opts *SearchOptions) (*SearchResult, error) {
	if opts == nil {
		opts = &SearchOptions{}
	}
	s := &search{rx: rx, opts: opts, limit: opts.Limit, result: &SearchResult{Hits: []Hit{}}, seen: map[entryKey]bool{}}
	if s.limit <= 0 {
		s.limit = DefaultSearchLimit
	}
	if opts.All {
		s.limit = math.MaxInt
	}
	err := s.prepare(ctx)
	if err == nil {
		err = s.run(ctx, query)
	}
	if err == nil {
		err = s.addSessions(ctx)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, fmt.Errorf("search %q: %w", query, err)
	}
	return s.result, nil
}

// search is one search under way.
type search struct {
	rx     *Rx
	opts   *SearchOptions
	limit  int
	result *SearchResult
	find   marker
	words  marker // finds the words of phrases one by one
	seen   map[entryKey]bool
	text   lineText

	// Statements that run for each hit.
	row    *sql.Stmt // an entry
	copies *sql.Stmt // entries that are the same
}

// entryKey is what makes entries of different sessions the same.
type entryKey struct {
	id         string
	ms, digest int64
}

func (s *search) run(ctx context.Context, query string) error {
	mode := s.opts.Mode
	trimmed := strings.TrimSpace(query)
	if expr, ok := strings.CutPrefix(trimmed, "re:"); ok && mode == Words {
		if expr = strings.TrimSpace(expr); expr == "" {
			return nil
		}
		p, err := regexpPattern(expr, true)
		if err != nil {
			return err
		}
		return s.runPattern(ctx, p)
	}
	switch s.opts.Sort {
	case "", SortRelevance, SortRecent:
	default:
		return fmt.Errorf("unknown order %q", s.opts.Sort)
	}
	switch mode {
	case Words:
		terms, ignored := parseTerms(query)
		s.result.Ignored = ignored
		expr := expression(terms, s.columns())
		if expr == "" {
			return nil
		}
		s.find, s.words = markTerms(terms), markTerms(split(terms))
		return s.runWords(ctx, expr)
	case Substring:
		if query == "" {
			return nil
		}
		return s.runPattern(ctx, literalPattern(query))
	case Regexp:
		if query == "" {
			return nil
		}
		p, err := regexpPattern(query, false)
		if err != nil {
			return err
		}
		return s.runPattern(ctx, p)
	}
	return fmt.Errorf("unknown mode %d", mode)
}

// split makes a term of each word of the terms that are wanted.
func split(terms []term) []term {
	var list []term
	for _, t := range terms {
		for i, word := range t.words {
			if !t.not {
				list = append(list, term{words: []token{word}, prefix: t.prefix && i == len(t.words)-1})
			}
		}
	}
	return list
}

// onlyTools reports whether only what tools got and gave is asked for.
func (s *search) onlyTools() bool {
	return len(s.opts.Tools) > 0 || len(s.opts.Roles) == 1 && s.opts.Roles[0] == "tool"
}

// columns returns the columns of the index that the search looks at.
func (s *search) columns() string {
	switch {
	case s.onlyTools():
		return `{tool}`
	case s.opts.Thinking:
		return `{talk tool name thinking}`
	}
	return `{talk tool name}`
}

// onlyCalls reports whether of an entry only what tools got and gave is asked for.
func (s *search) onlyCalls(row *hitRow) bool {
	return s.onlyTools() || deref(row.Role) == "assistant" && slices.Contains(s.opts.Roles, "tool") && !slices.Contains(s.opts.Roles, "assistant")
}

// wants reports whether the search looks at a segment of an entry.
func (s *search) wants(row *hitRow, segment *jsonl.Segment) bool {
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

// sessionFilter asks for the sessions s to be searched.
func (s *search) sessionFilter() *filter {
	f := &filter{}
	if s.opts.Session != 0 {
		f.add(`s.key = ?`, s.opts.Session)
	} else {
		f.add(`s.state <> 'superseded'`)
	}
	f.folder(s.opts.CWD)
	return f
}

// entryMS is the time of an entry e in a session s.
const entryMS = `coalesce(e.ms, s.modified_ms)`

// entryFilter asks for the entries e, in sessions s, to be searched.
func (s *search) entryFilter() *filter {
	f := &filter{}
	var roles []string
	for _, role := range s.opts.Roles {
		clause, ok := roleClauses[role]
		if !ok {
			clause = `e.role = ?`
			f.args = append(f.args, role)
		}
		roles = append(roles, clause)
	}
	if len(roles) > 0 {
		f.add(`(` + strings.Join(roles, ` OR `) + `)`)
	}
	if len(s.opts.Tools) > 0 {
		// Names beyond ASCII are compared in Go, as are those of calls.
		f.add(`e.role IN ('toolResult', 'assistant')`)
	}
	if s.opts.Model != "" {
		f.add(`instr(lower(coalesce((
			SELECT coalesce(provider || '/', '') || coalesce(model, '') FROM setting WHERE key = e.setting AND has_model = 1
		), s.model)), ?) > 0`, asciiLower(s.opts.Model))
	}
	if !s.opts.Since.IsZero() {
		f.add(entryMS+` >= ?`, ceilMilli(s.opts.Since))
	}
	if !s.opts.Until.IsZero() {
		f.add(entryMS+` < ?`, ceilMilli(s.opts.Until))
	}
	return f
}

// roleClauses say which entries have a role that is asked for by a name of its own.
var roleClauses = map[string]string{
	"tool":    `e.role IN ('toolResult', 'assistant')`,
	"bash":    `e.role = 'bashExecution'`,
	"custom":  `(e.role = 'custom' OR e.type = 'custom_message')`,
	"summary": `(e.type IN ('compaction', 'branch_summary') OR e.role IN ('compactionSummary', 'branchSummary'))`,
	"label":   `e.type = 'label'`,
	"name":    `e.type = 'session_info'`,
}

// rankCap is how many entries are ranked at once: those with the greatest refs. Ranking
// costs some microseconds an entry, and common words have hundreds of thousands.
const rankCap = 2000

// rankWeights are the weights of the columns of the index: talk, tool, name, thinking.
const rankWeights = `4.0, 1.0, 8.0, 1.0`

// candidate is an entry that answers an expression.
type candidate struct {
	Ref   Ref     `db:"ref"`
	MS    int64   `db:"ms"`
	Score float64 `db:"score"`
}

// runWords looks at the entries that answer an expression of FTS5, best first, a window
// of them after the other until there are hits enough.
func (s *search) runWords(ctx context.Context, expr string) error {
	where := s.sessionFilter()
	entries := s.entryFilter()
	where.add(`TRUE`+entries.and(), entries.args...)
	if s.opts.Session != 0 {
		first, end := s.opts.Session.refRange()
		where.add(`f.rowid >= ? AND f.rowid < ?`, first, end)
	}
	behind, err := s.behind(ctx)
	if err != nil {
		return err
	}
	s.result.Behind = len(behind)
	window := rankCap
	if s.opts.All {
		window = math.MaxInt32
	}
	for offset := 0; ; offset += window {
		var list []candidate
		score, order := `bm25(text, `+rankWeights+`)`, `f.rowid DESC`
		if s.opts.Sort == SortRecent {
			score, order = `0.0`, `ms DESC, f.rowid DESC`
		}
		err := each(ctx, s.rx, func(row *candidate) error {
			list = append(list, *row)
			return nil
		}, `
			SELECT f.rowid AS ref, `+entryMS+` AS ms, `+score+` AS score
			FROM idx.text f CROSS JOIN session s CROSS JOIN entry e
			WHERE f.text MATCH ? AND s.key = f.rowid >> 26 AND e.ref = f.rowid`+where.and()+`
			ORDER BY `+order+` LIMIT ? OFFSET ?`,
			slices.Concat([]any{expr}, where.args, []any{window, offset})...)
		if err != nil {
			return err
		}
		if s.opts.Sort != SortRecent {
			slices.SortFunc(list, func(a, b candidate) int {
				return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(b.MS, a.MS), cmp.Compare(b.Ref, a.Ref))
			})
			s.result.Capped = s.result.Capped || len(list) == window
		}
		for _, c := range list {
			row := new(hitRow)
			if err := row.scan(s.row.QueryRowContext(ctx, c.Ref)); err != nil {
				return noRows(err, ErrDamaged)
			}
			if full, err := s.add(ctx, row, 0-c.Score); full || err != nil {
				return err
			}
		}
		if len(list) < window {
			return nil
		}
	}
}

// behind returns the sessions of which the index lacks lines.
func (s *search) behind(ctx context.Context) (map[Key]bool, error) {
	// Sessions that have not changed since the watermark are whole in the index.
	var keys []Key
	err := s.rx.tx.SelectContext(ctx, &keys, `
		SELECT s.key
		FROM archive a CROSS JOIN session s LEFT JOIN idx.indexed i ON i.session = s.key
		WHERE s.change > coalesce((SELECT w.change FROM idx.watermark w WHERE w.uuid = a.uuid), -1)
		  AND s.rows > 0 AND (i.nonce IS NOT s.nonce OR i.rows < s.rows)`)
	set := map[Key]bool{}
	for _, key := range keys {
		set[key] = true
	}
	return set, err
}

// runPattern looks at the entries whose text matches a pattern.
func (s *search) runPattern(ctx context.Context, p *pattern) error {
	s.find, s.words = p.find, nil
	where := s.sessionFilter()
	var keys []Key
	err := s.rx.tx.SelectContext(ctx, &keys, `
		SELECT s.key FROM session s WHERE TRUE`+where.and()+` ORDER BY s.modified_ms DESC, s.key DESC`, where.args...)
	if err != nil {
		return err
	}
	expr := p.expression(s.columns())
	if expr == "" {
		s.result.Scanned = true
		for _, key := range keys {
			if full, err := s.scan(ctx, p, key, nil); full || err != nil {
				return err
			}
		}
		return nil
	}
	behind, err := s.behind(ctx)
	if err != nil {
		return err
	}
	candidates := map[Key][]Ref{}
	first, end := MakeRef(0, 0), Ref(math.MaxInt64)
	if s.opts.Session != 0 {
		first, end = s.opts.Session.refRange()
	}
	err = each(ctx, s.rx, func(row *candidate) error {
		candidates[row.Ref.Session()] = append(candidates[row.Ref.Session()], row.Ref)
		return nil
	}, `SELECT f.rowid AS ref FROM idx.text f WHERE f.text MATCH ? AND f.rowid >= ? AND f.rowid < ?`, expr, first, end)
	if err != nil {
		return err
	}
	for _, key := range keys {
		refs := candidates[key]
		if behind[key] {
			refs = nil
		}
		if len(refs) > 0 || behind[key] {
			if full, err := s.scan(ctx, p, key, refs); full || err != nil {
				return err
			}
		}
	}
	return nil
}

// scan reads the text of a session's entries, or of those given, and adds those that
// match, later lines first.
func (s *search) scan(ctx context.Context, p *pattern, session Key, refs []Ref) (full bool, err error) {
	where := s.entryFilter()
	if refs != nil {
		list, err := json.Marshal(refs)
		if err != nil {
			return false, err
		}
		where.add(`e.ref IN (SELECT value FROM json_each(?))`, string(list))
	}
	first, end := session.refRange()
	var found []*hitRow
	// Lines are read in file order: neighbours are in one chunk.
	rows, err := s.rx.tx.QueryContext(ctx, `
		SELECT `+hitColumns+`
		FROM entry e CROSS JOIN session s
		WHERE e.ref >= ? AND e.ref < ? AND s.key = ? AND e.kind = 'entry' AND e.type IS NOT 'custom'`+where.and()+`
		ORDER BY e.ref`, slices.Concat([]any{first, end, session}, where.args)...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		row := new(hitRow)
		if err := row.scan(rows); err != nil {
			return false, err
		}
		segments, err := s.text.read(ctx, s.rx, row, p.canMatch)
		if errors.Is(err, ErrDamaged) {
			s.result.Damaged++
			continue
		}
		if err != nil {
			return false, err
		}
		for i := range segments {
			if s.wants(row, &segments[i]) && p.match(segments[i].Text) {
				found = append(found, row)
				break
			}
		}
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	for _, row := range slices.Backward(found) {
		if full, err := s.add(ctx, row, 0); full || err != nil {
			return full, err
		}
	}
	return false, nil
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
	if len(s.result.Hits) == s.limit {
		s.result.More = true
		return true, nil
	}
	if err := s.place(ctx, &hit, row); err != nil {
		return false, err
	}
	s.result.Hits = append(s.result.Hits, hit)
	return false, nil
}

// describe sets the snippet of a hit and the tool that it is of. It returns false where
// no word that is asked for is in the text: the index had it of a session that is no
// more, or only what tools got and gave is asked for.
func (s *search) describe(hit *Hit, row *hitRow, segments []jsonl.Segment) bool {
	best, score := -1, [2]int{}
	var marks []mark
	for _, find := range []marker{s.find, s.words} {
		if best >= 0 && score[0] > 0 || find == nil {
			break
		}
		for i := range segments {
			if !s.wants(row, &segments[i]) {
				continue
			}
			found := find(segments[i].Text)
			terms := map[int]bool{}
			for _, m := range found {
				terms[m.term] = true
			}
			if rank := [2]int{len(terms), len(found)}; best < 0 || rank[0] > score[0] || rank[0] == score[0] && rank[1] > score[1] {
				best, score, marks = i, rank, found
			}
		}
	}
	if s.words != nil && score[0] == 0 {
		return false
	}
	if best >= 0 {
		hit.Snippet = makeSnippet(segments[best].Text, marks)
		hit.Tool = string(bytes.ToValidUTF8([]byte(segments[best].Tool), []byte(string(utf8.RuneError))))
	}
	if hit.Tool == "" && hit.Role == "toolResult" {
		hit.Tool = deref(row.Value)
	}
	return true
}

// prepare makes ready what runs for each hit.
func (s *search) prepare(ctx context.Context) error {
	var err error
	if s.row, err = s.rx.tx.PrepareContext(ctx, `SELECT `+hitColumns+` FROM entry e WHERE e.ref = ?`); err != nil {
		return err
	}
	s.copies, err = s.rx.tx.PrepareContext(ctx, `
		SELECT e.ref, e.line, e.part, coalesce(TRUE`+s.sessionFilter().and()+`, FALSE)
		FROM entry e CROSS JOIN session s
		WHERE e.id = ? AND e.ms IS ? AND e.digest = ? AND s.key = e.ref >> 26 AND (s.state <> 'superseded' OR s.key = ?)
		ORDER BY s.state = 'live' DESC, s.created_ms IS NULL, s.created_ms, s.key, e.ref DESC`)
	return err
}

func (s *search) close() error {
	var errs []error
	for _, stmt := range []*sql.Stmt{s.row, s.copies} {
		if stmt != nil {
			errs = append(errs, stmt.Close())
		}
	}
	return errors.Join(errs...)
}

// place counts the copies of a hit in other sessions, and moves the hit to the one that
// is to stand for all: of those that the search looks at the live one that was created
// first; in it the last line.
func (s *search) place(ctx context.Context, hit *Hit, row *hitRow) error {
	if row.ID == nil || row.Digest == nil {
		return nil
	}
	rows, err := s.copies.QueryContext(ctx, slices.Concat(s.sessionFilter().args, []any{*row.ID, row.MS, *row.Digest, s.opts.Session})...)
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
