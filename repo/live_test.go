package repo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// fixedTime is a clock for byte comparisons.
var fixedTime = time.Date(2026, 5, 4, 3, 2, 1, 7e6, time.UTC)

func fixedClock() time.Time { return fixedTime }

func create(t testing.TB, a *repo.Archive, opts *repo.CreateOptions) *repo.Session {
	t.Helper()
	s, err := a.Create(t.Context(), "/work", opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func appendTo(t testing.TB, s *repo.Session, entries ...repo.NewEntry) []string {
	t.Helper()
	ids, err := s.Append(t.Context(), entries...)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

func userMessage(text string) repo.NewEntry {
	return repo.Message(jsonl.Members{{Key: "role", Value: "user"}, {Key: "content", Value: text}, {Key: "timestamp", Value: fixedTime.UnixMilli()}})
}

func reply(text string) repo.NewEntry {
	return repo.Message(jsonl.Members{
		{Key: "role", Value: "assistant"},
		{Key: "content", Value: []any{jsonl.Members{{Key: "type", Value: "text"}, {Key: "text", Value: text}}}},
		{Key: "provider", Value: "p"},
		{Key: "model", Value: "m"},
		{Key: "timestamp", Value: fixedTime.UnixMilli()},
	})
}

// contextOf shows the roles of the context and the texts in it.
func contextOf(t *testing.T, s *repo.Session) string {
	t.Helper()
	c, err := s.Context(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range c.Messages {
		var doc jsonl.Doc
		if err := doc.Parse(m.JSON); err != nil {
			t.Fatal(err)
		}
		role, _ := doc.Root().Get("role").Text()
		out = append(out, role)
	}
	return strings.Join(out, " ")
}

func TestCheckSessionID(t *testing.T) {
	for _, id := range []string{"last", "#1", "a/b", `a\b`, "..", "", "a\n", ".a", "a-"} {
		if err := repo.CheckSessionID(id); !errors.Is(err, repo.ErrInvalidID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"lasting", "a", "A.b_c-1"} {
		if err := repo.CheckSessionID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestCreate(t *testing.T) {
	a := open(t, &repo.OpenOptions{Now: fixedClock})
	s := create(t, a, &repo.CreateOptions{ID: "s.1_x-y", ParentSession: "/old.jsonl", Metadata: map[string]any{"title": "<one>", "n": 1e2}})
	want := `{"type":"session","version":3,"id":"s.1_x-y","timestamp":"2026-05-04T03:02:01.007Z","cwd":"/work","parentSession":"/old.jsonl"}` + "\n"
	if got := exported(t, a, s.Key()); got != want {
		t.Errorf("header\n got %s want %s", got, want)
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !info.Native || info.State != query.Live || info.Leaf != 0 || info.Modified != fixedTime || info.Created != fixedTime || info.ParentSession != "/old.jsonl" {
		t.Errorf("info %+v", info)
	}
	if err := s.SetMetadata(t.Context(), map[string]any{"n": jsonl.Undefined, "more": []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	metadata, err := s.Metadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]json.RawMessage{"title": json.RawMessage(`"<one>"`), "more": json.RawMessage(`["a"]`)}, metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if _, err := a.Create(t.Context(), "/work", &repo.CreateOptions{ID: "s.1_x-y"}); !errors.Is(err, repo.ErrExists) {
		t.Errorf("the same id again: %v", err)
	}
	for _, id := range []string{"-", "a/b", "../x", "a.", ".a", "a\n", "ä", "a b", "\x00"} {
		if _, err := a.Create(t.Context(), "/work", &repo.CreateOptions{ID: id}); !errors.Is(err, repo.ErrInvalidID) {
			t.Errorf("id %q: %v", id, err)
		}
	}
	if n := len(sessions(t, a)); n != 1 {
		t.Errorf("%d sessions", n)
	}
	other := create(t, a, nil)
	if len(other.ID()) != 36 || other.ID()[14] != '7' {
		t.Errorf("id %q is no UUIDv7", other.ID())
	}
	if deleted, err := other.Delete(t.Context()); err != nil || !deleted {
		t.Errorf("delete: %v, %v", deleted, err)
	}
	if deleted, err := other.Delete(t.Context()); err != nil || deleted {
		t.Errorf("delete again: %v, %v", deleted, err)
	}
	if _, err := other.Append(t.Context(), userMessage("late")); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("append to a deleted session: %v", err)
	}
}

func TestAppend(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, repo.ModelChange("p", "m"), userMessage("one"), reply("two"))
	more := appendTo(t, s, repo.Label(ids[1], "start"), repo.SessionName(" a\r\n\r\nname\n"), repo.ThinkingLevel("high"))
	ids = append(ids, more...)
	if got := contextOf(t, s); got != "user assistant" {
		t.Errorf("context: %s", got)
	}
	name, err := s.Name(t.Context())
	if err != nil || name != "a name" {
		t.Errorf("name %q, %v", name, err)
	}
	labels, err := s.Labels(t.Context())
	if err != nil || len(labels) != 1 || labels[0].Text != "start" || labels[0].ID != ids[1] {
		t.Errorf("labels %v, %v", labels, err)
	}
	path, err := s.Path(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range path {
		if e.ID != ids[i] {
			t.Errorf("entry %d of the path is %s, not %s", i, e.ID, ids[i])
		}
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Entries != 6 || info.Messages != 2 || info.FirstMessage != "one" || info.Name != "a name" || info.Tips != 1 || info.Model != "p/m" || info.Leaf != s.Leaf() {
		t.Errorf("info %+v", info)
	}

	// What an import makes of the export is the same session.
	again := open(t, nil)
	path2 := write(t, exported(t, a, s.Key()), t.TempDir(), "a.jsonl")
	importPaths(t, again, path2)
	got := bySource(t, again, path2)
	got.Key, got.Path, got.Native, got.Leaf = info.Key, "", true, info.Leaf
	if diff := cmp.Diff(info, got); diff != "" {
		t.Errorf("imported (-native +imported):\n%s", diff)
	}
}

// A failed append changes nothing, whichever of its entries fails.
func TestAppendFails(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, userMessage("one"), reply("two"), repo.Custom("x", nil))
	before, leaf := exported(t, a, s.Key()), s.Leaf()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		entry repo.NewEntry
		want  error
	}{
		"label of nothing":      {repo.Label("nothing", "x"), repo.ErrNotFound},
		"label of the empty id": {repo.Label("", "x"), repo.ErrNotFound},
		"edit of nothing":       {repo.ContextEdit("nothing", nil), repo.ErrNotFound},
		"edit without content":  {repo.ContextEdit(ids[0], jsonl.Members{}), repo.ErrInvalidEntry},
		"edit with a number":    {repo.ContextEdit(ids[0], jsonl.Members{{Key: "content", Value: 1}}), repo.ErrInvalidEntry},
		"edit is a string":      {repo.ContextEdit(ids[0], "content"), repo.ErrInvalidEntry},
		"edit of custom state":  {repo.ContextEdit(ids[2], nil), repo.ErrInvalidEntry},
		"summary at nothing":    {repo.BranchSummary("nothing", "x", nil), repo.ErrNotFound},
		"taken id":              {userMessage("x").WithID(ids[0]), repo.ErrExists},
		"raw header":            {repo.Raw(json.RawMessage(`{"type":"session","id":"x"}`)), repo.ErrInvalidEntry},
		"raw array":             {repo.Raw([]any{}), repo.ErrInvalidEntry},
		"raw without a type":    {repo.Raw(json.RawMessage(`{"type":1}`)), repo.ErrInvalidEntry},
		"no JSON":               {repo.Message(json.RawMessage(`{`)), repo.ErrInvalidEntry},
		"no value":              {repo.Message(func() {}), repo.ErrInvalidEntry},
		"invalid name":          {repo.SessionName(" a\xff"), repo.ErrInvalidEntry},
		"invalid id":            {userMessage("x").WithID("\xff"), repo.ErrInvalidEntry},
		"invalid label":         {repo.Label(ids[0], "\xe4"), repo.ErrInvalidEntry},
		"invalid text":          {userMessage("\xff"), repo.ErrInvalidEntry},
		"invalid JSON text":     {repo.Message(raw("{\"role\":\"user\",\"content\":\"\xff\"}")), repo.ErrInvalidEntry},
		"invalid name of one":   {repo.Custom("x", map[string]any{"\xff": 1}), repo.ErrInvalidEntry},
		"invalid tool":          {repo.ActiveTools("a", "\xff"), repo.ErrInvalidEntry},
	} {
		got, err := s.Append(t.Context(), userMessage("fine"), repo.Compaction("sum", "", 1, nil), c.entry)
		if !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if exported(t, a, s.Key()) != before || s.Leaf() != leaf {
		t.Error("something was appended")
	}
	after, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(info, after); diff != "" {
		t.Errorf("info changed (-before +after):\n%s", diff)
	}
	appendTo(t, s, userMessage("three"))
}

// Handles on one session make siblings, unless they insist on the leaf.
func TestLeaf(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, userMessage("one"), reply("two"))
	other, err := a.OpenSession(t.Context(), s.ID()[:20])
	if err != nil {
		t.Fatal(err)
	}
	base := other.Leaf()
	if base != s.Leaf() {
		t.Fatal("a new handle begins elsewhere")
	}
	appendTo(t, s, userMessage("left"))
	appendTo(t, other, userMessage("right"))
	info, _ := s.Info(t.Context())
	if info.Tips != 2 || info.Leaf != other.Leaf() {
		t.Errorf("info %+v", info)
	}
	if _, err := s.AppendIfLeaf(t.Context(), s.Leaf(), userMessage("no")); !errors.Is(err, repo.ErrConflict) {
		t.Errorf("append at an old leaf: %v", err)
	}
	if err := s.Refresh(t.Context()); err != nil || s.Leaf() != other.Leaf() {
		t.Errorf("refresh: %v", err)
	}
	if _, err := s.AppendIfLeaf(t.Context(), s.Leaf(), userMessage("yes")); err != nil {
		t.Errorf("append at the leaf: %v", err)
	}

	// A branch is durable until the next line, of whatever handle.
	if err := s.Branch(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	third, err := a.Session(t.Context(), s.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := third.Path(t.Context()); len(got) != 1 || got[0].ID != ids[0] {
		t.Errorf("path after a branch: %v", got)
	}
	if err := s.Branch(t.Context(), "nothing"); !errors.Is(err, repo.ErrNotFound) || s.Leaf() != third.Leaf() {
		t.Errorf("branch to nothing: %v", err)
	}
	appendTo(t, third, reply("again"))
	if got := contextOf(t, third); got != "user assistant" {
		t.Errorf("context of a branch: %s", got)
	}
	if err := third.ResetLeaf(t.Context()); err != nil {
		t.Fatal(err)
	}
	if third.Leaf() != 0 || contextOf(t, third) != "" {
		t.Error("reset")
	}
	if info, _ := third.Info(t.Context()); info.Leaf != 0 {
		t.Error("the reset is not durable")
	}
	if _, err := third.AppendIfLeaf(t.Context(), 0, userMessage("new root")); err != nil {
		t.Error(err)
	}
	if path, _ := third.Path(t.Context()); len(path) != 1 || !path[0].Top {
		t.Errorf("path of a new root: %v", path)
	}
}

func TestBranchSummary(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, userMessage("one"), reply("two"), userMessage("three"))
	got := appendTo(t, s, repo.BranchSummary(ids[0], "it failed", &repo.SummaryOptions{FromHook: new(false)}), reply("four"))
	e, err := s.Entry(t.Context(), got[0])
	if err != nil || e.ParentID != ids[0] || e.Target != ids[2] {
		t.Errorf("summary %+v, %v", e, err)
	}
	if got := contextOf(t, s); got != "user branchSummary assistant" {
		t.Errorf("context: %s", got)
	}
	got = appendTo(t, s, repo.BranchSummary("", "from the start", nil))
	if e, _ := s.Entry(t.Context(), got[0]); !e.Top {
		t.Errorf("summary %+v", e)
	}
	if err := s.ResetLeaf(t.Context()); err != nil {
		t.Fatal(err)
	}
	got = appendTo(t, s, repo.BranchSummary("", "of nothing", nil))
	if e, _ := s.Entry(t.Context(), got[0]); e.Target != "root" {
		t.Errorf("summary %+v", e)
	}
}

// What came from a file belongs to it; a copy of what was born here does not stop it, but
// what another program adds to that copy does.
func TestNative(t *testing.T) {
	a := open(t, nil)
	dir := t.TempDir()
	path := write(t, header+user1, dir, "a.jsonl")
	importPaths(t, a, path)
	file, err := a.OpenSession(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Append(t.Context(), userMessage("no")); !errors.Is(err, repo.ErrNotNative) {
		t.Errorf("append to a file's session: %v", err)
	}
	fork, err := a.Fork(t.Context(), file.Key(), nil)
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, fork, userMessage("yes"))
	if info, _ := fork.Info(t.Context()); info.ParentSession != path || info.CWD != "/work" || info.Entries != 2 {
		t.Errorf("fork %+v", info)
	}

	copied := write(t, exported(t, a, fork.Key()), dir, "copy.jsonl")
	age(t, copied)
	importPaths(t, a, dir)
	if got := bySource(t, a, copied); got.Key != fork.Key() || !got.Native {
		t.Errorf("the copy is %+v", got)
	}
	ids := appendTo(t, fork, reply("more"))
	if info, _ := fork.Info(t.Context()); info.Path != "" || info.State != query.Live {
		t.Errorf("after an append %+v", info)
	}
	importPaths(t, a, dir)
	if n := len(sessions(t, a)); n != 2 {
		t.Errorf("%d sessions", n)
	}
	tail := fmt.Sprintf(`{"type":"message","id":"cafe0001","parentId":%q,"timestamp":"2026-05-05T00:00:00.000Z","message":{"role":"user","content":"from pi"}}`+"\n", ids[0])
	write(t, exported(t, a, fork.Key())+tail, copied)
	importPaths(t, a, dir)
	if got := bySource(t, a, copied); got.Key != fork.Key() || got.Native || got.Entries != 4 {
		t.Errorf("the copy that went on is %+v", got)
	}
	if _, err := fork.Append(t.Context(), userMessage("no")); !errors.Is(err, repo.ErrNotNative) {
		t.Errorf("append to a session that went on in a file: %v", err)
	}
}

func TestMostRecent(t *testing.T) {
	now := fixedTime
	a := open(t, &repo.OpenOptions{Now: func() time.Time { return now }})
	if _, err := a.MostRecent(t.Context(), "/work"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("in an empty archive: %v", err)
	}
	first, err := a.Continue(t.Context(), "/work", nil)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := a.Create(t.Context(), "/work/below", nil); err != nil {
		t.Fatal(err)
	}
	path := write(t, strings.ReplaceAll(header, "2026-01-01", "2027-01-01"), t.TempDir(), "a.jsonl")
	importPaths(t, a, path)
	again, err := a.Continue(t.Context(), "/work/x/..", nil)
	if err != nil || again.Key() != first.Key() {
		t.Errorf("continued #%d, %v", again.Key(), err)
	}
	recent, err := a.MostRecent(t.Context(), "/work")
	if err != nil || recent.Key() == first.Key() {
		t.Errorf("most recent #%d, %v", recent.Key(), err)
	}
}

// Small chunks become one as the session grows, and every entry stays readable.
func TestMerge(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	const n = 700
	var want []string
	for i := range n {
		want = append(want, appendTo(t, s, userMessage(fmt.Sprintf("message %d %s", i, strings.Repeat("x", i*i%3000))))...)
	}
	path, err := s.Path(t.Context())
	if err != nil || len(path) != n {
		t.Fatalf("%d entries, %v", len(path), err)
	}
	for i, e := range path {
		if e.ID != want[i] {
			t.Fatalf("entry %d is %s, not %s", i, e.ID, want[i])
		}
	}
	check, err := a.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if check.Bytes < 3*check.Stored {
		t.Errorf("%d bytes stored for %d", check.Stored, check.Bytes)
	}
	big := strings.Repeat("0123456789", 300_000)
	appendTo(t, s, userMessage(big), userMessage("small"))
	if got := exported(t, a, s.Key()); !strings.Contains(got, big) || strings.Count(got, "\n") != n+3 {
		t.Error("the long line is not whole")
	}
}

// A durable leaf, the metadata and what was appended are there in the next process.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	a, err := repo.Open(t.Context(), path, &repo.OpenOptions{Durability: repo.DurabilityFull})
	if err != nil {
		t.Fatal(err)
	}
	s := create(t, a, &repo.CreateOptions{Metadata: map[string]any{"k": nil}})
	ids := appendTo(t, s, userMessage("one"), reply("two"))
	if err := s.Branch(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, path, nil)
	again, err := b.OpenSession(t.Context(), s.ID())
	if err != nil || again.Leaf() != s.Leaf() || again.CWD() != "/work" {
		t.Errorf("leaf %d, not %d: %v", again.Leaf(), s.Leaf(), err)
	}
	if metadata, err := again.Metadata(t.Context()); err != nil || string(metadata["k"]) != "null" {
		t.Errorf("metadata %v, %v", metadata, err)
	}
}

func TestNewEntryID(t *testing.T) {
	const uuid = "01234567-89ab-4cde-8f01-23456789abcd"
	for collisions, want := range map[int]string{0: "01234567", 99: "01234567", 100: uuid} {
		n := 0
		got, err := repo.NewEntryID(func() string { return uuid }, func(string) (bool, error) {
			n++
			return n <= collisions, nil
		})
		if err != nil || got != want {
			t.Errorf("after %d collisions: %q, %v", collisions, got, err)
		}
	}
}

// An id that an orphan waits for would make the new entry its parent.
func TestAwaitedID(t *testing.T) {
	a := open(t, nil)
	path := write(t, header+strings.ReplaceAll(user2, `"parentId":"a2"`, `"parentId":"lost"`), t.TempDir(), "a.jsonl")
	importPaths(t, a, path)
	fork, err := a.Fork(t.Context(), bySource(t, a, path).Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fork.Append(t.Context(), userMessage("x").WithID("lost")); !errors.Is(err, repo.ErrExists) {
		t.Errorf("an awaited id: %v", err)
	}
	appendTo(t, fork, userMessage("x"))
}

// The session of a leaf that was moved keeps it through a rebuild.
func TestRebuildNative(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, userMessage("one"), reply("two"))
	if err := s.Branch(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	if err := a.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if info, err := s.Info(t.Context()); err != nil || info.LeafID != ids[0] || !info.Native {
		t.Errorf("info %+v, %v", info, err)
	}
	appendTo(t, s, reply("three"))
}

// Several goroutines may use one handle: its entries make one branch.
func TestGoroutines(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for j := range 25 {
				if _, err := s.Append(t.Context(), userMessage(fmt.Sprint(i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if path, err := s.Path(t.Context()); err != nil || len(path) != 100 {
		t.Errorf("a path of %d, %v", len(path), err)
	}
}

// Lines of types that pi does not write today are in its form all the same.
func TestRaw(t *testing.T) {
	a := open(t, &repo.OpenOptions{Now: fixedClock})
	s := create(t, a, nil)
	appendTo(
		t, s,
		repo.Raw(raw(`{"b":1.0,"type":"new_kind","id":"x","\ud800":[],"parentId":"y","7":"<","b":2,"timestamp":0}`)).WithID("a"),
		repo.Raw(jsonl.Members{{Key: "type", Value: "custom"}, {Key: "customType", Value: "c"}, {Key: "data", Value: jsonl.Undefined}}).WithID("b"),
		repo.Raw(struct {
			Type string `json:"type"`
			Data any    `json:"data"`
		}{"other", map[string]float64{"z": 1e21, "a": 1}}).WithID("c"),
		repo.ActiveTools("read", "bash").WithID("d"),
		repo.ActiveTools().WithID("e"),
	)
	_, got, _ := strings.Cut(exported(t, a, s.Key()), "\n")
	want := strings.ReplaceAll(`{"7":"<","type":"new_kind","id":"a","parentId":null,"timestamp":@,"b":2,"\ud800":[]}
{"type":"custom","customType":"c","id":"b","parentId":"a","timestamp":@}
{"type":"other","id":"c","parentId":"b","timestamp":@,"data":{"a":1,"z":1e+21}}
{"type":"active_tools_change","id":"d","parentId":"c","timestamp":@,"activeToolNames":["read","bash"]}
{"type":"active_tools_change","id":"e","parentId":"d","timestamp":@,"activeToolNames":[]}
`, "@", `"2026-05-04T03:02:01.007Z"`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// An append whose context has ended, or that finds the archive closed, changes nothing.
func TestAppendInterrupted(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(t, s, userMessage("one"))
	leaf := s.Leaf()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ids, err := s.Append(ctx, userMessage("two")); !errors.Is(err, context.Canceled) || ids != nil {
		t.Errorf("append: %v, %v", ids, err)
	}
	if info, _ := s.Info(t.Context()); info.Entries != 1 || s.Leaf() != leaf || info.Leaf != leaf {
		t.Errorf("info %+v", info)
	}
	appendTo(t, s, userMessage("three"))
}

// TestNativeOutlivesItsCopy imports an exported session and deletes the file.
func TestNativeOutlivesItsCopy(t *testing.T) {
	a := open(t, nil)
	s, err := a.Create(t.Context(), "/work", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), repo.Message(map[string]any{"role": "user", "content": "hello"})); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := write(t, exported(t, a, s.Key()), dir, "copy.jsonl")
	importPaths(t, a, dir)
	if info, err := s.Info(t.Context()); err != nil || info.Path != path {
		t.Fatalf("imported: %+v, %v", info, err)
	}
	for _, change := range []func() error{
		func() error { return os.WriteFile(path, nil, 0o600) },
		func() error { return os.WriteFile(path, []byte("notes\n"), 0o600) },
		func() error { return os.Remove(path) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		importPaths(t, a, dir)
		if info, err := s.Info(t.Context()); err != nil || info.State != query.Live {
			t.Errorf("the session is %s, %v", info.State, err)
		}
	}
}
