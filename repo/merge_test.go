package repo_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pidb/query"
	"pidb/repo"
)

func merge(t *testing.T, a *repo.Archive, path string) *repo.MergeResult {
	t.Helper()
	result, err := a.Merge(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Failed {
		t.Errorf("merge: session #%d: %v", f.Session, f.Err)
	}
	return result
}

// states describes the sessions of an archive: path, version, state and digest.
func states(t *testing.T, a *repo.Archive) []string {
	t.Helper()
	var out []string
	for _, s := range sessions(t, a) {
		out = append(out, fmt.Sprintf("%s %s %s %x", filepath.Base(s.Path), s.State, s.ID, digest(exported(t, a, s.Key))))
	}
	slices.Sort(out)
	return out
}

// TestMergeFiles merges what two archives have read of one file.
func TestMergeFiles(t *testing.T) {
	other := strings.Replace(user2, "second", "another", 1)
	for _, test := range []struct {
		name         string
		here, there  []string // the file, as each archive read it one after the other
		want         string   // of the session in use here
		versions     int      // in the end
		imp, upd, un int
	}{
		{"new", nil, []string{header + user1}, header + user1, 1, 1, 0, 0},
		{"same", []string{header + user1}, []string{header + user1}, header + user1, 1, 0, 0, 1},
		{"grown there", []string{header + user1}, []string{header + user1 + reply1}, header + user1 + reply1, 1, 0, 1, 0},
		{"grown here", []string{header + user1 + reply1}, []string{header + user1}, header + user1 + reply1, 1, 0, 0, 1},
		{"went two ways", []string{header + user1 + reply1 + user2}, []string{header + user1 + reply1 + other}, header + user1 + reply1 + user2, 2, 1, 0, 0},
		{"rewritten there", []string{header + user1}, []string{header + user1, header + user2}, header + user2, 2, 1, 0, 1},
		{"grown and rewritten there", []string{header + user1}, []string{header + user1 + reply1, header + user2}, header + user2, 2, 1, 1, 0},
		{"rewritten here", []string{header + user1, header + user2}, []string{header + user1}, header + user2, 2, 0, 0, 1},
		{"versions there", nil, []string{header + user1, header + user2, header + reply1}, header + reply1, 3, 3, 0, 0},
		{"torn line grows", []string{header + user1 + reply1[:40]}, []string{header + user1 + reply1}, header + user1 + reply1, 1, 0, 1, 0},
		{"empty there", []string{header + user1}, []string{""}, header + user1, 1, 0, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			a, b := openAt(t, filepath.Join(dir, "a.db"), nil), openAt(t, filepath.Join(dir, "b.db"), nil)
			var path string
			for _, text := range test.there {
				path = write(t, text, dir, "s.jsonl")
				importPaths(t, b, path)
			}
			for _, text := range test.here {
				path = write(t, text, dir, "s.jsonl")
				importPaths(t, a, path)
			}
			result := merge(t, a, b.Path())
			want := &repo.MergeResult{Sessions: test.imp + test.upd + test.un, Imported: test.imp, Updated: test.upd, Unchanged: test.un}
			if diff := cmp.Diff(want, result, cmpopts.IgnoreFields(repo.MergeResult{}, "Duration", "Bytes", "Entries")); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if got := exported(t, a, bySource(t, a, path).Key); got != test.want {
				t.Errorf("in use: %q, want %q", got, test.want)
			}
			before := states(t, a)
			if len(before) != test.versions {
				t.Errorf("%d versions, want %d: %v", len(before), test.versions, before)
			}
			again := merge(t, a, b.Path())
			if again.Unchanged != again.Sessions {
				t.Errorf("again: %+v", again)
			}
			if diff := cmp.Diff(before, states(t, a)); diff != "" {
				t.Errorf("a second merge changes (-before +after):\n%s", diff)
			}
		})
	}
}

