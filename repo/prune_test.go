package repo_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/repo"
)

// rewritten imports the versions of one file one after the other.
func rewritten(t *testing.T, a *repo.Archive, texts ...string) string {
	t.Helper()
	dir := t.TempDir()
	var path string
	for _, text := range texts {
		path = write(t, text, dir, "s.jsonl")
		importPaths(t, a, path)
	}
	return path
}

func versions(t *testing.T, a *repo.Archive) []string {
	t.Helper()
	var out []string
	for _, s := range sessions(t, a) {
		out = append(out, fmt.Sprint(s.Version, " ", s.State))
	}
	slices.Sort(out)
	return out
}

func TestPrune(t *testing.T) {
	// Each version has the lines of the one before but the first message: all but version 3,
	// which alone has a line, say nothing that is not said elsewhere.
	first := header + user1 + reply1
	again := strings.Replace(header, "/work", "/work/a", 1) + user1 + reply1
	alone := header + user1 + user2
	last := header + strings.Replace(user1, "first", "1st", 1) + user1 + reply1
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name string
		opts repo.PruneOptions
		want []string
		kept int
		err  error
	}{
		{"all that is elsewhere", repo.PruneOptions{}, []string{"2 superseded", "3 superseded", "4 live"}, 2, nil},
		{"all", repo.PruneOptions{LastCopies: true}, []string{"4 live"}, 0, nil},
		{"keep one", repo.PruneOptions{Keep: 1, LastCopies: true}, []string{"3 superseded", "4 live"}, 0, nil},
		{"keep more than there are", repo.PruneOptions{Keep: 9, LastCopies: true}, []string{"1 superseded", "2 superseded", "3 superseded", "4 live"}, 0, nil},
		{"older", repo.PruneOptions{Keep: -1, OlderThan: 24 * time.Hour, LastCopies: true}, []string{"4 live"}, 0, nil},
		{"none is older", repo.PruneOptions{Keep: -1, OlderThan: 365 * 24 * time.Hour, LastCopies: true}, []string{"1 superseded", "2 superseded", "3 superseded", "4 live"}, 0, nil},
		{"dry", repo.PruneOptions{LastCopies: true, DryRun: true}, []string{"1 superseded", "2 superseded", "3 superseded", "4 live"}, 0, nil},
		{"no limit", repo.PruneOptions{Keep: -1}, []string{"1 superseded", "2 superseded", "3 superseded", "4 live"}, 0, repo.ErrNoLimit},
		{"missing without an age", repo.PruneOptions{Missing: true}, []string{"1 superseded", "2 superseded", "3 superseded", "4 live"}, 0, repo.ErrNoLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := open(t, &repo.OpenOptions{Now: func() time.Time { return now }})
			path := rewritten(t, a, first, again, alone, last)
			result, err := a.Prune(t.Context(), &test.opts)
			if !errors.Is(err, test.err) {
				t.Fatalf("%v, want %v", err, test.err)
			}
			if err == nil && result.Kept != test.kept {
				t.Errorf("%d kept, want %d: %+v", result.Kept, test.kept, result)
			}
			if diff := cmp.Diff(test.want, versions(t, a)); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
			if got := exported(t, a, bySource(t, a, path).Key); got != last {
				t.Errorf("in use: %q", got)
			}
		})
	}
}

// TestPruneMissing takes out a session whose file is gone, only when that is asked for.
func TestPruneMissing(t *testing.T) {
	a := open(t, nil)
	dir := t.TempDir()
	gone := write(t, header+user1, dir, "in", "gone.jsonl")
	write(t, strings.Replace(header, "s-1", "s-2", 1)+user2, dir, "in", "there.jsonl")
	importPaths(t, a, filepath.Join(dir, "in"))
	write(t, header+user2, dir, "in", "gone.jsonl")
	importPaths(t, a, filepath.Join(dir, "in"))
	s, err := a.Create(t.Context(), "/work", nil)
	if err != nil {
		t.Fatal(err)
	}
	removeFile(t, gone)
	importPaths(t, a, filepath.Join(dir, "in"))
	if result, err := a.Prune(t.Context(), &repo.PruneOptions{OlderThan: time.Hour, Keep: 1, LastCopies: true}); err != nil || len(result.Sessions) != 0 {
		t.Errorf("not asked for: %+v, %v", result, err)
	}
	result, err := a.Prune(t.Context(), &repo.PruneOptions{OlderThan: time.Hour, Keep: 1, Missing: true, LastCopies: true})
	if err != nil || result.Removed != 2 {
		t.Errorf("%+v, %v, want both versions removed", result, err)
	}
	left := sessions(t, a)
	if len(left) != 2 {
		t.Errorf("left: %+v, want the one that is there and the one born here", left)
	}
	if _, err := s.Append(t.Context(), userMessage("goes on")); err != nil {
		t.Error(err)
	}
}

