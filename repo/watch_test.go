package repo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// A session of another process tells in its messages when each was to be seen.
func TestWaitForOtherProcess(t *testing.T) {
	const n = 20
	path := filepath.Join(t.TempDir(), "pidb.db")
	a := openAt(t, path, nil)
	s := create(t, a, nil)
	last, err := s.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PIDB_TEST_TICK="+strings.Join([]string{path, s.ID(), strconv.Itoa(n)}, "\n"))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var late []time.Duration
	for len(late) < n {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		entries, err := s.Wait(ctx, last)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		for _, e := range entries {
			if last = e.Ref; e.Kind == query.KindEntry {
				late = append(late, now.Sub(e.Timestamp))
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(late)
	t.Logf("seen after %v to %v, half of them within %v", late[0], late[n-1], late[n/2])
	// Of some, the machine may have been busy with another thing.
	if late[n*3/4] > 100*time.Millisecond {
		t.Errorf("an entry is seen after %v, want 100ms at most", late[n*3/4])
	}
}

// tick appends messages, one at a time, for TestWaitForOtherProcess.
func tick(ctx context.Context, args []string) error {
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	a, err := repo.Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	defer a.Close()
	s, err := a.OpenSession(ctx, args[1])
	if err != nil {
		return err
	}
	for i := range n {
		time.Sleep(30 * time.Millisecond)
		if _, err := s.Append(ctx, userMessage(fmt.Sprint("tick ", i))); err != nil {
			return err
		}
	}
	return nil
}

func TestWait(t *testing.T) {
	a := open(t, nil)
	s, other := create(t, a, nil), create(t, a, nil)
	change, err := a.Change(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	appendOne := func(s *repo.Session, text string) {
		t.Helper()
		if _, err := s.Append(t.Context(), userMessage(text)); err != nil {
			t.Fatal(err)
		}
	}
	appendOne(other, "one")
	appendOne(s, "two")
	appendOne(s, "three")

	// What is there is not waited for.
	got, err := s.Wait(t.Context(), 0)
	if err != nil || len(got) != 3 || got[0].Kind != query.KindSession || got[2].ID == "" {
		t.Errorf("all lines: %v, %v", got, err)
	}
	got, err = s.Wait(t.Context(), got[1].Ref)
	if err != nil || len(got) != 1 {
		t.Errorf("lines behind one: %v, %v", got, err)
	}
	sessions, next, err := a.Wait(t.Context(), change)
	if err != nil || len(sessions) != 2 || sessions[0].Key != other.Key() || sessions[1].Key != s.Key() || next != change+3 {
		t.Errorf("changed sessions: %v, %d, %v", sessions, next, err)
	}

	// A commit of this process ends the wait too, and one of another session does not.
	last := got[0].Ref
	done := make(chan error, 1)
	go func() {
		got, err = s.Wait(t.Context(), last)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	appendOne(other, "not for those")
	select {
	case err := <-done:
		t.Fatalf("the wait ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	appendOne(s, "four")
	if err := <-done; err != nil || len(got) != 1 {
		t.Errorf("waited for: %v, %v", got, err)
	}

	// A deadline, and a session that goes.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Wait(ctx, got[0].Ref); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if _, _, err := a.Wait(ctx, 1<<40); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	go func() {
		_, err := s.Wait(t.Context(), got[0].Ref)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	if _, err := s.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of a session that was deleted: %v", err)
	}
}

// A wait ends when its archive is closed, and leaves nothing running.
func TestWaitUntilClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	openAt(t, path, nil) // keeps it in use
	before := runtime.NumGoroutine()
	a, err := repo.Open(t.Context(), path, nil)
	ok(t, err)
	s := create(t, a, nil)
	last, err := s.Last(t.Context())
	ok(t, err)
	change, err := a.Change(t.Context())
	ok(t, err)
	const n = 10
	done := make(chan error, 2*n)
	for range n {
		go func() {
			_, err := s.Wait(context.Background(), last)
			done <- err
		}()
		go func() {
			_, _, err := a.Wait(context.Background(), change)
			done <- err
		}()
	}
	time.Sleep(50 * time.Millisecond)
	ok(t, a.Close())
	for range 2 * n {
		select {
		case err := <-done:
			if err == nil {
				t.Error("a wait ended with success")
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a wait goes on after Close")
		}
	}
	if _, err := s.Wait(context.Background(), last); err == nil {
		t.Error("a wait after Close ended with success")
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
}

// A write is seen as soon where the archive is reached by a symbolic link.
func TestWaitThroughLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "real.db")
	writer := openAt(t, path, nil)
	s := create(t, writer, nil)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	reader := openAt(t, link, nil)
	waiting, err := reader.OpenSession(t.Context(), s.ID())
	ok(t, err)
	var late []time.Duration
	for range 3 {
		last, err := waiting.Last(t.Context())
		ok(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := waiting.Wait(t.Context(), last)
			done <- err
		}()
		time.Sleep(1100 * time.Millisecond) // it is seldom looked at then
		appendTo(t, s, userMessage("x"))
		began := time.Now()
		ok(t, <-done)
		late = append(late, time.Since(began))
	}
	// Of some, the machine may have been busy with another thing.
	if slices.Min(late) > 300*time.Millisecond {
		t.Errorf("seen after %v", late)
	}
}
