package repo_test

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestDamage changes a byte of a stored chunk behind the archive's back.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	good := write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "good.jsonl")
	bad := write(t, header+user1+reply1+strings.Repeat(user2, 3000), dir, "bad.jsonl")
	importPaths(t, a, good, bad)
	damaged := bySource(t, a, bad)

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`
		UPDATE chunk SET data = CAST(substr(data, 1, length(data) / 2) || x'00ff' || substr(data, length(data) / 2 + 3) AS BLOB)
		WHERE key = (SELECT chunk FROM piece WHERE session = ? ORDER BY start LIMIT 1 OFFSET 1)`, damaged.Key); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if err := a.Export(t.Context(), damaged.Key, io.Discard); !errors.Is(err, repo.ErrDamaged) {
		t.Errorf("export: %v, want ErrDamaged", err)
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil || proof.OK != 1 || len(proof.Failed) != 1 {
		t.Fatalf("verify: %+v, %v: want one right and one failed", proof, err)
	}
	if f := proof.Failed[0]; f.Session != damaged.Key || f.Path != bad || f.Line < 4 {
		t.Errorf("verify: %+v, want a line behind the first chunk of %s", f, bad)
	}
	if err := a.Rebuild(t.Context(), nil); !errors.Is(err, repo.ErrDamaged) {
		t.Errorf("rebuild: %v, want ErrDamaged", err)
	}
	if got := exported(t, a, bySource(t, a, good).Key); got != strings.Replace(header, "s-1", "s-2", 1)+user1 {
		t.Errorf("the other session: %q", got)
	}
}

// TestIndexIsDisposable loses and breaks the search index between two runs.
func TestIndexIsDisposable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	source := write(t, header+user1, dir, "s.jsonl")
	for name, spoil := range map[string]func(index string) error{
		"deleted":  os.Remove,
		"emptied":  func(index string) error { return os.WriteFile(index, nil, 0o600) },
		"no index": func(index string) error { return os.WriteFile(index, []byte(strings.Repeat("noise", 5000)), 0o600) },
		"other version": func(index string) error {
			db, err := sql.Open("sqlite", index)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec(`PRAGMA user_version = 12345`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := repo.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			importPaths(t, a, source)
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(a.IndexPath()); err != nil {
				t.Fatal(err)
			}
			b := openAt(t, path, nil)
			if err := b.UpdateIndex(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if n := len(search(t, b, "question")); n != 1 {
				t.Errorf("%d hits, want 1", n)
			}
		})
	}
}

func search(t *testing.T, a *repo.Archive, text string) []query.Hit {
	t.Helper()
	var hits []query.Hit
	err := a.View(t.Context(), func(rx *query.Rx) error {
		result, err := rx.Search(t.Context(), text, nil)
		if err == nil {
			hits = result.Hits
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// TestDeletedIsNotFound deletes a session that a search has found.
func TestDeletedIsNotFound(t *testing.T) {
	a := open(t, nil)
	path := write(t, header+user1, t.TempDir(), "s.jsonl")
	importPaths(t, a, path)
	if n := len(search(t, a, "question")); n != 1 {
		t.Fatalf("%d hits before, want 1", n)
	}
	err := a.Update(t.Context(), func(tx *repo.Tx) error {
		_, err := tx.Delete(t.Context(), bySource(t, a, path).Key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "question")); n != 0 {
		t.Errorf("%d hits before the index was fed, want none", n)
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "question")); n != 0 {
		t.Errorf("%d hits after, want none", n)
	}
}
