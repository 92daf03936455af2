package repo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// TestCallsStop ends the context of every call that may take long, at several instants:
// the call returns soon, and says that it was the context.
func TestCallsStop(t *testing.T) {
	dir := t.TempDir()
	a := openAt(t, filepath.Join(dir, "pidb.db"), nil)
	chain := func(id string, lines int) string {
		var text strings.Builder
		text.WriteString(strings.Replace(header, "s-1", id, 1))
		for i := range lines {
			parent := ""
			if i > 0 {
				parent = fmt.Sprintf("%08x", i-1)
			}
			text.WriteString(entry(fmt.Sprintf("%08x", i), parent, fmt.Sprintf("text %d %x", i, digest(id+fmt.Sprint(i)))))
		}
		return text.String()
	}
	importPaths(t, a, write(t, chain("chain", 15000), dir, "chain.jsonl"), write(t, header+user1+reply1, dir, "short.jsonl"))
	session := bySource(t, a, filepath.Join(dir, "chain.jsonl"))
	fresh := 0
	// newFile makes a file that the archive does not have.
	newFile := func() string {
		fresh++
		return write(t, chain(fmt.Sprint("fresh-", fresh), 10000), dir, "fresh", fmt.Sprint(fresh, ".jsonl"))
	}
	asks := map[string]func(ctx context.Context, rx *query.Rx) error{
		"list": func(ctx context.Context, rx *query.Rx) error { _, _, err := rx.List(ctx, nil); return err },
		"search": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.Search(ctx, "text -nothing", &query.SearchOptions{All: true})
			return err
		},
		"search for a prefix": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.Search(ctx, "1* 2* 3*", &query.SearchOptions{All: true})
			return err
		},
		"search for a pattern": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.Search(ctx, "(a|b)+c[0-9]", &query.SearchOptions{All: true, Mode: query.Regexp})
			return err
		},
		"search for a piece": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.Search(ctx, "ab", &query.SearchOptions{All: true, Mode: query.Substring})
			return err
		},
		"tree":    func(ctx context.Context, rx *query.Rx) error { return drain(rx.Tree(ctx, session.Key)) },
		"entries": func(ctx context.Context, rx *query.Rx) error { return drain(rx.Entries(ctx, session.Key, nil)) },
		"branch":  func(ctx context.Context, rx *query.Rx) error { _, err := rx.Branch(ctx, session.Leaf); return err },
		"context": func(ctx context.Context, rx *query.Rx) error { _, err := rx.Context(ctx, session.Leaf); return err },
		"context entries": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.ContextEntries(ctx, session.Leaf)
			return err
		},
		"tips":   func(ctx context.Context, rx *query.Rx) error { _, err := rx.Tips(ctx, session.Key); return err },
		"labels": func(ctx context.Context, rx *query.Rx) error { _, err := rx.Labels(ctx, session.Key); return err },
		"stats":  func(ctx context.Context, rx *query.Rx) error { _, err := rx.Stats(ctx, nil); return err },
		"find":   func(ctx context.Context, rx *query.Rx) error { _, err := rx.Find(ctx, "chai"); return err },
		"write": func(ctx context.Context, rx *query.Rx) error {
			_, err := rx.Write(ctx, session.Key, 0, io.Discard)
			return err
		},
		"write normalized": func(ctx context.Context, rx *query.Rx) error {
			return rx.WriteNormalized(ctx, session.Key, io.Discard)
		},
		"write branch": func(ctx context.Context, rx *query.Rx) error {
			return rx.WriteBranch(ctx, session.Leaf, time.Now(), io.Discard)
		},
	}
	calls := map[string]func(ctx context.Context, prepared string) error{
		"import": func(ctx context.Context, path string) error { _, err := a.Import(ctx, []string{path}, nil); return err },
		"import of a reader": func(ctx context.Context, path string) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			_, err = a.ImportReader(ctx, "reader", file, nil)
			return err
		},
		"sync": func(ctx context.Context, path string) error {
			_, err := a.Sync(ctx, []string{filepath.Dir(path)}, nil)
			return err
		},
		"rehash": func(ctx context.Context, _ string) error {
			_, err := a.Import(ctx, []string{dir}, &repo.ImportOptions{Rehash: true})
			return err
		},
		"export": func(ctx context.Context, _ string) error { return a.Export(ctx, session.Key, io.Discard) },
		"export of all": func(ctx context.Context, path string) error {
			_, err := a.ExportAll(ctx, path+".out", nil)
			return err
		},
		"verify":       func(ctx context.Context, _ string) error { _, err := a.Verify(ctx, nil, nil); return err },
		"check":        func(ctx context.Context, _ string) error { _, err := a.Check(ctx); return err },
		"rebuild":      func(ctx context.Context, _ string) error { return a.Rebuild(ctx, nil) },
		"repair index": func(ctx context.Context, _ string) error { _, err := a.RepairIndex(ctx, nil); return err },
		"update index": func(ctx context.Context, _ string) error { return a.UpdateIndex(ctx, nil) },
		"fork":         func(ctx context.Context, _ string) error { _, err := a.Fork(ctx, session.Key, nil); return err },
		"extract":      func(ctx context.Context, _ string) error { _, err := a.Extract(ctx, session.Leaf, nil); return err },
		"create":       func(ctx context.Context, _ string) error { _, err := a.Create(ctx, "/work", nil); return err },
		"delete": func(ctx context.Context, path string) error {
			_, err := a.Delete(ctx, bySource(t, a, path).Key)
			return err
		},
	}
	for name, ask := range asks {
		calls["ask: "+name] = func(ctx context.Context, _ string) error {
			return a.View(ctx, func(rx *query.Rx) error { return ask(ctx, rx) })
		}
	}
	needsFile := map[string]bool{"import": true, "import of a reader": true, "sync": true, "update index": true, "delete": true}
	stopped := 0
	for name, call := range calls {
		worst := time.Duration(0)
		for _, after := range []time.Duration{time.Millisecond, 25 * time.Millisecond, 100 * time.Millisecond} {
			// Other programs may have the processor at the wrong time, but not each time.
			var late time.Duration
			for range 3 {
				path := filepath.Join(dir, "none")
				if needsFile[name] {
					path = newFile()
				}
				if name == "update index" || name == "delete" {
					if _, err := a.Import(t.Context(), []string{path}, &repo.ImportOptions{NoIndex: true}); err != nil {
						t.Fatal(err)
					}
				}
				var err error
				if late, err = stopAfter(t, after, func(ctx context.Context) error { return call(ctx, path) }); err != nil {
					stopped++
					if !errors.Is(err, context.Canceled) {
						t.Errorf("%s, stopped after %v: %v", name, after, err)
					}
				}
				if late <= slack {
					break
				}
			}
			worst = max(worst, late)
		}
		t.Logf("%s: %v late at most", name, worst)
		if worst > slack {
			t.Errorf("%s: %v late", name, worst)
		}
	}
	if stopped < len(calls)/2 {
		t.Errorf("only %d of %d calls were stopped", stopped, len(calls))
	}
	if got := exported(t, a, session.Key); !bytes.Equal([]byte(got), []byte(chain("chain", 15000))) {
		t.Error("the session has other bytes after all")
	}
}

// stopAfter ends the context of a call after some time. It returns how much later the call
// ended, and its error where it had one by then.
func stopAfter(t *testing.T, after time.Duration, call func(ctx context.Context) error) (late time.Duration, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ended atomic.Int64
	timer := time.AfterFunc(after, func() {
		ended.Store(time.Now().UnixNano())
		cancel()
	})
	err = call(ctx)
	if timer.Stop() || ended.Load() == 0 || err == nil {
		return 0, nil
	}
	return time.Since(time.Unix(0, ended.Load())), err
}

// drain asks for all values of a sequence.
func drain[V any](list iter.Seq2[V, error]) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}
