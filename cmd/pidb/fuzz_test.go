package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"
)

// FuzzPrinted shows sessions of any text, ids, names and folders in every way that is made
// for people: nothing that could drive a terminal is printed, and every line of JSON is one.
func FuzzPrinted(f *testing.F) {
	for _, text := range []string{
		"plain", "\x1b]52;c;aGVsbG8=\x07", "\x1b]0;title\x07", "\x1b[2J\x1b[1;1H", "\u009b31m", "\u202egpj.exe", "\u2066x\u2069", "a\rb", "\b\b\b", "\x1bP+q\x1b\\",
		"\U000e0041", "\ufeff", "\x7f", "\xff\xfe", "tab\there", "\u2028", "\u200b", "a\nb", "修复\x1b[0m", "%s%d", "\x1b]8;;http://x\x1b\\l\x1b]8;;\x1b\\",
	} {
		f.Add(text)
	}
	// What only terminals print besides is the same as text.
	none := func(string) string { return "" }
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		q := string(raw)
		lines := []string{
			`{"type":"session","version":3,"id":` + q + `,"timestamp":"2026-01-01T00:00:00.000Z","cwd":` + q + `}`,
			`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":` + q + `}}`,
			`{"type":"message","id":` + q + `,"parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"assistant","model":` + q + `,"provider":` + q + `,"stopReason":` + q + `,"errorMessage":` + q + `,"content":[{"type":"text","text":` + q + `},{"type":"thinking","thinking":` + q + `},{"type":"toolCall","id":"c","name":` + q + `,"arguments":{` + q + `:` + q + `}},{"type":` + q + `},{"type":"image","mimeType":` + q + `,"data":"AA"}]}}`,
			`{"type":"message","id":"r","parentId":"a","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"toolResult","toolName":` + q + `,"content":[{"type":"text","text":` + q + `}],"isError":true}}`,
			`{"type":"message","id":"b","parentId":"r","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":"bashExecution","command":` + q + `,"output":` + q + `,"exitCode":1}}`,
			`{"type":"message","id":"o","parentId":"b","timestamp":"2026-01-01T00:00:03.000Z","message":{"role":` + q + `,"content":` + q + `}}`,
			`{"type":"custom_message","customType":` + q + `,"content":` + q + `,"display":true,"id":"c","parentId":"o","timestamp":"2026-01-01T00:00:04.000Z"}`,
			`{"type":"compaction","id":"k","parentId":"c","timestamp":"2026-01-01T00:00:05.000Z","summary":` + q + `,"firstKeptEntryId":"a","tokensBefore":3}`,
			`{"type":"label","id":"l","parentId":"k","timestamp":"2026-01-01T00:00:06.000Z","targetId":"a","label":` + q + `}`,
			`{"type":"session_info","id":"n","parentId":"l","timestamp":"2026-01-01T00:00:06.000Z","name":` + q + `}`,
			`{"type":"model_change","id":"m","parentId":"n","timestamp":"2026-01-01T00:00:06.000Z","provider":` + q + `,"modelId":` + q + `}`,
			`{"type":` + q + `,"id":"u","parentId":"m","timestamp":"2026-01-01T00:00:07.000Z"}`,
			`{"type":"message","id":"e","parentId":"u","timestamp":"2026-01-01T00:00:08.000Z","message":{"role":"system","content":` + q + `,"sections":{` + q + `:` + q + `}}}`,
			text,
		}
		db := filepath.Join(t.TempDir(), "pidb.db")
		pidb := func(args ...string) {
			t.Helper()
			var out, stderr strings.Builder
			code := run(t.Context(), append([]string{"--db", db, "--no-sync"}, args...), none, strings.NewReader(strings.Join(lines, "\n")), &out, &stderr)
			if code != exitDone {
				t.Fatalf("pidb %q ended with %d: %q", args, code, stderr.String())
			}
			for _, printed := range []string{out.String(), stderr.String()} {
				for _, r := range printed {
					if r < ' ' && r != '\n' || isHarmful(r) {
						t.Fatalf("pidb %q prints %U: %q", args, r, printed)
					}
				}
			}
			for _, arg := range args {
				if arg != "--json" {
					continue
				}
				for line := range strings.Lines(out.String()) {
					if !json.Valid([]byte(line)) {
						t.Fatalf("pidb %q: %s", args, line)
					}
				}
			}
		}
		pidb("import", "-")
		word := text
		if strings.HasPrefix(word, "re:") || strings.TrimSpace(word) == "" {
			word = "a"
		}
		for _, args := range [][]string{
			{"ls"},
			{"ls", "--json"},
			{"show", "#1"},
			{"show", "--all", "#1"},
			{"tree", "--all", "#1"},
			{"context", "#1"},
			{"context", "--llm", "#1"},
			{"entries", "#1"},
			{"entries", "#1", "--json", "--raw"},
			{"stats", "--by", "model"},
			{"stats", "--by", "cwd"},
			{"search", "--", word},
			{"search", "--json", "--", word},
			{"search", "--substring", "--", word},
			{"verify"},
		} {
			pidb(args...)
		}
	})
}

