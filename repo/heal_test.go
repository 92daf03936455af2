package repo_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// openDamaged opens an archive until the end of the test, and proves nothing of it then.
func openDamaged(t *testing.T, path string) *repo.Archive {
	t.Helper()
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// TestDamagedSessionGrows damages a session in two ways and lets its file grow: it becomes
// a new version, and the files beside it are taken in.
func TestDamagedSessionGrows(t *testing.T) {
	for name, spoil := range map[string]string{
		"chunk": `UPDATE chunk SET data = zeroblob(length(data))`,
		"hash":  `UPDATE session SET sha256 = x'00'`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "pidb.db")
			a := openDamaged(t, path)
			file := write(t, header+user1, dir, "s", "grown.jsonl")
			importPaths(t, a, file)
			behind(t, path, spoil)
			write(t, header+user1+reply1, dir, "s", "grown.jsonl")
			write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "s", "other.jsonl")
			result, err := a.Import(t.Context(), []string{filepath.Join(dir, "s")}, nil)
			if err != nil || result.Imported != 1 || result.Updated != 1 {
				t.Fatalf("import: %+v, %v", result, err)
			}
			if got := exported(t, a, bySource(t, a, file).Key); got != header+user1+reply1 {
				t.Errorf("export: %q", got)
			}
		})
	}
}

// TestImportHealsChunks imports bytes of which the archive has a damaged copy.
func TestImportHealsChunks(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a := openDamaged(t, path)
	file := write(t, header+user1, dir, "a.jsonl")
	importPaths(t, a, file)
	behind(t, path, `UPDATE chunk SET data = zeroblob(length(data))`)
	if err := a.Export(t.Context(), bySource(t, a, file).Key, io.Discard); !errors.Is(err, repo.ErrDamaged) {
		t.Fatalf("export: %v, want ErrDamaged", err)
	}
	importPaths(t, a, write(t, header+user1, dir, "b.jsonl"))
	if proof, err := a.Verify(t.Context(), nil, nil); err != nil || proof.OK != 2 {
		t.Errorf("verify: %+v, %v", proof, err)
	}
}

// TestForeignIndex puts databases of others in the place of the index: an archive, with
// a session, and one of another program. They are moved aside with all that they hold.
func TestForeignIndex(t *testing.T) {
	dir := t.TempDir()
	index := filepath.Join(dir, "pidb.index.db")
	aside := func() string {
		t.Helper()
		a := openDamaged(t, filepath.Join(dir, "pidb.db"))
		moved, lost := a.IndexLoss()
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if !lost || moved == "" {
			t.Fatalf("index loss: %q, %t", moved, lost)
		}
		return moved
	}
	other := openDamaged(t, index)
	if _, err := other.Create(t.Context(), "/w", &repo.CreateOptions{ID: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	other = openDamaged(t, aside())
	if err := other.View(t.Context(), func(rx *query.Rx) error { _, err := rx.Find(t.Context(), "kept"); return err }); err != nil {
		t.Error(err)
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	behind(t, index, `CREATE TABLE x AS SELECT 'precious' AS y`)
	db, err := sql.Open("sqlite", aside())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var y string
	if err := db.QueryRow(`SELECT y FROM x`).Scan(&y); err != nil || y != "precious" {
		t.Errorf("%q, %v", y, err)
	}
}

// TestFirstOpenTogether opens new archives by many handles at once.
func TestFirstOpenTogether(t *testing.T) {
	dir := t.TempDir()
	for round := range 10 {
		var handles sync.WaitGroup
		for range 8 {
			handles.Go(func() {
				a, err := repo.Open(t.Context(), filepath.Join(dir, fmt.Sprint(round, ".db")), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		handles.Wait()
	}
}
