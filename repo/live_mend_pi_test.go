package repo_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
	"pidb/repo"
)

// openedView is what pi says of an entry of a file, or that it would never answer.
type openedView struct {
	Leaf         int64
	Cycle        bool
	Error        string
	Branch       []int64
	Context      []int64
	MessagesJSON []any `json:"messagesJson"` // of tips
}

// openedByPi returns pi's views of a session by line, and fails where pi does not return.
func openedByPi(t *testing.T, p *pi, name, text string) map[int64]openedView {
	t.Helper()
	var answer struct {
		Error     string
		TreeCycle bool
		TreeError string
		Views     []openedView
	}
	p.mustAsk(t, map[string]any{"op": "views", "path": write(t, text, t.TempDir(), "copy.jsonl"), "long": 1 << 20}, &answer)
	if answer.Error != "" || answer.TreeCycle || answer.TreeError != "" {
		t.Errorf("%s: error %q, tree cycle %v, tree error %q", name, answer.Error, answer.TreeCycle, answer.TreeError)
	}
	views := map[int64]openedView{}
	for _, view := range answer.Views {
		if view.Cycle {
			t.Errorf("%s: pi never returns from line %d", name, view.Leaf)
		}
		views[view.Leaf] = view
	}
	return views
}

// entriesOf returns the entries of a session in file order.
func entriesOf(t *testing.T, a *repo.Archive, session query.Key) []query.Entry {
	t.Helper()
	var out []query.Entry
	err := a.View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), session, nil) {
			if err != nil {
				return err
			}
			if e.Kind == query.KindEntry {
				out = append(out, e)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ownView is what pidb says of an entry, in the terms of a copy whose n-th entry has a line.
func ownView(t *testing.T, a *repo.Archive, leaf query.Ref, lines map[query.Ref]int64) openedView {
	t.Helper()
	view := openedView{Leaf: lines[leaf], Branch: []int64{}, Context: []int64{}, MessagesJSON: []any{}}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		branch, err := rx.Branch(t.Context(), leaf)
		if err != nil {
			return err
		}
		for _, e := range branch {
			view.Branch = append(view.Branch, lines[e.Ref])
		}
		c, err := rx.Context(t.Context(), leaf)
		if err != nil {
			return err
		}
		for _, e := range c.Entries {
			view.Context = append(view.Context, lines[e.Ref])
		}
		for _, m := range c.Messages {
			var message any
			if err := json.Unmarshal(m.JSON, &message); err != nil {
				return err
			}
			view.MessagesJSON = append(view.MessagesJSON, message)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return view
}

// checkFork compares a fork in pi with the session that it was made of.
func checkFork(t *testing.T, p *pi, a *repo.Archive, name string, source query.Session, cyclic func(query.Ref) bool) int {
	t.Helper()
	fork, err := a.Fork(t.Context(), source.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	from, to := entriesOf(t, a, source.Key), entriesOf(t, a, fork.Key())
	if len(from) != len(to) {
		t.Fatalf("%s: %d entries of %d", name, len(to), len(from))
	}
	lines := map[query.Ref]int64{}
	for i := range from {
		lines[from[i].Ref] = to[i].Line.Line
	}
	views := openedByPi(t, p, name, exported(t, a, fork.Key()))
	compared := 0
	every := max(1, len(from)/100)
	for i, e := range from {
		if i%every != 0 && i < len(from)-3 {
			continue
		}
		view, ok := views[to[i].Line.Line]
		if !ok {
			t.Errorf("%s: pi does not see the entry of line %d", name, to[i].Line.Line)
			continue
		}
		if view.Error != "" || e.Ref != source.Leaf && cyclic(e.Ref) {
			continue
		}
		own := ownView(t, a, e.Ref, lines)
		if view.MessagesJSON == nil {
			own.MessagesJSON = nil
		}
		if diff := cmp.Diff(own, view); diff != "" {
			t.Errorf("%s: fork, entry of line %s (-pidb +pi):\n%s", name, fmt.Sprint(e.Line), diff)
		}
		compared++
	}
	return compared
}

// checkExtract compares an extract in pi with the branch that it was made of.
func checkExtract(t *testing.T, p *pi, a *repo.Archive, name string, leaf query.Ref) {
	t.Helper()
	extract, err := a.Extract(t.Context(), leaf, nil)
	if err != nil {
		t.Fatal(err)
	}
	var branch []query.Entry
	err = a.View(t.Context(), func(rx *query.Rx) error {
		branch, err = rx.Branch(t.Context(), leaf)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := map[query.Ref]int64{}
	for _, e := range branch {
		if e.Type != "label" {
			lines[e.Ref] = int64(len(lines)) + 2
		}
	}
	views := openedByPi(t, p, name, exported(t, a, extract.Key()))
	if len(lines) == 0 {
		return
	}
	last := int64(len(lines)) + 1
	got := views[slices.Max(slices.Collect(maps.Keys(views)))]
	if got.Error != "" {
		return
	}
	want := ownView(t, a, leaf, lines)
	label := func(line int64) bool { return line == 0 || line > last }
	want.Branch, want.Context, want.Leaf = slices.DeleteFunc(want.Branch, label), slices.DeleteFunc(want.Context, label), got.Leaf
	got.Branch, got.Context = slices.DeleteFunc(got.Branch, label), slices.DeleteFunc(got.Context, label)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: extract of row %d (-pidb +pi):\n%s", name, leaf.Seq(), diff)
	}
}

// pi opens what is forked or extracted of every session, and gives the branches and the
// contexts that the session has here.
func TestPiOpensCopies(t *testing.T) {
	p := newPi(t)
	a := open(t, nil)
	files := conformance(t)
	for name, lines := range tangled {
		files[name] = header + lines
	}
	forks, views, extracts := 0, 0, 0
	for name, text := range files {
		path := write(t, text, t.TempDir(), name)
		if result := importPaths(t, a, path); result.Rejected > 0 || text == "" {
			continue
		}
		s := &source{session: bySource(t, a, path)}
		views += checkFork(t, p, a, name, s.session, func(leaf query.Ref) bool { return s.isCyclic(t, a, leaf) })
		forks++
		entries := entriesOf(t, a, s.session.Key)
		every := max(1, len(entries)/4)
		for i, e := range entries {
			if i%every == 0 || i >= len(entries)-3 {
				checkExtract(t, p, a, name, e.Ref)
				extracts++
			}
		}
	}
	if forks < 50 {
		t.Errorf("only %d forks", forks)
	}
	t.Logf("%d forks with %d views, %d extracts", forks, views, extracts)
}

// tangled are sessions whose parents make cycles, or whose ids come again.
var tangled = map[string]string{
	"cycle": `{"type":"message","id":"a","parentId":"c","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"2"}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"3"}}
{"type":"message","id":"d","parentId":"b","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":"4"}}
`,
	"another cycle": `{"type":"message","id":"y","parentId":"z","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}
{"type":"message","id":"z","parentId":"y","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"2"}}
{"type":"message","id":"s","parentId":"s","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"3"}}
{"type":"message","id":"d","parentId":null,"timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":"4"}}
`,
	"repeated": `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}
{"type":"message","id":"a","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"2"}}
{"type":"message","id":"a","parentId":"a","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"3"}}
{"type":"context_edit","id":"e","parentId":"a","timestamp":"2026-01-01T00:00:03.500Z","targetId":"b","replacement":null}
{"type":"compaction","id":"k","parentId":"e","timestamp":"2026-01-01T00:00:04.000Z","summary":"s","firstKeptEntryId":"a","tokensBefore":1}
{"type":"label","id":"l","parentId":"k","timestamp":"2026-01-01T00:00:05.000Z","targetId":"a","label":"mark"}
{"type":"label","id":"l","parentId":"l","timestamp":"2026-01-01T00:00:05.000Z","targetId":"l","label":"mark"}
{"type":"message","id":"k","parentId":"l","timestamp":"2026-01-01T00:00:06.000Z","message":{"role":"user","content":"4"}}
{"type":"compaction","id":"k","parentId":"k","timestamp":"2026-01-01T00:00:07.000Z","summary":"s","firstKeptEntryId":"l","tokensBefore":1}
{"type":"message","id":"l","parentId":"k","timestamp":"2026-01-01T00:00:08.000Z","message":{"role":"user","content":"5"}}
{"type":"compaction","id":"a","parentId":"l","timestamp":"2026-01-01T00:00:09.000Z","summary":"s","firstKeptEntryId":"a","tokensBefore":1}
{"type":"compaction","id":"k","parentId":"a","timestamp":"2026-01-01T00:00:09.000Z","summary":"none","firstKeptEntryId":"none","tokensBefore":1}
{"type":"message","id":"m","parentId":"k","timestamp":"2026-01-01T00:00:10.000Z","message":{"role":"user","content":"6"}}
`,
	"repeated and edited": `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"1"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"2"}}
{"type":"context_edit","id":"e","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","targetId":"b","replacement":{"content":"x"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":"3"}}
{"type":"context_edit","id":"f","parentId":"b","timestamp":"2026-01-01T00:00:05.000Z","targetId":"b","replacement":null}
{"type":"message","id":"c","parentId":"e","timestamp":"2026-01-01T00:00:06.000Z","message":{"role":"user","content":"4"}}
{"type":"context_edit","id":"g","parentId":"c","timestamp":"2026-01-01T00:00:07.000Z","targetId":"b","replacement":{"content":"y"}}
`,
}
