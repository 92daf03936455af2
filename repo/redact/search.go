package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A match is what an expression matched, and the secret in it, as offsets in a text.
type match struct {
	from, to   int
	start, end int
}

// A finding is a secret in a text or a line.
type finding struct {
	start, end int
	secret     string // as it reads
	rule       *rule
}

// better reports whether a finding says more of its place than another.
func (f *finding) better(g *finding) bool {
	if f.rule.generic != g.rule.generic {
		return g.rule.generic
	}
	return f.end-f.start > g.end-g.start
}

// A ruleSet is rules and how to find them. It does not change.
type ruleSet struct {
	rules  []*rule
	allow  []allowlist // of all rules
	finder finder      // of heads and keywords; ids are indexes of rules
}

// allRules returns the rules of this package.
var allRules = sync.OnceValues(func() (*ruleSet, error) {
	set := &ruleSet{}
	if err := set.load(gitleaksRules); err != nil {
		return nil, fmt.Errorf("gitleaks.toml: %w", err)
	}
	if err := set.load(ownRules); err != nil {
		return nil, fmt.Errorf("pidb.toml: %w", err)
	}
	return set, nil
})

func (set *ruleSet) load(text []byte) error {
	rules, allow, err := loadRules(text)
	if err != nil {
		return err
	}
	set.allow = append(set.allow, allow...)
	for _, r := range rules {
		set.add(r)
	}
	return nil
}

func (set *ruleSet) add(r *rule) {
	for _, list := range [][]string{r.heads, r.keywords} {
		for _, word := range list {
			set.finder.add(word, len(set.rules))
		}
	}
	set.rules = append(set.rules, r)
}

// A searcher finds secrets in text by rules.
type searcher struct {
	*ruleSet
	state   []state // of rules, in one search
	touched []int   // the rules with a state
	late    []int   // rules without heads whose keyword is there
}

// A state is how far a search with one rule is.
type state struct {
	tries int // heads that were looked at
	done  int // up to where the rule has matched
}

func newSearcher(set *ruleSet) searcher {
	return searcher{ruleSet: set, state: make([]state, len(set.rules))}
}

// find appends what the rules find in text.
func (s *searcher) find(text []byte, found []finding) []finding {
	s.finder.each(text, func(at, id int) bool {
		r, state := s.rules[id], &s.state[id]
		if state.tries == 0 {
			s.touched = append(s.touched, id)
			if len(r.heads) == 0 {
				s.late = append(s.late, id)
			}
		}
		state.tries++
		if len(r.heads) > 0 && at >= state.done {
			size := window
			if state.tries > manyTries {
				size = smallWindow
			}
			if m, ok := r.matchAt(text, at, state.done, size); ok {
				state.done = m.to
				found = s.keep(text, r, m, found)
			}
		}
		return true
	})
	for _, id := range s.late {
		r := s.rules[id]
		for _, groups := range r.expr().FindAllSubmatchIndex(text, -1) {
			m := match{from: groups[0], to: groups[1]}
			m.start, m.end = r.secret(groups)
			found = s.keep(text, r, m, found)
		}
	}
	for _, id := range s.touched {
		s.state[id] = state{}
	}
	s.touched, s.late = s.touched[:0], s.late[:0]
	return found
}

// How much of a text a rule sees behind a head, in bytes, unless it matches all of that: the
// most for the first heads, less for those that come in great numbers. It bounds the time that
// a head costs.
const (
	window      = 16 << 10
	manyTries   = 256
	smallWindow = 512
)

// matchAt matches a rule with a head that is at a place in text, and with nothing before
// done. It looks at size bytes, or more if all those match.
func (r *rule) matchAt(text []byte, at, done, size int) (m match, ok bool) {
	if r.boundary && at > 0 && isWordByte(text[at-1]) == isWordByte(text[at]) {
		return m, false
	}
	rest := text[at:]
	for ; ; size *= 2 {
		part := rest[:min(size, len(rest))]
		groups := r.expr().FindSubmatchIndex(part)
		if groups == nil {
			return m, false
		}
		if groups[1] == len(part) && len(part) < len(rest) {
			continue
		}
		m.from, m.to = at, at+groups[1]
		m.start, m.end = r.secret(groups)
		m.start, m.end = at+m.start, at+m.end
		break
	}
	if r.named {
		for first := max(done, at-maxName); m.from > first && isNameByte(text[m.from-1]); {
			m.from--
		}
	}
	return m, true
}

// secret returns where in a match the secret is.
func (r *rule) secret(groups []int) (start, end int) {
	if r.group > 0 {
		return groups[2*r.group], groups[2*r.group+1]
	}
	for i := 2; i < len(groups); i += 2 {
		if groups[i] < groups[i+1] {
			return groups[i], groups[i+1]
		}
	}
	return groups[0], groups[1]
}

// keep appends a match that is a finding.
func (s *searcher) keep(text []byte, r *rule, m match, found []finding) []finding {
	if m.start < 0 || m.start == m.end || r.entropy > 0 && entropy(text[m.start:m.end]) <= r.entropy {
		return found
	}
	for i := range s.allow {
		if s.allow[i].allows(text, m) {
			return found
		}
	}
	for i := range r.allow {
		if r.allow[i].allows(text, m) {
			return found
		}
	}
	secret := text[m.start:m.end]
	if n := len(secret); n > 2 && (secret[0] == '"' || secret[0] == '\'') && secret[n-1] == secret[0] {
		m.start, m.end = m.start+1, m.end-1
	}
	return append(found, finding{m.start, m.end, string(text[m.start:m.end]), r})
}

// resolve sorts findings in a text by place and makes one of those that overlap.
func resolve(text []byte, found []finding) []finding {
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Or(a.start-b.start, b.end-a.end) })
	kept := found[:0]
	for _, f := range found {
		if len(kept) == 0 || f.start >= kept[len(kept)-1].end {
			kept = append(kept, f)
			continue
		}
		last := &kept[len(kept)-1]
		start, end := last.start, max(last.end, f.end)
		if f.better(last) {
			*last = f
		}
		if last.start != start || last.end != end {
			last.start, last.end = start, end
			last.secret = string(text[start:end])
		}
	}
	return kept
}

// isImage reports whether a string of a line is an image in base64, or other data so long
// that it is no key.
func isImage(raw []byte) bool {
	const short, long = 64, 4096
	if len(raw) < short {
		return false
	}
	known := false
	for _, magic := range []string{"iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR"} {
		known = known || bytes.HasPrefix(raw, []byte(magic))
	}
	if !known && len(raw) < long {
		return false
	}
	for _, c := range raw {
		if !isWordByte(c) && c != '+' && c != '/' && c != '=' && c != '-' {
			return false
		}
	}
	return true
}
