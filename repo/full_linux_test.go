package repo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pidb/query"
	"pidb/repo"
)

func init() {
	programs["fill"] = func(ctx context.Context, args []string) error {
		limit, err := strconv.ParseUint(args[2], 10, 64)
		if err != nil {
			return err
		}
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return err
		}
		return fill(ctx, args[0], args[1])
	}
}

// fill works on an archive until there is no room, says what is done, and then what went wrong.
func fill(ctx context.Context, dir, seed string) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	a, err := repo.Open(ctx, filepath.Join(dir, "pidb.db"), nil)
	if err != nil {
		return err
	}
	w := &crashWriter{ctx: ctx, dir: dir, a: a, rand: rand.New(rand.NewPCG(n, 3))}
	works := []func(string) error{w.deletes, w.forks, w.deletes, w.imports, w.appends, w.appends}
	for i := 0; err == nil && i < 5000; i++ {
		err = works[i%len(works)](fmt.Sprintf("%s-%d", seed, i))
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG) {
			err = nil // it is the source that found no room
		}
	}
	if err == nil {
		return errors.New("there was always room")
	}
	fmt.Println("error", err)
	if errors.Is(err, repo.ErrFull) {
		fmt.Println("full")
	}
	// What is there can be read all the same.
	err = a.View(ctx, func(rx *query.Rx) error {
		list, _, err := rx.List(ctx, nil)
		fmt.Println("listed", len(list))
		return err
	})
	return errors.Join(err, a.Close())
}

// filled runs the program that fills an archive and looks at what it leaves.
func filled(t *testing.T, w *crashWorld, seed, limit uint64, more func()) (said string) {
	t.Helper()
	cmd := program("fill", w.dir, strconv.FormatUint(seed, 10), strconv.FormatUint(limit, 10))
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the program failed: %v: %s", err, stderr.String())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch words[0] {
		case "error":
			said = lines.Text()
		case "full":
			said += " (full)"
		case "listed":
		default:
			w.heard(t, words)
		}
	}
	more()
	w.check(t, "import")
	return said
}

// TestFileLimit lets files grow to some size only.
func TestFileLimit(t *testing.T) {
	seed := uint64(number(t, "PIDB_SEED", 1))
	for i := range number(t, "PIDB_FULL", 2) {
		w := newCrashWorld(t, filepath.Join(t.TempDir(), strconv.Itoa(i)))
		w.begin(t, "append")
		write(t, header+user1, w.dir, "sources", "f0.jsonl")
		limit := 300_000 + rand.New(rand.NewPCG(seed, uint64(i))).Uint64N(1_500_000)
		said := filled(t, w, seed+uint64(i), limit, func() {})
		t.Logf("%d bytes: %s; %d acknowledgements", limit, said, w.acked)
		if t.Failed() {
			return
		}
	}
}

// TestFullDisk fills a file system of its own. It needs the right to mount one.
func TestFullDisk(t *testing.T) {
	seed := uint64(number(t, "PIDB_SEED", 1))
	for i := range number(t, "PIDB_FULL", 2) {
		dir := filepath.Join(t.TempDir(), "full")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		size := 2_000_000 + rand.New(rand.NewPCG(seed, uint64(100+i))).IntN(3_000_000)
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+strconv.Itoa(size)); err != nil {
			t.Skipf("mount: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		w := newCrashWorld(t, dir)
		w.begin(t, "append")
		write(t, header+user1, w.dir, "sources", "f0.jsonl")
		said := filled(t, w, seed+uint64(i), 1<<40, func() {
			if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%d bytes: %s; %d acknowledgements", size, said, w.acked)
		if !strings.HasSuffix(said, "(full)") {
			t.Errorf("a full disk is said as %q", said)
		}
		if t.Failed() {
			return
		}
	}
}
