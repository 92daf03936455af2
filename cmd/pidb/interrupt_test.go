package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSignals interrupts commands that take long, as Ctrl-C does: they end soon, with 130,
// and what they have done is whole.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "pidb.db")
	folder := filepath.Join(dir, "sessions")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		var text strings.Builder
		fmt.Fprintf(&text, `{"type":"session","version":3,"id":"s-%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}`+"\n", i)
		for n := range 4000 {
			fmt.Fprintf(&text, `{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"text %d of %d, %s"}}`+"\n", n, n, i, strings.Repeat(fmt.Sprintf("word%d ", n%977), 20))
		}
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.jsonl", i)), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := 0
	for _, test := range []struct {
		name string
		args func() []string
	}{
		{"import", func() []string { return []string{"import", folder} }},
		{"search", func() []string {
			return []string{"--no-sync", "search", "--limit", "0", "--regex", "(a|b|o)+[rd]+[0-9]{3} .*(z|w)"}
		}},
		{"export", func() []string {
			out++
			return []string{"--no-sync", "export", "--all", "-o", filepath.Join(dir, fmt.Sprint("out", out))}
		}},
	} {
		stopped := false
		// The command may be done, or have hardly begun, when the signal comes.
		for _, after := range []time.Duration{150, 90, 60, 250} {
			code, stderr, late := interrupted(t, after*time.Millisecond, append([]string{"--db", db}, test.args()...))
			switch {
			case code == exitDone, code == -1: // it was done, or not yet begun
				continue
			case code != exitInterrupted || !strings.Contains(stderr, "pidb: interrupted\n"):
				t.Errorf("%s ended with %d: %s", test.name, code, stderr)
			case late > 2*time.Second:
				t.Errorf("%s ended %v late", test.name, late)
			}
			stopped = true
			break
		}
		if !stopped {
			t.Logf("%s was never interrupted", test.name)
		}
		if test.name == "import" {
			for _, args := range [][]string{{"import", folder}, {"verify"}, {"doctor"}} {
				if text, err := exec.Command("pidb", append([]string{"--db", db}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, text)
				}
			}
		}
	}
}

// interrupted runs pidb, sends it an interrupt after some time, and returns its exit code,
// -1 where the signal ended it, and how much later it ended.
func interrupted(t *testing.T, after time.Duration, args []string) (code int, stderr string, late time.Duration) {
	t.Helper()
	cmd := exec.Command("pidb", args...)
	var text bytes.Buffer
	cmd.Stderr = &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	began := time.Now()
	if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the code says all
	return cmd.ProcessState.ExitCode(), text.String(), time.Since(began)
}
