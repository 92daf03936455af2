package repo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pidb/repo"
)

func backup(t *testing.T, a *repo.Archive, path string) *repo.BackupResult {
	t.Helper()
	result, err := a.Backup(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestBackupWhileWriting takes backups while another handle appends: each is whole, holds
// every entry that was acknowledged before it began, and no append waits long.
func TestBackupWhileWriting(t *testing.T) {
	dir := t.TempDir()
	a := openAt(t, filepath.Join(dir, "pidb.db"), nil)
	importPaths(t, a, write(t, header+user1+strings.Repeat(user2, 5000), dir, "s.jsonl"))
	s, err := a.Create(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var acknowledged, slowest atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for i := 0; ctx.Err() == nil && err == nil; i++ {
			began := time.Now()
			_, err = s.Append(context.WithoutCancel(ctx), userMessage(fmt.Sprint("number ", i)))
			slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			acknowledged.Add(1)
		}
		done <- err
	}()
	for i := range 3 {
		path := filepath.Join(dir, fmt.Sprintf("backup%d.db", i))
		before := acknowledged.Load()
		result := backup(t, a, path)
		if result.Sessions != 2 || result.Bytes == 0 {
			t.Errorf("backup: %+v", result)
		}
		b := openAt(t, path, nil)
		if got := strings.Count(exported(t, b, s.Key()), "number"); int64(got) < before {
			t.Errorf("%d entries, %d were acknowledged before", got, before)
		}
		if err := b.UpdateIndex(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if n := len(search(t, b, "question")); n == 0 {
			t.Error("the copy finds nothing")
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Errorf("append: %v", err)
	}
	if slow := time.Duration(slowest.Load()); slow > 2*time.Second {
		t.Errorf("an append took %v", slow)
	}
}

// errDatabaseName stands for a DatabaseNameError in tests.
var errDatabaseName = errors.New("DatabaseNameError")

func TestBackupNames(t *testing.T) {
	dir := t.TempDir()
	a := openAt(t, filepath.Join(dir, "pidb.db"), nil)
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	taken := write(t, "taken", dir, "taken.db")
	inUse := write(t, "in use", dir, "inuse.db")
	write(t, "log", dir, "inuse.db-wal")
	if err := os.Symlink(a.Path(), filepath.Join(dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path    string
		replace bool
		want    error
	}{
		{filepath.Join(dir, "new.db"), false, nil},
		{filepath.Join(dir, "new.db"), false, repo.ErrExists},
		{taken, false, repo.ErrExists},
		{taken, true, nil},
		{inUse, true, errDatabaseName},
		{inUse + "-wal", true, errDatabaseName},
		{taken + "-wal", true, errDatabaseName},
		{taken + "-journal", false, errDatabaseName},
		{filepath.Join(dir, "taken.index.db"), false, errDatabaseName},
		{filepath.Join(dir, "free.db-wal"), false, nil},
		{a.Path(), true, errDatabaseName},
		{a.Path() + "-wal", true, errDatabaseName},
		{a.Path() + "-shm", true, errDatabaseName},
		{a.Path() + "-journal", false, errDatabaseName},
		{a.IndexPath(), true, errDatabaseName},
		{a.IndexPath() + "-wal", true, errDatabaseName},
		{filepath.Join(dir, "link.db"), true, errDatabaseName},
		{dir, true, repo.ErrExists},
		{filepath.Join(dir, "no", "folder.db"), false, os.ErrNotExist},
	} {
		_, err := a.Backup(t.Context(), test.path, &repo.BackupOptions{Replace: test.replace})
		if _, named := errors.AsType[*repo.DatabaseNameError](err); named {
			if !errors.Is(err, repo.ErrExists) {
				t.Errorf("%s: %v is no ErrExists", test.path, err)
			}
			err = errDatabaseName
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s, replace %t: %v, want %v", test.path, test.replace, err, test.want)
		}
		if err != nil {
			continue
		}
		info, err := os.Stat(test.path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", test.path, info.Mode(), err)
		}
	}
	leftovers, err := filepath.Glob(filepath.Join(dir, ".pidb-*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %v, %v", leftovers, err)
	}
}

// TestBackupRestored puts an older backup in the place of an archive whose index stays.
func TestBackupRestored(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "pidb.db"), filepath.Join(dir, "copy.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	backup(t, a, copied)
	s, err := a.Create(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), userMessage("walrus")); err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "walrus")); n == 0 {
		if err := a.UpdateIndex(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied, path); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, path, nil)
	other, err := b.Create(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Append(t.Context(), userMessage("narwhal")); err != nil {
		t.Fatal(err)
	}
	if err := b.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"walrus": 0, "narwhal": 1, "question": 1} {
		if n := len(search(t, b, text)); n != want {
			t.Errorf("%s: %d hits, want %d", text, n, want)
		}
	}
}
