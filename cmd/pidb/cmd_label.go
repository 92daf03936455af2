package main

import (
	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) labelCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "label SESSION ENTRY [TEXT]",
		Short: "label an entry of a session",
		Long: `Append an entry to the session that labels ENTRY, or without TEXT takes its label away.
Prints its id. pidb tree shows labels. A session that came from a file belongs to the
file and is refused: pidb fork makes one that can be written to.`,
		Example: `  pidb label last 7c21aa03 "before the rewrite"
  pidb label last 7c21aa03`,
		Args:              arguments(cobra.RangeArgs(2, 3)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			e, err := l.entry(ctx, args[1])
			if err != nil {
				return err
			}
			label := repo.ClearLabel(e.ID)
			if len(args) == 3 && args[2] != "" {
				label = repo.Label(e.ID, args[2])
			}
			ids, err := l.append(ctx, label)
			if err != nil {
				return l.refused("label an entry of", err)
			}
			return a.emitEntry(l, ids[0])
		},
	}
	jsonHelp(cmd, `{"session":KEY,"entry":ID}`, "one object")
	return cmd
}
