package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"pidb/jsonl"
	"pidb/query"
)

func (a *app) showCommand() *cobra.Command {
	var leaf, entry string
	var all bool
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "read a session",
		Long: `Print a session for reading: the active branch, from its root to the leaf.

Calls of tools stand on one line and their output is folded; Markdown is left as it is.
--leaf shows the branch that ends at another entry, --all everything in the order of the
file, all branches and damaged lines included and nothing folded, --entry one entry whole.
On a terminal a long transcript goes through $PAGER.`,
		Example: `  pidb show last
  pidb show 0195f3a2 --leaf 7c21aa03
  pidb show '#12' --entry :4120
  pidb show last --all | less`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && (leaf != "" || entry != "") || leaf != "" && entry != "" {
				return usagef("--leaf, --all and --entry are three ways to say what to show")
			}
			return a.page(func() error {
				return a.view(cmd.Context(), withoutIndex, func(rx *query.Rx) error {
					s, err := findSession(cmd.Context(), rx, args[0])
					if err != nil {
						return err
					}
					return a.show(cmd.Context(), rx, &s, leaf, entry, all)
				})
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&leaf, "leaf", "", "the branch that ends at `ENTRY`")
	flags.BoolVar(&all, "all", false, "every entry in the order of the file, nothing folded")
	flags.StringVar(&entry, "entry", "", "only `ENTRY`, whole")
	jsonHelp(cmd, `{"line":LINE,"entry":ENTRY,"type":,"role":,"timestamp":,"label":,
 "blocks":[{"kind":"user|assistant|thinking|system|toolName|toolArguments|toolOutput|
   command|commandOutput|summary|custom|label|name|error","tool":,"text":}]}`, "a line an entry")
	return cmd
}

func (a *app) show(ctx context.Context, rx *query.Rx, s *query.Session, leaf, entry string, all bool) error {
	t := &transcript{app: a, lines: &lines{rx: rx}, whole: all || entry != "", labels: map[query.Ref]string{}}
	labels, err := rx.Labels(ctx, s.Key)
	if err != nil {
		return err
	}
	for _, label := range labels {
		t.labels[label.Target] = label.Text
	}
	if entry != "" {
		ref, err := findEntry(ctx, rx, s, entry)
		if err != nil {
			return err
		}
		e, err := rx.Entry(ctx, ref)
		if err != nil {
			return err
		}
		if a.json {
			return t.json(ctx, &e)
		}
		return t.alone(ctx, &e)
	}
	// What cannot be shown is said before anything is.
	ref, err := findLeaf(ctx, rx, s, leaf)
	if err != nil {
		return err
	}
	print := t.entry
	if a.json {
		print = t.json
	} else if err := a.sessionHeading(ctx, rx, s); err != nil {
		return err
	}
	if all {
		for e, err := range rx.Entries(ctx, s.Key, nil) {
			if err != nil {
				return err
			}
			if err := print(ctx, &e); err != nil {
				return err
			}
			if a.out.err != nil {
				return a.out.err
			}
		}
		return nil
	}
	if ref == 0 {
		a.note("the session has no entries")
		return nil
	}
	branch, err := rx.Branch(ctx, ref)
	if err != nil {
		return err
	}
	for i := range branch {
		if err := print(ctx, &branch[i]); err != nil {
			return err
		}
		if a.out.err != nil {
			return a.out.err
		}
	}
	return nil
}

// alone prints one line of a session whole, with what the tree says of it.
func (t *transcript) alone(ctx context.Context, e *query.Entry) error {
	about := fmt.Sprintf("line %s, %s", lineText(e.Line), flat(e.Word()))
	if e.HasID {
		about += ", entry " + flat(e.ID)
	}
	if e.ParentID != "" {
		about += ", parent " + flat(e.ParentID)
	}
	if e.Recovered {
		about += ", recovered from a damaged line"
	}
	t.print("%s\n", t.app.paint(styleDim, about))
	if e.Kind == query.KindEntry {
		o, err := t.lines.object(ctx, e)
		if err != nil {
			return err
		}
		if len(t.lines.texts(o)) > 0 {
			return t.entry(ctx, e)
		}
	}
	raw, err := t.lines.rx.Raw(ctx, e.Ref)
	if err != nil {
		return err
	}
	t.text(stylePlain, "", string(raw), 0)
	return nil
}

// json prints an entry as an object.
func (t *transcript) json(ctx context.Context, e *query.Entry) error {
	j := shownJSON{
		Line: lineJSON(e.Line), Entry: idJSON(e), Type: e.Word(), Role: e.Role, Timestamp: stamp(e.Timestamp), Label: t.labels[e.Ref],
	}
	var segments []jsonl.Segment
	if e.Kind == query.KindEntry {
		o, err := t.lines.object(ctx, e)
		if err != nil {
			return err
		}
		segments = t.lines.texts(o)
	}
	return t.app.emitRaw(j, func(w *memberWriter) error { return w.blocks(segments) })
}
