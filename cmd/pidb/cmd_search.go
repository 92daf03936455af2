package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) searchCommand() *cobra.Command {
	var opts query.SearchOptions
	var cwd, since, until, order, session string
	var regex, substring, flat bool
	limit := limitValue(query.DefaultSearchLimit)
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "find text in all sessions",
		Long: `Find text in all sessions: what users, models and tools said, names and arguments of
tools, summaries, labels and session names.

Words have to be all in one entry, in any case and place, accents or not; a word is found
as a part of an identifier too. "a phrase" has to be there as it stands, -word must not be
there (put such a query after --), a OR b asks for either, word* for words that begin so.
Fields narrow the search:

  role:user  tool:bash  cwd:~/work  cwd:project  model:opus  name:"release plan"
  session:ID  before:2026-03-01  after:7d  type:compaction  is:error  -tool:read

The value of cwd: is a path, or whole names of folders in one.

re:PATTERN, behind fields or alone, and --regex look for a regular expression in the syntax
of RE2, in which ^ and $ are the borders of lines; --substring looks for the query as it
is, byte by byte. No other query is wrong: foo-bar, a::b and it's mean what they say.

The best sessions come first, each with its best lines; what people and models said counts
more than what tools gave, first messages and names more still. --flat and --json list hits
one by one. An entry that several sessions share, forks for example, is one hit. Roles are
user, assistant, tool, bash, system, custom, summary, label and name, or one as it stands
in a message, which is what "role" is in JSON.`,
		Example: `  pidb search "retry backoff"
  pidb search '"connection reset"' tool:bash after:30d
  pidb search parseSessionEntry -- -role:tool
  pidb search --regex 'E0[0-9]{3}' --cwd ~/work
  pidb search --json --limit 100 -- timeout -flaky`,
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			var err error
			if opts.CWD, err = folder(cwd, false); err != nil {
				return err
			}
			if opts.Since, err = moment("since", since, a.now, time.Local); err != nil {
				return err
			}
			if opts.Until, err = moment("until", until, a.now, time.Local); err != nil {
				return err
			}
			opts.Limit, opts.All = int(limit), limit == 0
			opts.Now, opts.Zone, opts.Home = a.now, time.Local, a.home
			if !flat && !a.json {
				opts.PerSession = linesPerSession
			}
			switch opts.Sort = query.SearchSort(order); opts.Sort {
			case query.SortRelevance, query.SortRecent:
			default:
				return usagef("--sort is relevance or recent, not %q", order)
			}
			switch {
			case regex && substring:
				return usagef("--regex and --substring are two ways to read the query")
			case regex:
				opts.Mode = query.Regexp
			case substring:
				opts.Mode = query.Substring
			}
			return a.view(ctx, withIndex, func(rx *query.Rx) error {
				if session != "" {
					s, err := findSession(ctx, rx, session)
					if err != nil {
						return err
					}
					opts.Session = s.Key
				}
				text := strings.Join(args, " ")
				result, err := rx.Search(ctx, text, &opts)
				if err != nil {
					return err
				}
				if err := a.noteUnknownRoles(ctx, rx, opts.Roles); err != nil {
					return err
				}
				a.noteIgnored(result.Ignored)
				if result.Damaged > 0 {
					a.say("%s could not be looked at: pidb verify says which are damaged", count(result.Damaged, "entry", "entries"))
				}
				if result.Behind > 0 {
					a.say("words may be missed in %s that the index lacks yet", count(result.Behind, "session", "sessions"))
				}
				for _, unknown := range result.Unknown {
					if err := a.noteUnknownWord(ctx, rx, &unknown); err != nil {
						return err
					}
				}
				if result.Scanned && len(result.Hits) > 0 {
					a.note("all text was read: a pattern with three letters in a row that each match has is faster")
				}
				if len(result.Hits) == 0 {
					return a.noteNothingFound(ctx, rx, text, &opts)
				}
				if err := a.printHits(cmd, rx, result, opts.PerSession > 0); err != nil {
					return err
				}
				if result.More {
					a.note("there is more: --limit 0 shows all")
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&opts.Roles, "role", nil, "entries of `ROLE`; may be repeated")
	flags.StringSliceVar(&opts.Tools, "tool", nil, "calls and output of `TOOL`; may be repeated")
	flags.StringVar(&cwd, "cwd", "", "sessions of `DIR` and of folders below it")
	flags.StringVar(&opts.Model, "model", "", "`TEXT` is in the provider/model in use")
	flags.StringVar(&since, "since", "", "entries of `TIME` or later")
	flags.StringVar(&until, "until", "", "entries before `TIME`")
	flags.StringVar(&session, "session", "", "only `SESSION`, an old version too")
	flags.StringVar(&opts.Name, "name", "", "sessions with `TEXT` in their name")
	flags.StringSliceVar(&opts.Types, "type", nil, "entries of `TYPE`, such as compaction; may be repeated")
	flags.BoolVar(&opts.Errors, "errors", false, "only entries that tell of an error")
	flags.Var(&limit, "limit", "at most `N` sessions, with --flat or --json hits; 0 for all")
	flags.StringVar(&order, "sort", "relevance", "`ORDER`: relevance or recent")
	flags.BoolVar(&flat, "flat", false, "list hits one by one, not by session")
	flags.BoolVar(&regex, "regex", false, "the query is a regular expression")
	flags.BoolVar(&substring, "substring", false, "the query is a piece of text, word or not")
	flags.BoolVar(&opts.Thinking, "thinking", false, "look at what models thought too")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if _, ok := errors.AsType[*commandError](err); ok {
			return flagError(cmd, err)
		}
		return &commandError{err: flagError(cmd, err), code: exitUsage, hint: "words that begin with - go after --, as in: pidb search -- retry -backoff"}
	})
	must(cmd.MarkFlagDirname("cwd"))
	must(cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions([]string{"relevance", "recent"}, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("role", cobra.FixedCompletions(roleWords, cobra.ShellCompDirectiveNoFileComp)))
	must(cmd.RegisterFlagCompletionFunc("session", func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return a.completeSession(cmd, nil, prefix)
	}))
	jsonHelp(cmd, `{"session":KEY,"id":,"path":,"entry":ENTRY,"line":LINE,"role":,"tool":,"timestamp":,
 "snippet":,"score":,"name":,"cwd":,"copies":N}

copies is the number of other sessions that hold the same entry.`, "a line a hit, the best first")
	return cmd
}

