package repo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// other is a session with another id.
var other = strings.Replace(header, "s-1", "s-2", 1) + user1

func syncPaths(t *testing.T, a *repo.Archive, paths ...string) *repo.ImportResult {
	t.Helper()
	result, err := a.Sync(t.Context(), paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func remove(t *testing.T, a *repo.Archive, session query.Key) {
	t.Helper()
	if ok, err := a.Delete(t.Context(), session); err != nil || !ok {
		t.Fatalf("delete session #%d: %v, %v", session, ok, err)
	}
}

// TestDeletedStaysDeleted changes the file of a deleted session, and syncs.
func TestDeletedStaysDeleted(t *testing.T) {
	long := strings.Replace(user2, "second question", strings.Repeat("question ", 10_000), 1)
	large := header + user1 + strings.Repeat(long, 400) // read in several parts
	tests := map[string]struct {
		old, path, new string
		back           bool // it is another session
	}{
		"touched":                     {header + user1, "s.jsonl", header + user1, false},
		"grown":                       {header + user1, "s.jsonl", header + user1 + reply1, false},
		"renamed":                     {header + user1, "t.jsonl", header + user1, false},
		"renamed and grown":           {header + user1, "t.jsonl", header + user1 + reply1, false},
		"renamed, large":              {large, "t.jsonl", large, false},
		"headerless, renamed":         {user1 + reply1, "t.jsonl", user1 + reply1, false},
		"another session":             {header + user1, "s.jsonl", other, true},
		"another session, same id":    {header + user1, "s.jsonl", header + user2, true},
		"shorter":                     {header + user1 + reply1, "s.jsonl", header + user1, true},
		"another session, other path": {header + user1, "t.jsonl", other, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a := open(t, nil)
			path := write(t, tt.old, dir, "s.jsonl")
			age(t, path)
			importPaths(t, a, dir)
			remove(t, a, bySource(t, a, path).Key)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			path = write(t, tt.new, dir, tt.path)
			result := syncPaths(t, a, dir)
			list := sessions(t, a)
			if tt.back {
				if result.Imported != 1 || len(list) != 1 || exported(t, a, list[0].Key) != tt.new {
					t.Errorf("sync: %+v, %d sessions: want a new session", result, len(list))
				}
				return
			}
			if result.Imported != 0 || result.Unchanged != 1 || result.Skipped != 1 || len(list) != 0 {
				t.Errorf("sync: %+v, %d sessions: want none", result, len(list))
			}
			age(t, path)
			syncPaths(t, a, dir)
			if result := syncPaths(t, a, dir); result.Unchanged != 1 || result.Skipped != 1 {
				t.Errorf("second sync: %+v: want it skipped", result)
			}
			if result := importPaths(t, a, path); result.Imported != 1 || len(sessions(t, a)) != 1 {
				t.Errorf("import by name: %+v, want it back", result)
			}
		})
	}
}

// TestCopyOfWhatIsThere deletes an older copy of a session whose file is renamed then.
func TestCopyOfWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	older := write(t, header+user1, dir, "older.jsonl")
	path := write(t, header+user1+reply1, dir, "s.jsonl")
	importPaths(t, a, dir)
	remove(t, a, bySource(t, a, older).Key)
	renamed := filepath.Join(dir, "t.jsonl")
	if err := os.Rename(path, renamed); err != nil {
		t.Fatal(err)
	}
	if result := syncPaths(t, a, dir); result.Imported != 1 || result.Missing != 1 {
		t.Errorf("sync: %+v: want the renamed one imported and the old path missing", result)
	}
}

// TestNamedIsForgiven deletes a session, brings it back by its name, and renames its file.
func TestNamedIsForgiven(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1, dir, "s.jsonl")
	importPaths(t, a, dir)
	remove(t, a, bySource(t, a, path).Key)
	if result := importPaths(t, a, path); result.Imported != 1 {
		t.Fatalf("import by name: %+v, want it back", result)
	}
	renamed := filepath.Join(dir, "t.jsonl")
	if err := os.Rename(path, renamed); err != nil {
		t.Fatal(err)
	}
	if result := syncPaths(t, a, dir); result.Imported != 1 || result.Missing != 1 || result.Skipped != 0 {
		t.Errorf("sync: %+v: want the renamed one imported and the old path missing", result)
	}
	if got := exported(t, a, bySource(t, a, renamed).Key); got != header+user1 {
		t.Errorf("exported %q", got)
	}
}

// TestSetAsideComesBack deletes the session that a set-aside file was superseded by.
func TestSetAsideComesBack(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1+reply1, dir, "s.jsonl")
	aside := write(t, header+user1, dir, "s.jsonl.bak")
	importPaths(t, a, dir)
	for _, s := range sessions(t, a) {
		if want := map[string]query.State{path: query.Live, aside: query.Superseded}[s.Path]; s.State != want {
			t.Fatalf("%s is %s, want %s", s.Path, s.State, want)
		}
	}
	remove(t, a, bySource(t, a, path).Key)
	if s := sessions(t, a); len(s) != 1 || s[0].Path != aside || s[0].State != query.Live {
		t.Errorf("%+v, want %s live", s, aside)
	}
}

