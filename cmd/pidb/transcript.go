package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pidb/jsonl"
	"pidb/query"
)

// Lines that are shown of long texts, where not all is asked for.
const (
	foldOutput   = 6  // of what tools gave back
	foldThinking = 4  // of what models thought
	foldSystem   = 1  // of system messages
	foldSummary  = 24 // of summaries
)

// transcript prints entries and messages for people.
type transcript struct {
	app    *app
	lines  *lines
	whole  bool // nothing is folded
	labels map[query.Ref]string
}

func (t *transcript) width() int { return t.app.term.columns() }

func (t *transcript) print(format string, args ...any) { t.app.out.printf(format, args...) }

// heading begins a part: who speaks, then what else is known of it.
func (t *transcript) heading(s style, who string, about ...string) {
	var line strings.Builder
	line.WriteString(t.app.paint(s, who))
	for _, text := range about {
		if text != "" {
			line.WriteString(t.app.paint(styleDim, " · "+text))
		}
	}
	t.print("%s", line.String())
}

// text prints text, wrapped, each line behind a margin. Of more than fold lines only
// the first are printed; 0 means all.
func (t *transcript) text(s style, margin, text string, fold int) {
	print := func(line string) { t.print("%s%s\n", t.app.paint(styleDim, margin), t.app.paint(s, line)) }
	long := len(text) > textPiece
	if !long {
		text = query.Printable(text)
	}
	n, last := 0, ""
	for piece := range pieces(strings.Trim(text, "\n"), textPiece) {
		if long {
			piece = query.Printable(piece)
		}
		for _, line := range wrap(piece, t.width()-len(margin)) {
			switch n++; {
			case t.whole || fold == 0 || n <= fold:
				print(line)
			case n == fold+1:
				last = line
			}
		}
		if t.app.out.err != nil {
			return
		}
	}
	switch left := n - fold; {
	case t.whole || fold == 0 || left <= 0:
	case left == 1:
		print(last)
	default:
		t.print("%s\n", t.app.paint(styleDim, margin+"… "+count(left, "more line", "more lines")))
	}
}

// textPiece is how many bytes of a text are made ready to be printed at a time.
const textPiece = 1 << 20

// aside prints what happened beside the talk on one line.
func (t *transcript) aside(e *query.Entry, what, text string) {
	line := cut(flat(what+" "+text), t.width()-2)
	t.print("%s%s\n\n", t.app.paint(styleDim, "· "+line), t.label(e))
}

func (t *transcript) label(e *query.Entry) string {
	if text, ok := t.labels[e.Ref]; ok {
		return " " + t.app.paint(styleLabel, "["+flat(text)+"]")
	}
	return ""
}

// entry prints an entry, or nothing where it says nothing and not all is asked for.
func (t *transcript) entry(ctx context.Context, e *query.Entry) error {
	if e.Kind != query.KindEntry {
		if t.whole {
			gist, err := t.lines.preview(ctx, e, t.width())
			t.aside(e, fmt.Sprintf("line %s is %s", lineText(e.Line), e.Kind), gist)
			return err
		}
		return nil
	}
	if !t.whole && (e.Type == "custom" || e.Type == "usage") {
		return nil
	}
	o, err := t.lines.object(ctx, e)
	if err != nil {
		return err
	}
	switch e.Type {
	case "message":
		t.message(e, o.Message(), e.Role)
	case "custom_message":
		c, _ := o.CustomMessage()
		t.heading(styleSystem, "custom", flat(c.CustomType), clock(e.Timestamp), entryName(e))
		t.print("%s\n", t.label(e))
		t.content(c.Content, "", 0)
		t.print("\n")
	case "compaction":
		c, _ := o.Compaction()
		t.summary(e, "compaction", c.TokensBefore, c.Summary)
	case "branch_summary":
		b, _ := o.BranchSummary()
		t.summary(e, "branch", 0, b.Summary)
	case "model_change":
		t.aside(e, "model", t.lines.gist(e, o))
	case "thinking_level_change":
		t.aside(e, "thinking", t.lines.gist(e, o))
	case "session_info":
		name, _ := o.SessionInfo()
		t.aside(e, "name", name)
	case "context_edit":
		t.aside(e, "context edit", t.lines.gist(e, o))
	default:
		t.aside(e, e.Type, t.lines.gist(e, o))
	}
	return nil
}

