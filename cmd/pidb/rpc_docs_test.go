package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shapeOf returns the names of the members of an answer's result, or the code and name of
// its error.
func shapeOf(t *testing.T, line string) []string {
	t.Helper()
	var a rpcAnswer
	if err := json.Unmarshal([]byte(line), &a); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if a.Error != nil {
		return []string{string(a.ID), a.Error.Message, a.Error.Data.Name}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(a.Result, &members); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return append(slices.Sorted(maps.Keys(members)), string(a.ID))
}

// TestRPCDocs sends the requests of docs/rpc.md and compares the answers with those there.
func TestRPCDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "rpc.md"))
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile(`\\"[0-9a-f]{8}\\"`) // of an entry, in a message
	c := startRPC(t, newRPCArchive(t))
	answer := ""
	for line := range strings.Lines(string(text)) {
		if request, ok := strings.CutPrefix(line, "→ "); ok {
			c.send(request)
			if answer = ""; strings.Contains(request, `"id":`) && !strings.Contains(request, "$/cancel") {
				answer = c.line()
			}
		}
		if want, ok := strings.CutPrefix(line, "← "); ok {
			if diff := cmp.Diff(shapeOf(t, id.ReplaceAllString(want, "ID")), shapeOf(t, id.ReplaceAllString(answer, "ID"))); diff != "" {
				t.Errorf("(-docs +got):\n%s\n%s", diff, answer)
			}
		}
	}
	var version rpcVersionJSON
	c.call("pidb.version", `{}`, &version)
	for _, method := range version.Methods {
		if !strings.Contains(string(text), "\n### "+method+"\n") {
			t.Errorf("%s is not told of", method)
		}
	}
	for _, sentinel := range sentinels {
		if !strings.Contains(string(text), "`"+sentinel.name+"`") {
			t.Errorf("%s is not told of", sentinel.name)
		}
	}
}