// noteUnknownRoles says which of the roles that are asked for no entry has, unless they
// have a word of their own.
func (a *app) noteUnknownRoles(ctx context.Context, rx *query.Rx, roles []string) error {
	for _, role := range roles {
		if slices.Contains(roleWords, role) || slices.Contains(roleWords, roleWord("", role)) {
			continue
		}
		found, err := rx.Search(ctx, ".", &query.SearchOptions{Mode: query.Regexp, Roles: []string{role}, Limit: 1})
		if err != nil {
			return err
		}
		if len(found.Hits) == 0 {
			a.note("no entry has the role %q; roles are %s", role, strings.Join(roleWords, ", "))
		}
	}
	return nil
}

// noteIgnored says which terms of a query were passed over, and why.
func (a *app) noteIgnored(terms []string) {
	var empty, without []string
	for _, term := range terms {
		if rest, ok := strings.CutPrefix(term, "-"); ok && strings.ContainsFunc(rest, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			without = append(without, term)
		} else {
			empty = append(empty, term)
		}
	}
	if len(empty) > 0 {
		a.note("ignored, for there is no letter or digit in it: %s", strings.Join(empty, " "))
	}
	if len(without) > 0 {
		a.note("ignored, for nothing is asked for that it could be left out of: %s", strings.Join(without, " "))
	}
}

// noteNothingFound says why a search has no hits.
func (a *app) noteNothingFound(ctx context.Context, rx *query.Rx, text string, opts *query.SearchOptions) error {
	if text = strings.TrimSpace(text); text == "" || text == "re:" && opts.Mode == query.Words {
		a.note("the query is empty: nothing to look for")
		return nil
	}
	n, all, err := rx.CountSessions(ctx, opts)
	if err != nil {
		return err
	}
	narrowed := len(opts.Roles) > 0 || len(opts.Types) > 0 || opts.Name != "" || opts.Errors || len(opts.Tools) > 0 || opts.Model != "" || !opts.Since.IsZero() || !opts.Until.IsZero()
	switch {
	case all == 0:
		a.noteEmpty()
	case n == 0:
		a.note("no session fits, of %s", count(all, "session", "sessions"))
	case narrowed:
		a.note("nothing found in the entries that fit, of %s", count(n, "session", "sessions"))
	default:
		a.note("nothing found in %s", count(n, "session", "sessions"))
	}
	return nil
}

func newHitJSON(h *query.Hit) hitJSON {
	return hitJSON{
		Session: h.Session.Key, ID: h.Session.ID, Path: h.Session.Path, Entry: h.EntryID, Line: lineJSON(h.Line), Role: h.Role, Tool: h.Tool,
		Timestamp: stamp(h.Timestamp), Snippet: h.Snippet.Text, Score: h.Score, Name: h.Session.Name, CWD: h.Session.CWD, Copies: h.Copies,
	}
}

