package query_test

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"

	"pidb/migrations"
	"pidb/query"
)

// plans are the steps of some plans that must stay as they are: a walk looks each parent
// up by its key, a question by id, type or parent goes through its index.
var plans = map[string][]string{
	"entry":           {"SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"},
	"entry by id":     {"SEARCH e USING INDEX entry_id (id=? AND rowid>? AND rowid<?)"},
	"entry at":        {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"entries":         {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"},
	"entries of type": {"SEARCH e USING INDEX entry_type (type=? AND rowid>? AND rowid<?)"},
	"branch":          {"SEARCH entry USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"},
	"context":         {"SEARCH entry USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)"},
	"labels":          {"SEARCH entry USING INDEX entry_type (type=? AND rowid>? AND rowid<?)", "SEARCH e USING COVERING INDEX entry_id (id=? AND rowid>? AND rowid<?)"},
	"name":            {"SEARCH entry USING INDEX entry_type (type=? AND rowid>? AND rowid<?)"},
	"children":        {"SEARCH e USING INDEX entry_parent (parent=?)"},
	"tips":            {"SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", "SEARCH a USING INTEGER PRIMARY KEY (rowid=?)", "SEARCH c USING COVERING INDEX entry_parent (parent=?)"},
	"tree":            {"SEARCH entry USING COVERING INDEX entry_top (ref>? AND ref<?)", "SEARCH c USING INDEX entry_parent (parent=?)"},
}

func TestStatementsUseTheirIndex(t *testing.T) {
	path := (&url.URL{Scheme: "file", Path: filepath.Join(t.TempDir(), "plan.db"), OmitHost: true}).String()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := migrations.Up(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	// A scan of a table, by its name or alias. What a walk has found stands in memory under other ones.
	scan := regexp.MustCompile(`^SCAN (entry|e|a|c|p|u|s|session|usage|setting)\b`)
	for name, statement := range query.Statements {
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+statement.SQL, make([]any, statement.Parameters)...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var steps []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			steps = append(steps, step)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
		for _, step := range steps {
			if found := scan.FindStringSubmatch(step); found != nil && !slices.Contains(statement.Scans, found[1]) {
				t.Errorf("%s: %s\n%s", name, step, strings.Join(steps, "\n"))
			}
		}
		for _, want := range plans[name] {
			if !slices.Contains(steps, want) && !slices.ContainsFunc(steps, func(s string) bool { return strings.HasPrefix(s, want) }) {
				t.Errorf("%s: no step %q in\n%s", name, want, strings.Join(steps, "\n"))
			}
		}
	}
}
