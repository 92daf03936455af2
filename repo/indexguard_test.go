//go:build unix

package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	if moved, lost := a.IndexLoss(); !lost || filepath.Dir(moved) != filepath.Dir(index) {
		t.Errorf("index loss: %q, %t", moved, lost)
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

// TestIndexAside puts files in the place of the index: each is moved aside and stays, for
// its owner alone, and a check says what happened until the index is fed.
func TestIndexAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	index := filepath.Join(dir, "pidb.index.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	if _, lost := a.IndexLoss(); lost {
		t.Error("a new index is called lost")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for i, text := range []string{"first, no database", "second, no database"} {
		write(t, text, index)
		if err := os.Chmod(index, 0o644); err != nil {
			t.Fatal(err)
		}
		if a, err = repo.Open(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
		aside, err := filepath.Glob(index + ".aside-*")
		if err != nil || len(aside) != i+1 {
			t.Fatalf("moved aside: %q, %v", aside, err)
		}
		moved, lost := a.IndexLoss()
		if !slices.Contains(aside, moved) || !lost {
			t.Fatalf("index loss: %q, %t", moved, lost)
		}
		if got, err := os.ReadFile(moved); err != nil || string(got) != text {
			t.Errorf("aside is %q, %v", got, err)
		}
		if info, err := os.Stat(moved); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("aside: %v, %v, want mode 0600", info.Mode(), err)
		}
		for _, want := range []int{1, 0} {
			check, err := a.Check(t.Context())
			if err != nil || len(check.Findings) != want {
				t.Errorf("%d findings, want %d: %+v, %v", len(check.Findings), want, check, err)
			}
			if err := a.UpdateIndex(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