// linesPerSession is how many hits of a session are shown together.
const linesPerSession = 3

// noteUnknownWord says that no entry has a word, and which words are like it, or that
// folders are called so.
func (a *app) noteUnknownWord(ctx context.Context, rx *query.Rx, u *query.Unknown) error {
	nearest, folder := "", ""
	if len(u.Nearest) > 0 {
		nearest = "; there is " + strings.Join(u.Nearest, ", ")
	}
	folders, err := rx.Folders(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(folders.CWDs, func(dir string) bool { return hasFolder(dir, u.Word) }) {
		folder = "; a folder is called so: cwd:" + u.Word
	}
	a.note("%q is in no session%s%s", u.Word, nearest, folder)
	return nil
}

// hasFolder reports whether one of the folders in a path has a name, in any case.
func hasFolder(path, name string) bool {
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	return slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) })
}

// printHits prints hits one by one, or the hits of each session together, the session
// with the best one first.
func (a *app) printHits(cmd *cobra.Command, rx *query.Rx, result *query.SearchResult, grouped bool) error {
	var order []query.Key
	groups := map[query.Key][]*query.Hit{}
	for i := range result.Hits {
		hit := &result.Hits[i]
		key := hit.Session.Key
		switch {
		case a.json:
			if err := a.emit(newHitJSON(hit)); err != nil {
				return err
			}
			continue
		case !grouped:
			if err := a.printGroup(cmd, rx, []*query.Hit{hit}, 1); err != nil {
				return err
			}
			continue
		case groups[key] == nil:
			order = append(order, key)
		}
		groups[key] = append(groups[key], hit)
	}
	for _, key := range order {
		if err := a.printGroup(cmd, rx, groups[key], result.Counts[key]); err != nil {
			return err
		}
	}
	return a.out.err
}

// printGroup prints hits of one session, which has so many: what the session is, what
// was found, and how to open it.
func (a *app) printGroup(cmd *cobra.Command, rx *query.Rx, hits []*query.Hit, found int) error {
	s := &hits[0].Session
	name, err := sessionName(cmd.Context(), rx, s)
	if err != nil {
		return err
	}
	when, copies := time.Time{}, 0
	for _, h := range hits {
		copies = max(copies, h.Copies)
		if h.Timestamp.After(when) {
			when = h.Timestamp
		}
	}
	if when.IsZero() {
		when = s.Modified
	}
	about := []string{a.displayPath(s.CWD), a.sinceWhen(when)}
	if found > len(hits) {
		about = append(about, count(found, "hit", "hits"))
	}
	if s.State == query.Missing {
		about = append(about, "file gone")
	}
	if copies > 0 {
		about = append(about, "also in "+count(int64(copies), "other session", "other sessions"))
	}
	tail := " · " + strings.Join(about, " · ")
	a.out.printf("%s%s\n", a.paint(styleTitle, a.titleIn(s, max(a.term.columns()-runewidth.StringWidth(tail), 24))), a.paint(styleDim, tail))
	for _, h := range hits {
		who := roleWord(h.Type, h.Role)
		if h.Tool != "" {
			who = "tool " + h.Tool
		}
		a.out.printf("  %s %s\n", a.paint(styleOf(h.Role), flat(who)+":"), a.highlight(h.Snippet))
	}
	// A name or a label is no place to read on from.
	place := hits[max(slices.IndexFunc(hits, func(h *query.Hit) bool { return h.Role != "" }), 0)]
	open := "pidb show " + name + " --entry " + nameOf(place.EntryID, place.Line)
	if s.Path != "" && s.State == query.Live {
		open += "   pi --session " + shellQuote(s.Path)
	}
	a.out.printf("  %s\n\n", a.paint(styleDim, open))
	return a.out.err
}

// styleOf is the style of who speaks.
func styleOf(role string) style {
	switch role {
	case "user", "bashExecution":
		return styleUser
	case "assistant":
		return styleAssistant
	case "toolResult":
		return styleTool
	}
	return styleSystem
}

// highlight returns a snippet with what was found in colour. A snippet is safe to print.
func (a *app) highlight(snippet query.Snippet) string {
	var b strings.Builder
	at := 0
	for _, m := range snippet.Matches {
		if m.Start < at || m.End > len(snippet.Text) {
			continue
		}
		b.WriteString(snippet.Text[at:m.Start])
		b.WriteString(a.paint(styleMatch, snippet.Text[m.Start:m.End]))
		at = m.End
	}
	b.WriteString(snippet.Text[at:])
	return b.String()
}
