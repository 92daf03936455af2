package query_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// openArchive opens an archive of its own for a test.
func openArchive(t testing.TB) *repo.Archive {
	t.Helper()
	a, err := repo.Open(t.Context(), filepath.Join(t.TempDir(), "archive", "pidb.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// importFile imports one file and returns the key of its session, or false where it is none.
func importFile(t testing.TB, a *repo.Archive, path string) (query.Key, bool) {
	t.Helper()
	if _, err := a.Import(t.Context(), []string{path}, &repo.ImportOptions{NoIndex: true}); err != nil {
		t.Fatal(err)
	}
	var key query.Key
	err := a.View(t.Context(), func(rx *query.Rx) error {
		session, err := rx.Find(t.Context(), path)
		key = session.Key
		return err
	})
	if err != nil {
		return 0, false
	}
	return key, true
}

// subject is a session in an archive with everything that its rows are named by.
type subject struct {
	t       testing.TB
	rx      *query.Rx
	key     query.Key
	entries []query.Entry
	refs    map[query.LineNumber]query.Ref
	kinds   map[int64]query.Kind // of physical lines
}

func newSubject(t testing.TB, rx *query.Rx, key query.Key) *subject {
	t.Helper()
	s := &subject{t: t, rx: rx, key: key, refs: map[query.LineNumber]query.Ref{}, kinds: map[int64]query.Kind{}}
	for e, err := range rx.Entries(t.Context(), key, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Line.Part == 0 {
			s.kinds[e.Line.Line] = e.Kind
		}
		if e.Kind == query.KindEntry {
			s.entries = append(s.entries, e)
			s.refs[e.Line] = e.Ref
		}
	}
	return s
}

// branch, context and messages of an entry, which must not fail.
func (s *subject) branch(ref query.Ref) []query.LineNumber {
	s.t.Helper()
	entries, err := s.rx.Branch(s.t.Context(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return linesOf(entries)
}

func (s *subject) context(ref query.Ref) *query.Context {
	s.t.Helper()
	c, err := s.rx.Context(s.t.Context(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *subject) children(ref query.Ref) []query.LineNumber {
	s.t.Helper()
	entries, err := s.rx.Children(s.t.Context(), ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return linesOf(entries)
}

func (s *subject) tree() []query.Node {
	s.t.Helper()
	var nodes []query.Node
	for n, err := range s.rx.Tree(s.t.Context(), s.key) {
		if err != nil {
			s.t.Fatal(err)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

func (s *subject) labels() map[query.LineNumber]string {
	s.t.Helper()
	found, err := s.rx.Labels(s.t.Context(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	labels := map[query.LineNumber]string{}
	for _, label := range found {
		if label.Target == 0 {
			continue
		}
		for line, ref := range s.refs {
			if ref == label.Target {
				labels[line] = label.Text
			}
		}
	}
	return labels
}

func (s *subject) name() string {
	s.t.Helper()
	name, err := s.rx.Name(s.t.Context(), s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	return name
}

func linesOf(entries []query.Entry) []query.LineNumber {
	lines := make([]query.LineNumber, len(entries))
	for i, e := range entries {
		lines[i] = e.Line
	}
	return lines
}

// show names a line as pi's answers do.
func show(line query.LineNumber) string {
	if line.Part > 0 {
		return fmt.Sprintf("%d.%d", line.Line, line.Part)
	}
	return strconv.FormatInt(line.Line, 10)
}

func showAll(lines []query.LineNumber) []string {
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = show(line)
	}
	return shown
}

// piAnswers is what pi says of a file: conformance/README.md.
type piAnswers struct {
	Error     string         `json:"error"`
	Empty     bool           `json:"empty"`
	Name      *string        `json:"name"`
	NameError string         `json:"nameError"`
	Count     int            `json:"count"`
	Types     string         `json:"types"`
	Leaf      *int64         `json:"leaf"`
	Labels    map[string]any `json:"labels"`
	Tree      piList         `json:"tree"`
	Children  [][]*int64     `json:"children"`
	Views     []piView       `json:"views"`
}

type piView struct {
	Leaf          int64           `json:"leaf"`
	Cycle         bool            `json:"cycle"`
	Error         string          `json:"error"`
	Branch        piList          `json:"branch"`
	Context       piList          `json:"context"`
	MessageCount  int             `json:"messageCount"`
	MessagesJSON  json.RawMessage `json:"messagesJson"`
	MessagesSha   string          `json:"messagesSha"`
	Roles         *string         `json:"roles"`
	ThinkingLevel *string         `json:"thinkingLevel"`
	Model         map[string]any  `json:"model"`
	LLM           json.RawMessage `json:"llmJson"`
}

// piList is a list as pi's answers have it: whole, or its length and the beginning of a hash.
type piList struct {
	items []string
	Len   int    `json:"len"`
	Sha   string `json:"sha"`
}

func (l *piList) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		type plain piList
		return json.Unmarshal(b, (*plain)(l))
	}
	var items []any
	if err := json.Unmarshal(b, &items); err != nil {
		return err
	}
	l.items = []string{}
	for _, item := range items {
		l.items = append(l.items, showItem(item))
	}
	return nil
}

// showItem is an item as JavaScript joins it: parts of an array by a colon.
func showItem(item any) string {
	switch item := item.(type) {
	case nil:
		return ""
	case []any:
		parts := make([]string, len(item))
		for i, part := range item {
			parts[i] = showItem(part)
		}
		return strings.Join(parts, ":")
	}
	return shown(item)
}

// differs describes how a list differs from what pi has, or is empty.
func (l *piList) differs(items []string) string {
	if l.Sha == "" {
		if slices.Equal(l.items, items) {
			return ""
		}
		return cmp.Diff(l.items, items)
	}
	if hash := shortHash(strings.Join(items, ",")); len(items) != l.Len || hash != l.Sha {
		return fmt.Sprintf("%d items with hash %s instead of %d with %s", len(items), hash, l.Len, l.Sha)
	}
	return ""
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:16]
}

// canonical writes a JSON value with the keys of objects sorted as JavaScript sorts them.
func canonical(v jsonl.Value) []byte {
	switch v.Kind() {
	case jsonl.KindObject:
		type member struct {
			units []uint16
			text  []byte
		}
		var members []member
		for key, value := range v.Members() {
			name := key.AppendNormal(nil)
			text := append(slices.Clone(name), ':')
			members = append(members, member{units(name), append(text, canonical(value)...)})
		}
		slices.SortStableFunc(members, func(a, b member) int { return slices.Compare(a.units, b.units) })
		b := []byte{'{'}
		for i, m := range members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, m.text...)
		}
		return append(b, '}')
	case jsonl.KindArray:
		b := []byte{'['}
		first := true
		for element := range v.Elements() {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, canonical(element)...)
		}
		return append(b, ']')
	}
	return v.AppendNormal(nil)
}

// units are the UTF-16 units of a JSON string in normal form.
func units(literal []byte) []uint16 {
	var u []uint16
	for s := string(literal[1 : len(literal)-1]); s != ""; {
		if s[0] != '\\' {
			r, size := utf8.DecodeRuneInString(s)
			u = utf16.AppendRune(u, r)
			s = s[size:]
			continue
		}
		if s[1] == 'u' {
			n, _ := strconv.ParseUint(s[2:6], 16, 16)
			u = append(u, uint16(n))
			s = s[6:]
			continue
		}
		u = append(u, map[byte]uint16{'b': 8, 't': 9, 'n': 10, 'f': 12, 'r': 13, '"': '"', '\\': '\\'}[s[1]])
		s = s[2:]
	}
	return u
}

// joined is the JSON of messages as one array.
func joined(messages []query.Message) []byte {
	b := []byte{'['}
	for i, m := range messages {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.JSON...)
	}
	return append(b, ']')
}

func messagesHash(t testing.TB, messages []query.Message) string {
	t.Helper()
	var doc jsonl.Doc
	if err := doc.Parse(joined(messages)); err != nil {
		t.Fatal(err)
	}
	return shortHash(string(canonical(doc.Root())))
}

// roles lists the roles of messages as JavaScript joins them.
func roles(t testing.TB, messages []query.Message) string {
	t.Helper()
	var doc jsonl.Doc
	names := make([]string, len(messages))
	for i, m := range messages {
		if err := doc.Parse(m.JSON); err != nil {
			t.Fatal(err)
		}
		if role := doc.Root().Get("role"); role.Exists() {
			names[i] = shown(decoded(t, role.Raw()))
		}
	}
	return strings.Join(names, ",")
}

func decoded(t testing.TB, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return v
}

// count is what was compared with what.
type count struct {
	pi     int            // views that pi and pidb agree about
	whole  int            // trees, children, labels, names, leaves that pi and pidb agree about
	design map[string]int // views where docs/differences.md wants another answer than pi's, by the reason
}

func (c *count) add(other count) {
	c.pi += other.pi
	c.whole += other.whole
	for reason, n := range other.design {
		c.differ(reason, n)
	}
}

func (c *count) differ(reason string, n int) {
	if c.design == nil {
		c.design = map[string]int{}
	}
	c.design[reason] += n
}

func (c count) String() string {
	parts := []string{fmt.Sprintf("%d views and %d other answers equal to pi's", c.pi, c.whole)}
	for _, reason := range slices.Sorted(maps.Keys(c.design)) {
		parts = append(parts, fmt.Sprintf("%d views: %s", c.design[reason], reason))
	}
	return strings.Join(parts, ", ")
}

// compareModel compares everything that pidb says of a session with the model.
func compareModel(s *subject, m *model) {
	t := s.t
	t.Helper()
	if len(s.entries) != len(m.rows) {
		t.Errorf("%d entries instead of %d", len(s.entries), len(m.rows))
		return
	}
	lines := func(places []int) []string {
		shown := []string{}
		for _, at := range places {
			shown = append(shown, show(m.rows[at].at))
		}
		return shown
	}
	check := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-model +pidb):\n%s", what, diff)
		}
	}
	for i, row := range m.rows {
		e := s.entries[i]
		at := show(row.at)
		check(at+": line", at, show(e.Line))
		check(at+": id", row.id, e.ID)
		check(at+": branch", lines(m.branch(i)), showAll(s.branch(e.Ref)))
		check(at+": children", lines(m.children(i)), showAll(s.children(e.Ref)))
		c := s.context(e.Ref)
		check(at+": context", lines(m.context(i)), showAll(linesOf(c.Entries)))
		selected, err := s.rx.ContextEntries(t.Context(), e.Ref)
		if err != nil {
			t.Fatal(err)
		}
		check(at+": context entries", c.Entries, selected)
		checkMessages(t, at+": messages", m.messages(i), joined(c.Messages))
		wantModel, thinking := m.settings(i)
		check(at+": model", named(wantModel), named2(c.Model))
		level, _ := thinking.(string)
		check(at+": thinking level", level, c.ThinkingLevel)
	}
	labels := map[string]string{}
	for at, label := range m.labels() {
		labels[show(m.rows[at].at)] = label
	}
	got := map[string]string{}
	for at, label := range s.labels() {
		got[show(at)] = label
	}
	check("labels", labels, got)
	check("name", m.name(), s.name())

	var wantTree, gotTree []string
	tips := m.tips()
	for _, at := range m.tree() {
		_, tip := tips[at]
		wantTree = append(wantTree, fmt.Sprint(show(m.rows[at].at), m.rows[at].depth, labels[show(m.rows[at].at)], tip))
	}
	for _, n := range s.tree() {
		gotTree = append(gotTree, fmt.Sprint(show(n.Line), n.Depth, n.Label, n.Tip))
	}
	check("tree", wantTree, gotTree)

	wantTips, gotTips := []string{}, []string{}
	for i := range m.rows {
		if own, ok := tips[i]; ok {
			wantTips = append(wantTips, fmt.Sprint(show(m.rows[i].at), own))
		}
	}
	found, err := s.rx.Tips(t.Context(), s.key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tip := range found {
		gotTips = append(gotTips, fmt.Sprint(show(tip.Line), tip.Own))
	}
	check("tips", wantTips, gotTips)
}

// named is a model in words.
func named(model map[string]any) string {
	if model == nil {
		return "none"
	}
	return fmt.Sprintf("%q %q", text(model["provider"]), text(model["modelId"]))
}

func named2(model *query.Model) string {
	if model == nil {
		return "none"
	}
	return fmt.Sprintf("%q %q", model.Provider, model.ModelID)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func checkMessages(t testing.TB, what string, want any, got []byte) {
	t.Helper()
	// Both sides go through the same decoder, which has no lone surrogates.
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, encoded), decoded(t, got)); diff != "" {
		t.Errorf("%s:\n%s", what, diff)
	}
}

// plain reports whether pi takes an entry as pidb does: its id is the only one of its
// kind, it is a line of its own, and its parent is the same row for both.
func (m *model) plain(at int) bool {
	row := m.rows[at]
	if row.at.Part > 0 {
		return false
	}
	switch id := row.parentID.(type) {
	case absent, nil:
	case string:
		if id == row.id {
			return false
		}
	default:
		return false
	}
	return m.byID(row.id) == at && !slices.ContainsFunc(m.rows[:at], func(other *modelRow) bool { return other.id == row.id })
}

// otherwise returns why docs/differences.md wants another view of an entry than pi gives, or "".
func (m *model) otherwise(place int, view *piView, hasValues bool) string {
	switch {
	case view.Cycle:
		return "pi never returns"
	case view.Error != "":
		return "pi throws"
	case m.version == 1 && hasValues:
		return "values are in the branch of version 1"
	case m.rows[place].id == "":
		// pi takes the last entry for the leaf.
		return "an empty id"
	case slices.ContainsFunc(m.branch(place), func(at int) bool { return m.rows[at].at.Part > 0 }):
		return "a recovered entry on the branch"
	case slices.ContainsFunc(m.branch(place), func(at int) bool { return !m.plain(at) }):
		return "a repeated id on the branch"
	}
	return ""
}

// comparePi compares what pi says of a session with what pidb says, where docs/differences.md does
// not want another answer. The model tells where that is.
func comparePi(s *subject, m *model, pi *piAnswers) count {
	t := s.t
	t.Helper()
	var c count
	places := map[query.LineNumber]int{}
	allPlain := true
	for i, row := range m.rows {
		places[row.at] = i
		// pi's tree and its branches disagree about an empty parent id where an entry has that
		// id, and a cycle is not in its tree at all.
		allPlain = allPlain && m.plain(i) && row.id != "" && !m.inCycle(i)
	}
	// Lines that pi takes for entries without id.
	values := map[string]bool{}
	for line, kind := range s.kinds {
		if kind == query.KindJSON {
			values[strconv.FormatInt(line, 10)] = true
		}
	}
	if m.version == 1 && len(values) > 0 {
		// pi gives those an id and a place in the one branch.
		allPlain = false
	}
	for _, view := range pi.Views {
		at := query.LineNumber{Line: view.Leaf}
		place, ok := places[at]
		if !ok {
			if !values[show(at)] {
				t.Errorf("line %d: an entry for pi, not for pidb", view.Leaf)
			}
			c.differ("no entry", 1)
			continue
		}
		if reason := m.otherwise(place, &view, len(values) > 0); reason != "" {
			c.differ(reason, 1)
			continue
		}
		c.pi++
		compareView(s, &view)
	}
	same := func(what string, ok bool, detail string) {
		t.Helper()
		if ok {
			c.whole++
		} else {
			t.Errorf("%s:\n%s", what, detail)
		}
	}
	if allPlain {
		labels, got := map[string]string{}, map[string]string{}
		for line, label := range pi.Labels {
			labels[line] = shown(label)
		}
		for line, label := range s.labels() {
			got[show(line)] = label
		}
		diff := cmp.Diff(labels, got)
		same("labels", diff == "", diff)
		if pi.Tree.items != nil || pi.Tree.Sha != "" {
			pi.Tree.items = slices.DeleteFunc(pi.Tree.items, func(item string) bool {
				line, _, _ := strings.Cut(item, ":")
				return values[line]
			})
			nodes := []string{}
			for _, n := range s.tree() {
				nodes = append(nodes, show(n.Line)+":"+strconv.Itoa(n.Depth)+":"+n.Label)
			}
			diff := pi.Tree.differs(nodes)
			same("tree", diff == "", diff)
		}
		if pi.Children != nil && len(values) == 0 {
			want, got := [][]string{}, [][]string{}
			for i, children := range pi.Children {
				list := []string{}
				for _, line := range children {
					list = append(list, strconv.FormatInt(*line, 10))
				}
				want = append(want, list)
				got = append(got, showAll(s.children(s.entries[i].Ref)))
			}
			diff := cmp.Diff(want, got)
			same("children", diff == "", diff)
		}
		if len(values) == 0 {
			types := []string{}
			for _, e := range s.entries {
				types = append(types, e.Type)
			}
			all := strings.Join(types, ",")
			same("types", pi.Types == all || pi.Types == shortHash(all) || hasOddType(m), cmp.Diff(pi.Types, all))
			same("count", pi.Count == len(s.entries), fmt.Sprint(pi.Count, len(s.entries)))
			if pi.Leaf != nil {
				last := s.entries[len(s.entries)-1].Line
				same("leaf", *pi.Leaf == last.Line, fmt.Sprint(*pi.Leaf, show(last)))
			}
		}
	}
	if pi.NameError == "" && !slices.ContainsFunc(m.rows, func(row *modelRow) bool { return row.at.Part > 0 && row.is("session_info") }) {
		want := ""
		if pi.Name != nil {
			want = *pi.Name
		}
		same("name", want == s.name(), cmp.Diff(want, s.name()))
	}
	return c
}

func hasOddType(m *model) bool {
	return slices.ContainsFunc(m.rows, func(row *modelRow) bool { _, ok := row.value["type"].(string); return !ok })
}

// compareView compares the view from one leaf.
func compareView(s *subject, view *piView) {
	t := s.t
	t.Helper()
	ref := s.refs[query.LineNumber{Line: view.Leaf}]
	differ := func(what, detail string) {
		t.Helper()
		if detail != "" {
			t.Errorf("line %d: %s (-pi +pidb):\n%s", view.Leaf, what, detail)
		}
	}
	differ("branch", view.Branch.differs(showAll(s.branch(ref))))
	c := s.context(ref)
	differ("context", view.Context.differs(showAll(linesOf(c.Entries))))
	differ("message count", cmp.Diff(view.MessageCount, len(c.Messages)))
	if hash := messagesHash(t, c.Messages); hash != view.MessagesSha {
		detail := hash + " instead of " + view.MessagesSha
		if view.MessagesJSON != nil {
			detail += "\n" + cmp.Diff(decoded(t, view.MessagesJSON), decoded(t, joined(c.Messages)))
		}
		differ("messages", detail)
	}
	if view.Roles != nil {
		differ("roles", cmp.Diff(*view.Roles, roles(t, c.Messages)))
	}
	differ("model", cmp.Diff(named(view.Model), named2(c.Model)))
	level := ""
	if view.ThinkingLevel != nil {
		level = *view.ThinkingLevel
	}
	differ("thinking level", cmp.Diff(level, c.ThinkingLevel))
	if view.LLM != nil {
		sent, err := query.LLM(c.Messages)
		if err != nil {
			t.Fatal(err)
		}
		differ("what a provider is sent", cmp.Diff(decoded(t, view.LLM), decoded(t, joined(sent))))
	}
}

// writeFile writes a session file into a folder of its own.
func writeFile(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
