//go:build unix

package repo_test

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// cpu returns the processor time that the process has used.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A hundred who wait use no processor while nothing happens.
func TestWaitIdle(t *testing.T) {
	const waiters, pause = 100, 2 * time.Second
	a := open(t, nil)
	s := create(t, a, nil)
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, waiters)
	for range waiters {
		go func() {
			_, err := s.Wait(ctx, last)
			done <- err
		}()
	}
	time.Sleep(3 * time.Second) // what was written before may be looked for so long
	runtime.GC()
	before := cpu(t)
	time.Sleep(pause)
	used := cpu(t) - before
	t.Logf("%v in %v", used, pause)
	if used > pause/100 {
		t.Errorf("%d waiters used %v in %v", waiters, used, pause)
	}
	if _, err := s.Append(ctx, userMessage("for all")); err != nil {
		t.Fatal(err)
	}
	for range waiters {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
