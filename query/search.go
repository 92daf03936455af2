package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"pidb/query/fulltext"
)

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
	Name     string    // part of the name of the session, in any case
	Types    []string  // types of entries of which one has to fit
	Errors   bool      // only entries that tell of an error: see ErrorTag
	Thinking bool      // search what models thought too
	Mode     Mode
	Sort     SearchSort
	Limit    int  // 0: DefaultSearchLimit
	All      bool // every hit, whatever Limit says

	// PerSession, if not 0, is how many hits of one session are wanted at most. Limit
	// then counts sessions.
	PerSession int
	// Now and Zone are what before:7d and before:2026-03-01 in a query go by. Zero: the
	// time of the search, and UTC.
	Now  time.Time
	Zone *time.Location
	// Home is the folder that ~ in the cwd: of a query stands for; empty: any.
	Home string
}

// Unknown is a word of a query that no entry has.
type Unknown struct {
	Word    string   // as it was typed
	Nearest []string // words that entries have and that are spelled much like it or begin with it, the likeliest first
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
	More    bool        // there are hits beyond the limit
	Ignored []string    // terms of the query that hold no word: no letter and no digit
	Unknown []Unknown   // words that are in no entry
	Counts  map[Key]int // for each session how many of its entries have the words; some may have them in another order than a phrase asks for
	Scanned bool        // nothing of the pattern narrowed the search: all text was read
	Damaged int         // entries whose bytes the archive no longer holds: they could not be looked at
	Behind  int         // sessions of which the index lacks lines yet: there words may be missed
}

// Search returns the best hits for a query.
//
// In mode Words each word or "phrase" has to be in the entry, -word must not be, a OR b
// asks for either, and word* for words that begin so. A word is found where it is a part
// of an identifier too: session in parseSessionEntry. The fields role: tool: cwd: model:
// name: session: before: after: type: and is:error are filters, with a minus before them
// what is not wanted; where their value means nothing they are words. A query that begins
// with re:, but for fields before it, is the regular expression that follows, in any
// case. Every string is a query.
// In the modes Substring and Regexp every entry with a match is found, also where the
// match is a part of words, the newest first.
//
// Hits of mode Words come in the order of their scores, see package fulltext, and where
// these are equal the newest first. An entry that several sessions share is one hit: of
// the live session that was created first. Old versions of sessions are not searched.
// Returns [ErrBadPattern] for a regular expression that is none.
func (rx *Rx) Search(ctx context.Context, query string, opts *SearchOptions) (*SearchResult, error) {
	if opts == nil {
		opts = &SearchOptions{}
	}
	s := &search{
		rx: rx, opts: *opts, limit: opts.Limit, seen: map[entryKey]bool{}, perSession: map[Key]int{},
		result: &SearchResult{Hits: []Hit{}, Counts: map[Key]int{}},
	}
	if s.limit <= 0 {
		s.limit = DefaultSearchLimit
	}
	if opts.All {
		s.limit = math.MaxInt
	}
	err := s.run(ctx, query)
	if err == nil {
		err = s.addSessions(ctx)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, fmt.Errorf("search %q: %w", query, err)
	}
	return s.result, nil
}

// Hits is [Rx.Search] without a limit, one hit after the other as they are found, the
// best first. PerSession, Limit and All of opts have no meaning here.
func (rx *Rx) Hits(ctx context.Context, query string, opts *SearchOptions) iter.Seq2[Hit, error] {
	return func(yield func(Hit, error) bool) {
		if opts == nil {
			opts = &SearchOptions{}
		}
		s := &search{
			rx: rx, opts: *opts, limit: math.MaxInt, seen: map[entryKey]bool{}, yield: yield,
			result: &SearchResult{Counts: map[Key]int{}},
		}
		s.opts.PerSession = 0
		err := s.run(ctx, query)
		if err = errors.Join(err, s.close()); err != nil && !s.ended {
			yield(Hit{}, fmt.Errorf("search %q: %w", query, err))
		}
	}
}

// search is one search under way.
type search struct {
	rx      *Rx
	opts    SearchOptions
	limit   int
	filters searchFilters
	index   *fulltext.Index
	result  *SearchResult
	find    marker
	terms   int // that find looks for
	// wants reports whether the terms that were found make a hit.
	wants      func(found []bool) bool
	seen       map[entryKey]bool
	perSession map[Key]int // hits
	text       lineText
	statements searchStatements
	yield      func(Hit, error) bool // takes hits one by one; nil: they are in result
	ended      bool                  // yield wants no more
}

