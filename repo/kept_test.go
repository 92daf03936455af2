package repo_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/repo"
)

// TestKeptIsCarried brings what no line holds into another archive, by a merge, by a
// salvage and by a backup.
func TestKeptIsCarried(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	a, err := repo.Open(t.Context(), from, nil)
	ok(t, err)
	store := openStore(t, a, "/work", nil)
	doc := newDocument(t, store, say("a", "", "user", "x"))
	ok(t, store.Save(t.Context(), doc))
	s, err := store.Session(t.Context(), doc.ID)
	ok(t, err)
	ok(t, s.FixMetadata(t.Context(), map[string]any{"origin": "tests"}))
	ok(t, s.SetIdempotencyKey(t.Context(), "key-1"))
	ok(t, s.SaveSubagent(t.Context(), &repo.Subagent{
		Job: "j", Task: "look", Status: "done", Cost: 2, Started: time.Unix(1, 0), Finished: time.Unix(2, 0),
		Usage: json.RawMessage(`{"input":1}`), Messages: []json.RawMessage{[]byte(`{"role":"user"}`)},
	}))
	want := carriedOf(t, a, doc.ID)
	backup := filepath.Join(dir, "backup.db")
	_, err = a.Backup(t.Context(), backup, nil)
	ok(t, err)
	ok(t, a.Close())

	merged := openAt(t, filepath.Join(dir, "merged.db"), nil)
	for range 2 {
		_, err := merged.Merge(t.Context(), from, nil)
		ok(t, err)
		same(t, "merge", want, carriedOf(t, merged, doc.ID))
	}
	salvaged := filepath.Join(dir, "salvaged.db")
	_, err = repo.Salvage(t.Context(), from, salvaged, nil)
	ok(t, err)
	for name, path := range map[string]string{"salvage": salvaged, "backup": backup} {
		same(t, name, want, carriedOf(t, openAt(t, path, nil), doc.ID))
	}
}

// carried is what a session keeps beside its lines.
type carried struct {
	Fixed, Metadata map[string]json.RawMessage
	Found           string
	Agents          []repo.Subagent
	Documents       int
}

func carriedOf(t *testing.T, a *repo.Archive, id string) carried {
	t.Helper()
	var c carried
	store := openStore(t, a, "/work", nil)
	list, err := store.List(t.Context())
	ok(t, err)
	c.Documents = len(list)
	s, err := store.Session(t.Context(), id)
	ok(t, err)
	c.Metadata, err = s.Metadata(t.Context())
	ok(t, err)
	c.Fixed, err = s.FixedMetadata(t.Context())
	ok(t, err)
	c.Agents, err = s.Subagents(t.Context())
	ok(t, err)
	found, err := a.FindIdempotent(t.Context(), "key-1")
	ok(t, err)
	c.Found = found.ID()
	if c.Documents != 1 || len(c.Agents) != 1 || len(c.Fixed) == 0 || c.Found != id {
		t.Errorf("not all is here: %s", cmp.Diff(carried{}, c))
	}
	return c
}