func (t *transcript) summary(e *query.Entry, what string, before int64, summary string) {
	about := ""
	if before > 0 {
		about = "of " + tokens(before) + " tokens"
	}
	t.heading(styleSystem, "summary", what, about, clock(e.Timestamp), entryName(e))
	t.print("%s\n", t.label(e))
	t.text(stylePlain, "", summary, foldSummary)
	t.print("\n")
}

// message prints a message of an entry, or of a context, where the entry is the one it comes from.
func (t *transcript) message(e *query.Entry, m jsonl.Value, role string) {
	when, name := clock(e.Timestamp), entryName(e)
	switch role {
	case "user":
		t.heading(styleUser, "user", when, name)
		t.print("%s\n", t.label(e))
		t.content(m.Get("content"), "", 0)
	case "assistant":
		model, _ := m.Get("model").Text()
		t.heading(styleAssistant, "assistant", flat(model), when, name)
		t.print("%s\n", t.label(e))
		t.content(m.Get("content"), "", 0)
		if text, _ := m.Get("errorMessage").Text(); text != "" {
			reason, _ := m.Get("stopReason").Text()
			t.text(styleError, "", strings.TrimSpace(reason+": "+text), 0)
		}
	case "toolResult":
		tool, _ := m.Get("toolName").Text()
		who, s := strings.TrimSpace("tool "+flat(tool)), styleTool
		if m.Get("isError").Truthy() {
			who, s = who+" failed", styleError
		}
		t.heading(s, who, when, name)
		t.print("%s\n", t.label(e))
		t.content(m.Get("content"), "  │ ", foldOutput)
	case "bashExecution":
		t.bash(e, m)
	case "system":
		t.heading(styleSystem, "system", when, name)
		t.print("%s\n", t.label(e))
		t.content(m.Get("content"), "", foldSystem)
		for key, value := range m.Get("sections").Members() {
			section, _ := key.Text()
			text, ok := value.Text()
			if !ok {
				text = "(removed)"
			}
			t.text(styleDim, "", flat(section)+": "+text, foldSystem)
		}
	case "compactionSummary", "branchSummary":
		text, _ := m.Get("summary").Text()
		what := "compaction"
		if role == "branchSummary" {
			what = "branch"
		}
		t.heading(styleSystem, "summary", what, when, name)
		t.print("%s\n", t.label(e))
		t.text(stylePlain, "", text, foldSummary)
	default:
		custom, _ := m.Get("customType").Text()
		who := flat(role)
		if who == "" {
			who = "message without role"
		}
		t.heading(styleSystem, who, flat(custom), when, name)
		t.print("%s\n", t.label(e))
		t.content(m.Get("content"), "", 0)
	}
	t.print("\n")
}

func (t *transcript) bash(e *query.Entry, m jsonl.Value) {
	command, _ := m.Get("command").Text()
	t.heading(styleUser, "bash", clock(e.Timestamp), entryName(e))
	t.print("%s\n", t.label(e))
	t.text(styleTool, "", "$ "+command, 0)
	output, _ := m.Get("output").Text()
	if output != "" {
		t.text(stylePlain, "  │ ", output, foldOutput)
	}
	if code, ok := m.Get("exitCode").Float(); ok && code != 0 {
		t.text(styleError, "", fmt.Sprintf("exit code %v", code), 0)
	}
}