// TestPrunedStaysAway merges a backup from before a prune.
func TestPrunedStaysAway(t *testing.T) {
	a := open(t, nil)
	rewritten(t, a, header+user1, header+user2)
	copied := filepath.Join(t.TempDir(), "copy.db")
	backup(t, a, copied)
	if _, err := a.Prune(t.Context(), &repo.PruneOptions{LastCopies: true}); err != nil {
		t.Fatal(err)
	}
	if result := merge(t, a, copied); result.Skipped != 1 || len(sessions(t, a)) != 1 {
		t.Errorf("%+v, want the old version skipped", result)
	}
}

// TestVersionsShare rewrites a large file again and again, each time another line of it:
// a version costs the chunks around the change and the rows of its lines.
func TestVersionsShare(t *testing.T) {
	a := open(t, nil)
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"%x%x"}}`+"\n", i, digest(fmt.Sprint(i)), digest(fmt.Sprint(-i))))
	}
	dir := t.TempDir()
	var path string
	var first int64
	const rewrites = 10
	for i := range rewrites {
		lines[i*290] = strings.Replace(user1, "first", fmt.Sprint("number ", i), 1)
		path = write(t, header+strings.Join(lines, ""), dir, "s.jsonl")
		importPaths(t, a, path)
		if i == 0 {
			first = stored(t, a)
		}
	}
	if all := stored(t, a); all > 4*first {
		t.Errorf("%d bytes for one version, %d for %d", first, all, rewrites)
	}
	if _, err := a.Prune(t.Context(), &repo.PruneOptions{LastCopies: true}); err != nil {
		t.Fatal(err)
	}
	if all := stored(t, a); all > first*11/10 {
		t.Errorf("%d bytes after a prune, %d with one version", all, first)
	}
	dry, err := a.Vacuum(t.Context(), &repo.VacuumOptions{DryRun: true})
	if err != nil || dry.After >= dry.Before {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	reading := make(chan struct{})
	go func() { // someone who reads on meanwhile
		defer close(reading)
		for range 20 {
			if len(sessions(t, a)) != 1 {
				t.Error("the session is not there")
			}
		}
	}()
	result, err := a.Vacuum(t.Context(), nil)
	<-reading
	if err != nil || result.After >= result.Before || result.After > dry.After*11/10 {
		t.Errorf("vacuum: %+v, %v, expected %d", result, err, dry.After)
	}
	if exported(t, a, bySource(t, a, path).Key) != header+strings.Join(lines, "") {
		t.Error("other bytes after a vacuum")
	}
	if n := len(search(t, a, `"number 3"`)); n == 0 {
		t.Error("nothing is found after a vacuum")
	}
}

func stored(t *testing.T, a *repo.Archive) int64 {
	t.Helper()
	check, err := a.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return check.Stored
}

// TestExposed loosens the modes of an archive.
func TestExposed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "private")
	a := openAt(t, filepath.Join(dir, "pidb.db"), nil)
	importPaths(t, a, write(t, header+user1, t.TempDir(), "s.jsonl"))
	if exposed := a.Exposed(); len(exposed) != 0 {
		t.Errorf("exposed: %v, want nothing", exposed)
	}
	for path, mode := range map[string]uint32{a.Path(): 0o640, a.IndexPath(): 0o604, dir: 0o777} {
		chmod(t, path, mode)
	}
	if diff := cmp.Diff([]string{a.Path(), a.IndexPath(), dir}, a.Exposed()); diff != "" {
		t.Errorf("exposed (-want +got):\n%s", diff)
	}
}
