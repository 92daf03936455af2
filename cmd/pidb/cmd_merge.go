package main

import (
	"errors"

	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) mergeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "merge OTHER",
		Short: "bring in the sessions of another archive",
		Long: `Bring in the sessions of another archive, of a laptop or from a backup. OTHER is read and
never written, also where its schema is an older one.

A session that is here already is not brought in again. Where one of two has all bytes of
the other and more, the longer one stays. Of two that went different ways both stay: the
one in use here stays in use, and the other becomes an older version of the same file, or
a session beside it. Versions, paths, moved leaves and metadata come too; what is set here
stays. What was deleted here does not come back, and nothing is deleted here.

A second merge changes nothing. It ends with 3 when some sessions are damaged in OTHER.`,
		Example: `  scp laptop:.local/share/pidb/pidb.db laptop.db && pidb merge laptop.db`,
		Args:    arguments(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			archive, err := a.open(ctx)
			if err != nil {
				return err
			}
			bar := a.newBar()
			result, err := archive.Merge(ctx, args[0], &repo.MergeOptions{Progress: bar.count("merging")})
			bar.end()
			if err != nil && ctx.Err() == nil {
				if errors.Is(err, repo.ErrForeign) {
					return withHint(err, "OTHER is to be an archive of pidb; pidb import takes in session files")
				}
				if errors.Is(err, repo.ErrDamaged) {
					return withHint(err, "pidb doctor --db OTHER --salvage NEW brings out what is whole")
				}
				return err
			}
			if printErr := a.printMerge(args[0], result); err == nil {
				err = printErr
			}
			a.noteIndex(result.IndexErr)
			if err == nil && len(result.Failed) > 0 {
				err = exitWith(exitPartly)
			}
			return err
		},
	}
	jsonHelp(cmd, `{"path":,"sessions":,"imported":,"updated":,"unchanged":,"skipped":,"entries":,"bytes":,
 "deletions":,"seconds":,"failed":[{"session":KEY,"id":,"path":,"detail":}]}

sessions are those of OTHER, old versions included; skipped were deleted here; deletions
were taken over; KEY is that of OTHER.`, "one object")
	return cmd
}

func (a *app) printMerge(path string, r *repo.MergeResult) error {
	if a.json {
		j := mergeJSON{
			Path: path, Sessions: r.Sessions, Imported: r.Imported, Updated: r.Updated, Unchanged: r.Unchanged, Skipped: r.Skipped,
			Entries: r.Entries, Bytes: r.Bytes, Deletions: r.Deleted, Seconds: seconds(r.Duration), Failed: []mergeFailedJSON{},
		}
		for _, f := range r.Failed {
			j.Failed = append(j.Failed, mergeFailedJSON{f.Session, f.ID, f.Path, f.Err.Error()})
		}
		return a.emit(j)
	}
	for _, f := range r.Failed {
		a.say("%s of %s: %v", quotedKey(f.Session), path, f.Err)
	}
	if !a.quiet {
		a.out.printf("%s: %d new, %d updated, %d unchanged, %d deleted here before, %d damaged; %s in %.1f s\n",
			count(r.Sessions, "session", "sessions"), r.Imported, r.Updated, r.Unchanged, r.Skipped, len(r.Failed), count(r.Entries, "entry", "entries"),
			r.Duration.Seconds())
	}
	return nil
}
