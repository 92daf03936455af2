package query

import (
	"fmt"
	"slices"

	"pidb/jsonl"
)

// Message is one message of a context.
type Message struct {
	Source Ref    // the entry that it comes from; a compaction may give two
	JSON   []byte // as JSON.stringify writes pi's message, mostly an object with a role
}

// entryMessages is pi's sessionEntryToContextMessages: the messages of one entry.
func entryMessages(row *entryRow, v jsonl.Value) [][]byte {
	switch row.Type {
	case "message":
		if message := v.Get("message"); message.Exists() && message.Kind() != jsonl.KindNull {
			return [][]byte{storedMessage(row, message)}
		}
	case "custom_message":
		b := append([]byte(nil), `{"role":"custom"`...)
		b = appendMember(b, "customType", v.Get("customType"))
		b = append(b, `,"content":`...)
		if content := v.Get("content"); content.Exists() && content.Kind() != jsonl.KindNull {
			b = content.AppendNormal(b)
		} else {
			b = append(b, `[]`...)
		}
		b = appendMember(b, "display", v.Get("display"))
		b = appendMember(b, "details", v.Get("details"))
		return [][]byte{appendTimestamp(b, row)}
	case "branch_summary":
		if summary := v.Get("summary"); summary.Truthy() {
			b := append([]byte(nil), `{"role":"branchSummary"`...)
			b = appendMember(b, "summary", summary)
			b = appendMember(b, "fromId", v.Get("fromId"))
			return [][]byte{appendTimestamp(b, row)}
		}
	case "compaction":
		b := append([]byte(nil), `{"role":"compactionSummary"`...)
		b = appendMember(b, "summary", v.Get("summary"))
		b = appendMember(b, "tokensBefore", v.Get("tokensBefore"))
		summary := appendTimestamp(b, row)
		if system := v.Get("systemMessage"); system.Truthy() {
			return [][]byte{system.AppendNormal(nil), summary}
		}
		return [][]byte{summary}
	}
	return nil
}

// storedMessage returns the message of a message entry. Content that is missing or null
// becomes an empty list, of a system message an empty string.
func storedMessage(row *entryRow, message jsonl.Value) []byte {
	text := message.AppendNormal(nil)
	if message.Kind() != jsonl.KindObject {
		return text
	}
	role := message.Get("role")
	// The role of old files has another name: the row has the one of today.
	if row.Role == "custom" && role.IsString("hookMessage") {
		text = replaceMember(text, "role", []byte(`"custom"`))
	}
	if content := message.Get("content"); !content.Exists() || content.Kind() == jsonl.KindNull {
		switch {
		case role.IsString("system"):
			text = replaceMember(text, "content", []byte(`""`))
		case role.IsString("user"), role.IsString("assistant"), role.IsString("toolResult"):
			text = replaceMember(text, "content", []byte(`[]`))
		}
	}
	return text
}

// appendMember appends a member to an open object that is not empty, unless it is absent.
func appendMember(b []byte, key string, v jsonl.Value) []byte {
	if !v.Exists() {
		return b
	}
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return v.AppendNormal(b)
}

// appendTimestamp appends the last member of a made message: the entry's time, null
// where Date reads none.
func appendTimestamp(b []byte, row *entryRow) []byte {
	b = append(b, `,"timestamp":`...)
	if !row.HasMS {
		return append(b, `null}`...)
	}
	return append(jsonl.AppendNumber(b, float64(row.MS)), '}')
}

// edit is what a context_edit puts in place of its target's messages.
type edit struct {
	omit    bool
	content []byte // in normal form; nil: no content at all
	text    bool   // content is a string
}

// readEdit reads the replacement of a context_edit. Where there is none the edit is
// none: pi throws.
func readEdit(replacement jsonl.Value) (edit, bool) {
	if !replacement.Exists() {
		return edit{}, false
	}
	if replacement.Kind() == jsonl.KindNull {
		return edit{omit: true}, true
	}
	content := replacement.Get("content")
	if !content.Exists() {
		return edit{}, true
	}
	return edit{content: content.AppendNormal(nil), text: content.Kind() == jsonl.KindString}, true
}

// apply is pi's projectContextEntry: what the messages of an edited entry become.
func (e edit) apply(texts [][]byte) ([][]byte, error) {
	if e.omit {
		return nil, nil
	}
	edited := make([][]byte, len(texts))
	for i, text := range texts {
		var doc jsonl.Doc
		if err := doc.Parse(text); err != nil {
			return nil, err
		}
		content := e.content
		switch role := doc.Root().Get("role"); {
		case role.IsString("assistant"), role.IsString("toolResult"):
			if e.text {
				content = fmt.Appendf(nil, `[{"type":"text","text":%s}]`, content)
			}
		case role.IsString("user"), role.IsString("custom"):
		default:
			edited[i] = text
			continue
		}
		edited[i] = replaceMember(text, "content", content)
	}
	return edited, nil
}

// replaceMember gives a member of an object in normal form another value: in its place,
// at the end where there is none yet. A nil value removes it. The key is none that
// JavaScript would sort, and value is in normal form.
func replaceMember(object []byte, key string, value []byte) []byte {
	var doc jsonl.Doc
	if err := doc.Parse(object); err != nil {
		return object // never: it is in normal form
	}
	root := doc.Root()
	old := root.Get(key)
	if !old.Exists() {
		if value == nil {
			return object
		}
		b := slices.Clone(object[:len(object)-1])
		if root.Len() > 0 {
			b = append(b, ',')
		}
		b = append(jsonl.AppendQuoted(b, key), ':')
		return append(append(b, value...), '}')
	}
	start, end := old.Offset(), old.Offset()+len(old.Raw())
	if value != nil {
		return slices.Concat(object[:start], value, object[end:])
	}
	start -= len(jsonl.AppendQuoted(nil, key)) + 1
	switch {
	case object[start-1] == ',':
		start--
	case object[end] == ',':
		end++
	}
	return slices.Concat(object[:start], object[end:])
}
