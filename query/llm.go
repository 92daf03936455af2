package query

import (
	"fmt"

	"pidb/jsonl"
)

// What pi puts around summaries for a provider, as it stands inside a JSON string.
const (
	compactionPrefix = `The conversation history before this point was compacted into the following summary:\n\n<summary>\n`
	compactionSuffix = `\n</summary>`
	branchPrefix     = `The following is a summary of a branch that this conversation came back from:\n\n<summary>\n`
	branchSuffix     = `</summary>`
)

// LLM returns what a provider would be sent of messages, by the rules of pi's
// convertToLlm: shell runs and summaries become user text, shell runs that were kept
// from the context and messages of roles that pi does not know are left out. The
// messages are those of a [Context]; the result shares their bytes.
func LLM(messages []Message) ([]Message, error) {
	var sent []Message
	var doc jsonl.Doc
	for _, m := range messages {
		if err := doc.Parse(m.JSON); err != nil {
			return nil, fmt.Errorf("read message of entry %d of session #%d: %w", m.Source.Seq(), m.Source.Session(), err)
		}
		if text := convertToLLM(doc.Root()); text != nil {
			sent = append(sent, Message{Source: m.Source, JSON: text})
		}
	}
	return sent, nil
}

// convertToLLM returns what one message becomes, or nil.
func convertToLLM(m jsonl.Value) []byte {
	role, _ := m.Get("role").Text()
	switch role {
	case "system", "user", "assistant", "toolResult":
		return m.Raw()
	case "bashExecution":
		if m.Get("excludeFromContext").Truthy() {
			return nil
		}
		return userText(appendShellRun(nil, m), m)
	case "custom":
		content := m.Get("content")
		if content.Kind() == jsonl.KindString {
			return userText(appendInner(nil, content), m)
		}
		b := append([]byte(nil), `{"role":"user"`...)
		b = appendMember(b, "content", content)
		return append(appendMember(b, "timestamp", m.Get("timestamp")), '}')
	case "branchSummary":
		return userText(append(appendInner([]byte(branchPrefix), m.Get("summary")), branchSuffix...), m)
	case "compactionSummary":
		return userText(append(appendInner([]byte(compactionPrefix), m.Get("summary")), compactionSuffix...), m)
	}
	return nil
}

// userText returns a user message with one block of text, given as it stands inside a
// JSON string, and the time of m.
func userText(inner []byte, m jsonl.Value) []byte {
	b := append([]byte(nil), `{"role":"user","content":[{"type":"text","text":"`...)
	b = append(append(b, inner...), `"}]`...)
	return append(appendMember(b, "timestamp", m.Get("timestamp")), '}')
}

// appendShellRun is pi's bashExecutionToText.
func appendShellRun(b []byte, m jsonl.Value) []byte {
	b = append(b, "Ran `"...)
	b = append(appendInner(b, m.Get("command")), "`\\n"...)
	if output := m.Get("output"); output.Truthy() {
		b = append(b, "```\\n"...)
		b = append(appendInner(b, output), "\\n```"...)
	} else {
		b = append(b, "(no output)"...)
	}
	if m.Get("cancelled").Truthy() {
		b = append(b, `\n\n(command cancelled)`...)
	} else if code := m.Get("exitCode"); failedExit(code) {
		b = appendInner(append(b, `\n\nCommand exited with code `...), code)
	}
	if path := m.Get("fullOutputPath"); m.Get("truncated").Truthy() && path.Truthy() {
		b = append(appendInner(append(b, `\n\n[Output truncated. Full output: `...), path), ']')
	}
	return b
}

// failedExit reports whether an exit code is there and not the number 0.
func failedExit(code jsonl.Value) bool {
	switch code.Kind() {
	case jsonl.KindAbsent, jsonl.KindNull:
		return false
	case jsonl.KindNumber:
		return code.Truthy()
	}
	return true
}

// appendInner appends a value as JavaScript's String makes text of it, as it stands
// inside a JSON string in normal form.
func appendInner(b []byte, v jsonl.Value) []byte {
	switch v.Kind() {
	case jsonl.KindAbsent:
		return append(b, "undefined"...)
	case jsonl.KindString:
		at := len(b)
		b = v.AppendNormal(b)
		// Without the quotes.
		return append(b[:at], b[at+1:len(b)-1]...)
	case jsonl.KindObject:
		return append(b, "[object Object]"...)
	case jsonl.KindArray:
		first := true
		for element := range v.Elements() {
			if !first {
				b = append(b, ',')
			}
			first = false
			if element.Kind() != jsonl.KindNull {
				b = appendInner(b, element)
			}
		}
		return b
	}
	return v.AppendNormal(b)
}
