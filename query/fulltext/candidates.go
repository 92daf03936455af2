package fulltext

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Candidate is a document that has the words of a query.
type Candidate struct {
	Session, Seq int64
	MS           int64 // its time, or that of its session; 0 for neither
	Score        float64
}

// Candidates are the documents that have the words of a query, the best first.
type Candidates struct {
	// Sessions holds for each session how many of the candidates are in it.
	Sessions map[int64]int
	// Without lists the needs that no document meets.
	Without []int

	x    *Index
	heap ranking
}

// ranked is a candidate before it is asked for.
type ranked struct {
	score   float32
	segment uint32
	doc     uint32
	ms      int64
}

// before reports whether a is to come before b.
func (a *ranked) before(b *ranked) bool {
	if a.score != b.score {
		return a.score > b.score
	}
	return cmp.Or(cmp.Compare(b.ms, a.ms), cmp.Compare(b.segment, a.segment), cmp.Compare(b.doc, a.doc)) < 0
}

// ranking is a heap of which the best is the first.
type ranking []ranked

func (r ranking) init() {
	for i := len(r)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

func (r ranking) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(r) {
			return
		}
		if child+1 < len(r) && r[child+1].before(&r[child]) {
			child++
		}
		if !r[child].before(&r[i]) {
			return
		}
		r[i], r[child] = r[child], r[i]
		i = child
	}
}

func (r *ranking) pop() ranked {
	list := *r
	best, last := list[0], len(list)-1
	list[0] = list[last]
	*r = list[:last]
	r.down(0)
	return best
}

// Next returns the best candidate that is left; ok is false when there is none.
func (c *Candidates) Next(ctx context.Context) (next Candidate, ok bool, err error) {
	if len(c.heap) == 0 {
		return next, false, nil
	}
	r := c.heap.pop()
	next = Candidate{MS: r.ms, Score: float64(r.score)}
	next.Session, next.Seq, err = c.x.position(ctx, c.x.segments[r.segment], r.doc)
	return next, err == nil, err
}

// Candidates returns the documents that have the words of a query.
func (x *Index) Candidates(ctx context.Context, q *Query) (*Candidates, error) {
	c := &Candidates{Sessions: map[int64]int{}, x: x}
	m := &matcher{x: x, found: make([]map[Match]found, len(x.segments))}
	for i := range m.found {
		m.found[i] = map[Match]found{}
	}
	if err := m.lookup(ctx, q.matches()); err != nil {
		return nil, err
	}
	docs := x.Docs()
	rarities := map[Match]float32{}
	for _, match := range q.matches() {
		total := 0
		for i := range m.found {
			total += m.found[i][match].docs
		}
		rarities[match] = rarity(total, docs)
	}
	met := make([]bool, len(q.Needs))
	found, total := make([]set, len(x.segments)), 0
	for i := range x.segments {
		e := &evaluation{matcher: m, query: q, rarities: rarities, number: i, segment: x.segments[i], met: met}
		hits, err := e.run(ctx)
		if err != nil {
			return nil, err
		}
		found[i] = hits
		total += len(hits.docs)
	}
	c.heap = make(ranking, 0, total)
	for i, hits := range found {
		if err := c.add(ctx, q, i, hits); err != nil {
			return nil, err
		}
	}
	for i := range met {
		if !met[i] {
			c.Without = append(c.Without, i)
		}
	}
	c.heap.init()
	return c, nil
}

// matches returns all matches of the query.
func (q *Query) matches() []Match {
	var list []Match
	for _, need := range q.Needs {
		for _, choice := range need {
			list = append(list, choice...)
		}
	}
	for _, word := range q.Not {
		list = append(list, Match{Word: word})
	}
	return list
}

// evaluation answers a query in one segment.
type evaluation struct {
	*matcher
	query    *Query
	rarities map[Match]float32
	number   int
	segment  *segment
	met      []bool
	more     []byte // documents with more words than the index has
}

