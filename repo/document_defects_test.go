package repo_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// A parent that comes after its child is still its parent when the document is loaded,
// and when what was loaded is saved.
func TestDocumentParentComesLater(t *testing.T) {
	store := openStore(t, open(t, nil), "/work", nil)
	doc := newDocument(t, store, say("c", "r", "user", "child"), say("r", "", "user", "root"))
	doc.Leaf = "c"
	for range 2 {
		ok(t, store.Save(t.Context(), doc))
		doc = load(t, store, doc.ID)
		if path := doc.Path(); len(path) != 2 || path[0].ID != "r" {
			t.Fatalf("the path has %d entries", len(path))
		}
	}
}

// What could not be loaded is refused, and stands in the way of no other document.
func TestDocumentThatCannotBeLoaded(t *testing.T) {
	a := open(t, nil)
	store := openStore(t, a, "/work", nil)
	good := newDocument(t, store, say("a", "", "user", "x"))
	ok(t, store.Save(t.Context(), good))
	late := newDocument(t, store, say("a", "", "user", "x"))
	late.Entries[0].Time = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := store.Save(t.Context(), late); !errors.Is(err, repo.ErrInvalidEntry) {
		t.Errorf("a time beyond the year 9999: %v", err)
	}
	type counted struct {
		Role  string `json:"role"`
		Count int64  `json:"count"`
	}
	nothing := func(*counted) string { return "" }
	numbersShape := repo.MessageShape[counted]{
		ID: nothing, ToolResult: nothing, Role: func(m *counted) string { return m.Role }, ToolCalls: func(*counted) []string { return nil },
	}
	numbers, err := repo.NewDocumentStore(a, "/numbers", numbersShape, nil)
	ok(t, err)
	big, err := numbers.Create()
	ok(t, err)
	big.Entries = []repo.DocumentEntry[counted]{{ID: "a", Type: repo.DocumentMessage, Message: counted{"user", math.MaxInt64}}}
	big.Leaf = "a"
	if err := numbers.Save(t.Context(), big); !errors.Is(err, repo.ErrInvalidEntry) {
		t.Errorf("a number beyond its type: %v", err)
	}
	latest, err := store.Latest(t.Context())
	if err != nil || latest == nil || latest.ID != good.ID {
		t.Errorf("latest: %v, %v", latest, err)
	}
}

// Entries of other programs that are none of the document's type are left out, and what
// stands under them is under what they are under.
func TestDocumentEntriesOfOthers(t *testing.T) {
	a := open(t, nil)
	store := openStore(t, a, "/work", nil)
	doc := newDocument(t, store, say("a", "", "user", "x"))
	ok(t, store.Save(t.Context(), doc))
	s, err := store.Session(t.Context(), doc.ID)
	ok(t, err)
	appendTo(t, s, userMessage("its content is a string"), repo.Custom("config", 3), repo.Custom("label", []int{1}), repo.Custom("label", "seen"))
	appendTo(t, s, userMessage("at the leaf"))
	doc = load(t, store, doc.ID)
	if n := len(doc.Entries); n != 2 || doc.Entries[1].Label != "seen" || doc.Entries[1].Parent != "a" || doc.Leaf != doc.Entries[1].ID {
		t.Errorf("%d entries: %+v", n, doc)
	}
	ok(t, doc.CheckTree().Err())
}

