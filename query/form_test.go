package query_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
	"pidb/query/internal/sessiongen"
)

// viewSession imports a session and calls f with its key.
func viewSession(t *testing.T, file string, f func(rx *query.Rx, key query.Key)) {
	t.Helper()
	a := openArchive(t)
	key, ok := importFile(t, a, writeFile(t, "session.jsonl", []byte(file)))
	if !ok {
		t.Fatal("no session")
	}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		f(rx, key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWriteBranch(t *testing.T) {
	now := time.Date(2026, 7, 17, 1, 2, 3, 456e6, time.UTC)
	tests := map[string]struct {
		file string
		leaf query.LineNumber
		want string
	}{
		"unknown members stay, parents are chained": {
			file: `{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w","more":1}
{"type":"message","id":"a","parentId":"gone","timestamp":1,"message":{"role":"user","content":"<>&"},"x":1e2}
{"type":"message","id":"b","parentId":"a","timestamp":2,"message":{}}
{"timestamp":3,"type":"custom","id":"c","parentId":"a"}
`,
			leaf: query.LineNumber{Line: 4},
			want: `{"type":"session","version":3,"id":"s","timestamp":"2026-07-17T01:02:03.456Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":1,"message":{"role":"user","content":"<>&"},"x":100}
{"timestamp":3,"type":"custom","id":"c","parentId":"a"}
`,
		},
		"a cycle is opened at its first repeat": {
			file: `{"type":"session","version":3,"id":"s","cwd":"/w"}
{"type":"custom","id":"a","parentId":"c"}
{"type":"custom","id":"b","parentId":"a"}
{"type":"custom","id":"c","parentId":"b"}
`,
			leaf: query.LineNumber{Line: 3},
			want: `{"type":"session","version":3,"id":"s","timestamp":"2026-07-17T01:02:03.456Z","cwd":"/w"}
{"type":"custom","id":"c","parentId":null}
{"type":"custom","id":"a","parentId":"c"}
{"type":"custom","id":"b","parentId":"a"}
`,
		},
		"a missing parent is added, an id escaped": {
			file: `{"type":"session","version":3,"id":"s"}
{"type":"custom","id":"\udc88"}
{"type":"custom","id":"b","parentId":"\udc88"}
`,
			leaf: query.LineNumber{Line: 3},
			want: `{"type":"session","version":3,"id":"s","timestamp":"2026-07-17T01:02:03.456Z"}
{"type":"custom","id":"\udc88","parentId":null}
{"type":"custom","id":"b","parentId":"\udc88"}
`,
		},
		"version 2 becomes version 3": {
			file: `{"type":"session","version":2,"id":"s","cwd":""}
{"type":"message","id":"a","parentId":null,"message":{"content":"x","role":"hookMessage"}}
`,
			leaf: query.LineNumber{Line: 2},
			want: `{"type":"session","version":3,"id":"s","timestamp":"2026-07-17T01:02:03.456Z","cwd":""}
{"type":"message","id":"a","parentId":null,"message":{"content":"x","role":"custom"}}
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			viewSession(t, test.file, func(rx *query.Rx, key query.Key) {
				leaf, err := rx.EntryAt(t.Context(), key, test.leaf)
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if err := rx.WriteBranch(t.Context(), leaf.Ref, now, &out); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, out.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWriteBranchOfNoEntry(t *testing.T) {
	viewSession(t, `{"type":"session","version":3,"id":"s"}`+"\n", func(rx *query.Rx, key query.Key) {
		err := rx.WriteBranch(t.Context(), query.MakeRef(key, 0), time.Now(), &bytes.Buffer{})
		if !errors.Is(err, query.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
}

func TestWriteNormalized(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"header first, lines without a value left out": {
			file: "\ufeff" + `{"type":"title"}
{ "type" : "session" , "id" : "s", "version" : 3 }

not json
null
[1, 2.0]
{"type":"session","id":"later"}
{"type":"custom","id":"b","parentId":null,"timestamp":1,"9":1,"2":-0}`,
			want: `{"type":"session","id":"s","version":3}
{"type":"title"}
[1,2]
{"type":"session","id":"later"}
{"2":0,"9":1,"type":"custom","id":"b","parentId":null,"timestamp":1}
`,
		},
		"recovered entries stand alone": {
			file: `{"type":"session","id":"s","version":3}
{"type":"custom","id":"a","parentId":null,"timestamp":1}{"type":"custom","id":"b","parentId":"a","timestamp":2}
`,
			want: `{"type":"session","id":"s","version":3}
{"type":"custom","id":"a","parentId":null,"timestamp":1}
{"type":"custom","id":"b","parentId":"a","timestamp":2}
`,
		},
		"version 2": {
			file: `{"type":"session","id":"s","version":2}
{"type":"message","id":"a","parentId":null,"message":{"role":"hookMessage"}}
`,
			want: `{"type":"session","id":"s","version":3}
{"type":"message","id":"a","parentId":null,"message":{"role":"custom"}}
`,
		},
		"no header": {
			file: `{"type":"custom","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05.678Z"}
`,
			want: `{"type":"session","version":3,"id":"session","timestamp":"2026-01-02T03:04:05.678Z"}
{"type":"custom","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:05.678Z"}
`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			viewSession(t, test.file, func(rx *query.Rx, key query.Key) {
				var out bytes.Buffer
				if err := rx.WriteNormalized(t.Context(), key, &out); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want, out.String()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestNormalizedAsPi compares with the file that pi writes when it opens an old one, and
// with the lines of a fork of a newer one.
func TestNormalizedAsPi(t *testing.T) {
	pi := newOracle(t)
	a := openArchive(t)
	compared := 0
	for seed := range uint64(200) {
		session := sessiongen.Generate(seed, sessiongen.Options{Scope: sessiongen.ScopeOdd})
		m, ok := newModel(t, session.Bytes)
		if !ok || m.version == 1 {
			continue // pi makes up ids
		}
		compared++
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			path := writeFile(t, fmt.Sprintf("%d.jsonl", seed), session.Bytes)
			key, ok := importFile(t, a, path)
			if !ok {
				t.Fatal("no session")
			}
			var normal bytes.Buffer
			err := a.View(t.Context(), func(rx *query.Rx) error { return rx.WriteNormalized(t.Context(), key, &normal) })
			if err != nil {
				t.Fatal(err)
			}
			got := strings.SplitAfter(normal.String(), "\n")
			var report struct{ Path string }
			if m.version == 2 {
				pi.ask(t, map[string]any{"op": "append", "path": path, "calls": []any{}}, &report)
			} else {
				pi.ask(t, map[string]any{"op": "fork", "path": path, "cwd": "/tmp", "dir": filepath.Join(t.TempDir(), "fork"), "calls": []any{}}, &report)
				// A fork has a header of its own and no other session record.
				got = got[1:]
			}
			text, err := os.ReadFile(report.Path)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.SplitAfter(string(text), "\n")
			if m.version != 2 {
				want = want[1:]
				kept := got[:0]
				for _, line := range got {
					if !strings.Contains(line, `"type":"session"`) {
						kept = append(kept, line)
					}
				}
				got = kept
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-pi +pidb):\n%s", diff)
			}
		})
	}
	t.Logf("%d sessions", compared)
}
