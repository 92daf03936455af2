package repo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestDeepNesting takes in a line of arrays that are nested a million deep.
func TestDeepNesting(t *testing.T) {
	a := open(t, nil)
	const deep = 1_000_000
	for _, value := range []string{
		strings.Repeat("[", deep) + strings.Repeat("]", deep), strings.Repeat(`{"a":`, deep) + "1" + strings.Repeat("}", deep), strings.Repeat("[", deep),
	} {
		text := header + user1 + `{"type":"message","id":"d","parentId":"a1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":` + value + "}}\n" + reply1
		path := write(t, text, t.TempDir(), "deep.jsonl")
		importPaths(t, a, path)
		s := bySource(t, a, path)
		if exported(t, a, s.Key) != text {
			t.Error("the export differs")
		}
		if n := len(search(t, a, "question")); n == 0 {
			t.Error("the lines beside it are not found")
		}
		err := a.View(t.Context(), func(rx *query.Rx) error {
			_, err := rx.Context(t.Context(), s.Leaf)
			return err
		})
		if err != nil {
			t.Errorf("context: %v", err)
		}
	}
}

// TestHostileNames takes in and writes back files with names of any kind.
func TestHostileNames(t *testing.T) {
	a := open(t, nil)
	dir := t.TempDir()
	texts := map[string]string{}
	for _, name := range []string{
		"a\nb.jsonl", "a\x1b]0;x\x07.jsonl", "-rf.jsonl", "~.jsonl", "'\".jsonl", "\xff.jsonl", "\u202e.jsonl", " .jsonl", "..jsonl", "%s%n.jsonl", "NUL.jsonl",
		strings.Repeat("x", 249) + ".jsonl", filepath.Join(strings.Repeat("d", 200), strings.Repeat("e", 200), "f.jsonl"), "a?b#c.jsonl", "$(x).jsonl",
	} {
		texts[name] = strings.Replace(header, "s-1", "s-"+strings.Repeat("i", len(texts)), 1) + user1
		write(t, texts[name], dir, "in", name)
	}
	if result := importPaths(t, a, filepath.Join(dir, "in")); result.Imported != len(texts) {
		t.Errorf("%+v, want %d new sessions", result, len(texts))
	}
	result, err := a.ExportAll(t.Context(), filepath.Join(dir, "out"), nil)
	if err != nil || len(result.Failed) > 0 || result.Sessions != len(texts) {
		t.Fatalf("%+v, %v", result, err)
	}
	for name, want := range texts {
		if got, err := os.ReadFile(filepath.Join(dir, "out", name)); err != nil || string(got) != want {
			t.Errorf("%q: %.60q, %v", name, got, err)
		}
	}
}

// TestLinkRaces turns folders and files of an export and of an import into links, and back,
// while they are under way: nothing is written outside, and no bytes are mixed up.
func TestLinkRaces(t *testing.T) {
	a := open(t, nil)
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := write(t, "not a session\n", outside, "s.jsonl")
	known := map[string]bool{}
	for i := range 20 {
		text := strings.Replace(header, "s-1", strings.Repeat("i", i+1), 1) + user1
		known[text] = true
		write(t, text, dir, "in", "sub", strings.Repeat("f", i+1)+".jsonl")
	}
	importPaths(t, a, filepath.Join(dir, "in"))
	stop := make(chan struct{})
	var racer sync.WaitGroup
	out := filepath.Join(dir, "out")
	source := filepath.Join(dir, "in", "sub", "f.jsonl")
	racer.Go(func() {
		// Each of these may fail: the other side makes and takes the same names.
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.RemoveAll(filepath.Join(out, "sub"))
			_ = os.Symlink(outside, filepath.Join(out, "sub"))
			_ = os.Remove(filepath.Join(out, "sub"))
			_ = os.Rename(source, source+".tmp")
			_ = os.Symlink(secret, source)
			_ = os.Remove(source)
			_ = os.Rename(source+".tmp", source)
		}
	})
	for range 60 {
		result, err := a.ExportAll(t.Context(), out, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, failure := range result.Failed {
			if errors.Is(failure.Err, repo.ErrDamaged) {
				t.Error(failure.Err)
			}
		}
		if _, err := a.Import(t.Context(), []string{filepath.Join(dir, "in")}, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	racer.Wait()
	list, err := os.ReadDir(outside)
	if err != nil || len(list) != 1 {
		t.Errorf("outside: %v, %v", list, err)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "not a session\n" {
		t.Errorf("the file outside: %q, %v", text, err)
	}
	for _, s := range sessions(t, a) {
		if text := exported(t, a, s.Key); !known[text] {
			t.Errorf("session #%d has the bytes of no file: %q", s.Key, text)
		}
	}
}
