package repo_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
	"pidb/repo"
)

// agentMessage is a message of another program's own type, as moa's is.
type agentMessage struct {
	Role       string         `json:"role"`
	Content    []agentContent `json:"content"`
	MsgID      string         `json:"msg_id,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Timestamp  int64          `json:"timestamp,omitempty"`
	Custom     map[string]any `json:"custom,omitempty"`
}

type agentContent struct {
	Type       string         `json:"type"`
	Text       string         `json:"text,omitempty"`
	ToolCallID string         `json:"tool_call_id,omitempty"`
	Arguments  map[string]any `json:"arguments,omitempty"`
}

var agentShape = repo.MessageShape[agentMessage]{
	ID:   func(m *agentMessage) string { return m.MsgID },
	Role: func(m *agentMessage) string { return m.Role },
	ToolCalls: func(m *agentMessage) []string {
		var ids []string
		for _, c := range m.Content {
			if c.Type == "tool_call" {
				ids = append(ids, c.ToolCallID)
			}
		}
		return ids
	},
	ToolResult: func(m *agentMessage) string { return m.ToolCallID },
}

type (
	agentStore    = repo.DocumentStore[agentMessage]
	agentDocument = repo.Document[agentMessage]
	agentEntry    = repo.DocumentEntry[agentMessage]
)

// ticking is a clock that goes on by a second a transaction.
func ticking() *repo.OpenOptions {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &repo.OpenOptions{Now: func() time.Time { clock = clock.Add(time.Second); return clock }}
}

func openStore(t *testing.T, a *repo.Archive, folder string, opts *repo.DocumentOptions) *agentStore {
	t.Helper()
	d, err := repo.NewDocumentStore(a, folder, agentShape, opts)
	ok(t, err)
	return d
}

// say returns a message entry.
func say(id, parent, role, text string) agentEntry {
	return agentEntry{
		ID: id, Parent: parent, Time: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Type: repo.DocumentMessage,
		Message: agentMessage{Role: role, MsgID: id, Content: []agentContent{{Type: "text", Text: text}}, Custom: map[string]any{"<b>": "&", "2": 1.0, "1": nil}},
	}
}

// call returns an assistant message that calls tools, answer the result of a call.
func call(id, parent string, calls ...string) agentEntry {
	e := say(id, parent, "assistant", "calling")
	for _, c := range calls {
		e.Message.Content = append(e.Message.Content, agentContent{Type: "tool_call", ToolCallID: c, Arguments: map[string]any{"path": "x"}})
	}
	return e
}

func answer(id, parent, of string) agentEntry {
	e := say(id, parent, "tool_result", "result")
	e.Message.ToolCallID = of
	return e
}

func compact(id, parent, kept string) agentEntry {
	return agentEntry{ID: id, Parent: parent, Time: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Type: repo.DocumentCompaction, Compaction: &repo.CompactionOf{
		Summary: "so far " + id, FirstKept: kept, TokensBefore: 1234, ReadFiles: []string{"a.go"}, ModifiedFiles: []string{},
	}}
}

// newDocument returns a document of entries whose leaf is the last one.
func newDocument(t *testing.T, d *agentStore, entries ...agentEntry) *agentDocument {
	t.Helper()
	doc, err := d.Create()
	ok(t, err)
	doc.Entries = entries
	if n := len(entries); n > 0 {
		doc.Leaf = entries[n-1].ID
	}
	return doc
}

func load(t *testing.T, d *agentStore, id string) *agentDocument {
	t.Helper()
	doc, err := d.Load(t.Context(), id)
	ok(t, err)
	return doc
}

func TestMoa_SessionStore_Create(t *testing.T) {
	a := open(t, nil)
	d := openStore(t, a, "/work", nil)
	one, err := d.Create()
	ok(t, err)
	two, err := d.Create()
	ok(t, err)
	if one.ID == two.ID || repo.CheckSessionID(one.ID) != nil || one.Created.IsZero() || !one.Updated.Equal(one.Created) {
		t.Errorf("%+v, %+v", one, two)
	}
	if _, err := d.Load(t.Context(), one.ID); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("it was kept: %v", err)
	}
}

func TestMoa_SessionStore_Save(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", &repo.DocumentOptions{Fixed: []string{"origin"}})
	doc := newDocument(t, d,
		say("a1", "", "user", "fix the parser"), call("a2", "a1", "c1"), answer("a3", "a2", "c1"),
		agentEntry{ID: "k1", Parent: "a3", Time: time.Unix(0, 0).UTC(), Type: repo.DocumentConfig, Config: &repo.ConfigOf{Model: "m", Thinking: "high"}},
		agentEntry{ID: "l1", Parent: "k1", Type: repo.DocumentLabel, Label: "here\n<&>"},
		compact("p1", "l1", "a1"), say("a4", "p1", "assistant", "done"), say("b1", "a1", "user", "another branch"),
	)
	doc.Leaf, doc.Title, doc.TitleSource = "a4", "Parser", repo.NameManual
	doc.Metadata = map[string]any{"origin": "hook", "cwd": "/work", "n": 1.5, "list": []any{"x"}}
	same2 := func(what string) {
		t.Helper()
		same(t, what, doc, load(t, d, doc.ID))
	}
	created := doc.Updated
	ok(t, d.Save(t.Context(), doc))
	if !doc.Updated.After(created) {
		t.Errorf("updated %v, created %v", doc.Updated, created)
	}
	same2("saved")
	s, err := d.Session(t.Context(), doc.ID)
	ok(t, err)
	before := exported(t, a, s.Key())

	// What was added is appended: the bytes before it stay, and so does the session.
	doc.Entries = append(doc.Entries, say("a5", "a4", "user", "thanks"), say("a6", "a5", "assistant", "you are welcome"))
	doc.Leaf, doc.Title = "a6", "Parser, fixed"
	ok(t, d.Save(t.Context(), doc))
	same2("saved with more")
	after := exported(t, a, s.Key())
	if !strings.HasPrefix(after, before) {
		t.Errorf("bytes before the new entries have changed:\n%s\n%s", before, after)
	}
	ok(t, d.Save(t.Context(), doc))
	same2("saved as it is")
	same(t, "bytes", after, exported(t, a, s.Key()))

	// The leaf moves without a line.
	doc.Leaf = "b1"
	ok(t, d.Save(t.Context(), doc))
	same2("with another leaf")
	doc.Leaf = ""
	ok(t, d.Save(t.Context(), doc))
	same2("with no leaf")

	// What vanished from the document is gone, and what is fixed is not.
	doc.Entries, doc.Leaf, doc.Title, doc.TitleSource = []agentEntry{say("z1", "", "user", "anew")}, "z1", "", ""
	doc.Metadata = map[string]any{"cwd": "/other"}
	ok(t, d.Save(t.Context(), doc))
	doc.Metadata["origin"] = "hook"
	same2("replaced")
	if text := exported(t, a, s.Key()); strings.Contains(text, "parser") || strings.Contains(text, "Parser") {
		t.Errorf("what vanished is there: %s", text)
	}
	doc.Entries, doc.Leaf = nil, ""
	ok(t, d.Save(t.Context(), doc))
	same2("cleared")

	// An id of the message is that of its entry.
	e := say("m1", "", "user", "x")
	e.ID = ""
	doc.Entries, doc.Leaf = []agentEntry{e}, "m1"
	ok(t, d.Save(t.Context(), doc))
	same2("with the id of a message")
}

// A document that is refused stays as it is, its time too.
func TestMoa_SessionStore_Save_refused(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	good := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), good))
	other := create(t, a, nil)
	for _, test := range []struct {
		name string
		doc  agentDocument
		want error
	}{
		{"duplicate", agentDocument{ID: good.ID, Entries: []agentEntry{say("a", "", "user", ""), say("a", "", "user", "")}}, repo.ErrInvalidTree},
		{"orphan", agentDocument{ID: good.ID, Entries: []agentEntry{say("a", "z", "user", "")}}, repo.ErrInvalidTree},
		{"leaf", agentDocument{ID: good.ID, Leaf: "z"}, repo.ErrInvalidTree},
		{"cycle", agentDocument{ID: good.ID, Entries: []agentEntry{say("a", "b", "user", ""), say("b", "a", "user", "")}}, repo.ErrInvalidTree},
		{"type", agentDocument{ID: good.ID, Entries: []agentEntry{{ID: "a", Type: "other"}}}, repo.ErrInvalidEntry},
		{"no id", agentDocument{ID: good.ID, Entries: []agentEntry{{Type: repo.DocumentLabel}}}, repo.ErrInvalidEntry},
		{"no compaction", agentDocument{ID: good.ID, Entries: []agentEntry{{ID: "a", Type: repo.DocumentCompaction}}}, repo.ErrInvalidEntry},
		{"id", agentDocument{ID: "../x"}, repo.ErrInvalidID},
		{"a session's id", agentDocument{ID: other.ID()}, repo.ErrExists},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.doc.Updated = time.Unix(1, 0)
			if err := d.Save(t.Context(), &test.doc); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
			if !test.doc.Updated.Equal(time.Unix(1, 0)) {
				t.Error("the time has changed")
			}
			same(t, "kept", good, load(t, d, good.ID))
		})
	}
}

func TestMoa_SessionStore_Load(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), doc))
	plain := create(t, a, nil)
	for _, id := range []string{"none", "", "../x", doc.ID[:8], plain.ID()} {
		if _, err := d.Load(t.Context(), id); !errors.Is(err, repo.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// What others append to the session is read as far as a document has a place for it.
	s, err := d.Session(t.Context(), doc.ID)
	ok(t, err)
	ids := appendTo(t, s, repo.Label("a1", "mark"), reply("from elsewhere"), repo.Custom("other", 1))
	got := load(t, d, doc.ID)
	if len(got.Entries) != 2 || got.Entries[1].ID != ids[1] || got.Entries[1].Parent != "a1" || got.Leaf != ids[1] {
		t.Errorf("%+v", got)
	}
	// Another store does not see it, the store of all does.
	if _, err := openStore(t, a, "/other", nil).Load(t.Context(), doc.ID); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("in another store: %v", err)
	}
	load(t, openStore(t, a, "", nil), doc.ID)
}

func TestMoa_SessionStore_LoadReadOnly(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), doc))
	before, err := a.Change(t.Context())
	ok(t, err)
	for range 2 {
		same(t, "loaded", doc, load(t, d, doc.ID))
	}
	after, err := a.Change(t.Context())
	if err != nil || before != after {
		t.Errorf("a load writes: %d, %d, %v", before, after, err)
	}
}

func TestMoa_SessionStore_Latest(t *testing.T) {
	a := open(t, nil) // saves of one millisecond are told apart too
	d := openStore(t, a, "/work", nil)
	create(t, a, nil)
	if doc, err := d.Latest(t.Context()); doc != nil || err != nil {
		t.Errorf("of none: %v, %v", doc, err)
	}
	one, two := newDocument(t, d), newDocument(t, d)
	for _, doc := range []*agentDocument{one, two, one, two, two, one} {
		ok(t, d.Save(t.Context(), doc))
		latest, err := d.Latest(t.Context())
		ok(t, err)
		same(t, "latest", doc, latest)
	}
}

func TestMoa_SessionStore_List(t *testing.T) {
	a := open(t, nil)
	d := openStore(t, a, "/work", nil)
	if list, err := d.List(t.Context()); list != nil || err != nil {
		t.Errorf("of none: %v, %v", list, err)
	}
	var want []repo.DocumentSummary
	for i := range 4 {
		doc := newDocument(t, d, say("a1", "", "user", "x"))
		doc.Title, doc.TitleSource, doc.Metadata = fmt.Sprint("title ", i), repo.NameAutomatic, map[string]any{"n": float64(i)}
		ok(t, d.Save(t.Context(), doc))
		want = append([]repo.DocumentSummary{{doc.ID, doc.Created, doc.Updated, doc.Title, doc.TitleSource, doc.Metadata}}, want...)
	}
	got, err := d.List(t.Context())
	ok(t, err)
	same(t, "list", want, got)
	other := openStore(t, a, "/other", nil)
	ok(t, other.Save(t.Context(), newDocument(t, other)))
	if list, err := d.List(t.Context()); err != nil || len(list) != 4 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := openStore(t, a, "", nil).List(t.Context()); err != nil || len(list) != 5 {
		t.Errorf("of all folders: %v, %v", list, err)
	}
}

func TestMoa_SessionStore_Delete(t *testing.T) {
	a := open(t, nil)
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), doc))
	s, err := d.Session(t.Context(), doc.ID)
	ok(t, err)
	ok(t, s.SaveSubagent(t.Context(), &repo.Subagent{Job: "1"}))
	if there, err := openStore(t, a, "/other", nil).Delete(t.Context(), doc.ID); there || err != nil {
		t.Errorf("from another store: %v, %v", there, err)
	}
	for _, want := range []bool{true, false} {
		if there, err := d.Delete(t.Context(), doc.ID); there != want || err != nil {
			t.Errorf("there %v, %v; want %v", there, err, want)
		}
	}
	if _, err := d.Load(t.Context(), doc.ID); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
	if len(subagents(t, s)) != 0 {
		t.Error("its subagents are still there")
	}
	// Saving brings it back.
	ok(t, d.Save(t.Context(), doc))
	same(t, "saved again", doc, load(t, d, doc.ID))
}

// A document is a session: listed, searched, shown, exported as any other.
func TestDocumentIsSession(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "look for the xylophone"), say("a2", "a1", "assistant", "found"), compact("p1", "a2", "a2"))
	doc.Title, doc.TitleSource = "Xylophones", repo.NameAutomatic
	ok(t, d.Save(t.Context(), doc))
	ok(t, a.UpdateIndex(t.Context(), nil))
	ok(t, a.View(t.Context(), func(rx *query.Rx) error {
		s, err := rx.Find(t.Context(), doc.ID)
		ok(t, err)
		if s.CWD != "/work" || s.Name != "Xylophones" || s.Messages != 2 || s.FirstMessage != "look for the xylophone" || s.LeafID != "p1" {
			t.Errorf("%+v", s)
		}
		c, err := rx.Context(t.Context(), s.Leaf)
		ok(t, err)
		if len(c.Messages) != 2 {
			t.Errorf("%d messages in the context", len(c.Messages))
		}
		found, err := rx.Search(t.Context(), "xylophone", nil)
		ok(t, err)
		if len(found.Hits) == 0 {
			t.Error("it is not found")
		}
		return nil
	}))
	ok(t, a.Rebuild(t.Context(), nil))
	same(t, "after a rebuild", doc, load(t, d, doc.ID))
}

func TestMoa_DeepCopyMessage(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), doc))
	doc.Entries[0].Message.Content[0].Text = "changed after the save"
	doc.Entries[0].Message.Custom["new"] = true
	got := load(t, d, doc.ID)
	if got.Entries[0].Message.Content[0].Text != "x" || got.Entries[0].Message.Custom["new"] != nil {
		t.Errorf("the store kept what it was given: %+v", got)
	}
}

func TestMoa_DeepCopyEntry(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, compact("p1", "", ""))
	ok(t, d.Save(t.Context(), doc))
	load(t, d, doc.ID).Entries[0].Compaction.ReadFiles[0] = "changed after the load"
	same(t, "loaded again", doc, load(t, d, doc.ID))
}

// There is no older version of a document. A flat list of messages becomes one by a chain
// of parents; a summary at its beginning, a compaction.
func TestMoa_MigrateV1ToV2(t *testing.T) {
	a := open(t, ticking())
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, compact("migrated_0", "", "migrated_1"), say("migrated_1", "migrated_0", "user", "x"), say("migrated_2", "migrated_1", "assistant", "y"))
	ok(t, d.Save(t.Context(), doc))
	latest, messages, epoch := d.Context(load(t, d, doc.ID))
	if latest == nil || len(messages) != 2 || epoch != 1 {
		t.Errorf("%v, %v, %d", latest, messages, epoch)
	}
}

// The rules of a tree, on a document in memory.
func TestDocumentTree(t *testing.T) {
	a := open(t, nil)
	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d,
		say("u1", "", "user", "one"), call("t1", "u1", "c2", "c1"), answer("r2", "t1", "c2"), answer("r1", "r2", "c1"), say("u2", "r1", "user", "two"),
		call("t2", "u2", "c3"), compact("p1", "t2", "u3"), say("u4", "p1", "user", "four"), compact("p2", "u2", "u2"), say("u5", "p2", "user", "five"), say("x", "u5", "system", "not for the model"),
	)
	for _, test := range []struct{ id, call string }{
		{"u1", ""}, {"t1", "c1"}, {"r2", "c2"}, {"r1", "c1"}, {"u2", ""}, {"t2", "c3"}, {"p1", ""}, {"u4", ""}, {"u5", ""},
	} {
		err := d.CheckTarget(doc, test.id)
		var got string
		if unanswered, is := errors.AsType[*query.UnansweredError](err); is {
			got = unanswered.CallID
		}
		if got != test.call {
			t.Errorf("%s: %v, want call %q", test.id, err, test.call)
		}
	}
	if err := d.CheckTarget(doc, "none"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of no entry: %v", err)
	}
	for _, test := range []struct {
		leaf, summary, messages string
		epoch                   int
	}{
		{"", "", "", 0}, {"u2", "", "u1 t1 r2 r1 u2", 0}, {"p1", "so far p1", "", 1}, {"u4", "so far p1", "", 1}, {"x", "so far p2", "u2 u5", 1},
	} {
		doc.Leaf = test.leaf
		latest, messages, epoch := d.Context(doc)
		summary := ""
		if latest != nil {
			summary = latest.Summary
		}
		var ids []string
		for _, m := range messages {
			ids = append(ids, m.MsgID)
		}
		if diff := cmp.Diff([]any{test.summary, test.messages, test.epoch}, []any{summary, strings.Join(ids, " "), epoch}); diff != "" {
			t.Errorf("context at %q (-want +got):\n%s", test.leaf, diff)
		}
	}
}

// Two processes, here two handles, save one document: the later wins, as a whole.
func TestDocumentTwoWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	one, two := openStore(t, openAt(t, path, nil), "/work", nil), openStore(t, openAt(t, path, nil), "/work", nil)
	doc := newDocument(t, one, say("a1", "", "user", "x"))
	ok(t, one.Save(t.Context(), doc))
	other := load(t, two, doc.ID)
	doc.Entries = append(doc.Entries, say("a2", "a1", "assistant", "mine"))
	other.Entries = append(other.Entries, say("b2", "a1", "assistant", "theirs"))
	doc.Leaf, other.Leaf = "a2", "b2"
	ok(t, one.Save(t.Context(), doc))
	ok(t, two.Save(t.Context(), other))
	same(t, "kept", other, load(t, one, doc.ID))
	if text, err := json.Marshal(other.Entries[0].Message); err != nil || !strings.Contains(string(text), `"x"`) {
		t.Errorf("%s, %v", text, err)
	}
}
