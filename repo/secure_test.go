package repo_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/repo"
)

// TestDeletedIsOverwritten looks for what a deleted session said in the files of the
// archive, byte by byte.
func TestDeletedIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "hushhushword"
	text := header + strings.ReplaceAll(user1, "first question", secret) + strings.ReplaceAll(user2, `"a3"`, `"`+secret+`3"`)
	importPaths(t, a, write(t, text, dir, "a.jsonl"), write(t, strings.ReplaceAll(header, "s-1", "s-2")+user1, dir, "b.jsonl"))
	held := func() int {
		n := 0
		for _, file := range []string{path, a.IndexPath()} {
			for _, suffix := range []string{"", "-wal"} {
				content, err := os.ReadFile(file + suffix)
				if err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
				n += bytes.Count(content, []byte(secret))
			}
		}
		return n
	}
	session := bySource(t, a, filepath.Join(dir, "a.jsonl"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if held() == 0 {
		t.Fatal("the test would prove nothing")
	}
	if a, err = repo.Open(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if deleted, err := a.Delete(t.Context(), session.Key); !deleted || err != nil {
		t.Fatalf("deleted: %v, %v", deleted, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if n := held(); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}
