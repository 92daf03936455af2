package query_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// judged is a line of testdata/search/queries.jsonl: see the README there.
type judged struct {
	Query   string
	Options struct {
		Role, Tool, CWD, Model string
		Since, Until           string
		Thinking               bool
		Mode, Sort             string
	}
	Must, MustNot []string
	Only          bool
	First         string
	Suggest       []string
	Error         bool
	Why           string
}

func (j *judged) options(t *testing.T) *query.SearchOptions {
	opts := &query.SearchOptions{CWD: j.Options.CWD, Model: j.Options.Model, Thinking: j.Options.Thinking, Sort: query.SearchSort(j.Options.Sort), All: true}
	if j.Options.Role != "" {
		opts.Roles = []string{j.Options.Role}
	}
	if j.Options.Tool != "" {
		opts.Tools = []string{j.Options.Tool}
	}
	switch j.Options.Mode {
	case "substring":
		opts.Mode = query.Substring
	case "regexp":
		opts.Mode = query.Regexp
	}
	for text, to := range map[string]*time.Time{j.Options.Since: &opts.Since, j.Options.Until: &opts.Until} {
		if text == "" {
			continue
		}
		moment, ok := query.Moment(text, time.Now(), time.UTC)
		if !ok {
			t.Fatalf("%q is no time", text)
		}
		*to = moment
	}
	return opts
}

// TestJudged asks the queries of testdata/search and holds the answers against what
// their judge expected.
func TestJudged(t *testing.T) {
	dir := filepath.Join("..", "testdata", "search")
	a := openArchive(t)
	if _, err := a.Import(t.Context(), []string{filepath.Join(dir, "sessions")}, nil); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	queries := 0
	for line := range strings.Lines(string(content)) {
		var j judged
		if err := json.Unmarshal([]byte(line), &j); err != nil {
			t.Fatal(err)
		}
		queries++
		name := j.Query + " " + j.Options.Mode
		t.Run(name[:min(len(name), 40)], func(t *testing.T) { j.ask(t, a) })
	}
	if queries < 120 {
		t.Errorf("only %d queries", queries)
	}
}

func (j *judged) ask(t *testing.T, a *repo.Archive) {
	var result *query.SearchResult
	var err error
	if viewErr := a.View(t.Context(), func(rx *query.Rx) error {
		result, err = rx.Search(t.Context(), j.Query, j.options(t))
		return nil
	}); viewErr != nil {
		t.Fatal(viewErr)
	}
	if j.Error != errors.Is(err, query.ErrBadPattern) || err != nil && !j.Error {
		t.Fatalf("%q: error %v, want one: %v", j.Query, err, j.Error)
	}
	if j.Error {
		return
	}
	var hits []string
	for i := range result.Hits {
		hits = append(hits, filepath.Base(result.Hits[i].Session.Path)+"#"+result.Hits[i].EntryID)
	}
	complain := func(format string, args ...any) {
		t.Errorf("%q %+v: "+format+"\nhits %q\n%s", slices.Concat([]any{j.Query, j.Options}, args, []any{hits, j.Why})...)
	}
	for _, must := range j.Must {
		if !slices.Contains(hits, must) {
			complain("%s is missing", must)
		}
	}
	for _, not := range j.MustNot {
		if slices.Contains(hits, not) {
			complain("%s is no hit", not)
		}
	}
	if j.Only && len(hits) != len(j.Must) {
		complain("%d hits, want %d", len(hits), len(j.Must))
	}
	if j.First != "" && (len(hits) == 0 || hits[0] != j.First) {
		complain("the first is not %s", j.First)
	}
	var offered []string
	for _, u := range result.Unknown {
		offered = append(offered, u.Nearest...)
	}
	for _, word := range j.Suggest {
		if !slices.Contains(offered, word) {
			complain("%s is not offered but %q", word, offered)
		}
	}
}