// TestMergeNative merges sessions that were born in an archive.
func TestMergeNative(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, filepath.Join(dir, "a.db"), nil), openAt(t, filepath.Join(dir, "b.db"), nil)
	s, err := b.Create(t.Context(), "/work", &repo.CreateOptions{Metadata: map[string]any{"task": "T-1", "owner": "mira"}})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Append(t.Context(), userMessage("one"), userMessage("two"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Branch(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	merge(t, a, b.Path())
	mine, err := a.OpenSession(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	info, err := mine.Info(t.Context())
	if err != nil || !info.Native {
		t.Errorf("info: %+v, %v, want a native session", info, err)
	}
	leaf, err := mine.Path(t.Context())
	if err != nil || len(leaf) != 1 || leaf[0].ID != ids[0] {
		t.Errorf("path to the leaf: %+v, %v, want the entry %s alone", leaf, err, ids[0])
	}
	metadata, err := mine.Metadata(t.Context())
	if err != nil || string(metadata["task"]) != `"T-1"` || string(metadata["owner"]) != `"mira"` {
		t.Errorf("metadata: %s, %v", metadata, err)
	}

	// Each goes on where the other one has stopped, and what is set here stays.
	if err := mine.SetMetadata(t.Context(), map[string]any{"owner": "noor"}); err != nil {
		t.Fatal(err)
	}
	if _, err := mine.Append(t.Context(), userMessage("three")); err != nil {
		t.Fatal(err)
	}
	if result := merge(t, b, a.Path()); result.Updated != 1 {
		t.Errorf("back: %+v, want one updated", result)
	}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), userMessage("four")); err != nil {
		t.Fatal(err)
	}
	if result := merge(t, a, b.Path()); result.Updated != 1 {
		t.Errorf("there again: %+v, want one updated", result)
	}
	if exported(t, a, mine.Key()) != exported(t, b, s.Key()) {
		t.Error("the two differ")
	}
	if metadata, err := mine.Metadata(t.Context()); err != nil || string(metadata["owner"]) != `"noor"` {
		t.Errorf("metadata: %s, %v, want what was set here", metadata, err)
	}

	// Both go on by themselves: both stay.
	for _, each := range []*repo.Session{mine, s} {
		if err := each.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := each.Append(t.Context(), userMessage("five of "+filepath.Base(each.Archive().Path()))); err != nil {
			t.Fatal(err)
		}
	}
	if result := merge(t, a, b.Path()); result.Imported != 1 {
		t.Errorf("two ways: %+v, want one imported", result)
	}
	if n := len(sessions(t, a)); n != 2 {
		t.Errorf("%d sessions, want both", n)
	}
}

// TestMergeDeleted merges what was deleted on one side.
func TestMergeDeleted(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, filepath.Join(dir, "a.db"), nil), openAt(t, filepath.Join(dir, "b.db"), nil)
	one := write(t, header+user1, dir, "in", "one.jsonl")
	two := write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "in", "two.jsonl")
	for _, archive := range []*repo.Archive{a, b} {
		importPaths(t, archive, filepath.Join(dir, "in"))
	}
	if _, err := a.Delete(t.Context(), bySource(t, a, one).Key); err != nil {
		t.Fatal(err)
	}
	if result := merge(t, a, b.Path()); result.Skipped != 1 || result.Unchanged != 1 {
		t.Errorf("deleted here: %+v, want one skipped", result)
	}
	if result := merge(t, b, a.Path()); result.Unchanged != 1 || len(sessions(t, b)) != 2 {
		t.Errorf("deleted there: %+v, want nothing deleted", result)
	}
	c := openAt(t, filepath.Join(dir, "c.db"), nil)
	if result := merge(t, c, a.Path()); result.Imported != 1 || result.Deleted != 1 {
		t.Errorf("into a new archive: %+v, want one imported and one deletion", result)
	}
	if _, err := c.Sync(t.Context(), []string{filepath.Join(dir, "in")}, nil); err != nil {
		t.Fatal(err)
	}
	if left := sessions(t, c); len(left) != 1 || left[0].Path != two {
		t.Errorf("after a sync: %+v, want %s alone", left, two)
	}
}

