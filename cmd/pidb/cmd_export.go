package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

// exportOptions are the flags of export.
type exportOptions struct {
	out  string
	form string
	leaf string
	all  bool

	redact bool
}

func (a *app) exportCommand() *cobra.Command {
	var opts exportOptions
	cmd := &cobra.Command{
		Use:   "export SESSION [-o FILE]",
		Short: "write a session file as it was",
		Long: `Write the file of a session, byte for byte, from the archive alone: to standard output, or
to a FILE that does not exist yet.

--form normalized writes it as pi would rewrite it: version 3, in the form of
JSON.stringify, unreadable lines left out. --form branch writes the path to the leaf, or to
--leaf, as a session file of its own, as pi's /export does.

--all -o DIR writes every session below DIR, under the path that its file had below the
folder it was imported from; sessions in no file where pi would put them, a name that is
taken with ~2, old versions in .versions. A file of an earlier export that has the same
bytes is left as it is (present). Nothing outside of DIR is written.

--redact masks keys and tokens, as in [redacted:github-pat:1], in what is written and
nowhere else, and reports on standard error how many of which rule. A secret has the same
number everywhere. No rule finds all: passwords in prose, names, addresses and paths stay.

--json changes nothing where bytes of a session go to standard output.`,
		Example: `  pidb export last > session.jsonl
  pidb export 0195f3a2 -o branch.jsonl --form branch --leaf 7c21aa03
  pidb export last -o share.jsonl --redact
  pidb export --all -o backup/`,
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.all {
				if len(args) > 0 {
					return usagef("--all takes no SESSION")
				}
				return nil
			}
			return arguments(cobra.ExactArgs(1))(cmd, args)
		},
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case opts.out == "" && cmd.Flag("output").Changed:
				return usagef("-o needs a FILE; it got an empty name")
			case opts.all && opts.out == "":
				return usagef("--all needs a folder: -o DIR")
			case opts.all && (opts.leaf != "" || opts.form != "original"):
				return usagef("--all writes sessions as they were: --form and --leaf do not go with it")
			case opts.form != "original" && opts.form != "normalized" && opts.form != "branch":
				return usagef("--form is original, normalized or branch, not %q", opts.form)
			case opts.leaf != "" && opts.form != "branch":
				return usagef("--leaf goes with --form branch")
			case opts.all:
				return a.exportAll(cmd.Context(), &opts)
			}
			return a.export(cmd.Context(), args[0], &opts)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&opts.out, "output", "o", "", "write to `FILE`, which must not exist; the folder with --all")
	flags.StringVar(&opts.form, "form", "original", "`FORM`: original, normalized or branch")
	flags.StringVar(&opts.leaf, "leaf", "", "with --form branch: the path to `ENTRY`")
	flags.BoolVar(&opts.all, "all", false, "every session of the archive")
	flags.BoolVar(&opts.redact, "redact", false, "mask keys and tokens")
	must(cmd.RegisterFlagCompletionFunc("form", cobra.FixedCompletions([]string{"original", "normalized", "branch"}, cobra.ShellCompDirectiveNoFileComp)))
	jsonHelp(cmd, `{"session":KEY,"path":,"bytes":}
{"sessions":,"present":,"bytes":,"failed":[{"session":,"path":,"error":}]}
"redacted":{"secrets":,"masks":,"rules":[{"rule":,"secrets":,"masks":}]}, with --redact`, "one object where it writes to a FILE, or with --all; else that of --redact is on standard error")
	return cmd
}

