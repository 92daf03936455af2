package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [SESSION…]",
		Short: "prove that every byte is there",
		Long: `Prove that the stored bytes are those that were imported: every piece against its own hash,
every session against the hash of its file, and against the file where that still is.

changed counts sessions whose file has other bytes by now, missing those whose file is
gone, unreadable those whose file cannot be looked at: all are whole in the archive. Files
that have changed are taken in first; with --no-sync they are counted as changed. It ends
with 1 when a session is damaged.`,
		Example: `  pidb verify
  pidb verify 0195f3a2 --json`,
		Args:              arguments(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			// Where nothing can be taken in, a new archive would have nothing to prove.
			open := a.open
			if roots, err := a.sessionRoots(); a.noSync || err == nil && len(roots) == 0 {
				open = a.openExisting
			}
			archive, err := open(ctx)
			if err != nil {
				return err
			}
			if err := a.sync(ctx, archive, withoutIndex); err != nil {
				return err
			}
			var keys []query.Key
			err = archive.View(ctx, func(rx *query.Rx) error {
				for _, spec := range args {
					s, err := findSession(ctx, rx, spec)
					if err != nil {
						return err
					}
					keys = append(keys, s.Key)
				}
				return nil
			})
			if err != nil {
				return err
			}
			bar := a.newBar()
			result, err := archive.Verify(ctx, keys, bar.count("verifying"))
			bar.end()
			if err != nil {
				return err
			}
			j := verifyJSON{result.Sessions, result.OK, result.Changed, result.Missing, result.Unreadable, []failedJSON{}}
			for _, f := range result.Failed {
				j.Failed = append(j.Failed, failedJSON{f.Session, f.Path, f.Line, f.Err.Error()})
				place := f.Path
				if f.Line > 0 {
					place += fmt.Sprintf(", line %d", f.Line)
				}
				a.say("session %s is damaged: %s: %v", quotedKey(f.Session), place, f.Err)
			}
			if a.json {
				if err := a.emit(j); err != nil {
					return err
				}
			} else {
				unreadable := ""
				if result.Unreadable > 0 {
					unreadable = fmt.Sprintf(", %d unreadable", result.Unreadable)
				}
				a.out.printf("%s: %d ok, %d changed, %d missing%s, %d failed\n", count(result.Sessions, "session", "sessions"),
					result.OK, result.Changed, result.Missing, unreadable, len(result.Failed))
			}
			if result.Unreadable > 0 {
				a.say("%s cannot be read, and may have changed", count(result.Unreadable, "source", "sources"))
			}
			if len(result.Failed) > 0 {
				return exitWith(exitFailed)
			}
			return nil
		},
	}
	jsonHelp(cmd, `{"sessions":,"ok":,"changed":,"missing":,"unreadable":,"failed":[{"session":KEY,"path":,"line":,"error":}]}`, "one object")
	return cmd
}