// TestMergeOtherPaths merges copies of one session at different paths.
func TestMergeOtherPaths(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, filepath.Join(dir, "a.db"), nil), openAt(t, filepath.Join(dir, "b.db"), nil)
	here := write(t, header+user1, dir, "desk", "s.jsonl")
	time.Sleep(50 * time.Millisecond) // its stat can be trusted then
	importPaths(t, a, here)
	importPaths(t, b, write(t, header+user1+reply1, dir, "lap", "s.jsonl"))
	if result := merge(t, a, b.Path()); result.Updated != 1 {
		t.Errorf("%+v, want one updated", result)
	}
	if s := bySource(t, a, here); exported(t, a, s.Key) != header+user1+reply1 {
		t.Errorf("%+v did not grow", s)
	}
	// The file here is what it was: a sync has nothing to do.
	importPaths(t, a, here)
	if n := len(sessions(t, a)); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

// TestMergeReadsOnly merges archives that must not change: one that is open, one of an
// older schema, one in a folder that nobody may write.
func TestMergeReadsOnly(t *testing.T) {
	dir := t.TempDir()
	a := openAt(t, filepath.Join(dir, "a.db"), nil)
	folder := filepath.Join(dir, "there")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := repo.Open(t.Context(), filepath.Join(folder, "b.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, b, write(t, header+user1, dir, "s.jsonl"))
	old := filepath.Join(folder, "old.db")
	backup(t, b, old)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", old)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`DROP TABLE metadata`, `DROP TABLE idempotency`, `DROP TABLE subagent`, `DROP TABLE document`, `DELETE FROM goose_db_version WHERE version_id > 1`, `PRAGMA user_version = 1`, `UPDATE session SET id = id`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	before := folderState(t, folder)
	if err := os.Chmod(folder, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(folder, 0o700) })
	if result := merge(t, a, old); result.Imported != 1 {
		t.Errorf("old schema: %+v, want one imported", result)
	}
	if result := merge(t, a, b.Path()); result.Unchanged != 1 {
		t.Errorf("%+v, want one unchanged", result)
	}
	if diff := cmp.Diff(before, folderState(t, folder)); diff != "" {
		t.Errorf("the other archive changed (-before +after):\n%s", diff)
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "none.db"): repo.ErrNotFound,
		filepath.Join(dir, "s.jsonl"): repo.ErrForeign,
		dir:                           repo.ErrForeign,
	} {
		if _, err := a.Merge(t.Context(), path, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}

// folderState returns name, size, mode, time and digest of each file in a folder.
func folderState(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s %d %v %v %x", entry.Name(), info.Size(), info.Mode(), info.ModTime(), digest(string(data))))
	}
	return out
}

// TestMergeDamaged merges an archive with a damaged session: the other ones come.
func TestMergeDamaged(t *testing.T) {
	dir := t.TempDir()
	a, b := openAt(t, filepath.Join(dir, "a.db"), nil), filepath.Join(dir, "b.db")
	other, err := repo.Open(t.Context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := write(t, header+user1, dir, "bad.jsonl")
	good := write(t, strings.Replace(header, "s-1", "s-2", 1)+user2, dir, "good.jsonl")
	importPaths(t, other, bad, good)
	damaged := bySource(t, other, bad).Key
	other.Close()
	db, err := sql.Open("sqlite", b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE chunk SET data = zeroblob(length(data)) WHERE key = (SELECT chunk FROM piece WHERE session = ?)`, damaged); err != nil {
		t.Fatal(err)
	}
	db.Close()
	result, err := a.Merge(t.Context(), b, nil)
	if err != nil || result.Imported != 1 || len(result.Failed) != 1 || result.Failed[0].Path != bad || !errors.Is(result.Failed[0].Err, repo.ErrDamaged) {
		t.Fatalf("%+v, %v: want one imported and one damaged", result, err)
	}
	if got := states(t, a); len(got) != 1 {
		t.Errorf("%v, want one session", got)
	}
	if s := bySource(t, a, good); s.State != query.Live {
		t.Errorf("%+v, want it live", s)
	}
}
