//go:build unix

package repo_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pidb/repo"
)

func init() { processes["PIDB_TEST_IDLE"] = idle }

// cpu returns the processor time that the process has used.
func cpu() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

const (
	idleWaiters = 100
	idlePause   = 2 * time.Second
)

// idle waits in many goroutines for an entry of a session, says what that costs while
// nothing happens, and ends when all have seen one.
func idle(ctx context.Context, args []string) error {
	a, err := repo.Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	defer a.Close()
	s, err := a.OpenSession(ctx, args[1])
	if err != nil {
		return err
	}
	last, err := s.Last(ctx)
	if err != nil {
		return err
	}
	done := make(chan error, idleWaiters)
	for range idleWaiters {
		go func() {
			_, err := s.Wait(ctx, last)
			done <- err
		}()
	}
	time.Sleep(3 * time.Second) // what was written before may be looked for so long
	runtime.GC()
	before, err := cpu()
	if err != nil {
		return err
	}
	time.Sleep(idlePause)
	after, err := cpu()
	if err != nil {
		return err
	}
	fmt.Println(after - before)
	for range idleWaiters {
		if err := <-done; err != nil {
			return err
		}
	}
	return nil
}

// A hundred who wait use no processor while nothing happens.
func TestWaitIdle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	s := create(t, openAt(t, path, nil), nil)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PIDB_TEST_IDLE="+path+"\n"+s.ID())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	ok(t, err)
	used, err := time.ParseDuration(strings.TrimSpace(line))
	ok(t, err)
	t.Logf("%v in %v", used, idlePause)
	if used > idlePause/100 {
		t.Errorf("%d waiters used %v in %v", idleWaiters, used, idlePause)
	}
	appendTo(t, s, userMessage("for all"))
	ok(t, cmd.Wait())
}
