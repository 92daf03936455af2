package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
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
