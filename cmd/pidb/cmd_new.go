package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) newCommand() *cobra.Command {
	var cwd string
	var opts repo.CreateOptions
	cmd := &cobra.Command{
		Use:   "new",
		Short: "make an empty session in the archive",
		Long: `Make a session without entries and print its id. It is in no file: pidb append writes to
it, pidb export makes a file of it that pi opens.`,
		Example: `  id=$(pidb new)
  echo '{"role":"user","content":"hello"}' | pidb append "$id"`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filled(cmd, "cwd", "id", "parent"); err != nil {
				return err
			}
			ctx := cmd.Context()
			if !cmd.Flags().Changed("cwd") {
				var err error
				if cwd, err = os.Getwd(); err != nil {
					return err
				}
			}
			archive, err := a.open(ctx)
			if err != nil {
				return err
			}
			s, err := archive.Create(ctx, cwd, &opts)
			if err != nil {
				return usageOfID(err)
			}
			return a.emitSession(ctx, s)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&cwd, "cwd", "", "the folder that the session is for, `DIR`; the present one by default")
	flags.StringVar(&opts.ID, "id", "", "`ID` of the session, instead of a new one")
	flags.StringVar(&opts.ParentSession, "parent", "", "path or id of the session that it comes from, `PARENT`")
	must(cmd.MarkFlagDirname("cwd"))
	jsonHelp(cmd, madeShape, "one object")
	return cmd
}

// usageOfID makes a bad session id an error of usage.
func usageOfID(err error) error {
	if errors.Is(err, repo.ErrInvalidID) {
		return &commandError{err: err, code: exitUsage}
	}
	return err
}
