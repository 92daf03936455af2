package main

import (
	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) nameCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "name SESSION NAME",
		Short: "name a session",
		Long: `Append an entry to the session that names it, or with an empty NAME takes its name away.
Line breaks become spaces. Prints the id of the entry. A session that came from a file
belongs to the file and is refused: pidb fork makes one that can be written to.`,
		Example:           `  pidb name last "retry with backoff"`,
		Args:              arguments(cobra.ExactArgs(2)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			ids, err := l.append(ctx, repo.SessionName(args[1]))
			if err != nil {
				return l.refused("name", err)
			}
			return a.emitEntry(l, ids[0])
		},
	}
	jsonHelp(cmd, `{"session":KEY,"entry":ID}`, "one object")
	return cmd
}
