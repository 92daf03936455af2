package sessiongen

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// A Session is one generated file.
type Session struct {
	Bytes    []byte         // the whole file
	Features map[string]int // how often each trait occurs; absent when it does not
}

// A Scope says how far from the ordinary a session may be.
type Scope int

const (
	ScopeAll  Scope = iota // everything
	ScopeOdd               // no diff/ feature but versions 1 and newer kinds
	ScopeSane              // nor any odd/ feature
)

// Options restrict what [Generate] makes; the zero value restricts nothing.
type Options struct {
	Scope   Scope
	Entries int // about how many entries to add to those the features need; 0 means up to 30, at random
}

// Generate makes the session of a seed.
func Generate(seed uint64, opts Options) Session {
	g := &gen{
		rng:      rand.New(rand.NewPCG(seed, 0x70696462)),
		scope:    opts.Scope,
		features: make(map[string]int),
		used:     make(map[string]bool),
		clock:    time.Date(2026, 4, 29, 10, 0, 0, 0, time.UTC),
	}
	g.clock = g.clock.Add(time.Duration(g.rng.Int64N(int64(90 * 24 * time.Hour))).Truncate(time.Millisecond))
	return Session{Bytes: g.file(seed, opts.Entries), Features: g.features}
}

// A shape is what kind of file a session is as a whole. Shapes take turns by seed, so that each has its share of
// any run of seeds.
type shape int

const (
	shapeEmpty shape = iota
	shapeOtherFormat
	shapeNoHeader
	shapeLateHeader
	shapeRecordsFirst
	shapeV1
	shapeV2
	shapeV3 // and all after it
	shapes  = 12
)

type gen struct {
	rng      *rand.Rand
	scope    Scope
	calm     bool // no diff/ or odd/ feature in this session
	features map[string]int
	used     map[string]bool // ids given out
	clock    time.Time
	odd      []string // the time/ features that this session may show
	nodes    []*node  // in file order
	leaf     *node    // where the next entry goes; nil before the first
}

// count notes a feature.
func (g *gen) count(name string) {
	if !known[name] {
		panic("sessiongen: unnamed feature " + name)
	}
	g.features[name]++
}

// chance is true with probability p.
func (g *gen) chance(p float64) bool { return g.rng.Float64() < p }

// between is a number from low to high, both included.
func (g *gen) between(low, high int) int { return low + g.rng.IntN(high-low+1) }

// pick is one of the items.
func pick[T any](g *gen, items ...T) T { return items[g.rng.IntN(len(items))] }

// newID gives an id that no entry has yet.
func (g *gen) newID() string {
	for {
		id := strconv.FormatUint(1<<32+uint64(g.rng.Uint32()), 16)[1:]
		if !g.used[id] {
			g.used[id] = true
			return id
		}
	}
}

// file composes the whole session.
func (g *gen) file(seed uint64, entries int) []byte {
	shape := min(shape(seed%shapes), shapeV3)
	if g.scope != ScopeAll && shape < shapeV1 {
		shape = shapeV3
	}
	g.calm = g.chance(0.2)
	switch shape {
	case shapeEmpty:
		g.count("diff/empty-file")
		return nil
	case shapeOtherFormat:
		return g.otherFormat()
	}
	if entries == 0 {
		entries = g.between(3, 30)
	}
	if shape == shapeV1 {
		g.growV1(entries)
	} else {
		g.grow(entries, shape)
	}
	lines := g.compose(shape)
	lines = g.disturb(lines, shape)
	return g.join(lines, shape)
}

// wild reports whether the session takes this diff/ feature on, with probability p.
func (g *gen) wild(p float64) bool { return g.scope == ScopeAll && !g.calm && g.chance(p) }

// strange is wild for the odd/ features.
func (g *gen) strange(p float64) bool { return g.scope != ScopeSane && !g.calm && g.chance(p) }

// grow adds entries: the scenarios that chance selects, in random order, among ordinary ones.
func (g *gen) grow(entries int, shape shape) {
	for _, name := range []string{
		"time/equal", "time/bad", "time/absent", "time/backwards", "time/offset", "time/number", "time/legacy",
	} {
		if g.chance(0.2) {
			g.odd = append(g.odd, name)
		}
	}
	var steps []func(*gen)
	for _, scenario := range scenarios {
		if g.chance(0.3) {
			steps = append(steps, scenario)
		}
	}
	for _, scenario := range diffScenarios {
		if g.wild(0.24) {
			steps = append(steps, scenario)
		}
	}
	for _, scenario := range oddScenarios {
		if g.strange(0.24) {
			steps = append(steps, scenario)
		}
	}
	if shape == shapeV2 {
		steps = append(steps, (*gen).hookMessage)
	}
	for range entries {
		steps = append(steps, (*gen).filler)
	}
	g.rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	g.opening()
	for _, step := range steps {
		if g.chance(0.12) && len(g.nodes) > 2 {
			g.branch()
		}
		step(g)
	}
	g.filler() // the last line is an ordinary one, whatever came before
	if g.chance(0.2) {
		g.lastLineOlder()
	}
}

// opening adds what pi writes first.
func (g *gen) opening() {
	if g.chance(0.4) {
		g.message("system")
	}
	if g.chance(0.8) {
		g.modelChange()
		g.thinkingChange()
	}
	g.message("user")
}

// branch moves the leaf to an earlier entry.
func (g *gen) branch() {
	to := pick(g, g.nodes...)
	if to.apart || to == g.leaf {
		return
	}
	for _, n := range g.nodes {
		if n.parent == to {
			g.count("tree/branch")
			break
		}
	}
	g.leaf = to
}

// filler adds one ordinary entry.
func (g *gen) filler() {
	switch n := g.rng.IntN(100); {
	case n < 60:
		g.message(pick(g, "user", "user", "assistant", "assistant", "assistant", "toolResult", "toolResult", "bashExecution", "system"))
	case n < 64:
		g.modelChange()
	case n < 68:
		g.thinkingChange()
	case n < 72:
		g.add("usage", m("kind", quote(pick(g, "title", "summary"))), m("provider", `"local"`), m("model", `"qwen3:32b"`), m("usage", g.usage()))
	case n < 78:
		g.customMessage(g.content())
	case n < 82:
		g.custom()
	case n < 86:
		g.labelSet()
	case n < 88:
		g.nameSet()
	case n < 91:
		g.branchSummary()
	case n < 94:
		g.unknown()
	case n < 97:
		g.activeTools()
	default:
		g.compaction(pick(g, g.path()...).id, g.chance(0.5))
	}
}
