package repo_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestHandedTextIsThatOfTheArchive compares an index that was fed by an import with one
// that was fed from the archive: the same entries have the same words, with one score.
func TestHandedTextIsThatOfTheArchive(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for i := range 30 {
		var s strings.Builder
		fmt.Fprintf(&s, `{"type":"session","version":3,"id":"s%d","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`+"\n", i)
		for n := range 40 {
			fmt.Fprintf(&s, `{"type":"message","id":"a%d","parentId":null,"timestamp":"2026-01-01T00:%02d:00.000Z","message":{"role":"user","content":"common word%d from user %d"}}`+"\n", n, n, n, i)
			fmt.Fprintf(&s, `{"type":"message","id":"b%d","parentId":"a%d","timestamp":"2026-01-01T00:%02d:01.000Z","message":{"role":"toolResult","toolName":"bash","isError":%v,"content":[{"type":"text","text":"common output %d of tool %d"}]}}`+"\n", n, n, n, n%2 == 0, n, i)
		}
		fmt.Fprintf(&s, "torn"+`{"type":"message","id":"c","parentId":null,"timestamp":"2026-01-01T01:00:00.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"secret common"},{"type":"toolCall","name":"Read","arguments":{"path":"common.go"}}]}}`+"\n")
		names = append(names, write(t, s.String(), dir, fmt.Sprintf("%02d.jsonl", i)))
	}
	ask := func(a *repo.Archive) string {
		var answers strings.Builder
		for _, q := range []string{"common", "common is:error", "role:user common", "tool:read common", "word7", `"output 7 of"`, "-tool:bash common"} {
			err := a.View(t.Context(), func(rx *query.Rx) error {
				result, err := rx.Search(t.Context(), q, &query.SearchOptions{All: true})
				if err != nil {
					return err
				}
				fmt.Fprintf(&answers, "%s: %d behind\n", q, result.Behind)
				for _, hit := range result.Hits {
					fmt.Fprintf(&answers, "%s %s %.4f\n", hit.Session.ID, hit.EntryID, hit.Score)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		return answers.String()
	}
	path := filepath.Join(t.TempDir(), "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, names...)
	handed := ask(a)
	if strings.Count(handed, "\n") < 1000 {
		t.Errorf("few answers: %s", handed)
	}
	index := a.IndexPath()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(index); err != nil {
		t.Fatal(err)
	}
	a = openAt(t, path, nil)
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if read := ask(a); read != handed {
		t.Errorf("the archive gives another index than the import")
	}
}

// TestIndexOfAnotherVersion has an index that was made by another version: it serves
// until it is renewed, and then nothing of it is left.
func TestIndexOfAnotherVersion(t *testing.T) {
	a := open(t, nil)
	importPaths(t, a, write(t, header+user1+user2, t.TempDir(), "a.jsonl"))
	db, err := sql.Open("sqlite", a.IndexPath())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE segment SET version = 0; UPDATE indexed SET version = 0`); err != nil {
		t.Fatal(err)
	}
	ask := func() int {
		n := 0
		err := a.View(t.Context(), func(rx *query.Rx) error {
			result, err := rx.Search(t.Context(), "question", nil)
			if err == nil {
				n = len(result.Hits) + 100*result.Behind
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	want := ask()
	if want == 0 {
		t.Fatal("the old index does not serve")
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if old, err := a.IndexIsOld(t.Context()); !old || err != nil {
		t.Fatalf("old: %v, %v", old, err)
	}
	if err := a.RenewIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if old, err := a.IndexIsOld(t.Context()); old || err != nil {
		t.Errorf("still old: %v, %v", old, err)
	}
	if got := ask(); got != want {
		t.Errorf("%d hits, want %d", got, want)
	}
	var left int
	if err := db.QueryRow(`SELECT (SELECT count(*) FROM segment WHERE version = 0) + (SELECT count(*) FROM lost)`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d old segments are left: %v", left, err)
	}
}
