package main

import (
	"context"
	"iter"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"pidb/query"
)

func (a *app) treeCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "tree SESSION",
		Short: "draw the branches of a session",
		Long: `Draw the tree of a session: its branches, labels and tips.

Entries of a branch stand under each other; where it splits, each branch begins at a line
of its own. A bullet marks the entries of the active branch, ◀ its leaf and ○ the tips of
the others. What lies between questions and answers is folded, as is the middle of a long
run; --all shows every entry. The names in front are those that --leaf takes.`,
		Example: `  pidb tree last
  pidb tree 0195f3a2 --all
  pidb tree last --json | jq -r 'select(.tip) | .entry'`,
		Args:              arguments(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.page(func() error {
				return a.view(ctx, withoutIndex, func(rx *query.Rx) error {
					s, err := findSession(ctx, rx, args[0])
					if err != nil {
						return err
					}
					if a.json {
						return a.treeJSON(ctx, rx, &s)
					}
					return a.drawTree(ctx, rx, &s, all)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every entry, nothing folded")
	jsonHelp(cmd, `{"line":LINE,"entry":ENTRY,"parent":,"parentLine":LINE,"depth":(parent's + 1),"type":,"role":,
 "timestamp":,"label":,"tip":bool,"text":(the beginning of it, on one line)}`, "a line an entry, in pre-order")
	return cmd
}

// nodeText is how much of an entry's text its node in JSON has, in columns.
const nodeText = 200

func (a *app) treeJSON(ctx context.Context, rx *query.Rx, s *query.Session) error {
	for node, err := range nodes(ctx, rx, s) {
		if err != nil {
			return err
		}
		if err := a.emit(node); err != nil {
			return err
		}
	}
	return nil
}

// nodes yields the tree of a session in JSON.
func nodes(ctx context.Context, rx *query.Rx, s *query.Session) iter.Seq2[nodeJSON, error] {
	return func(yield func(nodeJSON, error) bool) {
		l := &lines{rx: rx}
		for n, err := range rx.Tree(ctx, s.Key) {
			var text string
			if err == nil {
				text, err = l.preview(ctx, &n.Entry, nodeText)
			}
			if !yield(nodeJSON{
				Line: lineJSON(n.Line), Entry: idJSON(&n.Entry), Parent: parentJSON(&n.Entry), ParentLine: lineJSON(n.ParentLine), Depth: n.Depth,
				Type: n.Type, Role: n.Role, Timestamp: stamp(n.Timestamp), Label: n.Label, Tip: n.Tip, Text: text,
			}, err) || err != nil {
				return
			}
		}
	}
}

// drawing is a tree that is being drawn.
type drawing struct {
	app   *app
	lines *lines
	nodes []query.Node
	kids  []int32 // children of each node
	on    map[query.Ref]bool
	leaf  query.Ref
	all   bool
}

// Lines that stay of the middle of a long run: of more than foldRun lines the first
// foldFirst and the last foldLast.
const (
	foldRun   = 16
	foldFirst = 6
	foldLast  = 7
)

func (a *app) drawTree(ctx context.Context, rx *query.Rx, s *query.Session, all bool) error {
	d := &drawing{app: a, lines: &lines{rx: rx}, on: map[query.Ref]bool{}, leaf: s.Leaf, all: all}
	var path []int32 // the nodes above the one at hand
	roots := 0
	for n, err := range rx.Tree(ctx, s.Key) {
		if err != nil {
			return err
		}
		path = append(path[:n.Depth], int32(len(d.nodes)))
		if n.Depth > 0 {
			d.kids[path[n.Depth-1]]++
		} else {
			roots++
		}
		d.nodes = append(d.nodes, n)
		d.kids = append(d.kids, 0)
	}
	if len(d.nodes) == 0 {
		a.note("the session has no entries")
		return nil
	}
	if s.Leaf != 0 {
		branch, err := rx.Branch(ctx, s.Leaf)
		if err != nil {
			return err
		}
		for i := range branch {
			d.on[branch[i].Ref] = true
		}
	}
	if err := a.sessionHeading(ctx, rx, s); err != nil {
		return err
	}
	return d.draw(ctx, roots)
}

// level is a place where branches begin.
type level struct {
	prefix string
	left   int // branches still to be drawn
	split  bool
}

// draw prints the tree run by run: entries that follow each other without a branch.
func (d *drawing) draw(ctx context.Context, roots int) error {
	levels := []level{{left: roots, split: roots > 1}}
	for at := 0; at < len(d.nodes); {
		for levels[len(levels)-1].left == 0 {
			levels = levels[:len(levels)-1]
		}
		top := &levels[len(levels)-1]
		top.left--
		first, rest := top.prefix, top.prefix
		if top.split {
			first, rest = top.prefix+"├─ ", top.prefix+"│  "
			if top.left == 0 {
				first, rest = top.prefix+"└─ ", top.prefix+"   "
			}
		}
		end := at + 1
		for d.kids[end-1] == 1 {
			end++
		}
		if err := d.run(ctx, at, end, first, rest); err != nil {
			return err
		}
		if d.app.out.err != nil {
			return d.app.out.err
		}
		if n := d.kids[end-1]; n > 0 {
			levels = append(levels, level{prefix: rest, left: int(n), split: true})
		}
		at = end
	}
	return nil
}

// run prints the nodes from at to end, which follow each other without a branch.
func (d *drawing) run(ctx context.Context, at, end int, first, rest string) error {
	show := make([]bool, end-at)
	shown := 0
	for i := at; i < end; i++ {
		if show[i-at] = d.all || d.speaks(i, at, end); show[i-at] {
			shown++
		}
	}
	if !d.all && shown > foldRun {
		place := 0
		for i := at; i < end; i++ {
			if !show[i-at] {
				continue
			}
			if place >= foldFirst && place < shown-foldLast && !d.marked(i) {
				show[i-at] = false
			}
			place++
		}
	}
	prefix := first
	for i := at; i < end; {
		folded := i
		for folded < end && !show[folded-at] {
			folded++
		}
		if n := folded - i; n > 1 {
			text := d.app.paint(styleDim, "… "+count(n, "entry", "entries"))
			d.app.out.printf("%s %s%s\n", pad("", nameColumns), d.app.paint(styleDim, d.clip(prefix)), "  "+text)
			i, prefix = folded, rest
			continue
		}
		if err := d.node(ctx, &d.nodes[i], prefix); err != nil {
			return err
		}
		i, prefix = i+1, rest
	}
	return nil
}

// marked reports whether a node is always drawn.
func (d *drawing) marked(i int) bool {
	n := &d.nodes[i]
	return n.Label != "" || n.Ref == d.leaf || n.Tip || n.Type == "compaction" || n.Type == "branch_summary"
}

// speaks reports whether a node of a run is drawn: its ends, questions, last answers,
// and what is marked.
func (d *drawing) speaks(i, at, end int) bool {
	n := &d.nodes[i]
	switch {
	case i == at && at > 0, i == end-1, d.marked(i):
		return true
	case n.Type == "custom_message", n.Role == "user", n.Role == "bashExecution":
		return true
	case n.Role == "assistant":
		next := &d.nodes[i+1]
		return next.Role != "toolResult" && next.Role != "assistant"
	}
	return false
}

// nameColumns is the width of the names of entries in front.
const nameColumns = 8

// node prints one entry.
func (d *drawing) node(ctx context.Context, n *query.Node, prefix string) error {
	a := d.app
	bullet := "  "
	if d.on[n.Ref] {
		bullet = "• "
	}
	who := roleWord(n.Type, n.Role)
	if n.Role == "toolResult" {
		who += " " + n.Value
	}
	who = head(who, 24) + ":"
	label := ""
	if n.Label != "" {
		label = "[" + head(n.Label, 24) + "] "
	}
	mark, markStyle := "", styleDim
	switch {
	case n.Ref == d.leaf:
		mark, markStyle = " ◀ leaf", styleLeaf
	case n.Tip:
		mark = " ○ tip"
	}
	prefix = d.clip(prefix)
	room := a.term.columns() - nameColumns - 1 - runewidth.StringWidth(prefix+bullet+label+who+" "+mark)
	text, err := d.lines.preview(ctx, &n.Entry, max(room, 0))
	if err != nil {
		return err
	}
	s := styleOf(n.Role)
	if n.Role == "" && n.Type != "compaction" && n.Type != "branch_summary" && n.Type != "custom_message" {
		s = styleDim
	}
	line := a.paint(styleDim, pad(entryName(&n.Entry), nameColumns)) + " " +
		a.paint(styleDim, prefix) + a.paint(styleLeaf, bullet) + a.paint(styleLabel, label) + a.paint(s, who) + " " + text + a.paint(markStyle, mark)
	a.out.printf("%s\n", strings.TrimRight(line, " "))
	return nil
}

// clip shortens what stands before deep branches: at least half of the line is text.
func (d *drawing) clip(prefix string) string {
	limit := (d.app.term.columns() - nameColumns) / 2
	runes := []rune(prefix)
	if len(runes) <= limit {
		return prefix
	}
	return "⋯" + string(runes[len(runes)-limit+1:])
}
