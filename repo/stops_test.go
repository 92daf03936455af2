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

// TestKeepingStops ends the context of the long calls at several instants: each returns
// soon, and leaves nothing half done.
func TestKeepingStops(t *testing.T) {
	dir := t.TempDir()
	a := openAt(t, filepath.Join(dir, "pidb.db"), nil)
	var text strings.Builder
	for i := range 40000 {
		fmt.Fprintf(&text, `{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"text %d %x"}}`+"\n", i, i, digest(fmt.Sprint(i)))
	}
	for i := range 2 {
		importPaths(t, a, write(t, strings.Replace(header, "s-1", fmt.Sprint("s-", i), 1)+text.String(), dir, fmt.Sprint(i, ".jsonl")))
	}
	source := filepath.Join(dir, "source.db")
	backup(t, a, source)
	into := openAt(t, filepath.Join(dir, "into.db"), nil)
	calls := map[string]func(ctx context.Context) error{
		"backup": func(ctx context.Context) error {
			_, err := a.Backup(ctx, filepath.Join(dir, "stopped.db"), nil)
			return err
		},
		"vacuum": func(ctx context.Context) error {
			_, err := a.Vacuum(ctx, nil)
			return err
		},
		"salvage": func(ctx context.Context) error {
			_, err := repo.Salvage(ctx, source, filepath.Join(dir, "salvaged.db"), nil)
			return err
		},
		"prune": func(ctx context.Context) error {
			_, err := a.Prune(ctx, &repo.PruneOptions{DryRun: true})
			return err
		},
		"merge": func(ctx context.Context) error {
			_, err := into.Merge(ctx, source, nil)
			return err
		},
	}
	for name, call := range calls {
		for _, after := range []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond} {
			ctx, cancel := context.WithCancel(t.Context())
			var ended atomic.Int64
			timer := time.AfterFunc(after, func() {
				ended.Store(time.Now().UnixNano())
				cancel()
			})
			err := call(ctx)
			if !timer.Stop() && err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s stopped after %v: %v", name, after, err)
				}
				late := time.Since(time.Unix(0, ended.Load()))
				t.Logf("%s stopped after %v: %v late", name, after, late)
				if late > slack {
					t.Errorf("%s stopped after %v: %v late", name, after, late)
				}
			}
			cancel()
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "stopped.db-wal")); err == nil {
		t.Error("a side file is left")
	}
}

// slack is what a call may take beyond the end of its context: 100 ms, and as much again
// for a machine with other things to do.
const slack = 200 * time.Millisecond
