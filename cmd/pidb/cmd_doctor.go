package main

import (
	"github.com/spf13/cobra"
)

func (a *app) doctorCommand() *cobra.Command {
	var rebuild bool
	var salvage string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "check the archive",
		Long: `Check the archive as a database: its integrity, the counts and links of its rows, and the
search index. Nothing is changed, no source is looked at; pidb verify proves the bytes.
Only a search index that cannot be opened is replaced by an empty one, as each command
does, and said to have been damaged; the next search fills it.

--rebuild makes anew what follows from the lines, before it checks: rows, trees, listing
fields and the search index. It ends with 1 when something is wrong.

--salvage brings what is left of a damaged archive into a new one, NEW, and leaves the
damaged one as it is. Every session whose bytes are all there and proved comes whole; of
another one comes what is proved, and a line that begins with "# pidb:" stands where
something is lost. It ends with 3 when not all sessions are whole. An archive of a newer
pidb is salvaged without what only the newer one keeps, and that is said. No other pidb
may be running meanwhile.`,
		Example: `  pidb doctor
  pidb doctor --rebuild
  pidb doctor --salvage new.db`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("salvage") {
				if rebuild || salvage == "" {
					return usagef("--salvage takes a new file, and no --rebuild beside it")
				}
				return a.salvage(ctx, salvage)
			}
			archive, err := a.openExisting(ctx)
			if err != nil {
				return err
			}
			if rebuild {
				bar := a.newBar()
				err := archive.Rebuild(ctx, bar.count("rebuilding"))
				bar.end()
				if err != nil {
					return err
				}
			}
			check, err := archive.Check(ctx)
			if err != nil {
				return err
			}
			j := checkJSON{
				Path: archive.Path(), Sessions: check.Sessions, Entries: check.Entries, Bytes: check.Bytes, Stored: check.Stored, Indexed: check.Indexed,
				Findings: []findingJSON{},
			}
			for _, f := range check.Findings {
				j.Findings = append(j.Findings, findingJSON{f.Area, f.Detail})
			}
			if a.json {
				if err := a.emit(j); err != nil {
					return err
				}
			} else {
				a.out.printf("%s: %s, %s, %s in %s; %s indexed\n", a.displayPath(archive.Path()), count(check.Sessions, "session", "sessions"),
					count(check.Entries, "entry", "entries"), bytesText(check.Bytes), bytesText(check.Stored), count(check.Indexed, "session", "sessions"))
				for _, f := range check.Findings {
					a.out.printf("%s %s\n", a.paint(styleError, f.Area+":"), flat(f.Detail))
				}
				if len(check.Findings) == 0 {
					a.out.printf("%s\n", "nothing is wrong")
				}
			}
			if missing := check.Sessions - check.Indexed; missing > 0 {
				a.note("%s not in the search index yet: the next search brings it up to date", count(missing, "session is", "sessions are"))
			}
			if len(check.Findings) > 0 {
				return exitWith(exitFailed)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&rebuild, "rebuild", false, "make derived data anew")
	cmd.Flags().StringVar(&salvage, "salvage", "", "bring what is left of the archive into `NEW`")
	jsonHelp(cmd, `{"path":,"sessions":,"entries":,"bytes":,"stored":,"indexed":,
 "findings":[{"area":"archive|index|session","detail":}]}

bytes is the size of the session files, stored what they take in the archive. With --salvage:

{"path":,"sessions":,"intact":,"partial":,"lost":,"bytes":,"newerSchema":,"seconds":,
 "damaged":[{"session":KEY,"id":,"path":,"saved":KEY,
 "lost":[{"from":,"to":,"firstLine":,"lastLine":}],"detail":}]}

session is the key in the damaged archive, saved that in the new one; from and to are bytes.
newerSchema is there where a newer pidb has written the archive.`, "one object")
	return cmd
}
