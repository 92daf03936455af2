package repo_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

func init() {
	programs["contend"] = func(ctx context.Context, args []string) error {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		a, err := repo.Open(ctx, filepath.Join(args[0], "pidb.db"), nil)
		if err != nil {
			return err
		}
		defer a.Close()
		seed, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil {
			return err
		}
		c := &contender{crashWriter{ctx: ctx, dir: args[0], a: a, rand: rand.New(rand.NewPCG(seed, 2))}, args[1], map[query.Key]string{}, 0}
		return c.run(time.Duration(n) * time.Second)
	}
}

// contender is a program that does all kinds of work at once with others.
type contender struct {
	crashWriter
	name    string
	kept    map[query.Key]string // sessions of this program, with the hashes of their exports
	slowest time.Duration
}

// run works for some time, and says what it keeps in the end.
func (c *contender) run(d time.Duration) error {
	calls := []struct {
		name string
		do   func(round string) error
	}{
		{"append", c.appends},
		{"append", c.appends},
		{"append", c.appends},
		{"search", c.searches},
		{"export", c.exports},
		{"import", c.imports},
		{"create", c.creates},
		{"delete", c.deletesOne},
		{"fork", c.forksOne},
		{"list", c.lists},
	}
	for began, i := time.Now(), 0; time.Since(began) < d; i++ {
		call := calls[c.rand.IntN(len(calls))]
		start := time.Now()
		if err := call.do(fmt.Sprintf("%s-%d", c.name, i)); err != nil {
			return fmt.Errorf("%s: %w", call.name, err)
		}
		if took := time.Since(start); took > c.slowest {
			c.slowest = took
		}
		fmt.Println("did", call.name)
	}
	for key, sum := range c.kept {
		fmt.Println("kept", key, sum)
	}
	fmt.Println("slowest", int64(c.slowest))
	return nil
}

func (c *contender) creates(round string) error {
	s, err := c.bornIn(round)
	if err != nil {
		return err
	}
	c.kept[s.Key()], err = c.sum(s.Key())
	return err
}

// one returns one of the sessions of this program; 0: it has none.
func (c *contender) one() query.Key {
	for key := range c.kept {
		return key
	}
	return 0
}

func (c *contender) exports(string) error {
	key := c.one()
	if key == 0 {
		return nil
	}
	sum, err := c.sum(key)
	if err == nil && sum != c.kept[key] {
		err = fmt.Errorf("session #%d is not what was stored", key)
	}
	return err
}

func (c *contender) deletesOne(string) error {
	key := c.one()
	if key == 0 {
		return nil
	}
	there, err := c.a.Delete(c.ctx, key)
	if err == nil && !there {
		err = fmt.Errorf("session #%d was gone", key)
	}
	delete(c.kept, key)
	fmt.Println("gone", key)
	return err
}

func (c *contender) forksOne(string) error {
	key := c.one()
	if key == 0 {
		return nil
	}
	s, err := c.a.Fork(c.ctx, key, nil)
	if err != nil {
		return err
	}
	c.kept[s.Key()], err = c.sum(s.Key())
	return err
}

func (c *contender) searches(string) error {
	if err := c.a.UpdateIndex(c.ctx, nil); err != nil {
		return err
	}
	return c.a.View(c.ctx, func(rx *query.Rx) error {
		_, err := rx.Search(c.ctx, "needle straw", nil)
		return err
	})
}

func (c *contender) lists(string) error {
	return c.a.View(c.ctx, func(rx *query.Rx) error {
		_, _, err := rx.List(c.ctx, nil)
		return err
	})
}

// imports lets a file of this program grow and takes in the folder of all.
func (c *contender) imports(round string) error {
	path := filepath.Join(c.dir, "sources", c.name+".jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	text := c.lines(round, 1+c.rand.IntN(10))
	if info, err := file.Stat(); err != nil || info.Size() == 0 {
		text = strings.Replace(header, "s-1", "f-"+c.name, 1) + text
	}
	if _, err := io.WriteString(file, text); err != nil {
		return err
	}
	result, err := c.a.Import(c.ctx, []string{filepath.Join(c.dir, "sources")}, nil)
	if err == nil {
		err = result.IndexErr
	}
	return err
}

// TestContentionOfAll lets eight processes do everything at once. PIDB_CONTENTION_SECONDS
// says for how long.
func TestContentionOfAll(t *testing.T) {
	const processes = 8
	seconds := number(t, "PIDB_CONTENTION_SECONDS", 4)
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a := openAt(t, path, nil)
	create(t, a, &repo.CreateOptions{ID: "grows"})
	if err := os.Mkdir(filepath.Join(dir, "sources"), 0o700); err != nil {
		t.Fatal(err)
	}
	w := newCrashWorld(t, dir)
	var mu sync.Mutex
	did := map[string]int{}
	var slowest time.Duration
	var running sync.WaitGroup
	for i := range processes {
		running.Go(func() {
			cmd := program("contend", dir, strconv.Itoa(i), strconv.Itoa(seconds))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Error(err)
				return
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				words := strings.Fields(lines.Text())
				mu.Lock()
				switch words[0] {
				case "did":
					did[words[1]]++
				case "slowest":
					ns, _ := strconv.ParseInt(words[1], 10, 64)
					slowest = max(slowest, time.Duration(ns))
				default:
					w.heard(t, words)
				}
				mu.Unlock()
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v: %s", i, err, stderr.String())
			}
		})
	}
	largest := watchLogs(t, path, a.IndexPath(), &running)
	t.Logf("%d s of %d processes: %v; the slowest call took %v, the largest log had %d bytes", seconds, processes, did, slowest, largest)
	if limit := 20 * time.Second; slowest > limit {
		t.Errorf("a call took %v, more than %v", slowest, limit)
	}
	if limit := int64(64 << 20); largest > limit {
		t.Errorf("a write-ahead log had %d bytes, more than %d", largest, limit)
	}
	for _, s := range sessions(t, a) {
		text := exported(t, a, s.Key)
		sum := sha256.Sum256([]byte(text))
		if want := w.kept[s.Key]; want != "" && want != hex.EncodeToString(sum[:]) {
			t.Errorf("session #%d has other bytes than were acknowledged", s.Key)
		}
		delete(w.kept, s.Key)
		if w.gone[s.Key] {
			t.Errorf("session #%d was deleted and is there", s.Key)
		}
		if s.ID == "grows" {
			w.checkGrown(t, a, s.Key, text)
		}
	}
	for key := range w.kept {
		t.Errorf("session #%d was acknowledged and is lost", key)
	}
	w.goesOn(t, a, "import")
}

// watchLogs waits for the processes and returns the size of the largest write-ahead log meanwhile.
func watchLogs(t *testing.T, path, index string, running *sync.WaitGroup) int64 {
	t.Helper()
	done := make(chan struct{})
	go func() {
		running.Wait()
		close(done)
	}()
	var largest int64
	for {
		for _, path := range []string{path + "-wal", index + "-wal"} {
			if info, err := os.Stat(path); err == nil {
				largest = max(largest, info.Size())
			}
		}
		select {
		case <-done:
			return largest
		case <-time.After(50 * time.Millisecond):
		}
	}
}
