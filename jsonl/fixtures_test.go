//go:build fixtures

package jsonl_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

// readFixture reads a JSON file of the folder that PIDB_FIXTURES names.
func readFixture(t *testing.T, name string, v any) {
	t.Helper()
	dir := os.Getenv("PIDB_FIXTURES")
	if dir == "" {
		t.Fatal("PIDB_FIXTURES names no folder")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

func records(t *testing.T, input string, visit func(*jsonl.Record)) *jsonl.Decoder {
	t.Helper()
	d := jsonl.NewDecoder(strings.NewReader(input), nil)
	for {
		r, err := d.Next()
		if err == io.EOF {
			return d
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(r)
	}
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

func TestParseFixtures(t *testing.T) {
	var cases struct {
		ParseCases []struct {
			Name     string
			Input    string
			Expected []any
		}
		MigrationCases []struct {
			Name, Input, Expected string
			NormalizeGeneratedIDs bool
		}
		InvalidUTF8 struct {
			InputBase64 []byte
			Expected    []any
		}
	}
	readFixture(t, "pi-f6/cases.json", &cases)
	for _, c := range cases.ParseCases {
		t.Run(c.Name, func(t *testing.T) {
			got := []any{}
			// The function that these cases are of trims the text as a whole.
			records(t, jsonl.TrimSpace(c.Input), func(r *jsonl.Record) {
				if r.Whole.Value.Exists() {
					got = append(got, decoded(t, r.Whole.AppendNormal(nil, nil)))
				}
			})
			if diff := cmp.Diff(c.Expected, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, c := range cases.MigrationCases {
		t.Run(c.Name, func(t *testing.T) {
			var got strings.Builder
			ids := map[string]string{}
			records(t, c.Input, func(r *jsonl.Record) {
				line := string(r.Whole.AppendNormal(nil, nil))
				if id, ok := r.Whole.ID(); ok && c.NormalizeGeneratedIDs && r.Kind == jsonl.LineEntry {
					ids[id] = fmt.Sprintf("%08d", len(ids)+1)
				}
				for id, number := range ids {
					line = strings.ReplaceAll(line, `"`+id+`"`, `"`+number+`"`)
				}
				got.WriteString(line + "\n")
			})
			// A file of version 3 is not rewritten, but what is in it is in normal form.
			if diff := cmp.Diff(c.Expected, got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	t.Run("invalid UTF-8", func(t *testing.T) {
		got := []any{}
		records(t, string(cases.InvalidUTF8.InputBase64), func(r *jsonl.Record) {
			got = append(got, decoded(t, r.Whole.AppendNormal(nil, nil)))
		})
		if diff := cmp.Diff(cases.InvalidUTF8.Expected, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestWriteFixture(t *testing.T) {
	var want struct {
		Header      any
		SessionName string
		EntryTypes  []string
		Entries     []any
	}
	readFixture(t, "pi-f6/projection.json", &want)
	text, err := os.ReadFile(filepath.Join(os.Getenv("PIDB_FIXTURES"), "pi-f6/write.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	var entries []any
	name := ""
	records(t, string(text), func(r *jsonl.Record) {
		line, err := jsonl.Append(nil, r.Whole.Value)
		if err != nil || !bytes.Equal(line, r.Line.Data) {
			t.Errorf("line %d becomes %s, %v", r.Line.Number, line, err)
		}
		if r.Kind == jsonl.LineHeader {
			if diff := cmp.Diff(want.Header, decoded(t, line)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			return
		}
		types = append(types, r.Whole.Type())
		entries = append(entries, decoded(t, line))
		if s, ok := r.Whole.SessionInfo(); ok {
			name = s
		}
	})
	if name != want.SessionName {
		t.Errorf("name %q, want %q", name, want.SessionName)
	}
	if diff := cmp.Diff(want.EntryTypes, types); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want.Entries, entries); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExportFixture(t *testing.T) {
	var c struct {
		NowUnixMilli    int64
		Input, Expected string
	}
	readFixture(t, "pi-f12-export/case.json", &c)
	var got []byte
	parent := jsonl.ParentRef{Null: true}
	path := map[string]bool{"root": true, "chosen": true, "leaf": true}
	var d *jsonl.Decoder
	d = records(t, c.Input, func(r *jsonl.Record) {
		id, _ := r.Whole.ID()
		if r.Kind == jsonl.LineEntry && path[id] {
			got = r.Whole.AppendNormal(got, &jsonl.NormalOptions{Parent: &parent})
			got = append(got, '\n')
			parent = jsonl.ParentRef{ID: id}
		}
	})
	h, _ := d.Header()
	header, err := jsonl.Append(nil, jsonl.Members{
		{Key: "type", Value: "session"},
		{Key: "version", Value: jsonl.CurrentVersion},
		{Key: "id", Value: h.ID},
		{Key: "timestamp", Value: jsonl.FormatTime(c.NowUnixMilli)},
		{Key: "cwd", Value: h.CWD},
		{Key: "parentSession", Value: jsonl.Undefined},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Expected, string(header)+"\n"+string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
