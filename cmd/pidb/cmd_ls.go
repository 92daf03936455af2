package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) lsCommand() *cobra.Command {
	var opts query.ListOptions
	var cwd, since, until, order string
	var here bool
	var limit int
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "list sessions",
		Long: `List sessions, those with the newest activity first.

Each has its age, its messages on all branches, its folder, its name or else its first
message, and what names it on the command line. Filters narrow the list: all of them have
to fit. --since and --until look at the last activity.

A page has 50 sessions; what the next one begins after is said on standard error. Sessions
whose file is gone, and versions of files that were rewritten, are listed with --archived.`,
		Example: `  pidb ls --here
  pidb ls --since 7d --model opus
  pidb ls --sort cost --limit 10
  pidb ls --json --limit 0 | jq -r .id`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			var err error
			if opts.CWD, err = folder(cwd, here); err != nil {
				return err
			}
			if opts.Since, err = moment("since", since, a.now, time.Local); err != nil {
				return err
			}
			if opts.Until, err = moment("until", until, a.now, time.Local); err != nil {
				return err
			}
			if opts.Limit, opts.All, err = limitOf(limit); err != nil {
				return err
			}
			switch opts.Sort = query.Sort(order); opts.Sort {
			case query.SortModified, query.SortCreated, query.SortSize, query.SortCost:
			default:
				return usagef("--sort is modified, created, size or cost, not %q", order)
			}
			return a.view(ctx, withoutIndex, func(rx *query.Rx) error {
				list, next, err := rx.List(ctx, &opts)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					a.noteNoSession()
					return nil
				}
				if a.json {
					for i := range list {
						if err := a.emit(newSessionJSON(&list[i])); err != nil {
							return err
						}
					}
				} else if err := a.printSessions(cmd, rx, list, opts.Archived); err != nil {
					return err
				}
				if next != "" {
					a.note("more: --after %s", next)
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cwd, "cwd", "", "sessions of `DIR` and of folders below it")
	flags.BoolVar(&here, "here", false, "sessions of this folder and of folders below it")
	flags.StringVar(&since, "since", "", "last activity at `TIME` or later")
	flags.StringVar(&until, "until", "", "last activity before `TIME`")
	flags.StringVar(&opts.Name, "name", "", "`TEXT` is in the name")
	flags.StringVar(&opts.Model, "model", "", "`TEXT` is in provider/model")
	flags.StringVar(&order, "sort", "modified", "`ORDER`: modified, created, size or cost")
	flags.IntVar(&limit, "limit", query.DefaultListLimit, "at most `N` sessions; 0 for all")
	flags.StringVar(&opts.After, "after", "", "the page behind `CURSOR`")
	flags.BoolVar(&opts.Archived, "archived", false, "missing and superseded sessions too")
	must(cmd.MarkFlagDirname("cwd"))
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"modified", "created", "size", "cost"}, cobra.ShellCompDirectiveNoFileComp)))
	jsonHelp(cmd, `{"session":KEY,"id":,"path":,"cwd":,"name":,"parentSession":,"created":,"modified":,
 "messages":,"entries":,"firstMessage":,"leaf":ENTRY,"leafLine":LINE,"tips":,"bytes":,
 "model":,"tokens":,"cost":,"problems":,"state":"live|missing|superseded"}`, "a line a session")
	return cmd
}

// noteNoSession says that a listing is empty, and where was looked.
func (a *app) noteNoSession() {
	roots, err := a.sessionRoots()
	if err != nil || a.noSync || len(roots) == 0 {
		a.note("no sessions")
		return
	}
	for i := range roots {
		roots[i] = a.displayPath(roots[i])
	}
	a.note("no sessions; looked in %s", strings.Join(roots, ", "))
}

// printSessions prints a list of sessions as a table.
func (a *app) printSessions(cmd *cobra.Command, rx *query.Rx, list []query.Session, archived bool) error {
	g := &grid{app: a, heads: []string{"SESSION", "AGE", "MSGS", "FOLDER", "ABOUT"}, right: []bool{false, true, true, false, false}}
	styles := []style{styleTool, styleDim, stylePlain, styleDim, stylePlain}
	if archived {
		g.heads = append(g.heads[:4:4], "STATE", "ABOUT")
		g.right = append(g.right[:4:4], false, false)
		styles = append(styles[:4:4], styleDim, stylePlain)
	}
	for i := range list {
		s := &list[i]
		name, err := sessionName(cmd.Context(), rx, s)
		if err != nil {
			return err
		}
		row := []string{name, a.sinceWhen(s.Modified), strconv.FormatInt(s.Messages, 10), cutLeft(a.displayPath(s.CWD), 24)}
		if archived {
			row = append(row, string(s.State))
		}
		g.rows = append(g.rows, append(row, head(title(s), 200)))
	}
	g.print(styles...)
	return nil
}

// folder returns the folder that --cwd and --here ask for, absolute and clean.
func folder(cwd string, here bool) (string, error) {
	switch {
	case here && cwd != "":
		return "", usagef("--cwd and --here are two ways to name a folder")
	case here:
		cwd = "."
	case cwd == "":
		return "", nil
	case !strings.Contains(cwd, "/") && strings.Contains(cwd, `\`):
		return cwd, nil // of another system
	}
	return filepath.Abs(cwd)
}

// limitOf reads --limit, for which 0 is all.
func limitOf(n int) (limit int, all bool, err error) {
	if n < 0 {
		return 0, false, usagef("--limit is a number of rows, or 0 for all, not %d", n)
	}
	return n, n == 0, nil
}

// jsonHelp adds to the help of a command what it prints with --json.
func jsonHelp(cmd *cobra.Command, shape, what string) {
	cmd.Long += fmt.Sprintf("\n\nWith --json, %s:\n\n%s", what, indent(shape))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
