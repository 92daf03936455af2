package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

func (a *app) rmCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "rm SESSION…",
		Short: "delete a session from the archive",
		Long: `Delete sessions from the archive, with the older versions of their files. The files stay.

A session that was deleted does not come back by itself while its file stays as it is, nor
when it changes: naming the file to pidb import brings it back. An old version, named by
its '#KEY', goes alone. On a terminal each one is asked for; elsewhere --yes is needed.`,
		Example: `  pidb rm 0195f3a2
  pidb rm '#7' '#8' --yes`,
		Args:              arguments(cobra.MinimumNArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes && !a.term.in {
				return &commandError{err: errors.New("rm: nobody to ask"), code: exitUsage, hint: "--yes deletes without asking"}
			}
			ctx := cmd.Context()
			archive, err := a.open(ctx)
			if err != nil {
				return err
			}
			var sessions []query.Session
			err = archive.View(ctx, func(rx *query.Rx) error {
				for _, spec := range args {
					s, err := findSession(ctx, rx, spec)
					if err != nil {
						return err
					}
					if slices.ContainsFunc(sessions, func(other query.Session) bool { return other.Key == s.Key }) {
						continue
					}
					sessions = append(sessions, s)
				}
				return nil
			})
			if err != nil {
				return err
			}
			answers := bufio.NewReader(interruptible{ctx, a.stdin})
			for i := range sessions {
				if err := a.remove(ctx, archive, &sessions[i], answers, yes); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	jsonHelp(cmd, `{"session":KEY,"id":,"path":,"deleted":bool}`, "a line a session")
	return cmd
}

// remove deletes one session, after a question if yes does not say so.
func (a *app) remove(ctx context.Context, archive *repo.Archive, s *query.Session, answers *bufio.Reader, yes bool) error {
	deleted := false
	if yes {
		deleted = true
	} else {
		about := head(title(s), 40)
		_, _ = fmt.Fprintf(a.stderr, "pidb: delete %s %q, %s, %s, from the archive? [y/N] ", quotedKey(s.Key), about, count(s.Messages, "message", "messages"), a.displayPath(where(s)))
		answer, err := answers.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		answer = strings.ToLower(strings.TrimSpace(answer))
		deleted = answer == "y" || answer == "yes"
	}
	if deleted {
		var err error
		if deleted, err = archive.Delete(ctx, s.Key); err != nil {
			return err
		}
	}
	if a.json {
		return a.emit(deletedJSON{s.Key, s.ID, s.Path, deleted})
	}
	if !deleted {
		a.note("%s stays", quotedKey(s.Key))
		return nil
	}
	if !a.quiet {
		a.out.printf("deleted %s %s\n", quotedKey(s.Key), flat(s.ID))
	}
	return nil
}
