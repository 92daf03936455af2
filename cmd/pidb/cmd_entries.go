package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) entriesCommand() *cobra.Command {
	var opts query.EntriesOptions
	var leaf string
	var raw bool
	cmd := &cobra.Command{
		Use:   "entries SESSION",
		Short: "list the entries of a session",
		Long: `List the lines of a session in the order of the file, those that are no entries included:
their type is then blank, malformed, json or session.

The list shows the role of a message and the type of another entry; a star marks what was
recovered from a damaged line. --type narrows the list, --leaf to the branch that ends at an entry. --raw prints the
lines as they are, without more; only on a terminal are control characters replaced.`,
		Example: `  pidb entries last
  pidb entries last --type compaction --raw | jq -r .summary
  pidb entries 0195f3a2 --type malformed --json`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.view(ctx, withoutIndex, func(rx *query.Rx) error {
				s, err := findSession(ctx, rx, args[0])
				if err != nil {
					return err
				}
				if leaf != "" {
					if opts.Leaf, err = findLeaf(ctx, rx, &s, leaf); err != nil {
						return err
					}
				}
				return a.entries(ctx, rx, &s, &opts, raw)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.Types, "type", nil, "entries of `TYPE`, or blank, malformed, json, session; may be repeated")
	flags.StringVar(&leaf, "leaf", "", "only the branch that ends at `ENTRY`")
	flags.BoolVar(&raw, "raw", false, "the lines as they are in the file")
	must(cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{
		"message", "compaction", "branch_summary", "custom_message", "custom", "label", "session_info", "model_change",
		"thinking_level_change", "context_edit", "usage", "session", "malformed", "blank", "json",
	}, cobra.ShellCompDirectiveNoFileComp)))
	jsonHelp(cmd, `{"line":LINE,"entry":ENTRY,"parent":,"parentLine":LINE,"type":,"role":,"timestamp":,
 "recovered":bool,"raw":TEXT (with --raw), or "rawBase64": where it is not UTF-8}`, "a line a line")
	return cmd
}

func (a *app) entries(ctx context.Context, rx *query.Rx, s *query.Session, opts *query.EntriesOptions, raw bool) error {
	l := &lines{rx: rx}
	n := 0
	for e, err := range rx.Entries(ctx, s.Key, opts) {
		if err != nil {
			return err
		}
		if n++; n == 1 && !a.json && !raw {
			a.out.printf("%s\n", a.paint(styleDim, fmt.Sprintf("%6s  %-8s  %-8s  %-16s  %-14s  %s", "LINE", "ENTRY", "PARENT", "TIME", "ROLE/TYPE", "TEXT")))
		}
		switch {
		case a.json:
			if !raw {
				err = a.emit(newEntryJSON(&e))
				break
			}
			var line []byte
			if line, err = rx.Raw(ctx, e.Ref); err == nil {
				err = a.emitRaw(newEntryJSON(&e), func(w *memberWriter) error { return w.raw(line) })
			}
		case raw:
			var line []byte
			if line, err = rx.Raw(ctx, e.Ref); err == nil {
				if a.term.out {
					line = []byte(query.Printable(string(line)))
				}
				_, _ = a.out.Write(line)
				a.out.printf("\n")
			}
		default:
			err = a.printEntry(ctx, l, &e)
		}
		if err == nil {
			err = a.out.err
		}
		if err != nil {
			return err
		}
	}
	if n == 0 {
		a.note("no entries")
	}
	return nil
}

// printEntry prints a row of the list.
func (a *app) printEntry(ctx context.Context, l *lines, e *query.Entry) error {
	name, parent := "-", "-"
	if e.HasID {
		name = entryName(e)
	}
	switch {
	case e.ParentLine != query.LineNumber{}:
		parent = nameOf(e.ParentID, e.ParentLine)
	case e.ParentID != "":
		parent = head(e.ParentID, 7) + "?"
	}
	kind := head(e.Word(), 14)
	if e.Role != "" {
		kind = head(roleWord("", e.Role), 14)
	}
	if e.Recovered {
		kind = head(kind, 12) + " *"
	}
	room := 40
	if a.term.width > 0 {
		room = 16
	}
	const columns = 6 + 2 + 8 + 2 + 8 + 2 + 16 + 2 + 14 + 2
	text, err := l.preview(ctx, e, max(a.term.columns()-columns, room))
	if err != nil {
		return err
	}
	style := styleOf(e.Role)
	if e.Role == "" {
		style = styleDim
	}
	if e.Kind == query.KindMalformed || e.Recovered {
		style = styleError
	}
	a.out.printf("%6s  %s  %s  %s  %s  %s\n", lineText(e.Line), pad(name, 8), a.paint(styleDim, pad(parent, 8)),
		pad(clock(e.Timestamp), 16), a.paint(style, pad(kind, 14)), text)
	return err
}
