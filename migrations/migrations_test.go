package migrations_test

import (
	"database/sql"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	_ "modernc.org/sqlite"

	"pidb/migrations"
)

var update = flag.Bool("update", false, "write testdata/schema.sql anew")

func openDB(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=10000&_txlock=immediate&_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func dump(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'goose%' AND name NOT LIKE 'sqlite%' ORDER BY type DESC, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out strings.Builder
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		out.WriteString(text + ";\n\n")
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestSchema compares the schema with the golden dump. Run with -update after a
// migration was added.
func TestSchema(t *testing.T) {
	archive := openDB(t, filepath.Join(t.TempDir(), "a.db"))
	if err := migrations.Up(t.Context(), archive); err != nil {
		t.Fatal(err)
	}
	index := openDB(t, filepath.Join(t.TempDir(), "i.db"))
	if _, err := index.Exec(migrations.Index); err != nil {
		t.Fatal(err)
	}
	got := "-- The archive.\n\n" + dump(t, archive) + "-- The search index.\n\n" + dump(t, index)
	const golden = "testdata/schema.sql"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
}

func TestStamp(t *testing.T) {
	db := openDB(t, filepath.Join(t.TempDir(), "a.db"))
	for range 2 {
		if err := migrations.Up(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	var application, version int
	if err := db.QueryRow(`PRAGMA application_id`).Scan(&application); err != nil || application != migrations.ApplicationID {
		t.Errorf("application_id %#x, %v", application, err)
	}
	if err := db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil || version != migrations.Version {
		t.Errorf("user_version %d, %v", version, err)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, setup string
		want        error
	}{
		{"newer", `PRAGMA user_version = 9999`, migrations.ErrNewer},
		{"other program's stamp", `PRAGMA application_id = 7`, migrations.ErrForeign},
		{"no stamp, other tables", `PRAGMA application_id = 0; CREATE TABLE mine (x)`, migrations.ErrForeign},
	} {
		t.Run(test.name, func(t *testing.T) {
			db := openDB(t, filepath.Join(t.TempDir(), "a.db"))
			if test.want == migrations.ErrNewer {
				if err := migrations.Up(t.Context(), db); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := db.Exec(test.setup); err != nil {
				t.Fatal(err)
			}
			before := dump(t, db)
			if err := migrations.Up(t.Context(), db); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if diff := cmp.Diff(before, dump(t, db)); diff != "" {
				t.Errorf("the schema changed:\n%s", diff)
			}
		})
	}
}

func TestTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var group sync.WaitGroup
	for range 8 {
		db := openDB(t, path)
		group.Go(func() {
			if err := migrations.Up(t.Context(), db); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