// entryKey is what makes entries of different sessions the same.
type entryKey struct {
	id         string
	ms, digest int64
}

func (s *search) run(ctx context.Context, query string) error {
	switch s.opts.Sort {
	case "", SortRelevance, SortRecent:
	default:
		return fmt.Errorf("unknown order %q", s.opts.Sort)
	}
	var err error
	if s.index, err = fulltext.Open(ctx, s.rx.tx, "idx"); err != nil {
		return err
	}
	switch s.opts.Mode {
	case Words:
		fields, rest := cutFields(query, s.means)
		expr, ok := strings.CutPrefix(rest, "re:")
		if !ok {
			return s.runWords(ctx, query)
		}
		return s.runRegexp(ctx, strings.TrimSpace(expr), true, fields)
	case Substring:
		if query == "" {
			return nil
		}
		return s.runPattern(ctx, literalPattern(query), nil)
	case Regexp:
		return s.runRegexp(ctx, query, false, nil)
	}
	return fmt.Errorf("unknown mode %d", s.opts.Mode)
}

func (s *search) close() error {
	if s.index != nil {
		s.index.Close()
	}
	return s.statements.close()
}

// runWords looks at the entries that have the words of a query, the best first, until
// there are hits enough.
func (s *search) runWords(ctx context.Context, query string) error {
	p := parseQuery(query, s.means)
	s.result.Ignored = p.ignored
	if len(p.terms) == 0 && len(p.fields) == 0 {
		return nil
	}
	if err := s.filter(ctx, p.fields); err != nil {
		return err
	}
	q := s.indexQuery()
	needs := p.ask(q)
	q.All = len(needs) == 0
	s.find, s.terms = markTerms(p.terms), len(p.terms)
	s.wants = p.wants
	behind, err := s.behind(ctx)
	if err != nil {
		return err
	}
	s.result.Behind = len(behind)
	found, err := s.index.Candidates(ctx, q)
	if err != nil {
		return err
	}
	if err := s.addUnknown(ctx, &p, needs, found.Without); err != nil {
		return err
	}
	return s.take(ctx, found)
}

// wants reports whether an entry in which these terms were found is a hit.
func (p *parsed) wants(found []bool) bool {
	for i, t := range p.terms {
		if t.not && found[i] {
			return false
		}
	}
	for _, need := range p.needs() {
		met := false
		for _, i := range need {
			met = met || found[i]
		}
		if !met {
			return false
		}
	}
	return true
}

// addUnknown names the words that no entry has.
func (s *search) addUnknown(ctx context.Context, p *parsed, needs [][]int, without []int) error {
	for _, n := range without {
		for _, i := range needs[n] {
			for _, w := range p.terms[i].words {
				typed := p.terms[i].text[w.start:w.end]
				if p.terms[i].prefix && w.end == len(p.terms[i].text) {
					typed += "*"
				}
				nearest, known, err := s.index.Nearest(ctx, w.word, nearestWords)
				if err != nil {
					return err
				}
				if !known && !w.apart {
					s.result.Unknown = append(s.result.Unknown, Unknown{typed, nearest})
				}
			}
		}
	}
	return nil
}

// nearestWords is how many words are offered for one that no entry has.
const nearestWords = 5

// overtime is how many candidates are looked at for more hits of sessions that are there
// already.
const overtime = 5000

// take makes hits of candidates until there are enough.
func (s *search) take(ctx context.Context, found *fulltext.Candidates) error {
	for session, n := range found.Sessions {
		s.result.Counts[Key(session)] += n
	}
	for late := 0; ; {
		c, ok, err := found.Next(ctx)
		if err != nil || !ok {
			return err
		}
		key := Key(c.Session)
		if s.opts.PerSession > 0 {
			n := s.perSession[key]
			if n >= s.opts.PerSession {
				continue
			}
			if len(s.perSession) >= s.limit {
				if late++; late > overtime {
					return nil
				}
				if n == 0 {
					s.result.More = true
					continue
				}
			}
		}
		full, err := s.consider(ctx, MakeRef(key, c.Seq), c.Score)
		if full || err != nil {
			return err
		}
	}
}

// consider makes a hit of the row of a candidate, if it is one.
func (s *search) consider(ctx context.Context, ref Ref, score float64) (full bool, err error) {
	row, err := s.row(ctx, ref)
	if row == nil || err != nil {
		return false, err
	}
	return s.add(ctx, row, score)
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
