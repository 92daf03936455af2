package main

import (
	"errors"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) backupCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "write a proved copy of the archive",
		Long: `Write the archive, as it is at this instant, to FILE: a compact archive of its own, mode
0600, with every line proved against its hash before it gets its name. Others may read
and write meanwhile. The search index is not in it: it comes back by itself.

FILE is there whole or not at all. One that is there already is replaced with --force
only, and never the archive itself, its index, or a file that SQLite keeps beside a
database. No session folder is looked at; pidb import before takes in what changed.

To restore, put the copy where the archive was while no pidb is running, and remove
PATH-wal and PATH-shm beside it if they are there; or name the copy with --db.`,
		Example: `  pidb backup /media/usb/pidb.db
  pidb --db /media/usb/pidb.db ls`,
		Args: arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			archive, err := a.openExisting(ctx)
			if err != nil {
				return err
			}
			bar := a.newBar()
			result, err := archive.Backup(ctx, args[0], &repo.BackupOptions{Replace: force, Progress: bar.count("proving")})
			bar.end()
			if _, ok := errors.AsType[*repo.DatabaseNameError](err); ok {
				return withHint(err, "name another FILE: --force replaces none that belongs to a database")
			}
			if errors.Is(err, repo.ErrExists) && !force {
				return withHint(err, "--force replaces a file that is not in use")
			}
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(backupJSON{result.Path, result.Sessions, result.Lines, result.Bytes, result.Size, seconds(result.Duration)})
			}
			if !a.quiet {
				a.out.printf("%s: %s, %s, %s in %s, all proved, in %.1f s\n", a.displayPath(result.Path), count(result.Sessions, "session", "sessions"),
					count(result.Lines, "line", "lines"), bytesText(result.Bytes), bytesText(result.Size), result.Duration.Seconds())
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "replace FILE")
	jsonHelp(cmd, `{"path":,"sessions":,"lines":,"bytes":(of the lines),"size":(of the file),"seconds":}`, "one object")
	return cmd
}
