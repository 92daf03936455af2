package query_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"pidb/query"
	"pidb/repo"
)

func ExampleRx_Search() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pidb")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	a, err := repo.Open(ctx, filepath.Join(dir, "pidb.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	_, err = a.ImportReader(ctx, "talk.jsonl", strings.NewReader(`
{"type":"session","version":3,"id":"s1","timestamp":"2026-03-01T10:00:00.000Z","cwd":"/work"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-03-01T10:00:01.000Z","message":{"role":"user","content":"Why does the retry back off?"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-03-01T10:00:09.000Z","message":{"role":"assistant","content":[{"type":"text","text":"The retry doubles its delay."}]}}
`), nil)
	if err != nil {
		log.Fatal(err)
	}
	err = a.View(ctx, func(rx *query.Rx) error {
		result, err := rx.Search(ctx, `retry -"back off"`, nil)
		if err != nil {
			return err
		}
		for _, hit := range result.Hits {
			fmt.Println(hit.Session.ID, hit.EntryID, hit.Role, hit.Snippet.Text)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: s1 a2 assistant The retry doubles its delay.
}
