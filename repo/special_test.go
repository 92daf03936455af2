//go:build unix

package repo_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pidb/repo"
)

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
