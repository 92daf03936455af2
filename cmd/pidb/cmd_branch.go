package main

import (
	"github.com/spf13/cobra"

	"pidb/repo"
)

func (a *app) branchCommand() *cobra.Command {
	var start bool
	var summary string
	cmd := &cobra.Command{
		Use:   "branch SESSION [ENTRY]",
		Short: "move the leaf of a session to an earlier entry",
		Long: `Make ENTRY the leaf of the session, or with --start the place before the first entry: what
is appended next begins a new branch there. It holds until the next line of the session; an
exported file cannot carry it.

With --summary, an entry that tells of the branch that is left is appended there, and is
the leaf.`,
		Example: `  pidb branch last 7c21aa03
  pidb branch 0195f3a2 :12 --summary "the first try failed"
  pidb branch last --start`,
		Args:              arguments(cobra.RangeArgs(1, 2)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if start == (len(args) == 2) {
				return usagef("branch needs one ENTRY, or --start")
			}
			ctx := cmd.Context()
			l, err := a.openLive(ctx, args[0])
			if err != nil {
				return err
			}
			id := ""
			if !start {
				if id, err = l.branchID(ctx, args[1]); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("summary") {
				ids, err := l.append(ctx, repo.BranchSummary(id, summary, nil))
				if err != nil {
					return err
				}
				id = ids[0]
			} else if err := l.session.Branch(ctx, id); err != nil {
				return err
			}
			switch {
			case a.json:
				return a.emit(branchJSON{l.info.Key, id})
			case a.quiet:
			case id == "":
				a.out.printf("before the first entry\n")
			default:
				a.out.printf("%s\n", flat(id))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&start, "start", false, "before the first entry")
	cmd.Flags().StringVar(&summary, "summary", "", "append `TEXT` about the branch that is left")
	jsonHelp(cmd, `{"session":KEY,"leaf":ID}`, "one object, without a leaf after --start")
	return cmd
}
