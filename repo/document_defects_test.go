package repo_test

import (
	"errors"
	"math"
	"testing"
	"time"

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
