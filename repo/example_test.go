package repo_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"pidb/query"
	"pidb/repo"
)

// One session file and no archive: what would the model be given?
func ExampleOpenTemporary() {
	ctx := context.Background()
	archive, err := repo.OpenTemporary(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	const file = "../testdata/sessions/--home-mira-notes-site--/2026-03-15T02-08-30-250Z_019cef40-8a2a-7c27-b0b8-e41f5a6d9b03.jsonl"
	if _, err := archive.Import(ctx, []string{file}, nil); err != nil {
		log.Fatal(err)
	}
	err = archive.View(ctx, func(rx *query.Rx) error {
		session, err := rx.Find(ctx, "last")
		if err != nil {
			return err
		}
		c, err := rx.Context(ctx, session.Leaf)
		if err != nil {
			return err
		}
		fmt.Printf("%d messages for %s, thinking %s\n", len(c.Messages), c.Model.ModelID, c.ThinkingLevel)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 6 messages for claude-sonnet-4-5, thinking off
}

// A folder of session files becomes searchable, and every byte comes back.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	archive, err := repo.Open(ctx, filepath.Join(dir, "pidb.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	result, err := archive.Import(ctx, []string{"../testdata/sessions"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range result.Problems {
		fmt.Printf("%s, line %d: %s\n", filepath.Base(p.Path), p.Line, p.Code)
	}
	err = archive.View(ctx, func(rx *query.Rx) error {
		found, err := rx.Search(ctx, "修复登录", nil)
		if err != nil {
			return err
		}
		for _, hit := range found.Hits {
			fmt.Println(hit.Session.CWD, hit.Role, hit.Snippet.Text)
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	proof, err := archive.Verify(ctx, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(proof.OK, "of", proof.Sessions, "sessions proved")
	// Output:
	// 2026-03-21T19-25-47-900Z_019d11dc-5dfc-785e-ac10-3a6b90f4d71e.jsonl, line 5: malformed-line
	// /home/mira/notes-site  修复登录 (login loop)
	// /home/mira/notes-site user 修复登录：输入正确的密码以后页面又回到登录表单。
	// 5 of 5 sessions proved
}
