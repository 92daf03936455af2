package query_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"pidb/query"
	"pidb/repo"
)

// exampleArchive makes an archive with one session, and a function that removes it.
func exampleArchive(ctx context.Context, session string) (*repo.Archive, func()) {
	folder, err := os.MkdirTemp("", "pidb-example-")
	if err != nil {
		log.Fatal(err)
	}
	archive, err := repo.Open(ctx, filepath.Join(folder, "pidb.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := archive.ImportReader(ctx, "example", strings.NewReader(session), nil); err != nil {
		log.Fatal(err)
	}
	return archive, func() {
		if err := errors.Join(archive.Close(), os.RemoveAll(folder)); err != nil {
			log.Print(err)
		}
	}
}

func ExampleRx_Context() {
	ctx := context.Background()
	archive, done := exampleArchive(ctx, `{"type":"session","version":3,"id":"example","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp"}
{"type":"model_change","id":"00000001","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","provider":"anthropic","modelId":"claude"}
{"type":"message","id":"00000002","parentId":"00000001","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"00000003","parentId":"00000002","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"two"}}
{"type":"compaction","id":"00000004","parentId":"00000003","timestamp":"2026-01-01T00:00:03.000Z","summary":"counting","firstKeptEntryId":"00000003","tokensBefore":2}
{"type":"message","id":"00000005","parentId":"00000004","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":"three"}}
`)
	defer done()
	err := archive.View(ctx, func(rx *query.Rx) error {
		session, err := rx.Find(ctx, "example")
		if err != nil {
			return err
		}
		c, err := rx.Context(ctx, session.Leaf)
		if err != nil {
			return err
		}
		fmt.Println(c.Model.ModelID, c.ThinkingLevel)
		for _, m := range c.Messages {
			fmt.Println(string(m.JSON))
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// claude off
	// {"role":"compactionSummary","summary":"counting","tokensBefore":2,"timestamp":1767225603000}
	// {"role":"user","content":"two"}
	// {"role":"user","content":"three"}
}

func ExampleRx_Tree() {
	ctx := context.Background()
	archive, done := exampleArchive(ctx, `{"type":"session","version":3,"id":"example","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp"}
{"type":"message","id":"root","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"left","parentId":"root","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":"two"}}
{"type":"label","id":"mark","parentId":"left","timestamp":"2026-01-01T00:00:03.000Z","targetId":"left","label":"first try"}
{"type":"message","id":"right","parentId":"root","timestamp":"2026-01-01T00:00:04.000Z","message":{"role":"user","content":"three"}}
`)
	defer done()
	err := archive.View(ctx, func(rx *query.Rx) error {
		session, err := rx.Find(ctx, "example")
		if err != nil {
			return err
		}
		for node, err := range rx.Tree(ctx, session.Key) {
			if err != nil {
				return err
			}
			fmt.Println(strings.Repeat("  ", node.Depth)+node.ID, node.Label, node.Tip)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// root  false
	//   left first try false
	//     mark  true
	//   right  true
}
