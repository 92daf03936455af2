package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) forkCommand() *cobra.Command {
	var opts repo.ForkOptions
	var upTo, before string
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "make a session of another one",
		Long: `Copy a session into a new one that can be written to, whatever the old one is, and print
its id: all entries, or only the path to one of them. It is of version 3, in the form that
pi writes; its parent session is the file of the old one, or the old one's id.`,
		Example: `  pidb fork last --cwd .
  pidb fork 0195f3a2 --before 7c21aa03`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := filled(cmd, "cwd", "id", "up-to", "before"); err != nil {
				return err
			}
			ctx := cmd.Context()
			if upTo != "" && before != "" {
				return usagef("--up-to and --before do not go together")
			}
			if opts.CWD != "" {
				var err error
				if opts.CWD, err = filepath.Abs(opts.CWD); err != nil {
					return err
				}
			}
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			switch {
			case upTo != "":
				e, err := l.entry(ctx, upTo)
				if err != nil {
					return err
				}
				opts.UpTo = e.Ref
			case before != "":
				e, err := l.entry(ctx, before)
				if err != nil {
					return err
				}
				opts.Before = e.Ref
			}
			fork, err := l.archive.Fork(ctx, l.info.Key, &opts)
			if err != nil {
				return usageOfID(err)
			}
			return a.emitSession(ctx, fork)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.CWD, "cwd", "", "for the folder `DIR`; that of the old one by default")
	flags.StringVar(&opts.ID, "id", "", "`ID` of the new session, instead of a new one")
	flags.StringVar(&upTo, "up-to", "", "only the path to `ENTRY`")
	flags.StringVar(&before, "before", "", "only the path to the parent of `ENTRY`")
	must(cmd.MarkFlagDirname("cwd"))
	jsonHelp(cmd, madeShape, "one object")
	return cmd
}