func (a *app) export(ctx context.Context, spec string, opts *exportOptions) error {
	archive, err := a.open(ctx)
	if err != nil {
		return err
	}
	if err := a.sync(ctx, archive, withoutIndex); err != nil {
		return err
	}
	toFile := opts.out != "" && opts.out != "-"
	masked, err := newMasking(opts.redact)
	if err != nil {
		return err
	}
	whole := toFile && opts.form == "original" && !opts.redact
	var s query.Session
	var size int64
	err = archive.View(ctx, func(rx *query.Rx) error {
		if s, err = findSession(ctx, rx, spec); err != nil {
			return err
		}
		if whole {
			size = s.Bytes
			return nil
		}
		var leaf query.Ref
		if opts.form == "branch" {
			if leaf, err = findLeaf(ctx, rx, &s, opts.leaf); err != nil {
				return err
			}
		}
		write := func(w io.Writer) error { return a.writeForm(ctx, rx, &s, opts.form, leaf, w) }
		if write, err = masked.around(write); err != nil {
			return err
		}
		switch {
		case toFile:
			size, err = createFile(opts.out, write)
			return err
		case a.term.out:
			return write(printableWriter{a.out})
		}
		return write(a.out)
	})
	if err == nil && whole {
		err = archive.ExportFile(ctx, s.Key, opts.out)
	}
	switch {
	case errors.Is(err, fs.ErrExist), errors.Is(err, repo.ErrExists):
		return withHint(fmt.Errorf("%s: %w", opts.out, repo.ErrExists), "export never writes over a file")
	case err != nil:
		return err
	case !toFile:
		return a.sayMasked(masked.reportJSON())
	}
	path, err := filepath.Abs(opts.out)
	if err != nil {
		return err
	}
	if a.json {
		return a.emit(exportJSON{s.Key, path, size, masked.reportJSON()})
	}
	a.note("%s written to %s", bytesText(size), a.displayPath(path))
	return a.sayMasked(masked.reportJSON())
}

// writeForm writes a session in one of the forms of export; that of a branch takes its leaf.
func (a *app) writeForm(ctx context.Context, rx *query.Rx, s *query.Session, form string, leaf query.Ref, w io.Writer) error {
	switch {
	case form == "normalized":
		return rx.WriteNormalized(ctx, s.Key, w)
	case form == "branch" && leaf == 0:
		return fmt.Errorf("session %s has no entries: %w", quotedKey(s.Key), query.ErrNotFound)
	case form == "branch":
		return rx.WriteBranch(ctx, leaf, a.now, w)
	}
	_, err := rx.Write(ctx, s.Key, 0, w)
	return err
}

// createFile makes a new file of what write gives, and takes it away again when that fails.
func createFile(path string, write func(io.Writer) error) (int64, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	err = write(file)
	n, _ := file.Seek(0, io.SeekEnd)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(path)
	}
	return n, err
}

// printableWriter makes what it is given safe for a terminal. A character that is cut
// in two between writes is shown as two that are none.
type printableWriter struct{ w io.Writer }

func (p printableWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, query.Printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (a *app) exportAll(ctx context.Context, opts *exportOptions) error {
	masked, err := newMasking(opts.redact)
	if err != nil {
		return err
	}
	archive, err := a.open(ctx)
	if err != nil {
		return err
	}
	if err := a.sync(ctx, archive, withoutIndex); err != nil {
		return err
	}
	bar := a.newBar()
	result, err := archive.ExportAll(ctx, opts.out, &repo.ExportAllOptions{Progress: bar.count("exporting"), Redact: masked.redactor})
	bar.end()
	if err != nil {
		return err
	}
	masked.report = result.Redacted
	j := exportAllJSON{Sessions: result.Sessions, Present: result.Present, Bytes: result.Bytes, Failed: []failedJSON{}, redactJSON: masked.reportJSON()}
	for _, f := range result.Failed {
		j.Failed = append(j.Failed, failedJSON{Session: f.Session, Path: f.Path, Error: f.Err.Error()})
		a.say("session %s: %s: %v", quotedKey(f.Session), f.Path, f.Err)
	}
	switch {
	case a.json:
		if err := a.emit(j); err != nil {
			return err
		}
	case !a.quiet:
		a.out.printf("%s, %s, written to %s; %d of them there already\n", count(result.Sessions, "session", "sessions"), bytesText(result.Bytes), a.displayPath(opts.out), result.Present)
	}
	if !a.json {
		if err := a.sayMasked(j.redactJSON); err != nil {
			return err
		}
	}
	if len(result.Failed) > 0 {
		return exitWith(exitFailed)
	}
	return nil
}
