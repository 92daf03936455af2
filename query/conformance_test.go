package query_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestConformance compares every view of every conformance case with what pi said.
// PIDB_CONFORMANCE names another folder of the same form.
func TestConformance(t *testing.T) {
	folder := os.Getenv("PIDB_CONFORMANCE")
	if folder == "" {
		folder = "../testdata/conformance"
	}
	paths, err := filepath.Glob(filepath.Join(folder, "expected", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	a := openArchive(t)
	var total count
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		t.Run(name, func(t *testing.T) {
			file, err := filepath.Abs(filepath.Join(folder, "sessions", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var pi piAnswers
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &pi); err != nil {
				t.Fatal(err)
			}
			total.add(compareFile(t, a, file, data, &pi))
		})
	}
	t.Logf("%d cases: %s", len(paths), total)
}

// compareFile imports a file and compares what pidb says of it with pi and, where pi is
// not asked or has no answer that pidb is to share, with the model.
func compareFile(t *testing.T, a *repo.Archive, file string, data []byte, pi *piAnswers) count {
	t.Helper()
	m, isSession := newModel(t, data)
	key, found := importFile(t, a, file)
	if found != isSession {
		t.Fatalf("%s: a session is %v for pidb, %v for the model", file, found, isSession)
	}
	var c count
	if !found {
		if pi != nil && pi.Error == "" && !pi.Empty {
			t.Errorf("a session for pi")
		}
		return c
	}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		s := newSubject(t, rx, key)
		if pi != nil && pi.Error == "" && !pi.Empty {
			c = comparePi(s, m, pi)
		}
		// Where pi gives no answer to compare with, docs/differences.md does.
		if pi == nil || pi.Error != "" || c.design != nil {
			compareModel(s, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
