//go:build unix

package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"pidb/repo"
)

// TestIndexIsNotOurs opens archives beside an index that may not be opened, and beside a
// file of the same name that is no index.
func TestIndexIsNotOurs(t *testing.T) {
	asNobody(t)
	path := filepath.Join(t.TempDir(), "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	index := a.IndexPath()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(index)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(index, 0); err != nil {
		t.Fatal(err)
	}
	if a, err := repo.Open(t.Context(), path, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("no permission: %v", err)
		if err == nil {
			a.Close()
		}
	}
	if after, err := os.Stat(index); err != nil || !os.SameFile(before, after) {
		t.Errorf("the index was replaced: %v", err)
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	const notes = "these are notes of somebody, and no database\n"
	write(t, notes, index)
	a, err = repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	aside, err := filepath.Glob(index + ".aside-*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("moved aside: %q, %v", aside, err)
	}
	if got, err := os.ReadFile(aside[0]); err != nil || string(got) != notes {
		t.Errorf("the file was changed: %.60q, %v", got, err)
	}
}
