//go:build fixtures

package query_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

// fixture reads a file of the folder that PIDB_FIXTURES names.
func fixture(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(os.Getenv("PIDB_FIXTURES"), name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// harnessContext is a context as the harness of pi-agent-core has it.
type harnessContext struct {
	Messages      json.RawMessage `json:"messages"`
	ThinkingLevel string          `json:"thinkingLevel"`
	Model         map[string]any  `json:"model"`
}

func TestHarnessV3(t *testing.T) {
	var seen struct {
		Session struct {
			JSONL struct {
				LeafID    string            `json:"leafId"`
				EntryIDs  []string          `json:"entryIds"`
				BranchIDs []string          `json:"branchIds"`
				Labels    map[string]string `json:"labels"`
				Name      string            `json:"sessionName"`
				Context   harnessContext    `json:"context"`
			} `json:"jsonl"`
			Compacted     harnessContext `json:"compactedContext"`
			BranchSummary harnessContext `json:"branchSummaryContext"`
			EmptyParent   []string       `json:"emptyParentPath"`
		} `json:"session"`
	}
	if err := json.Unmarshal(fixture(t, "harness-v3/observations.json"), &seen); err != nil {
		t.Fatal(err)
	}
	a := openArchive(t)
	key, ok := importFile(t, a, writeFile(t, "session.jsonl", fixture(t, "harness-v3/session.jsonl")))
	if !ok {
		t.Fatal("no session")
	}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		s := newSubject(t, rx, key)
		entry := func(id string) query.Entry {
			e, err := rx.EntryByID(t.Context(), key, id)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		ids := func(entries []query.Entry) []string {
			ids := []string{}
			for _, e := range entries {
				ids = append(ids, e.ID)
			}
			return ids
		}
		branch := func(id string) []string {
			entries, err := rx.Branch(t.Context(), entry(id).Ref)
			if err != nil {
				t.Fatal(err)
			}
			return ids(entries)
		}
		check := func(what string, want, got any) {
			t.Helper()
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-harness +pidb):\n%s", what, diff)
			}
		}
		context := func(what, id string, want harnessContext) {
			t.Helper()
			c := s.context(entry(id).Ref)
			check(what+": messages", decoded(t, want.Messages), decoded(t, joined(c.Messages)))
			check(what+": model", named(want.Model), named2(c.Model))
			check(what+": thinking level", want.ThinkingLevel, c.ThinkingLevel)
		}
		check("entries", seen.Session.JSONL.EntryIDs, ids(s.entries))
		check("name", seen.Session.JSONL.Name, s.name())

		// The harness moves its leaf to the target of the last leaf entry. For pi, and so for
		// pidb, the last entry is the leaf, whatever its type: here that leaf entry itself.
		session, err := rx.Find(t.Context(), "session-fixed")
		if err != nil {
			return err
		}
		check("leaf", "leaf-record", session.LeafID)
		check("branch", seen.Session.JSONL.BranchIDs, branch(seen.Session.JSONL.LeafID))
		context("context", seen.Session.JSONL.LeafID, seen.Session.JSONL.Context)
		context("compacted context", "compaction", seen.Session.Compacted)
		context("branch summary context", "branch-summary", seen.Session.BranchSummary)
		check("empty parent", seen.Session.EmptyParent, branch("empty-parent"))

		// The harness trims labels, and a blank one clears. pi takes them as they are.
		labels := map[string]string{}
		for line, label := range s.labels() {
			e, err := rx.EntryAt(t.Context(), key, line)
			if err != nil {
				return err
			}
			labels[e.ID] = label
		}
		check("labels", map[string]string{"root-user": "   ", "branch-user": "  branch point  "}, labels)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExportOfBranch(t *testing.T) {
	var c struct {
		Now      int64  `json:"nowUnixMilli"`
		Input    string `json:"input"`
		Expected string `json:"expected"`
	}
	if err := json.Unmarshal(fixture(t, "pi-f12-export/case.json"), &c); err != nil {
		t.Fatal(err)
	}
	a := openArchive(t)
	if _, ok := importFile(t, a, writeFile(t, "session.jsonl", []byte(c.Input))); !ok {
		t.Fatal("no session")
	}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		session, err := rx.Find(t.Context(), "export-session")
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := rx.WriteBranch(t.Context(), session.Leaf, time.UnixMilli(c.Now), &out); err != nil {
			return err
		}
		if diff := cmp.Diff(c.Expected, out.String()); diff != "" {
			t.Errorf("(-pi +pidb):\n%s", diff)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
