package query_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pidb/query"
	"pidb/repo"
)

// answer is an assistant message with usage.
func answer(id, parent, at, model string, input int) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":%q,"message":{"role":"assistant","provider":"p","model":%q,"content":[],"usage":{"input":%d,"output":1,"cacheRead":2,"cacheWrite":3,"totalTokens":%d,"cost":{"total":%g}}}}`,
		id, parent, at, model, input, input+6, float64(input)/100) + "\n"
}

func TestStats(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := answer("aaaaaaaa", "null", "2026-03-01T23:30:00.000Z", "m1", 100)
	second := answer("bbbbbbbb", `"aaaaaaaa"`, "2026-03-02T10:00:00.000Z", "m2", 200)
	// Imported in order of name: the fork comes before its origin.
	write("1-fork.jsonl", `{"type":"session","version":3,"id":"fork","timestamp":"2026-03-03T00:00:00.000Z","cwd":"/b"}`+"\n"+first+
		answer("cccccccc", `"aaaaaaaa"`, "2026-03-03T01:00:00.000Z", "m1", 400))
	write("2-origin.jsonl", `{"type":"session","version":3,"id":"origin","timestamp":"2026-03-01T00:00:00.000Z","cwd":"/a"}`+"\n"+first+second+second+
		`{"type":"compaction","id":"dddddddd","parentId":"bbbbbbbb","timestamp":"2026-03-02T11:00:00.000Z","summary":"s","usage":{"input":10,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":10,"cost":{"total":0.5}}}`+"\n"+
		`{"type":"usage","id":"eeeeeeee","parentId":"dddddddd","timestamp":"never","provider":"p","model":"m2","kind":"title","usage":{"input":5,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":5}}`+"\n")
	write("3-empty.jsonl", `{"type":"session","version":3,"id":"empty","timestamp":"2026-03-05T00:00:00.000Z","cwd":"/a"}`+"\n")
	a := openArchive(t)
	importAll := func() {
		t.Helper()
		if _, err := a.Import(t.Context(), []string{folder}, &repo.ImportOptions{NoIndex: true}); err != nil {
			t.Fatal(err)
		}
	}
	importAll()
	// The fork is written anew without what it had of its own, which counts as before.
	write("1-fork.jsonl", `{"type":"session","version":3,"id":"fork","timestamp":"2026-03-03T00:00:00.000Z","cwd":"/b"}`+"\n"+first)
	importAll()

	type row struct {
		Key      string
		Sessions int64
		Entries  int64
		Input    int64
		Total    int64
		Cost     float64
	}
	tests := map[string]struct {
		opts query.StatsOptions
		want []row
	}{
		"all": {query.StatsOptions{}, []row{{"", 4, 5, 715, 733, 7.5}}},
		"by day": {query.StatsOptions{By: query.ByDay}, []row{
			{"", 1, 1, 5, 5, 0}, {"2026-03-01", 1, 1, 100, 106, 1}, {"2026-03-02", 1, 2, 210, 216, 2.5}, {"2026-03-03", 1, 1, 400, 406, 4},
		}},
		"by day elsewhere": {query.StatsOptions{By: query.ByDay, Location: time.FixedZone("", 3600)}, []row{
			{"", 1, 1, 5, 5, 0}, {"2026-03-02", 1, 3, 310, 322, 3.5}, {"2026-03-03", 1, 1, 400, 406, 4},
		}},
		"by model":   {query.StatsOptions{By: query.ByModel}, []row{{"p/m1", 2, 2, 500, 512, 5}, {"p/m2", 1, 2, 205, 211, 2}, {"", 1, 1, 10, 10, 0.5}}},
		"by folder":  {query.StatsOptions{By: query.ByCWD}, []row{{"/b", 2, 1, 400, 406, 4}, {"/a", 2, 4, 315, 327, 3.5}}},
		"by session": {query.StatsOptions{By: query.BySession}, []row{{"fork", 1, 1, 400, 406, 4}, {"origin", 1, 4, 315, 327, 3.5}, {"empty", 1, 0, 0, 0, 0}, {"fork", 1, 0, 0, 0, 0}}},
		"a span": {query.StatsOptions{
			By: query.ByModel, Since: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 2, 11, 0, 0, 0, time.UTC),
		}, []row{{"p/m2", 1, 1, 200, 206, 2}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := a.View(t.Context(), func(rx *query.Rx) error {
				stats, err := rx.Stats(t.Context(), &test.opts)
				got := []row{}
				for _, s := range stats {
					got = append(got, row{s.Key, s.Sessions, s.Entries, s.Input, s.Total, s.Cost})
				}
				if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}
