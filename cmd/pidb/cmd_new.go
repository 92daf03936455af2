package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

func (a *app) newCommand() *cobra.Command {
	var cwd string
	var opts repo.CreateOptions
	cmd := &cobra.Command{
		Use:   "new",
		Short: "make an empty session in the archive",
		Long: `Make a session without entries and print its id. It is in no file: pidb append writes to
it, pidb export makes a file of it that pi opens.

PARENT is written down as its path, or as its id where it is in no file. A path need not be
in the archive if it is absolute or there is a file.`,
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
			if opts.ParentSession != "" {
				if opts.ParentSession, err = a.parent(ctx, archive, opts.ParentSession); err != nil {
					return err
				}
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
	flags.StringVar(&opts.ParentSession, "parent", "", "the session that it comes from, `PARENT`: a SESSION, or the path of a file")
	must(cmd.MarkFlagDirname("cwd"))
	jsonHelp(cmd, madeShape, "one object")
	return cmd
}

// parent returns what a session says of the one it comes from: the path of that, as pi
// writes it, or its id.
func (a *app) parent(ctx context.Context, archive *repo.Archive, spec string) (string, error) {
	if err := a.sync(ctx, archive, withoutIndex); err != nil {
		return "", err
	}
	var s query.Session
	err := archive.View(ctx, func(rx *query.Rx) (err error) {
		s, err = findSession(ctx, rx, spec)
		return err
	})
	if err == nil {
		return cmp.Or(s.Path, s.ID), nil
	}
	if !errors.Is(err, query.ErrNotFound) {
		return "", err
	}
	if filepath.IsAbs(spec) {
		return spec, nil
	}
	if info, statErr := os.Stat(spec); statErr == nil && info.Mode().IsRegular() {
		return filepath.Abs(spec)
	}
	return "", fmt.Errorf("--parent: %w", err)
}

// usageOfID makes a bad session id an error of usage.
func usageOfID(err error) error {
	if errors.Is(err, repo.ErrInvalidID) {
		return &commandError{err: err, code: exitUsage}
	}
	return err
}
