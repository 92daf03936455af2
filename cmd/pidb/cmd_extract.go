package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

func (a *app) extractCommand() *cobra.Command {
	var opts repo.ExtractOptions
	var leaf string
	cmd := &cobra.Command{
		Use:   "extract SESSION",
		Short: "make a session of one branch",
		Long: `Make a new session of the path to the leaf of a session, or to --leaf, and print its id.
Labels are set anew at its end, with the times when they were set. It can be written to;
its parent session is the file of the old one, or the old one's id.`,
		Example: `  pidb extract last
  pidb extract 0195f3a2 --leaf 7c21aa03`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := filled(cmd, "id", "leaf"); err != nil {
				return err
			}
			ctx := cmd.Context()
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			ref := l.info.Leaf
			if leaf != "" {
				e, err := l.entry(ctx, leaf)
				if err != nil {
					return err
				}
				ref = e.Ref
			}
			if ref == 0 {
				return fmt.Errorf("session %s has no leaf: %w", quotedKey(l.info.Key), query.ErrNotFound)
			}
			made, err := l.archive.Extract(ctx, ref, &opts)
			if err != nil {
				return usageOfID(err)
			}
			return a.emitSession(ctx, made)
		},
	}
	cmd.Flags().StringVar(&leaf, "leaf", "", "the path to `ENTRY`")
	cmd.Flags().StringVar(&opts.ID, "id", "", "`ID` of the new session, instead of a new one")
	jsonHelp(cmd, madeShape, "one object")
	return cmd
}