// A save of what was loaded changes no line, and one of what has grown only appends:
// entries of other programs, and the leaf at one, stay. Where something else has changed, they go.
func TestDocumentSaveKeepsEntriesOfOthers(t *testing.T) {
	a := open(t, nil)
	store := openStore(t, a, "/work", nil)
	doc := newDocument(t, store, say("a", "", "user", "x"), say("b", "a", "assistant", "y"))
	doc.Title, doc.Metadata = "title", map[string]any{"n": 1.0}
	ok(t, store.Save(t.Context(), doc))
	s, err := store.Session(t.Context(), doc.ID)
	ok(t, err)
	own := agentMessage{Role: "user", Content: []agentContent{{Type: "text", Text: "of another program"}}}
	appendTo(t, s, repo.Label("a", "mark"), repo.ModelChange("p", "m"), userMessage("not of the type"), repo.Message(own), repo.Label("b", "at the leaf"))
	before, leaf := exported(t, a, s.Key()), s.Leaf()
	change, err := a.Change(t.Context())
	ok(t, err)

	doc = load(t, store, doc.ID)
	if len(doc.Entries) != 3 || doc.Entries[2].Parent != "b" || doc.Leaf != doc.Entries[2].ID {
		t.Fatalf("%+v", doc)
	}
	ok(t, store.Save(t.Context(), doc))
	same(t, "lines", before, exported(t, a, s.Key()))
	now, err := a.Change(t.Context())
	ok(t, err)
	same(t, "number of the last change", change, now)
	info, err := s.Info(t.Context())
	ok(t, err)
	same(t, "leaf", leaf, info.Leaf)
	same(t, "document", doc, load(t, store, doc.ID))

	doc.Entries = append(doc.Entries, say("c", doc.Leaf, "assistant", "more"))
	doc.Leaf, doc.Title = "c", "another title"
	ok(t, store.Save(t.Context(), doc))
	if text := exported(t, a, s.Key()); !strings.HasPrefix(text, before) {
		t.Errorf("lines have changed:\n%s\n%s", before, text)
	}
	same(t, "document", doc, load(t, store, doc.ID))

	doc.Entries[0].Message.Content[0].Text = "changed"
	ok(t, store.Save(t.Context(), doc))
	if text := exported(t, a, s.Key()); strings.Contains(text, "mark") {
		t.Errorf("an entry of another program is there: %s", text)
	}
	same(t, "document", doc, load(t, store, doc.ID))
}

// An entry gets the id of one that the document does not have.
func TestDocumentTakesIDOfOthers(t *testing.T) {
	a := open(t, nil)
	store := openStore(t, a, "/work", nil)
	doc := newDocument(t, store, say("a", "", "user", "x"))
	ok(t, store.Save(t.Context(), doc))
	s, err := store.Session(t.Context(), doc.ID)
	ok(t, err)
	appendTo(t, s, userMessage("not of the type").WithID("z"), repo.Message(agentMessage{Role: "user"}).WithID("under z"))
	doc = load(t, store, doc.ID)
	doc.Entries = append(doc.Entries, say("z", "under z", "user", "mine"))
	doc.Leaf = "z"
	ok(t, store.Save(t.Context(), doc))
	same(t, "document", doc, load(t, store, doc.ID))
}

// The rule for branches in memory is that of the archive.
func TestDocumentCheckTarget(t *testing.T) {
	a := open(t, nil)
	store := openStore(t, a, "/work", nil)
	hidden := call("h", "e", "c9")
	hidden.Message.Role = "session_event"
	doc := newDocument(t, store,
		say("a", "", "user", "x"), call("b", "a", "c1"), answer("c", "b", "c1"), say("d", "c", "assistant", "y"),
		answer("e", "d", ""), hidden, say("i", "h", "user", "z"), call("k", "i", "c2"), say("l", "k", "user", "unanswered"),
	)
	ok(t, store.Save(t.Context(), doc))
	s, err := store.Session(t.Context(), doc.ID)
	ok(t, err)
	for _, e := range doc.Entries {
		var want, got *query.UnansweredError
		errors.As(s.CheckBranch(t.Context(), e.ID), &want)
		errors.As(store.CheckTarget(doc, e.ID), &got)
		same(t, e.ID, want, got)
		if refused := got != nil; refused != slices.Contains([]string{"b", "c", "e", "k", "l"}, e.ID) {
			t.Errorf("%s: %v", e.ID, got)
		}
	}
}

func TestNewDocumentStoreOfHalfAShape(t *testing.T) {
	a := open(t, nil)
	for _, take := range []func(*repo.MessageShape[agentMessage]){
		func(s *repo.MessageShape[agentMessage]) { s.ID = nil },
		func(s *repo.MessageShape[agentMessage]) { s.Role = nil },
		func(s *repo.MessageShape[agentMessage]) { s.ToolCalls = nil },
		func(s *repo.MessageShape[agentMessage]) { s.ToolResult = nil },
	} {
		shape := agentShape
		take(&shape)
		if _, err := repo.NewDocumentStore(a, "/work", shape, nil); err == nil {
			t.Error("a shape without a function is taken")
		}
	}
}
