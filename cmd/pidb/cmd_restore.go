package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore SESSION",
		Short: "write a vanished session file back",
		Long: `Write the file of a session back where it was, byte for byte, and say how to continue it
in pi. A file that is there is never written over.`,
		Example: `  pidb ls --archived
  pidb restore 0195f3a2`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			archive, err := a.open(ctx)
			if err != nil {
				return err
			}
			if err := a.sync(ctx, archive, withoutIndex); err != nil {
				return err
			}
			var s query.Session
			err = archive.View(ctx, func(rx *query.Rx) (err error) {
				s, err = findSession(ctx, rx, args[0])
				return err
			})
			if err != nil {
				return err
			}
			path, err := archive.Restore(ctx, s.Key)
			switch {
			case errors.Is(err, repo.ErrNoSource):
				return withHint(fmt.Errorf("session %s: %w", quotedKey(s.Key), err), fmt.Sprintf("pidb export %s -o FILE writes it to a new one", quotedKey(s.Key)))
			case errors.Is(err, repo.ErrExists):
				return withHint(err, fmt.Sprintf("pidb export %s -o FILE writes it to another one", quotedKey(s.Key)))
			case err != nil:
				return err
			}
			// The file is there again: the archive should know.
			if _, err := archive.Sync(ctx, []string{path}, &repo.ImportOptions{NoIndex: true}); err != nil {
				a.say("the file is back, but the archive does not know it: %v", err)
			}
			command := "pi --session " + shellQuote(path)
			if s.CWD != "" {
				command = "cd " + shellQuote(s.CWD) + " && " + command
			}
			if a.json {
				return a.emit(restoreJSON{s.Key, s.ID, path, command})
			}
			a.out.printf("restored %s\ncontinue it: %s\n", flat(path), flat(command))
			return nil
		},
	}
	jsonHelp(cmd, `{"session":KEY,"id":,"path":,"command":(for a shell)}`, "one object")
	return cmd
}
