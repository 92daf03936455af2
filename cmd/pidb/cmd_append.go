package main

import (
	"bytes"
	"context"
	"encoding/json"
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
			entries, lines, err := readEntries(ctx, a.stdin)
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
			if fault, ok := errors.AsType[*repo.EntryError](err); ok {
				return onLine(lines[fault.Index], fault.Err)
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

// onLine says on which line of standard input something is wrong.
func onLine(number int, err error) error {
	return fmt.Errorf("standard input, line %d: %w", number, err)
}

// readEntries reads an entry or a message from each line that is not blank, and returns
// the numbers of these lines.
func readEntries(ctx context.Context, r io.Reader) (entries []repo.NewEntry, lines []int, err error) {
	text, err := io.ReadAll(interruptible{ctx, r})
	if err != nil {
		return nil, nil, fmt.Errorf("read standard input: %w", err)
	}
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		number++
		if jsonl.IsBlank(line) {
			continue
		}
		entry, err := newEntry(line)
		if err != nil {
			return nil, nil, onLine(number, err)
		}
		entries, lines = append(entries, entry), append(lines, number)
	}
	if len(entries) == 0 {
		return nil, nil, withHint(errors.New("nothing to append"), "append reads JSON lines from standard input")
	}
	return entries, lines, nil
}

// newEntry returns the entry that JSON text is, or that holds it where it is a message.
func newEntry(text json.RawMessage) (repo.NewEntry, error) {
	var doc jsonl.Doc
	if err := doc.Parse(text); err != nil {
		return repo.NewEntry{}, err
	}
	value := doc.Root()
	typ, role := value.Get("type"), value.Get("role")
	switch {
	case typ.IsString("message") && role.Exists() && !value.Get("message").Exists():
		return repo.NewEntry{}, withHint(errors.New("a message entry without message"),
			`{"type":"message","message":{"role":…}} is an entry; the message alone, without a type, will do`)
	case typ.Exists():
		return repo.Raw(text), nil
	case role.Exists():
		return repo.Message(text), nil
	}
	return repo.NewEntry{}, errors.New("neither an entry, which has a type, nor a message, which has a role")
}
