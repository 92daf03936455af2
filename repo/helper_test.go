package repo_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// open opens an archive in a temporary folder. When the test ends, the archive must
// keep all its invariants: SQLite's, its own, and the bytes of every session.
func open(t *testing.T, opts *repo.OpenOptions) *repo.Archive {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "pidb.db"), opts)
}

func openAt(t *testing.T, path string, opts *repo.OpenOptions) *repo.Archive {
	t.Helper()
	a, err := repo.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer a.Close()
		ctx := context.Background()
		check, err := a.Check(ctx)
		if err != nil {
			t.Errorf("check: %v", err)
		}
		for _, finding := range check.Findings {
			t.Errorf("check: %s: %s", finding.Area, finding.Detail)
		}
		proof, err := a.Verify(ctx, nil, nil)
		if err != nil {
			t.Errorf("verify: %v", err)
		}
		for _, failure := range proof.Failed {
			t.Errorf("verify: session #%d: %v", failure.Session, failure.Err)
		}
	})
	return a
}

// write makes a file, and the folders above it, and returns its path.
func write(t *testing.T, content string, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// age sets the times of a file back, so that its stat can be trusted.
func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
}

func importPaths(t *testing.T, a *repo.Archive, paths ...string) *repo.ImportResult {
	t.Helper()
	result, err := a.Import(t.Context(), paths, nil)
	if err == nil {
		err = result.IndexErr
	}
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// sessions returns all sessions of an archive by key, those too that a listing leaves out.
func sessions(t *testing.T, a *repo.Archive) []query.Session {
	t.Helper()
	var out []query.Session
	err := a.View(t.Context(), func(rx *query.Rx) (err error) {
		out, _, err = rx.List(t.Context(), &query.ListOptions{Archived: true, Sort: query.SortCreated, All: true})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bySource returns the session of a path that is not superseded.
func bySource(t *testing.T, a *repo.Archive, path string) query.Session {
	t.Helper()
	for _, s := range sessions(t, a) {
		if s.Path == path && s.State != query.Superseded {
			return s
		}
	}
	t.Fatalf("no session of %s", path)
	return query.Session{}
}

func exported(t *testing.T, a *repo.Archive, session query.Key) string {
	t.Helper()
	var out strings.Builder
	if err := a.Export(t.Context(), session, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func digest(s string) [sha256.Size]byte { return sha256.Sum256([]byte(s)) }

const (
	header = `{"type":"session","version":3,"id":"s-1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}` + "\n"
	user1  = `{"type":"message","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"first question","timestamp":1767225601000}}` + "\n"
	reply1 = `{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"an answer"}],"provider":"p","model":"m","usage":{"input":10,"output":5,"cacheRead":2,"cacheWrite":1,"totalTokens":18,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"timestamp":1767225602000}}` + "\n"
	user2  = `{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"user","content":"second question","timestamp":1767225603000}}` + "\n"
)

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, path string, mode uint32) {
	t.Helper()
	if err := os.Chmod(path, os.FileMode(mode)); err != nil {
		t.Fatal(err)
	}
}
