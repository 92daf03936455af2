package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

func (a *app) appendCommand() *cobra.Command {
	var ifLeaf string
	cmd := &cobra.Command{
		Use:   "append SESSION",
		Short: "append messages and entries from standard input",
		Long: `Read JSON from standard input, one object a line, and append each to the session, under its
leaf: an object with a type is an entry, one with a role is a message. Ids, parents and
times are made new. All are appended, or none. Prints their ids, one a line.

With --if-leaf, nothing is appended unless that entry is the leaf still; an empty one
stands for a session without a leaf.

A session that came from a file belongs to the file: pidb fork makes one of it that can be
written to.`,
		Example: `  echo '{"role":"user","content":"hello"}' | pidb append last
  pidb append 0195f3a2 --if-leaf 7c21aa03 < entries.jsonl`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			entries, err := readEntries(ctx, a.stdin)
			if err != nil {
				return err
			}
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			var ids []string
			if cmd.Flags().Changed("if-leaf") {
				ids, err = l.appendIfLeaf(ctx, ifLeaf, entries)
			} else {
				ids, err = l.append(ctx, entries...)
			}
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := a.emitEntry(l, id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&ifLeaf, "if-leaf", "", "only if `ENTRY` is the leaf")
	jsonHelp(cmd, `{"session":KEY,"entry":ID}`, "a line an entry")
	return cmd
}

// appendIfLeaf appends entries if spec names the leaf of the session.
func (l *live) appendIfLeaf(ctx context.Context, spec string, entries []repo.NewEntry) ([]string, error) {
	var leaf query.Ref
	if spec != "" {
		e, err := l.entry(ctx, spec)
		if err != nil {
			return nil, err
		}
		leaf = e.Ref
	}
	ids, err := l.session.AppendIfLeaf(ctx, leaf, entries...)
	return ids, l.explain(err)
}

// readEntries reads an entry or a message from each line that is not blank.
func readEntries(ctx context.Context, r io.Reader) ([]repo.NewEntry, error) {
	text, err := io.ReadAll(interruptible{ctx, r})
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	var entries []repo.NewEntry
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if jsonl.IsBlank(line) {
			continue
		}
		var doc jsonl.Doc
		if err := doc.Parse(line); err != nil {
			return nil, fmt.Errorf("standard input, line %d: %w", number, err)
		}
		value := doc.Root()
		switch {
		case value.Get("type").Exists():
			entries = append(entries, repo.Raw(value))
		case value.Get("role").Exists():
			entries = append(entries, repo.Message(value))
		default:
			return nil, fmt.Errorf("standard input, line %d: neither an entry, which has a type, nor a message, which has a role", number)
		}
	}
	if len(entries) == 0 {
		return nil, withHint(errors.New("nothing to append"), "append reads JSON lines from standard input")
	}
	return entries, nil
}
