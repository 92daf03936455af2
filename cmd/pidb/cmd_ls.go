package main

import (
	"context"
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
	limit := limitValue(query.DefaultListLimit)
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "list sessions",
		Long: `List sessions, those with the newest activity first.

Each has its age, its messages on all branches, its folder, its name or else its first
message, and what names it on the command line. Filters narrow the list: all of them have
to fit. --since and --until look at the last activity.

A page has 50 sessions; what the next one begins after is said on standard error. Sessions
whose file is gone, and versions of files that were rewritten, are listed with --archived. That a file
is gone is noticed when its folder is looked at, whatever folder that is, or when pidb
verify runs.`,
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
			opts.Limit, opts.All = int(limit), limit == 0
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
					return a.noteNoSession(ctx, rx, opts.Archived)
				}
				if a.json {
					for i := range list {
						if list[i].FirstMessage, err = rx.FirstMessage(ctx, &list[i]); err != nil {
							return err
						}
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
	flags.Var(&limit, "limit", "at most `N` sessions; 0 for all")
	flags.StringVar(&opts.After, "after", "", "the page behind `CURSOR`")
	flags.BoolVar(&opts.Archived, "archived", false, "missing and superseded sessions too")
	must(cmd.MarkFlagDirname("cwd"))
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"modified", "created", "size", "cost"}, cobra.ShellCompDirectiveNoFileComp)))
	jsonHelp(cmd, `{"session":KEY,"id":,"path":,"cwd":,"name":,"parentSession":,"created":,"modified":,
 "messages":,"entries":,"firstMessage":,"leaf":ENTRY,"leafLine":LINE,"tips":,"bytes":,
 "model":,"tokens":,"cost":,"problems":,"state":"live|missing|superseded"}`, "a line a session")
	return cmd
}

// noteNoSession says why a listing is empty.
func (a *app) noteNoSession(ctx context.Context, rx *query.Rx, archived bool) error {
	all, _, err := rx.List(ctx, &query.ListOptions{All: true, Archived: true})
	if err != nil {
		return err
	}
	live := 0
	for i := range all {
		if all[i].State == query.Live {
			live++
		}
	}
	switch {
	case len(all) == 0:
		a.noteEmpty()
	case archived:
		a.note("no session fits, of %s", count(len(all), "session", "sessions"))
	case live > 0:
		a.note("no session fits, of %s", count(live, "session", "sessions"))
	default:
		a.note("no session whose file is there; --archived adds %s", count(len(all), "session", "sessions"))
	}
	return nil
}

// noteEmpty says that the archive holds no session, and where was looked.
func (a *app) noteEmpty() {
	roots, err := a.sessionRoots()
	switch {
	case err != nil || a.noSync:
		a.note("no sessions")
		a.note("hint: without --no-sync the session folders are looked at first")
	case len(roots) == 0:
		a.note("no sessions")
		a.note("hint: with --db only folders named by --root DIR are looked at; pidb import PATH takes in any")
	default:
		for i := range roots {
			roots[i] = a.displayPath(roots[i])
		}
		a.note("no sessions; looked in %s", strings.Join(roots, ", "))
		a.note("hint: --root DIR looks in another folder; pidb import PATH takes in any")
	}
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
		g.rows = append(g.rows, append(row, a.titleIn(s, 200)))
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

// limitValue is the value of --limit, for which 0 is all.
type limitValue int

func (l *limitValue) String() string { return strconv.Itoa(int(*l)) }

func (l *limitValue) Type() string { return "int" }

func (l *limitValue) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return usagef("--limit takes a number, or 0 for all, not %q", text)
	}
	*l = limitValue(n)
	return nil
}

// jsonHelp adds to the help of a command what it prints with --json.
func jsonHelp(cmd *cobra.Command, shape, what string) {
	cmd.Long += fmt.Sprintf("\n\nWith --json, %s:\n\n%s", what, indent(shape))
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }
