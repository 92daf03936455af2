package query_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	command "os/exec"
	"path/filepath"
	"testing"

	"pidb/query/internal/sessiongen"
)

// TestRandomTrees compares random sessions, with every fault that a file can have, with
// the model.
func TestRandomTrees(t *testing.T) {
	a := openArchive(t)
	for seed := range uint64(72) {
		session := sessiongen.Generate(seed, sessiongen.Options{})
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			compareFile(t, a, writeFile(t, fmt.Sprintf("%d.jsonl", seed), session.Bytes), session.Bytes, nil)
		})
	}
}

// oracle is the real pi, which answers one request after the other: testdata/pi/README.md.
type oracle struct {
	in  io.Writer
	out *bufio.Reader
}

// newOracle starts pi from the folder that PIDB_PI names, and skips the test without one.
func newOracle(t *testing.T) *oracle {
	t.Helper()
	folder := os.Getenv("PIDB_PI")
	if folder == "" {
		t.Skip("PIDB_PI names no folder with pi in its node_modules")
	}
	node := filepath.Join(folder, "node_modules", ".bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	cmd := command.Command(node, "../testdata/pi/oracle.mjs", folder)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &oracle{in, bufio.NewReader(out)}
}

// ask sends a request and decodes the answer.
func (o *oracle) ask(t *testing.T, request map[string]any, answer any) {
	t.Helper()
	line, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	line, err = o.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var response struct {
		Result  json.RawMessage `json:"result"`
		Failure string          `json:"failure"`
	}
	if err := json.Unmarshal(line, &response); err != nil {
		t.Fatal(err)
	}
	if response.Failure != "" {
		t.Fatalf("pi: %s", response.Failure)
	}
	if err := json.Unmarshal(response.Result, answer); err != nil {
		t.Fatal(err)
	}
}

// TestSameAsPi compares random sessions with the real pi: 400 with every fault that a file
// can have, and 100 that pi can open, in which more views can be compared.
func TestSameAsPi(t *testing.T) {
	pi := newOracle(t)
	a := openArchive(t)
	var total count
	sessions := map[string]int{} // by feature
	for seed := range uint64(500) {
		opts := sessiongen.Options{}
		if seed >= 400 {
			opts.Scope = sessiongen.ScopeSane
		}
		session := sessiongen.Generate(seed, opts)
		for name := range session.Features {
			sessions[name]++
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			path := writeFile(t, fmt.Sprintf("%d.jsonl", seed), session.Bytes)
			var answers piAnswers
			pi.ask(t, map[string]any{"op": "views", "path": path, "full": true, "llm": true}, &answers)
			total.add(compareFile(t, a, path, session.Bytes, &answers))
		})
	}
	for _, name := range sessiongen.Features() {
		if sessions[name] < 30 {
			t.Errorf("%s occurs in %d sessions only", name, sessions[name])
		}
	}
	t.Log(total)
}