// FuzzRPC sends any bytes as requests: each that has an id is answered once, by a result or
// by an error that has a name, and the archive is whole behind them.
func FuzzRPC(f *testing.F) {
	for _, method := range []struct{ name, params string }{
		{"pidb.version", `{}`},
		{"create", `{"id":"b","cwd":"/work","metadata":{"k":1},"idempotencyKey":"x"}`},
		{"open", `{"session":"a"}`},
		{"list", `{"limit":1,"sort":"created","since":"7d"}`},
		{"search", `{"query":"two words","mode":"substring","limit":0}`},
		{"search", `{"query":"w.r?d","mode":"regex"}`},
		{"stats", `{"by":"model"}`},
		{"entries", `{"session":"a","types":["message"],"raw":true}`},
		{"tree", `{"session":1}`},
		{"targets", `{"session":"a"}`},
		{"context", `{"session":"a","leaf":":2","llm":true}`},
		{"export", `{"session":"a","form":"normalized"}`},
		{"export", `{"session":"a","output":"out.jsonl"}`},
		{"append", `{"session":"a","ifLeaf":"","entries":[{"role":"user","content":"\ud800"},{"type":"custom","customType":"x","data":{}}]}`},
		{"branch", `{"session":"a","entry":":2","answered":true,"summary":"s"}`},
		{"fork", `{"session":"a","before":":3","cwd":"/other"}`},
		{"extract", `{"session":"a","leaf":":3","id":"part"}`},
		{"label", `{"session":"a","entry":":2","text":"mark"}`},
		{"name", `{"session":"a","name":"a\nname"}`},
		{"delete", `{"session":"a"}`},
		{"wait", `{"session":"a","timeout":0.001}`},
		{"$/cancelRequest", `{"id":1}`},
	} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method.name + `","params":` + method.params + `}`))
	}
	for _, text := range []string{
		`[{"jsonrpc":"2.0","id":"x","method":"list"},{"jsonrpc":"2.0","method":"delete","params":{"session":"a"}},3]`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"wait\"}\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\"}\n", `[]`, `{`, "\"\xff\"", `{"id":null}`, "null\r\n\n1",
	} {
		f.Add([]byte(text))
	}
	none := func(string) string { return "" }
	prepared := filepath.Join(f.TempDir(), "pidb.db")
	const before = `{"jsonrpc":"2.0","method":"create","params":{"id":"a","cwd":"/work"}}` + "\n" +
		`{"jsonrpc":"2.0","method":"append","params":{"session":"a","entries":[{"role":"user","content":"two words"},{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"read","arguments":{}}]}]}}`
	if code := run(f.Context(), []string{"--db", prepared, "rpc"}, none, strings.NewReader(before), io.Discard, io.Discard); code != exitDone {
		f.Fatalf("it ended with %d", code)
	}
	f.Fuzz(func(t *testing.T, requests []byte) {
		asked := map[string]int{}
		for line := range bytes.Lines(requests) {
			var request any
			if json.Unmarshal(line, &request) == nil && writesOutside(request) {
				t.Skip("writes a file elsewhere")
			}
			for _, id := range requestIDs(line) {
				asked[id]++
			}
		}
		dir := t.TempDir()
		t.Chdir(dir)
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(prepared))); err != nil {
			t.Fatal(err)
		}
		db := filepath.Join(dir, "pidb.db")
		var out, stderr bytes.Buffer
		if code := run(t.Context(), []string{"--db", db, "rpc"}, none, bytes.NewReader(requests), &out, &stderr); code != exitDone {
			t.Fatalf("it ended with %d: %s", code, stderr.Bytes())
		}
		for line := range bytes.Lines(out.Bytes()) {
			answers := []rpcAnswer{{}}
			if line[0] == '[' {
				answers = nil
				if err := json.Unmarshal(line, &answers); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
			} else if err := json.Unmarshal(line, &answers[0]); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, a := range answers {
				asked[string(a.ID)]--
				switch {
				case (a.Error == nil) == (a.Result == nil):
					t.Errorf("not one of result and error: %s", line)
				case a.Error != nil && (a.Error.Code == int(jrpc2.InternalError) || a.Error.Message == "" || (a.Error.Code == int(rpcFailed)) != (a.Error.Data.Name != "")):
					t.Errorf("an error without a name: %s", line)
				}
			}
		}
		for id, left := range asked {
			if left != 0 && id != "null" {
				t.Errorf("request %s: %d answers too few\n%s", id, left, out.Bytes())
			}
		}
		stderr.Reset()
		if code := run(t.Context(), []string{"--db", db, "--no-sync", "doctor"}, none, strings.NewReader(""), io.Discard, &stderr); code != exitDone {
			t.Errorf("doctor ends with %d: %s", code, stderr.Bytes())
		}
	})
}

// requestIDs returns the ids, as their JSON text, that a line of requests is answered under.
func requestIDs(line []byte) (ids []string) {
	if !utf8.Valid(line) {
		return nil
	}
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil {
		batch = []json.RawMessage{line}
	}
	for _, text := range batch {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil {
			continue
		}
		var id any
		if json.Unmarshal(members["id"], &id) != nil {
			continue
		}
		switch id.(type) {
		case string, float64:
			ids = append(ids, string(members["id"]))
		}
	}
	return ids
}

// writesOutside reports whether a JSON value has a member output that leads out of a folder.
func writesOutside(value any) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, writesOutside)
	case map[string]any:
		for name, member := range value {
			if path, ok := member.(string); ok && name == "output" && !filepath.IsLocal(path) || writesOutside(member) {
				return true
			}
		}
	}
	return false
}
