package jsonl

import "math"

// Usage is what a model call consumed.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64 // tokens
	Total                                int64 // tokens, as the entry says; the sum of the four where it says nothing
	Reasoning, CacheWrite1h              int64 // parts of Output and CacheWrite

	Cost                                                 float64 // in all
	CostInput, CostOutput, CostCacheRead, CostCacheWrite float64
}

// Amounts beyond these are taken for none: sums of many stay numbers.
const (
	maxTokens = 1 << 44
	maxCost   = 1e12 // US dollars
)

// tokens reads a count; what is none is 0.
func (v Value) tokens() int64 {
	f, _ := v.Float()
	if math.Abs(f) > maxTokens {
		return 0
	}
	return int64(f)
}

// newUsage reads a usage object; a number that is missing or of another type is 0.
func newUsage(v Value) (Usage, bool) {
	if !v.is(KindObject) {
		return Usage{}, false
	}
	tokens := func(name string) int64 { return v.Get(name).tokens() }
	cost := v.Get("cost")
	money := func(name string) float64 {
		f, _ := cost.Get(name).Float()
		if math.Abs(f) > maxCost {
			return 0
		}
		return f
	}
	u := Usage{
		Input:          tokens("input"),
		Output:         tokens("output"),
		CacheRead:      tokens("cacheRead"),
		CacheWrite:     tokens("cacheWrite"),
		Total:          tokens("totalTokens"),
		Reasoning:      tokens("reasoning"),
		CacheWrite1h:   tokens("cacheWrite1h"),
		Cost:           money("total"),
		CostInput:      money("input"),
		CostOutput:     money("output"),
		CostCacheRead:  money("cacheRead"),
		CostCacheWrite: money("cacheWrite"),
	}
	if _, ok := v.Get("totalTokens").Float(); !ok {
		u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	return u, true
}

// Usage returns what the entry accounts for and, where it says so, the model: of assistant and tool result messages,
// compactions, branch summaries and usage entries. It is not ok when the entry has no usage.
func (o Object) Usage() (usage Usage, model, provider string, ok bool) {
	v := o.Value
	switch o.Type() {
	case "message":
		v = o.Message()
		if role := o.Role(); role != "assistant" && role != "toolResult" {
			return Usage{}, "", "", false
		}
	case "compaction", "branch_summary", "usage":
	default:
		return Usage{}, "", "", false
	}
	usage, ok = newUsage(v.Get("usage"))
	return usage, textOf(v.Get("model")), textOf(v.Get("provider")), ok
}
