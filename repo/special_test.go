//go:build unix

package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// TestLinkedSource syncs a source that is reached through a link, when what it leads to is seen first.
func TestLinkedSource(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	real := write(t, header+user1, dir, "real", "s.jsonl")
	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	file, folder := filepath.Join(links, "file.jsonl"), filepath.Join(links, "folder")
	for link, target := range map[string]string{file: real, folder: filepath.Join(dir, "real")} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	below := filepath.Join(folder, "s.jsonl")
	importPaths(t, a, file)
	importPaths(t, a, below)
	result := syncPaths(t, a, filepath.Join(dir, "real"), links)
	if result.Missing != 0 || result.Imported != 1 || result.Unchanged != 1 {
		t.Errorf("sync: %+v, want one new source and none missing", result)
	}
	for _, path := range []string{file, below, real} {
		if s := bySource(t, a, path); s.State != query.Live {
			t.Errorf("%s is %s", path, s.State)
		}
	}
	write(t, header+user1+reply1, dir, "real", "s.jsonl")
	if result := syncPaths(t, a, filepath.Join(dir, "real"), links); result.Updated != 2 {
		t.Errorf("sync: %+v, want the file updated by both names", result)
	}
	if err := os.Remove(real); err != nil {
		t.Fatal(err)
	}
	if result := syncPaths(t, a, filepath.Join(dir, "real"), links); result.Missing != 3 {
		t.Errorf("sync: %+v, want all three missing", result)
	}
}

// asNobody makes the rest of a test run without the rights of root.
func asNobody(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	if err := syscall.Setreuid(-1, nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setreuid(-1, 0); err != nil {
			t.Fatal(err)
		}
	})
}

// TestUnreadableSource takes the right to read away from a source, and from a folder.
func TestUnreadableSource(t *testing.T) {
	asNobody(t)
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1, dir, "s.jsonl")
	below := write(t, other, dir, "folder", "t.jsonl")
	importPaths(t, a, dir)
	locked := []string{path, filepath.Dir(below)}
	for _, name := range locked {
		if err := os.Chmod(name, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, name := range locked {
			if err := os.Chmod(name, 0o700); err != nil {
				t.Error(err)
			}
		}
	})
	for range 2 {
		result := syncPaths(t, a, dir)
		if result.Missing != 0 || result.Rejected != 2 {
			t.Errorf("sync: %+v, want two unreadable and none missing", result)
		}
		for _, p := range result.Problems {
			if p.Code != repo.CodeUnreadable || p.Detail != "permission denied" {
				t.Errorf("sync: %+v, want permission denied", p)
			}
		}
	}
	if result := syncPaths(t, a, filepath.Dir(below)); result.Missing != 0 {
		t.Errorf("sync: %+v, want none missing", result)
	}
	for _, name := range []string{path, below} {
		if s := bySource(t, a, name); s.State != query.Live {
			t.Errorf("%s is %s", name, s.State)
		}
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil || proof.OK != 2 || proof.Changed != 0 || proof.Missing != 0 || proof.Unreadable != 2 {
		t.Errorf("verify: %+v, %v: want two right ones with unreadable sources", proof, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, header+user1+reply1, dir, "s.jsonl")
	if result := syncPaths(t, a, dir); result.Updated != 1 || result.Rejected != 1 {
		t.Errorf("sync: %+v, want the file that can be read again updated", result)
	}
}

// TestSourceBecamePipe puts a pipe, which nobody writes to, in the place of a source.
func TestSourceBecamePipe(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1, dir, "s.jsonl")
	other := write(t, header+user1+reply1, dir, "t.jsonl")
	importPaths(t, a, dir)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	var proof *repo.VerifyResult
	done := make(chan error, 1)
	go func() {
		var err error
		proof, err = a.Verify(t.Context(), nil, nil)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("verify waits for a pipe")
	}
	if proof.Sessions != 2 || proof.OK != 2 || proof.Changed != 1 || len(proof.Failed) != 0 {
		t.Errorf("verify: %+v, want two right ones, one of them changed", proof)
	}
	result, err := a.Import(t.Context(), []string{path, other}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result.Rejected != 1 || result.Unchanged != 1 {
		t.Errorf("import: %+v, want the pipe rejected and the file unchanged", result)
	}
	if err := os.Remove(filepath.Join(dir, "s.jsonl")); err != nil {
		t.Fatal(err)
	}
}

// TestOpenWithoutPermission opens archives that cannot be read or written beside.
func TestOpenWithoutPermission(t *testing.T) {
	asNobody(t)
	dir := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		closed      string
		mode, after os.FileMode
		want        error
	}{{path, 0, 0o600, fs.ErrPermission}, {dir, 0, 0o700, fs.ErrPermission}, {dir, 0o500, 0o700, repo.ErrReadOnly}} {
		if err := os.Chmod(tt.closed, tt.mode); err != nil {
			t.Fatal(err)
		}
		a, err := repo.Open(t.Context(), path, nil)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s with mode %o: %v, want %v", tt.closed, tt.mode, err, tt.want)
		}
		if err == nil {
			a.Close()
		}
		if err := os.Chmod(tt.closed, tt.after); err != nil {
			t.Fatal(err)
		}
	}
}