// content prints a text or the blocks of a message.
func (t *transcript) content(content jsonl.Value, margin string, fold int) {
	if text, ok := content.Text(); ok {
		t.text(stylePlain, margin, text, fold)
		return
	}
	for block := range content.Elements() {
		kind, _ := block.Get("type").Text()
		switch kind {
		case "text":
			text, _ := block.Get("text").Text()
			if strings.TrimSpace(text) != "" {
				t.text(stylePlain, margin, text, fold)
			}
		case "thinking":
			if text, _ := block.Get("thinking").Text(); strings.TrimSpace(text) != "" {
				t.text(styleDim, "  ~ ", text, foldThinking)
			}
		case "toolCall":
			t.call(block)
		case "image":
			media, _ := block.Get("mimeType").Text()
			data := block.Get("data")
			t.text(styleDim, margin, fmt.Sprintf("(image %s, %s)", media, bytesText(int64(len(data.Raw()))*3/4)), 0)
		default:
			t.text(styleDim, margin, "("+kind+" block)", 0)
		}
	}
}

func (t *transcript) call(block jsonl.Value) {
	call, _ := block.ToolCall()
	if !t.whole {
		t.print("%s\n", t.app.paint(styleTool, cut("→ "+callText(call, t.width()), t.width())))
		return
	}
	t.print("%s\n", t.app.paint(styleTool, "→ "+flat(call.Name)))
	if call.Arguments.Kind() != jsonl.KindObject {
		t.text(stylePlain, "    ", string(call.Arguments.Raw()), 0)
		return
	}
	for key, value := range call.Arguments.Members() {
		name, _ := key.Text()
		text, ok := value.Text()
		if !ok {
			text = string(value.Raw())
		}
		if strings.Contains(text, "\n") {
			text = "\n" + text
		}
		t.text(stylePlain, "    ", flat(name)+": "+text, 0)
	}
}

// sessionHeading prints what is known of a session, before its transcript or its tree.
func (a *app) sessionHeading(ctx context.Context, rx *query.Rx, s *query.Session) error {
	const margin = 9
	problems, err := problemsOf(ctx, rx, s)
	if err != nil {
		return err
	}
	if title := a.titleIn(s, a.term.columns()); title != "" {
		a.out.printf("%s\n", a.paint(styleTitle, title))
	}
	line := func(name, value string) {
		if value != "" {
			a.out.printf("%s %s\n", a.paint(styleDim, pad(name, 8)), value)
		}
	}
	key := "  " + quotedKey(s.Key)
	line("session", head(s.ID, a.term.columns()-margin-len(key))+key)
	line("folder", cutLeft(a.displayPath(s.CWD), a.term.columns()-margin))
	source := a.displayPath(s.Path)
	if source != "" && s.State != query.Live {
		source += " (" + string(s.State) + ")"
	}
	line("source", cutLeft(source, a.term.columns()-margin))
	line("model", head(s.Model, a.term.columns()-margin))
	about := []string{count(s.Messages, "message", "messages")}
	if s.Tips > 1 {
		about = append(about, count(s.Tips, "branch", "branches"))
	}
	if s.Tokens > 0 {
		about = append(about, tokens(s.Tokens)+" tokens")
	}
	if s.Cost > 0 {
		about = append(about, money(s.Cost))
	}
	line("holds", strings.Join(about, ", "))
	line("problems", problems)
	when := clock(s.Modified)
	if !s.Created.IsZero() {
		when = clock(s.Created) + " to " + when
	}
	line("time", when)
	a.out.printf("\n")
	return nil
}

// damagedShown is how many damaged lines a heading names.
const damagedShown = 6

// problemsOf says what is wrong with the file of a session, "" where nothing is.
func problemsOf(ctx context.Context, rx *query.Rx, s *query.Session) (string, error) {
	var parts []string
	damaged := s.Problems
	if s.Headerless && damaged > 0 {
		damaged--
		parts = append(parts, "no header")
	}
	if damaged > 0 {
		var names []string
		for e, err := range rx.Entries(ctx, s.Key, &query.EntriesOptions{Types: []string{string(query.KindMalformed)}}) {
			if err != nil {
				return "", err
			}
			if len(names) == damagedShown {
				names = append(names, "…")
				break
			}
			names = append(names, lineText(e.Line))
		}
		parts = append(parts, count(damaged, "damaged line", "damaged lines")+": "+strings.Join(names, ", "))
	}
	return strings.Join(parts, ", "), nil
}

// sinceWhen returns how long before now a time is.
func (a *app) sinceWhen(t time.Time) string { return age(a.now.Sub(t)) }
