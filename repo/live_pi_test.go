package repo_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// pi is the real pi, which answers one request after the other: testdata/pi/README.md.
type pi struct {
	in  io.Writer
	out *bufio.Reader
}

// newPi starts pi from the folder that PIDB_PI names, and skips the test without one.
func newPi(t *testing.T) *pi {
	t.Helper()
	folder := os.Getenv("PIDB_PI")
	if folder == "" {
		t.Skip("PIDB_PI names no folder with pi in its node_modules")
	}
	node := filepath.Join(folder, "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	cmd := exec.Command(node, "../testdata/pi/oracle.mjs", folder)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &pi{in, bufio.NewReader(out)}
}

// ask sends a request and decodes the answer; what pi throws is returned.
func (p *pi) ask(t *testing.T, request map[string]any, answer any) error {
	t.Helper()
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if line, err = p.out.ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	var response struct {
		Result  json.RawMessage `json:"result"`
		Failure string          `json:"failure"`
	}
	if err := json.Unmarshal(line, &response); err != nil {
		t.Fatal(err)
	}
	if response.Failure != "" {
		return fmt.Errorf("pi: %s", response.Failure)
	}
	if err := json.Unmarshal(response.Result, answer); err != nil {
		t.Fatal(err)
	}
	return nil
}

func (p *pi) mustAsk(t *testing.T, request map[string]any, answer any) {
	t.Helper()
	if err := p.ask(t, request, answer); err != nil {
		t.Fatal(err)
	}
}

// report is what pi says of a session that it has written.
type report struct {
	Path      string
	SessionID string `json:"sessionId"`
	Errors    []*string
	Text      string
}

func (r *report) check(t *testing.T) {
	t.Helper()
	for i, problem := range r.Errors {
		if problem != nil {
			t.Errorf("pi's call %d: %s", i, *problem)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// diffLines compares two files line by line.
func diffLines(t *testing.T, what, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	for i := range max(len(w), len(g)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(nothing)"
		}
		if line(w) != line(g) {
			t.Errorf("%s: line %d\n  pi %s\npidb %s", what, i+1, line(w), line(g))
			return
		}
	}
}

// step is one call of pi's SessionManager and what does the same here.
type step struct {
	call  []any
	entry *repo.NewEntry
	to    *string // of a branch
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// stepID is the id of the n-th entry of steps.
func stepID(n int) string { return fmt.Sprintf("0000%04x", n+1) }

// steps writes an entry of every kind, with values of every shape. Messages named m:
// system, user, assistant, tool result.
func steps() []step {
	var list []step
	entries := 0
	add := func(entry repo.NewEntry, call ...any) string {
		id := stepID(entries)
		entries++
		entry = entry.WithID(id)
		list = append(list, step{call: call, entry: &entry})
		return id
	}
	move := func(id string, call ...any) { list = append(list, step{call: call, to: &id}) }
	message := func(text string) string { return add(repo.Message(raw(text)), "appendMessage", raw(text)) }
	undefined := "@undefined"

	message(`{"role":"system","content":"you are","sections":{"z":"1","10":"ten","a":"x","2":"two","gone":"g"},"toolsAdded":[{"name":"read","description":"r","parameters":{"type":"object"}},{"name":"bash"}],"timestamp":1}`)
	add(repo.ModelChange("anthropic", "claude <&> \u2028"), "appendModelChange", "anthropic", "claude <&> \u2028")
	add(repo.ThinkingLevel("high"), "appendThinkingLevelChange", "high")
	user := message(` { "role" : "user", "b":1e+2, "10":-0, "2":9007199254740993, "content":[{"type":"text","text":"\ud800 \udc00\ud83d\ude00 \u0000\u001f\u007f\u2028</script>"}], "b":1E400, "x":1.50, "y":1e-7, "z":0.1e21, "timestamp":1767225601000}`)
	assistant := message(`{"role":"assistant","content":[{"type":"text","text":"hi"},{"type":"toolCall","id":"t","name":"read","arguments":{"b":null,"a":[]}}],"provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"total":0.30000000000000004}},"stopReason":"toolUse","timestamp":1767225602000}`)
	tool := message(`{"role":"toolResult","toolCallId":"t","toolName":"read","content":[{"type":"text","text":"file"}],"isError":false,"timestamp":1767225603000}`)
	message(`{"role":"user","content":null}`)
	add(repo.Custom("state", nil), "appendCustomEntry", "state", nil)
	custom := add(repo.Custom("state", jsonl.Undefined), "appendCustomEntry", "state", undefined)
	add(repo.Custom("state", jsonl.Members{{Key: "b", Value: 1}, {Key: "a", Value: jsonl.Undefined}, {Key: "7", Value: []any{jsonl.Undefined, nil, 1.5}}}),
		"appendCustomEntry", "state", raw(`{"b":1,"7":[null,null,1.5]}`))
	extension := add(repo.CustomMessage("ext", "text", true, jsonl.Undefined), "appendCustomMessageEntry", "ext", "text", true, undefined)
	add(repo.CustomMessage("ext", []any{}, false, map[string]any{"k": "v"}), "appendCustomMessageEntry", "ext", []any{}, false, map[string]any{"k": "v"})
	add(repo.CustomMessage("ext", nil, false, nil), "appendCustomMessageEntry", "ext", nil, false, nil)
	add(repo.Label(user, "mark"), "appendLabelChange", user, "mark")
	add(repo.Label(user, "  mark two "), "appendLabelChange", user, "  mark two ")
	add(repo.Label(assistant, "other"), "appendLabelChange", assistant, "other")
	add(repo.Label(assistant, ""), "appendLabelChange", assistant, "")
	label := add(repo.ClearLabel(user), "appendLabelChange", user, undefined)
	add(repo.SessionName("\ufeff a\r\n\n\rname\u2029\u00a0"), "appendSessionInfo", "\ufeff a\r\n\n\rname\u2029\u00a0")
	add(repo.SessionName(""), "appendSessionInfo", "")
	add(repo.SessionName("the name"), "appendSessionInfo", "the name")
	usage := raw(`{"input":1,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":1,"cost":{"input":1e-10,"output":0,"cacheRead":0,"cacheWrite":0,"total":1e-10}}`)
	add(repo.Usage("title", "p", "m", usage, ""), "appendUsage", "title", "p", "m", usage)
	add(repo.Usage("title", "p", "m", usage, "why"), "appendUsage", "title", "p", "m", usage, "why")
	add(repo.ContextEdit(user, raw(`{"content":"edited","other":[1]}`)), "appendContextEdit", user, raw(`{"content":"edited","other":[1]}`))
	add(repo.ContextEdit(assistant, raw(`{"content":"\ud800 edited","other":[1]}`)), "appendContextEdit", assistant, raw(`{"content":"\ud800 edited","other":[1]}`))
	add(repo.ContextEdit(tool, raw(`{"content":[]}`)), "appendContextEdit", tool, raw(`{"content":[]}`))
	add(repo.ContextEdit(tool, raw(`{"content":"","b":1}`)), "appendContextEdit", tool, raw(`{"content":"","b":1}`))
	add(repo.ContextEdit(extension, raw(`{"content":"x"}`)), "appendContextEdit", extension, raw(`{"content":"x"}`))
	add(repo.ContextEdit(user, nil), "appendContextEdit", user, nil)
	message(`{"role":"system","content":[{"type":"text","text":"more"},{"type":"image"},{"type":"text","text":"\n\"x\""}],"sections":{"gone":null,"a":"y","new":"n"},"toolsRemoved":[{"name":"read"}],"toolsAdded":[{"name":"edit"}],"timestamp":2}`)
	message(`{"role":"system","content":""}`)
	add(repo.Compaction("sum", assistant, 1234, nil), "appendCompaction", "sum", assistant, 1234)
	message(`{"role":"user","content":"after"}`)
	add(repo.Compaction("sum two", "", 5, &repo.SummaryOptions{Details: raw(`{"b":[],"1":2}`), Usage: usage, FromHook: new(true)}),
		"appendCompaction", "sum two", undefined, 5, raw(`{"b":[],"1":2}`), true, usage)
	add(repo.Compaction("", "nothing", 0, &repo.SummaryOptions{Details: raw("null"), FromHook: new(false)}), "appendCompaction", "", "nothing", 0, nil, false, undefined)
	move(user, "branch", user)
	add(repo.ModelChange("", ""), "appendModelChange", "", "")
	add(repo.BranchSummary(assistant, "went wrong", nil), "branchWithSummary", assistant, "went wrong")
	add(repo.BranchSummary(label, "again", &repo.SummaryOptions{Details: raw(`[1]`), Usage: usage, FromHook: new(true)}), "branchWithSummary", label, "again", raw(`[1]`), true, usage)
	add(repo.BranchSummary("", "top", &repo.SummaryOptions{FromHook: new(false)}), "branchWithSummary", nil, "top", undefined, false)
	add(repo.Compaction("no system message here", "", 0, nil), "appendCompaction", "no system message here", undefined, 0)
	move("", "resetLeaf")
	add(repo.BranchSummary("", "from nowhere", nil), "branchWithSummary", nil, "from nowhere")
	move("", "resetLeaf")
	add(repo.Compaction("of nothing", "", 0, nil), "appendCompaction", "of nothing", undefined, 0)
	move("", "resetLeaf")
	message(`{"role":"system","content":"only tools","toolsAdded":[{"name":"a","parameters":{"2":1,"1":2}},{"name":"b"},{"name":"a","x":1}]}`)
	add(repo.Compaction("system without a time", "", 0, nil), "appendCompaction", "system without a time", undefined, 0)
	add(repo.ThinkingLevel("off"), "appendThinkingLevelChange", "off")
	move(custom, "branch", custom)
	message(`{"role":"user","content":"the end"}`)
	return list
}

// play appends steps to a session here: one at a time, or all that follow each other at once.
func play(t *testing.T, s *repo.Session, list []step, together bool) {
	t.Helper()
	var batch []repo.NewEntry
	for _, st := range list {
		if st.to == nil && together {
			batch = append(batch, *st.entry)
			continue
		}
		appendTo(t, s, batch...)
		batch = nil
		if st.to == nil {
			appendTo(t, s, *st.entry)
		} else if err := s.Branch(t.Context(), *st.to); err != nil {
			t.Fatal(err)
		}
	}
	appendTo(t, s, batch...)
}

// calls returns the calls of steps, and the ids that pi is to give.
func calls(list []step) (calls [][]any, ids []string) {
	for _, st := range list {
		calls = append(calls, st.call)
		if st.entry != nil {
			ids = append(ids, stepID(len(ids)))
		}
	}
	return calls, ids
}

// What is written here is what pi writes for the same values, byte for byte.
func TestPiBytes(t *testing.T) {
	p := newPi(t)
	list := steps()
	toCall, ids := calls(list)
	dir := t.TempDir()
	var r report
	p.mustAsk(t, map[string]any{
		"op": "create", "cwd": "/work", "dir": dir, "id": "session-1", "parentSession": "/old.jsonl", "calls": toCall, "ids": ids, "now": []int64{fixedTime.UnixMilli()},
	}, &r)
	r.check(t)
	want := readFile(t, r.Path)
	for _, together := range []bool{false, true} {
		a := open(t, &repo.OpenOptions{Now: fixedClock})
		s := create(t, a, &repo.CreateOptions{ID: "session-1", ParentSession: "/old.jsonl"})
		play(t, s, list, together)
		diffLines(t, fmt.Sprintf("all at once: %v", together), want, exported(t, a, s.Key()))
		if want, err := strconv.Atoi(strconv.Itoa(strings.Count(want, "\n"))); err != nil || want < len(ids) {
			t.Errorf("%d lines, %v", want, err)
		}
	}
}

// piViews is what pi says of a session file.
type piViews struct {
	Error    string
	Name     *string
	Leaf     *int64
	Labels   map[string]string
	Tree     [][]any
	Children [][]int64
	Views    []piView
}

type piView struct {
	Leaf          int64
	Branch        []int64
	Context       []int64
	MessagesJSON  []any `json:"messagesJson"`
	ThinkingLevel *string
	Model         *struct{ Provider, ModelID string }
}

// agree compares what pi says of the file with the session in the archive.
func agree(t *testing.T, p *pi, a *repo.Archive, session query.Key, path string) {
	t.Helper()
	var want, got piViews
	p.mustAsk(t, map[string]any{"op": "views", "path": path, "full": true, "long": 1 << 20}, &want)
	if want.Error != "" {
		t.Fatalf("pi does not open it: %s", want.Error)
	}
	err := a.View(t.Context(), func(rx *query.Rx) (err error) {
		got, err = viewsOf(t, rx, session)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-pi +pidb):\n%s", path, diff)
	}
}

func viewsOf(t *testing.T, rx *query.Rx, session query.Key) (v piViews, err error) {
	ctx := t.Context()
	info, err := rx.Session(ctx, session)
	if err != nil {
		return v, err
	}
	if info.Name != "" {
		v.Name = &info.Name
	}
	lines := func(entries []query.Entry, err error) ([]int64, error) {
		out := []int64{}
		for _, e := range entries {
			out = append(out, e.Line.Line)
		}
		return out, err
	}
	for node, err := range rx.Tree(ctx, session) {
		if err != nil {
			return v, err
		}
		var label any
		if node.Label != "" {
			label = node.Label
		}
		v.Tree = append(v.Tree, []any{float64(node.Entry.Line.Line), float64(node.Depth), label})
	}
	labels, err := rx.Labels(ctx, session)
	if err != nil {
		return v, err
	}
	v.Labels = map[string]string{}
	for _, label := range labels {
		e, err := rx.Entry(ctx, label.Target)
		if err != nil {
			return v, err
		}
		v.Labels[strconv.FormatInt(e.Line.Line, 10)] = label.Text
	}
	var entries []query.Entry
	for e, err := range rx.Entries(ctx, session, nil) {
		if err != nil {
			return v, err
		}
		if e.Kind == query.KindEntry {
			entries = append(entries, e)
			v.Leaf = new(e.Line.Line)
		}
	}
	for _, e := range entries {
		children, err := lines(rx.Children(ctx, e.Ref))
		if err != nil {
			return v, err
		}
		v.Children = append(v.Children, children)
		view := piView{Leaf: e.Line.Line}
		if view.Branch, err = lines(rx.Branch(ctx, e.Ref)); err != nil {
			return v, err
		}
		c, err := rx.Context(ctx, e.Ref)
		if err != nil {
			return v, err
		}
		view.Context, _ = lines(c.Entries, nil)
		view.ThinkingLevel = &c.ThinkingLevel
		if c.Model != nil {
			view.Model = &struct{ Provider, ModelID string }{c.Model.Provider, c.Model.ModelID}
		}
		view.MessagesJSON = []any{}
		for _, m := range c.Messages {
			var message any
			if err := json.Unmarshal(m.JSON, &message); err != nil {
				return v, err
			}
			view.MessagesJSON = append(view.MessagesJSON, message)
		}
		v.Views = append(v.Views, view)
	}
	return v, nil
}

// A session made here opens in pi, which says the same of it; pi goes on with it, and the
// import of that says the same again.
func TestPiGoesOn(t *testing.T) {
	p := newPi(t)
	dir := t.TempDir()
	a := open(t, &repo.OpenOptions{Now: fixedClock})
	s := create(t, a, nil)
	play(t, s, steps(), true)
	path := write(t, exported(t, a, s.Key()), dir, "a.jsonl")
	agree(t, p, a, s.Key(), path)

	var r report
	p.mustAsk(t, map[string]any{"op": "append", "path": path, "calls": [][]any{
		{"appendMessage", map[string]any{"role": "user", "content": "from pi"}},
		{"appendLabelChange", "@0", "pi's"},
		{"branch", stepID(3)},
		{"appendMessage", map[string]any{"role": "user", "content": "a branch"}},
		{"appendCompaction", "pi's summary", "@undefined", 3},
		{"appendSessionInfo", "pi's name"},
	}}, &r)
	r.check(t)
	importPaths(t, a, path)
	if got := bySource(t, a, path); got.Key != s.Key() || got.Name != "pi's name" {
		t.Fatalf("the import made %+v", got)
	}
	if exported(t, a, s.Key()) != readFile(t, path) {
		t.Error("the archive does not hold what the file does")
	}
	agree(t, p, a, s.Key(), path)
}

// The other way round: pi's session goes on here as a fork, and that in pi.
func TestPiBegins(t *testing.T) {
	p := newPi(t)
	dir := t.TempDir()
	list := steps()
	toCall, ids := calls(list)
	var r report
	p.mustAsk(t, map[string]any{"op": "create", "cwd": "/work", "dir": dir, "calls": toCall, "ids": ids}, &r)
	r.check(t)
	a := open(t, nil)
	importPaths(t, a, r.Path)
	agree(t, p, a, bySource(t, a, r.Path).Key, r.Path)

	fork, err := a.Fork(t.Context(), bySource(t, a, r.Path).Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fork.Branch(t.Context(), stepID(10)); err != nil { // all targets of edits are above
		t.Fatal(err)
	}
	for _, st := range list {
		if st.entry != nil {
			entry := *st.entry
			appendTo(t, fork, entry.WithID(""))
		} else if err := fork.Branch(t.Context(), *st.to); err != nil {
			t.Fatal(err)
		}
	}
	path := write(t, exported(t, a, fork.Key()), dir, "b.jsonl")
	agree(t, p, a, fork.Key(), path)
	p.mustAsk(t, map[string]any{"op": "append", "path": path, "calls": [][]any{{"appendMessage", map[string]any{"role": "user", "content": "from pi"}}}}, &r)
	r.check(t)
	importPaths(t, a, path)
	if got := bySource(t, a, path); got.Key != fork.Key() {
		t.Fatalf("the import made %+v", got)
	}
	agree(t, p, a, fork.Key(), path)
}

var headerOwn = regexp.MustCompile(`"id":"[^"]*","timestamp":"[^"]*"|"parentSession":"[^"]*"`)

// sameHeader takes from the first line of a file what differs between two of the same session.
func sameHeader(text string) string {
	first, rest, _ := strings.Cut(text, "\n")
	return headerOwn.ReplaceAllString(first, "_") + "\n" + rest
}

// source is a session of the conformance folder in an archive, and a copy of its file for pi.
type source struct {
	session query.Session
	entries []query.Entry // entries only
	rows    []query.Entry // all lines
	forPi   string
	unique  bool // no entry id comes twice
	whole   bool // nothing was recovered from a damaged line
}

func newSource(t *testing.T, p *pi, a *repo.Archive, name, text string) (*source, bool) {
	t.Helper()
	if text == "" {
		return nil, false
	}
	s := &source{unique: true, whole: true, forPi: write(t, text, t.TempDir(), "for pi.jsonl")}
	path := write(t, text, t.TempDir(), name)
	if result := importPaths(t, a, path); result.Rejected > 0 {
		return nil, false
	}
	s.session = bySource(t, a, path)
	if s.session.Format < 2 || s.session.Headerless {
		return nil, false // pi gives ids at random, or does not open it
	}
	if s.session.Format == 2 {
		// pi's forkFrom does not upgrade; opening it does.
		var ignored report
		p.mustAsk(t, map[string]any{"op": "append", "path": s.forPi}, &ignored)
	}
	seen := map[string]bool{}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), s.session.Key, nil) {
			if err != nil {
				return err
			}
			s.rows = append(s.rows, e)
			if e.Kind == query.KindEntry {
				s.entries = append(s.entries, e)
				s.unique = s.unique && !seen[e.ID]
				s.whole = s.whole && !e.Recovered
				seen[e.ID] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, true
}

// A fork is what pi's forkFrom makes, but for id and times, for entries that pi does not
// recover, and for ids that come again: TestPiOpensCopies.
func TestPiForks(t *testing.T) {
	p := newPi(t)
	a := open(t, nil)
	compared := 0
	for name, text := range conformance(t) {
		s, ok := newSource(t, p, a, name, text)
		if !ok || !s.unique {
			continue
		}
		var r report
		if err := p.ask(t, map[string]any{"op": "fork", "path": s.forPi, "cwd": "/else/where", "dir": t.TempDir()}, &r); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		fork, err := a.Fork(t.Context(), s.session.Key, &repo.ForkOptions{CWD: "/else/where"})
		if err != nil {
			t.Fatal(err)
		}
		got := exported(t, a, fork.Key())
		if !s.whole {
			got = withoutRecovered(got, s.rows, text)
		}
		diffLines(t, name, sameHeader(readFile(t, r.Path)), sameHeader(got))
		compared++
	}
	if compared < 35 {
		t.Errorf("only %d sessions were compared", compared)
	}
	t.Log(compared, "sessions")
}

// withoutRecovered takes out of a fork the lines of recovered entries.
func withoutRecovered(fork string, rows []query.Entry, text string) string {
	lines := strings.SplitAfter(fork, "\n")
	physical := strings.Split(text, "\n")
	kept := []string{lines[0]}
	at := 1
	for _, row := range rows {
		switch {
		case row.Recovered:
			at++
		case row.Kind == query.KindEntry, row.Kind == query.KindJSON && !slices.Contains([]string{"null", "false", "0", `""`}, strings.TrimSpace(physical[row.Line.Line-1])):
			kept = append(kept, lines[at])
			at++
		}
	}
	return strings.Join(kept, "")
}

// An extract is what pi's createBranchedSession makes, but for ids and times.
func TestPiExtracts(t *testing.T) {
	p := newPi(t)
	a := open(t, nil)
	compared, labelled := 0, 0
	for name, text := range conformance(t) {
		s, ok := newSource(t, p, a, name, text)
		if !ok || !s.unique || !s.whole || s.session.CWD == "" { // pi takes the folder that it runs in for the last
			continue
		}
		every := max(1, len(s.entries)/40)
		for i, e := range s.entries {
			if i%every != 0 && i < len(s.entries)-3 || s.isCyclic(t, a, e.Ref) {
				continue
			}
			var r report
			if err := p.ask(t, map[string]any{"op": "extract", "path": s.forPi, "line": s.lineForPi(text, e.Line.Line), "dir": t.TempDir()}, &r); err != nil {
				t.Logf("%s, line %d: %v", name, e.Line.Line, err)
				continue
			}
			extract, err := a.Extract(t.Context(), e.Ref, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := exported(t, a, extract.Key())
			want := sameLabelIDs(t, r.Text, got)
			diffLines(t, fmt.Sprintf("%s, line %d", name, e.Line.Line), sameHeader(want), sameHeader(got))
			compared++
			if strings.Contains(got, `{"type":"label"`) {
				labelled++
			}
			if t.Failed() {
				return
			}
		}
	}
	if compared < 400 || labelled < 20 {
		t.Errorf("only %d extracts were compared, %d with labels", compared, labelled)
	}
	t.Log(compared, "extracts,", labelled, "with labels")
}

// lineForPi returns the line that an entry has in the file for pi, which pi has rewritten
// when it is of an old version.
func (s *source) lineForPi(text string, line int64) int64 {
	if s.session.Format >= jsonl.CurrentVersion {
		return line
	}
	at := int64(0)
	for i, physical := range strings.Split(text, "\n") {
		if json.Valid([]byte(physical)) {
			at++
		}
		if int64(i+1) == line {
			return at
		}
	}
	return 0
}

// isCyclic reports whether pi would never return from the path to an entry.
func (s *source) isCyclic(t *testing.T, a *repo.Archive, leaf query.Ref) bool {
	t.Helper()
	cyclic := false
	err := a.View(t.Context(), func(rx *query.Rx) error {
		path, err := rx.Branch(t.Context(), leaf)
		if err != nil {
			return err
		}
		root := path[0]
		cyclic = root.Parent != 0 || root.ParentID == root.ID
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cyclic
}

var labelID = regexp.MustCompile(`^\{"type":"label","id":"([^"]+)"`)

// sameLabelIDs gives the labels at the end of one file the ids that they have in another.
func sameLabelIDs(t *testing.T, text, other string) string {
	t.Helper()
	theirs := strings.Split(other, "\n")
	for i, line := range strings.Split(text, "\n") {
		m := labelID.FindStringSubmatch(line)
		if m == nil || i >= len(theirs) {
			continue
		}
		if n := labelID.FindStringSubmatch(theirs[i]); n != nil {
			text = strings.ReplaceAll(text, `"`+m[1]+`"`, `"`+n[1]+`"`)
		}
	}
	return text
}
