package query_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestShortID gives the short id of every session back to Find.
func TestShortID(t *testing.T) {
	a, err := repo.Open(t.Context(), filepath.Join(t.TempDir(), "pidb.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	ids := []string{"abcdefgh-1", "abcdefgh-2", "abcdefgh-22", "abcdefgh", "other-one", "ü-umlaute-überall", "ü-umlaute-üb", "x", "x", "y"}
	for i, id := range ids {
		text := fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.%03dZ","cwd":"/"}`+"\n", id, i)
		if _, err := a.ImportReader(t.Context(), "x", strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	err = a.View(t.Context(), func(rx *query.Rx) error {
		list, _, err := rx.List(t.Context(), nil)
		if err != nil || len(list) != len(ids) {
			t.Errorf("%d sessions, %v", len(list), err)
		}
		for i := range list {
			s := &list[i]
			short, ok, err := rx.ShortID(t.Context(), s)
			if err != nil || ok != (s.ID != "x") {
				t.Errorf("ShortID(%q) = %q, %v, %v", s.ID, short, ok, err)
			}
			if !ok {
				continue
			}
			if found, err := rx.Find(t.Context(), short); err != nil || found.Key != s.Key || len(short) < min(8, len(s.ID)) {
				t.Errorf("Find(%q), short for %q: #%d, %v", short, s.ID, found.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
