package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"pidb/jsonl"
	"pidb/query"
)

// lines reads lines of the archive as objects. What it returns is valid until the next read.
type lines struct {
	rx       *query.Rx
	doc      jsonl.Doc
	segments []jsonl.Segment
	buffer   []byte
}

// object reads an entry.
func (l *lines) object(ctx context.Context, e *query.Entry) (jsonl.Object, error) {
	raw, err := l.rx.Raw(ctx, e.Ref)
	if err != nil {
		return jsonl.Object{}, err
	}
	if err := l.doc.Parse(bytes.TrimPrefix(raw, []byte("\ufeff"))); err != nil {
		return jsonl.Object{}, fmt.Errorf("read line %s: %w", lineText(e.Line), err)
	}
	return jsonl.NewObject(l.doc.Root()), nil
}

// texts returns what a person can read in an entry.
func (l *lines) texts(o jsonl.Object) []jsonl.Segment {
	l.segments, l.buffer = o.AppendSegments(l.segments[:0], l.buffer[:0])
	return l.segments
}

// preview returns what a line is about, on one line of at most so many columns, safe to print.
func (l *lines) preview(ctx context.Context, e *query.Entry, columns int) (string, error) {
	switch e.Kind {
	case query.KindBlank:
		return "", nil
	case query.KindMalformed, query.KindJSON, query.KindSession:
		raw, err := l.rx.Raw(ctx, e.Ref)
		return head(string(raw[:min(len(raw), gistSize)]), columns), err
	}
	o, err := l.object(ctx, e)
	if err != nil {
		return "", err
	}
	return head(l.gist(e, o), columns), nil
}

// gistSize is how many bytes of a text a gist has at most.
const gistSize = 64 << 10

// gist returns what an entry is about, as it stands in the file.
func (l *lines) gist(e *query.Entry, o jsonl.Object) string {
	switch o.Type() {
	case "message":
		switch e.Role {
		case "assistant":
			return l.assistantGist(o)
		case "bashExecution":
			if b, ok := o.BashExecution(); ok {
				return "$ " + b.Command
			}
		case "system":
			return l.systemGist(o)
		}
	case "compaction":
		if c, ok := o.Compaction(); ok && c.TokensBefore > 0 {
			return fmt.Sprintf("(%s tokens before) %s", tokens(c.TokensBefore), c.Summary)
		}
	case "model_change":
		m, _ := o.ModelChange()
		return strings.Trim(m.Provider+"/"+m.ModelID, "/")
	case "thinking_level_change":
		level, _ := o.ThinkingLevelChange()
		return level
	case "label":
		label, ok := o.Label()
		switch {
		case !ok:
			return ""
		case label.Cleared:
			return "no label for " + label.TargetID
		}
		return fmt.Sprintf("%s for %s", label.Text, label.TargetID)
	case "context_edit":
		edit, _ := o.ContextEdit()
		if edit.Replacement.Kind() == jsonl.KindNull {
			return "leaves out " + edit.TargetID
		}
		return "replaces " + edit.TargetID
	case "custom":
		c, _ := o.Custom()
		return c.CustomType
	case "usage":
		u, _ := o.UsageEntry()
		return u.Kind
	}
	for _, segment := range l.texts(o) {
		return string(segment.Text[:min(len(segment.Text), gistSize)])
	}
	return ""
}

// assistantGist is the text of a message, else its calls of tools, else how it ended.
func (l *lines) assistantGist(o jsonl.Object) string {
	var calls []string
	message, _ := o.AssistantMessage()
	for block := range message.Content.Elements() {
		if call, ok := block.ToolCall(); ok {
			calls = append(calls, callText(call, 60))
		} else if text, _ := block.Get("text").Text(); block.Get("type").IsString("text") && strings.TrimSpace(text) != "" {
			return text
		}
	}
	if len(calls) > 0 {
		return "→ " + strings.Join(calls, " · ")
	}
	if text, ok := message.Content.Text(); ok {
		return text
	}
	if message.ErrorMessage != "" {
		return message.StopReason + ": " + message.ErrorMessage
	}
	return message.StopReason
}

// systemGist says what a system message sets.
func (l *lines) systemGist(o jsonl.Object) string {
	m := o.Message()
	if text, _ := m.Get("content").Text(); strings.TrimSpace(text) != "" {
		return text
	}
	var parts []string
	for name := range m.Get("sections").Members() {
		text, _ := name.Text()
		parts = append(parts, text)
	}
	gist := ""
	if len(parts) > 0 {
		gist = "sections " + strings.Join(parts, ", ")
	}
	if n := m.Get("toolsAdded").Len(); n > 0 {
		gist += fmt.Sprintf(" +%d tools", n)
	}
	if n := m.Get("toolsRemoved").Len(); n > 0 {
		gist += fmt.Sprintf(" -%d tools", n)
	}
	return gist
}

// callText returns a call of a tool on one line: its name and its arguments, each
// shortened to so many columns.
func callText(call jsonl.ToolCall, columns int) string {
	var b strings.Builder
	b.WriteString(flat(call.Name))
	members := call.Arguments.Len()
	for name, value := range call.Arguments.Members() {
		key, _ := name.Text()
		text, isText := value.Text()
		if !isText {
			text = string(value.Raw())
		}
		b.WriteByte(' ')
		switch key {
		case "command", "path", "pattern", "query", "url":
		default:
			if members > 1 || !isText {
				b.WriteString(flat(key))
				b.WriteByte('=')
			}
		}
		b.WriteString(head(text, columns))
	}
	return b.String()
}
