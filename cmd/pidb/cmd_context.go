package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"pidb/jsonl"
	"pidb/query"
)

func (a *app) contextCommand() *cobra.Command {
	var leaf string
	var llm bool
	cmd := &cobra.Command{
		Use:   "context SESSION",
		Short: "print what the model would be given",
		Long: `Print what the model would be given at the leaf of a session, or at the entry that --leaf
names, by the rules of pi 1.6.0: the latest compaction, what it kept, and what came after
it, with the edits of the context done, and the model and thinking level of the branch.

--llm prints what a provider would be sent: shell runs and summaries become text of the
user, and what was excluded from the context is left out.`,
		Example: `  pidb context last
  pidb context 0195f3a2 --leaf 7c21aa03 --json | jq '.messages | length'
  pidb context last --llm --json`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.view(ctx, withoutIndex, func(rx *query.Rx) error {
				s, err := findSession(ctx, rx, args[0])
				if err != nil {
					return err
				}
				return a.context(ctx, rx, &s, leaf, llm)
			})
		},
	}
	cmd.Flags().StringVar(&leaf, "leaf", "", "at `ENTRY`")
	cmd.Flags().BoolVar(&llm, "llm", false, "what a provider would be sent")
	jsonHelp(cmd, `{"session":KEY,"id":,"leaf":ENTRY,"model":{"provider":,"modelId":},"thinkingLevel":,
 "branch":[LINE…],"entries":[LINE…],"messages":[…]}

branch is the lines from the root to the leaf; entries the lines that make the context, in
order, those without a message included.`, "one object")
	return cmd
}

func (a *app) context(ctx context.Context, rx *query.Rx, s *query.Session, leaf string, llm bool) error {
	ref, err := findLeaf(ctx, rx, s, leaf)
	if err != nil {
		return err
	}
	c, err := contextAt(ctx, rx, ref, llm)
	if err != nil {
		return err
	}
	if !a.json {
		return a.printContext(c)
	}
	j, err := newContextJSON(ctx, rx, s, ref, c)
	if err != nil {
		return err
	}
	return a.emit(j)
}

// contextAt returns the context at a leaf, 0 for none.
func contextAt(ctx context.Context, rx *query.Rx, leaf query.Ref, llm bool) (*query.Context, error) {
	c := &query.Context{ThinkingLevel: "off"}
	var err error
	if leaf != 0 {
		if c, err = rx.Context(ctx, leaf); err != nil {
			return nil, err
		}
	}
	if llm {
		c.Messages, err = query.LLM(c.Messages)
	}
	return c, err
}

// newContextJSON returns the context at a leaf of a session in JSON.
func newContextJSON(ctx context.Context, rx *query.Rx, s *query.Session, leaf query.Ref, c *query.Context) (*contextJSON, error) {
	j := &contextJSON{
		Session: s.Key, ID: s.ID, ThinkingLevel: c.ThinkingLevel,
		Branch: []json.RawMessage{}, Entries: []json.RawMessage{}, Messages: []json.RawMessage{},
	}
	if leaf != 0 {
		branch, err := rx.Branch(ctx, leaf)
		if err != nil {
			return nil, err
		}
		j.Branch, j.Leaf = linesJSON(branch), branch[len(branch)-1].ID
		j.Entries = linesJSON(c.Entries)
	}
	if hasModel(c) {
		j.Model = &modelJSON{c.Model.Provider, c.Model.ModelID}
	}
	for _, m := range c.Messages {
		j.Messages = append(j.Messages, m.JSON)
	}
	return j, nil
}

// hasModel reports whether a context names a model. The message that chose it may name none.
func hasModel(c *query.Context) bool {
	return c.Model != nil && (c.Model.Provider != "" || c.Model.ModelID != "")
}

// printContext prints a context for people.
func (a *app) printContext(c *query.Context) error {
	model := "no model"
	if hasModel(c) {
		model = "model " + flat(c.Model.Provider+"/"+c.Model.ModelID)
	}
	a.out.printf("%s\n\n", a.paint(styleTitle, fmt.Sprintf("%s, thinking %s, %s of %s", model, flat(c.ThinkingLevel),
		count(len(c.Messages), "message", "messages"), count(len(c.Entries), "entry", "entries"))))
	entries := map[query.Ref]*query.Entry{}
	for i := range c.Entries {
		entries[c.Entries[i].Ref] = &c.Entries[i]
	}
	t := &transcript{app: a}
	var doc jsonl.Doc
	for _, m := range c.Messages {
		if err := doc.Parse(m.JSON); err != nil {
			return err
		}
		e := entries[m.Source]
		if e == nil {
			e = &query.Entry{Ref: m.Source}
		}
		role, _ := doc.Root().Get("role").Text()
		t.message(e, doc.Root(), role)
		if a.out.err != nil {
			return a.out.err
		}
	}
	return nil
}
