package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) pruneCommand() *cobra.Command {
	var older string
	var keep int
	var missing, dryRun, yes bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "take old versions out of the archive",
		Long: `Take old versions of rewritten files out of the archive: those whose last activity is
before --older, those beyond the newest --keep of each file, or where both are given what
both say. With --missing and --older, sessions go too whose file is gone. What is in use
always stays. Session files are not touched; no session folder is looked at.

A version may hold lines that no other session has. Those are counted and asked for on a
terminal; elsewhere --yes is needed. A pruned version does not come back by a sync or a
merge. pidb vacuum gives the room back.`,
		Example: `  pidb prune --keep 5 --dry-run
  pidb prune --older 90d --keep 1
  pidb prune --older 365d --missing --yes`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts := &repo.PruneOptions{Keep: -1, Missing: missing, DryRun: dryRun}
			if cmd.Flags().Changed("keep") {
				if opts.Keep = keep; keep < 0 {
					return usagef("--keep takes a number from 0, not %d", keep)
				}
			}
			before, err := moment("older", older, a.now, time.Local)
			if err != nil {
				return err
			}
			if !before.IsZero() {
				if opts.OlderThan = a.now.Sub(before); opts.OlderThan <= 0 {
					return usagef("--older %q is not in the past", older)
				}
			}
			if older == "" && (opts.Keep < 0 || missing) {
				return &commandError{err: errors.New("prune: what may go?"), code: exitUsage, hint: "--older 90d or --keep N says it; --missing needs --older"}
			}
			return a.prune(cmd.Context(), opts, yes)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&older, "older", "", "take what was last active before `TIME`: 90d, 2026-03-01")
	flags.IntVar(&keep, "keep", 0, "keep the newest `N` old versions of each file")
	flags.BoolVar(&missing, "missing", false, "take sessions whose file is gone, too")
	flags.BoolVarP(&dryRun, "dry-run", "n", false, "only say what would go")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	jsonHelp(cmd, `{"dryRun":bool,"removed":,"kept":,"bytes":,"freed":,"sessions":[{"session":KEY,"id":,"path":,"version":,
 "state":,"modified":,"bytes":,"lastCopies":,"removed":bool}]}

lastCopies counts lines that no other session is known to have; bytes are of the files,
freed is what they take in the archive and nothing else needs.`, "one object")
	return cmd
}

func (a *app) prune(ctx context.Context, opts *repo.PruneOptions, yes bool) error {
	archive, err := a.openExisting(ctx)
	if err != nil {
		return err
	}
	plan := *opts
	plan.DryRun, plan.LastCopies = true, true
	planned, err := archive.Prune(ctx, &plan)
	if err != nil || opts.DryRun {
		if err == nil {
			err = a.printPrune(planned, true)
		}
		return err
	}
	opts.LastCopies = yes
	if last, lines := lastCopies(planned); last > 0 && !yes {
		if !a.term.in {
			return &commandError{
				err:  fmt.Errorf("prune: %s in %s %s in no other session, and there is nobody to ask", count(lines, "line", "lines"), count(last, "version", "versions"), stand(lines)),
				code: exitUsage, hint: "--dry-run lists them, --yes takes them out all the same",
			}
		}
		if opts.LastCopies, err = a.askPrune(ctx, last, lines); err != nil {
			return err
		}
	}
	result, err := archive.Prune(ctx, opts)
	if err != nil {
		return err
	}
	return a.printPrune(result, false)
}

// lastCopies counts the sessions with lines that no other one has, and those lines.
func lastCopies(r *repo.PruneResult) (sessions, lines int) {
	for i := range r.Sessions {
		if n := r.Sessions[i].LastCopies; n > 0 {
			sessions++
			lines += n
		}
	}
	return sessions, lines
}

func stand(lines int) string {
	if lines == 1 {
		return "stands"
	}
	return "stand"
}

// askPrune asks whether versions go with lines that no other session has.
func (a *app) askPrune(ctx context.Context, sessions, lines int) (bool, error) {
	_, _ = fmt.Fprintf(a.stderr, "pidb: %s in %s %s in no other session. Take them out? [y/N] ",
		count(lines, "line", "lines"), count(sessions, "version", "versions"), stand(lines))
	answer, err := bufio.NewReader(interruptible{ctx, a.stdin}).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes", nil
}

func (a *app) printPrune(r *repo.PruneResult, dryRun bool) error {
	if a.json {
		j := pruneJSON{DryRun: dryRun, Removed: r.Removed, Kept: r.Kept, Bytes: r.Bytes, Freed: r.Freed, Sessions: []prunedJSON{}}
		for i := range r.Sessions {
			p := &r.Sessions[i]
			j.Sessions = append(j.Sessions, prunedJSON{
				p.Session, p.ID, p.Path, p.Version, string(p.State), stamp(time.UnixMilli(p.ModifiedMS)), p.Bytes, p.LastCopies, p.Removed,
			})
		}
		return a.emit(j)
	}
	for i := range r.Sessions {
		p := &r.Sessions[i]
		if !dryRun && p.Removed || a.quiet {
			continue
		}
		only := ""
		if p.LastCopies > 0 {
			only = fmt.Sprintf(", %s in no other session", count(p.LastCopies, "line", "lines"))
		}
		what := "version " + fmt.Sprint(p.Version)
		if p.State != "superseded" {
			what = string(p.State)
		}
		verb := "stays"
		if p.Removed {
			verb = "would go"
		}
		a.out.printf("#%d %s of %s, %s%s: %s\n", p.Session, what, a.displayPath(p.Path), bytesText(p.Bytes), only, verb)
	}
	if a.quiet {
		return nil
	}
	verb := "removed"
	if dryRun {
		verb = "would be removed"
	}
	a.out.printf("%s %s, %d kept; %s of files, %s in the archive\n", count(r.Removed, "session", "sessions"), verb, r.Kept, bytesText(r.Bytes), bytesText(r.Freed))
	return nil
}