func (e *evaluation) run(ctx context.Context) (set, error) {
	x, s := e.x, e.segment
	p, ok, err := x.find(ctx, s, tagWord(moreTag))
	if err == nil && ok {
		e.more, err = x.list(ctx, s, p)
	}
	if err != nil {
		return set{}, err
	}
	// Rare words first: where there is none, the lists of common ones need not be read.
	needs := make([]int, len(e.query.Needs))
	for i := range needs {
		needs[i] = i
	}
	slices.SortStableFunc(needs, func(a, b int) int { return cmp.Compare(e.bound(a), e.bound(b)) })
	var hits set
	for n, i := range needs {
		var docs set
		for _, choice := range e.query.Needs[i] {
			one, err := e.choice(ctx, choice)
			if err != nil {
				return set{}, err
			}
			docs = either(docs, one)
		}
		e.met[i] = e.met[i] || len(docs.docs) > 0
		if n == 0 {
			hits = docs
		} else {
			hits = both(hits, docs)
		}
		if len(hits.docs) == 0 && n+1 < len(needs) && e.allMet(needs[n+1:]) {
			return hits, nil
		}
	}
	if len(needs) == 0 {
		if !e.query.All {
			return hits, nil
		}
		for doc := range s.docs {
			hits.add(uint32(doc), 0)
		}
	}
	for _, tags := range e.query.Tags {
		docs, err := e.tagged(ctx, tags)
		if err != nil {
			return set{}, err
		}
		hits = both(hits, docs)
	}
	if len(hits.docs) == 0 {
		return hits, nil
	}
	docs, err := e.tagged(ctx, e.query.NotTags)
	if err != nil {
		return set{}, err
	}
	hits = without(hits, docs)
	for _, word := range e.query.Not {
		docs, err := x.collect(ctx, s, e.found[e.number][Match{Word: word}], "", e.query.Fields, 0, nil)
		if err != nil {
			return set{}, err
		}
		hits = without(hits, docs)
	}
	return hits, nil
}

// tagged returns the documents that have one of some tags.
func (e *evaluation) tagged(ctx context.Context, tags []string) (set, error) {
	var f found
	for _, tag := range tags {
		p, ok, err := e.x.find(ctx, e.segment, indexWord(tagWord(tag)))
		if err != nil {
			return set{}, err
		}
		if ok {
			f.add(p)
		}
	}
	return e.x.collect(ctx, e.segment, f, "", InTalk|InTool|InThinking, 0, nil)
}

// allMet reports whether nothing is left to be learned of the needs.
func (e *evaluation) allMet(needs []int) bool {
	for _, i := range needs {
		if !e.met[i] {
			return false
		}
	}
	return true
}

// bound returns how many documents of the segment meet a need at most.
func (e *evaluation) bound(need int) int {
	total := 0
	for _, choice := range e.query.Needs[need] {
		least := math.MaxInt
		for _, match := range choice {
			least = min(least, e.found[e.number][match].docs)
		}
		total += least
	}
	return total
}

// choice returns the documents that have all matches of a choice.
func (e *evaluation) choice(ctx context.Context, choice Choice) (set, error) {
	order := slices.Clone(choice)
	slices.SortStableFunc(order, func(a, b Match) int {
		return cmp.Compare(e.found[e.number][a].docs, e.found[e.number][b].docs)
	})
	var hits set
	for i, match := range order {
		docs, err := e.x.collect(ctx, e.segment, e.found[e.number][match], match.Next, e.query.Fields, e.rarities[match], e.more)
		if err != nil || len(docs.docs) == 0 {
			return set{}, err
		}
		if i == 0 {
			hits = docs
		} else if hits = both(hits, docs); len(hits.docs) == 0 {
			return hits, nil
		}
	}
	return hits, nil
}

// add takes the documents of a segment that are there, in the sessions and the time asked for.
func (c *Candidates) add(ctx context.Context, q *Query, number int, hits set) error {
	if len(hits.docs) == 0 {
		return nil
	}
	s := c.x.segments[number]
	if err := c.x.readTimes(ctx, s); err != nil {
		return err
	}
	at, end := -1, uint32(0) // the run, and the first document behind it
	first := len(c.heap)     // of the run
	count := func() {
		if n := len(c.heap) - first; n > 0 {
			c.Sessions[s.runs[at].session] += n
		}
		first = len(c.heap)
	}
	wanted, modified := false, int64(0)
	var last run
	for i, doc := range hits.docs {
		if at < 0 || doc >= end {
			if at >= 0 {
				count()
			}
			at = s.runOf(doc)
			end = uint32(s.docs)
			if at+1 < len(s.runs) {
				end = s.runs[at+1].first
			}
			if r := s.runs[at]; i == 0 || r.session != last.session || r.nonce != last.nonce {
				last, modified = r, -1
				wanted = !c.x.isLost(s, &r) && (q.Accept == nil || q.Accept(r.session))
			}
		}
		if !wanted {
			continue
		}
		ms := s.ms(doc)
		if ms == 0 && q.Modified != nil {
			if modified < 0 {
				modified = q.Modified(last.session)
			}
			ms = modified
		}
		if q.Since != 0 && ms < q.Since || q.Until != 0 && ms >= q.Until {
			continue
		}
		r := ranked{score: hits.scores[i], segment: uint32(number), doc: doc, ms: ms}
		if q.Recent {
			r.score = 0
		}
		c.heap = append(c.heap, r)
	}
	count()
	return nil
}
