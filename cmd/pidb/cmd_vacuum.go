package main

import (
	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) vacuumCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "vacuum",
		Short: "give back the room that is not needed",
		Long: `Give back the room that the archive and its search index do not need, after pidb rm or
pidb prune: both files are written anew and become smaller. What was deleted is not in
them any more. Other processes may go on; those that write wait while the archive is
written, about a second for 200 MB. For that time as much room again is needed.`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			archive, err := a.openExisting(ctx)
			if err != nil {
				return err
			}
			result, err := archive.Vacuum(ctx, &repo.VacuumOptions{DryRun: dryRun})
			if err != nil {
				return err
			}
			if a.json {
				return a.emit(vacuumJSON{
					dryRun, result.Before, result.After, result.IndexBefore, result.IndexAfter, result.Orphans, seconds(result.Duration),
				})
			}
			if a.quiet {
				return nil
			}
			arrow := "→"
			if dryRun {
				arrow = "→ about"
			}
			a.out.printf("archive %s %s %s, index %s %s %s, in %.1f s\n", bytesText(result.Before), arrow, bytesText(result.After),
				bytesText(result.IndexBefore), arrow, bytesText(result.IndexAfter), result.Duration.Seconds())
			return nil
		},
	}
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "only say what there is to give back")
	jsonHelp(cmd, `{"dryRun":bool,"before":,"after":,"indexBefore":,"indexAfter":,"orphans":,"seconds":}

Sizes are bytes; orphans are stored pieces that no session needs.`, "one object")
	return cmd
}
