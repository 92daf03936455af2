package main

import (
	"context"
	"slices"
	"strconv"
	"time"
	_ "time/tzdata" // --tz works where the system has no zones

	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) statsCommand() *cobra.Command {
	var opts query.StatsOptions
	var by, tz, since, until string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "sum up sessions, tokens and cost",
		Long: `Sum up what sessions used: tokens and cost of messages, tool results, compactions, branch
summaries and usage entries, by day, model, folder or session.

Each entry is counted once in a family of forks and copies, on the day that it was made.
Sessions whose file is gone count too, and old versions of a file where it was rewritten.
Days come oldest first, other rows the dearest first.`,
		Example: `  pidb stats
  pidb stats --by model --since 30d
  pidb stats --by day --tz Asia/Tokyo --json`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			switch opts.By = query.Grouping(by); opts.By {
			case query.ByDay, query.ByModel, query.ByCWD, query.BySession:
			default:
				return usagef("--by is day, model, cwd or session, not %q", by)
			}
			var err error
			opts.Location = time.Local
			if tz != "" && tz != "Local" {
				if opts.Location, err = time.LoadLocation(tz); err != nil {
					return usagef("--tz %q is no time zone, as Europe/Berlin and UTC are", tz)
				}
			}
			if opts.Since, err = moment("since", since, a.now, opts.Location); err != nil {
				return err
			}
			if opts.Until, err = moment("until", until, a.now, opts.Location); err != nil {
				return err
			}
			return a.view(ctx, withoutIndex, func(rx *query.Rx) error {
				stats, err := rx.Stats(ctx, &opts)
				if err != nil {
					return err
				}
				if len(stats) == 0 {
					all, _, err := rx.List(ctx, &query.ListOptions{Limit: 1, Archived: true})
					if err == nil && len(all) == 0 {
						a.noteEmpty()
					} else {
						a.note("nothing was used")
					}
					return err
				}
				if a.json {
					for i := range stats {
						if err := a.emit(newStatJSON(&stats[i])); err != nil {
							return err
						}
					}
					return nil
				}
				return a.printStats(ctx, rx, by, stats)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&by, "by", "day", "a row for each `GROUP`: day, model, cwd or session")
	flags.StringVar(&tz, "tz", "", "time `ZONE` of the days, as in Europe/Berlin; the local one if not given")
	flags.StringVar(&since, "since", "", "entries of `TIME` or later")
	flags.StringVar(&until, "until", "", "entries before `TIME`")
	must(cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"day", "model", "cwd", "session"}, cobra.ShellCompDirectiveNoFileComp)))
	jsonHelp(cmd, `{"key":,"sessions":,"entries":,"input":,"output":,"cacheRead":,"cacheWrite":,"tokens":,"cost":}

key is the day, model, folder or session id, "" where it is not known; rows by session have
"session":KEY too. entries are those that carry usage; cost is in US dollars.`, "a line a row")
	return cmd
}

func newStatJSON(s *query.Stat) statJSON {
	return statJSON{
		Key: s.Key, Session: s.Session, Sessions: s.Sessions, Entries: s.Entries, Input: s.Input, Output: s.Output,
		CacheRead: s.CacheRead, CacheWrite: s.CacheWrite, Tokens: s.Total, Cost: s.Cost,
	}
}

// printStats prints rows as a table. A row of one session says what that is about, other
// rows of how many sessions they are.
func (a *app) printStats(ctx context.Context, rx *query.Rx, by string, stats []query.Stat) error {
	var sum query.Stat
	row := func(key, sessions, about string, s *query.Stat) []string {
		numbers := []string{tokens(s.Input), tokens(s.Output), tokens(s.CacheRead), tokens(s.CacheWrite), tokens(s.Total), money(s.Cost)}
		if by == "session" {
			return slices.Concat([]string{key}, numbers, []string{about})
		}
		return slices.Concat([]string{key, sessions}, numbers)
	}
	g := &grid{
		app: a, heads: []string{map[string]string{"day": "DAY", "model": "MODEL", "cwd": "FOLDER"}[by], "SESSIONS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "TOKENS", "COST"},
		right: []bool{false, true, true, true, true, true, true, true},
	}
	if by == "session" {
		g.heads = slices.Concat([]string{"SESSION"}, g.heads[2:], []string{"ABOUT"})
		g.right = []bool{false, true, true, true, true, true, true, false}
	}
	for i := range stats {
		s := &stats[i]
		key, about := head(s.Key, 48), ""
		switch {
		case by == "session":
			session, err := rx.Session(ctx, s.Session)
			if err != nil {
				return err
			}
			if key, err = sessionName(ctx, rx, &session); err != nil {
				return err
			}
			about = a.titleIn(&session, 200)
		case s.Key == "":
			key = "(unknown)"
		case by == "cwd":
			key = cutLeft(a.displayPath(s.Key), 40)
		}
		g.rows = append(g.rows, row(key, strconv.FormatInt(s.Sessions, 10), about, s))
		sum.Input += s.Input
		sum.Output += s.Output
		sum.CacheRead += s.CacheRead
		sum.CacheWrite += s.CacheWrite
		sum.Total += s.Total
		sum.Cost += s.Cost
	}
	if len(stats) > 1 {
		// A session may be in several rows: their sum says nothing.
		g.rows = append(g.rows, row("in all", "", "", &sum))
		g.footers = 1
	}
	g.print()
	return nil
}