// TestBytesAreNew counts what imports of a growing file add.
func TestBytesAreNew(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	size := int64(0)
	for i, content := range []string{
		header + user1,
		header + user1 + reply1,
		header + user1 + reply1 + user2[:40],
		header + user1 + reply1 + user2,
		header + user1 + reply1 + strings.TrimSuffix(strings.Repeat(user2, 1000), "\n"),
		header + user1 + reply1 + strings.Repeat(user2, 1000),
	} {
		result := importPaths(t, a, write(t, content, dir, "s.jsonl"))
		if want := int64(len(content)) - size; result.Bytes != want {
			t.Errorf("import %d: %d bytes, want %d", i, result.Bytes, want)
		}
		size = int64(len(content))
	}
}

// TestFirstMessageIsWhole asks for first messages around the size that a row holds.
func TestFirstMessageIsWhole(t *testing.T) {
	for _, text := range []string{
		"", "short", strings.Repeat("x", 4091), strings.Repeat("x", 4092), strings.Repeat("x", 4093), strings.Repeat("x", 4096), strings.Repeat("x", 4097),
		strings.Repeat("x", 4095) + "é" + "tail", strings.Repeat("x", 4094) + "😀" + "tail", strings.Repeat("é", 5000),
	} {
		a := open(t, nil)
		first := strings.Replace(user1, "first question", text, 1)
		importPaths(t, a, write(t, header+reply1+first+user2, t.TempDir(), "s.jsonl"))
		s := sessions(t, a)[0]
		want := text
		if text == "" {
			want = "second question"
		}
		var got string
		err := a.View(t.Context(), func(rx *query.Rx) (err error) {
			got, err = rx.FirstMessage(t.Context(), &s)
			return err
		})
		if err != nil || got != want {
			t.Errorf("%d bytes, %v: want %d", len(got), err, len(want))
		}
		if len(s.FirstMessage) > 4096 || !strings.HasPrefix(want, s.FirstMessage) {
			t.Errorf("the row holds %d bytes of %d", len(s.FirstMessage), len(want))
		}
	}
}

// TestLineTooLong imports files with a line at and above the limit.
func TestLineTooLong(t *testing.T) {
	const limit = 2000
	fill := func(n int) string { return `{"type":"x","text":"` + strings.Repeat("x", n-22) + `"}` }
	tests := map[string]struct {
		content string
		line    int64 // that is too long; 0: none
	}{
		"just so":             {header + fill(limit) + "\n" + user1, 0},
		"just so, CRLF":       {header + fill(limit) + "\r\n" + user1, 0},
		"just so, at the end": {header + user1 + fill(limit), 0},
		"one more":            {header + fill(limit+1) + "\n" + user1, 2},
		"one more, CRLF":      {header + fill(limit+1) + "\r\n" + user1, 2},
		"at the end":          {header + user1 + fill(limit+1), 3},
		"much more":           {header + user1 + fill(3<<20) + "\n", 3},
		"behind much":         {header + strings.Repeat(user1, 2000) + fill(limit+1) + "\n", 2002},
		"the first":           {fill(limit+1) + "\n" + header + user1, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := open(t, nil)
			path := write(t, tt.content, t.TempDir(), "s.jsonl")
			result, err := a.Import(t.Context(), []string{path}, &repo.ImportOptions{MaxLine: limit})
			if err != nil {
				t.Fatal(err)
			}
			if tt.line == 0 {
				if result.Imported != 1 || len(result.Problems) != 0 {
					t.Errorf("%+v, want it imported", result)
				}
				return
			}
			if result.Rejected != 1 || len(sessions(t, a)) != 0 {
				t.Fatalf("%+v and %d sessions, want the file refused whole", result, len(sessions(t, a)))
			}
			if p := result.Problems[0]; p.Code != repo.CodeTooLarge || p.Line != tt.line || p.Path != path {
				t.Errorf("%+v, want line %d of %s too large", p, tt.line, path)
			}
		})
	}
	t.Run("grown", func(t *testing.T) {
		a := open(t, nil)
		dir := t.TempDir()
		path := write(t, header+user1, dir, "s.jsonl")
		importPaths(t, a, path)
		write(t, header+user1+fill(limit+1), dir, "s.jsonl")
		result, err := a.Import(t.Context(), []string{path}, &repo.ImportOptions{MaxLine: limit})
		if err != nil || result.Rejected != 1 {
			t.Fatalf("%+v, %v: want the file refused", result, err)
		}
		if s := bySource(t, a, path); s.State != query.Live || exported(t, a, s.Key) != header+user1 {
			t.Errorf("%+v, want the session as it was", s)
		}
	})
}

// TestBrokenOffAddsUp ends the context of an import in the midst.
func TestBrokenOffAddsUp(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	long := strings.Replace(user2, "second question", strings.Repeat("question ", 10_000), 1)
	for i := range 12 {
		write(t, header+user1+strings.Repeat(long, 50+i), dir, string(rune('a'+i))+".jsonl")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result, err := a.Import(ctx, []string{dir}, &repo.ImportOptions{Progress: func(p repo.Progress) {
		if p.Files > 0 {
			cancel()
		}
	}})
	if err == nil || result.Imported == 0 || result.Imported == 12 {
		t.Fatalf("%+v, %v: want it broken off in the midst", result, err)
	}
	if sum := result.Imported + result.Updated + result.Unchanged + result.Rejected; result.Files != sum {
		t.Errorf("%d files, the sum is %d", result.Files, sum)
	}
}
