package repo

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"pidb/jsonl"
)

// NewEntry is an entry to be appended to a session. It is made by [Message] and the
// functions after it, one for each kind of entry that pi has.
//
// Values such as messages are any JSON value: [json.RawMessage], [jsonl.Members],
// [jsonl.Value], or whatever encoding/json can marshal. They are written as
// JSON.stringify writes them. Text that is not UTF-8 is refused, and so is an entry on
// which pi throws: a message that is no object with a role, content that is neither text
// nor a list of blocks, a name that is no string. A nil is null; [jsonl.Undefined] leaves its member out. In
// options a nil leaves the member out.
type NewEntry struct {
	kind   kind
	typ    string
	id     string
	before jsonl.Members // own members that stand before id
	after  jsonl.Members // own members that stand behind timestamp
	target string        // entry id: what a label or an edit is about, where a branch goes
	value  any           // replacement of a context edit, JSON of a raw entry
	err    error         // why it cannot be written
}

// kind is what has to be known of the session before an entry can be written.
type kind uint8

const (
	kindPlain kind = iota
	kindLabel
	kindEdit
	kindCompaction
	kindSummary
	kindRaw
)

// WithID returns the entry with an id of the caller's choice. The append fails with
// [ErrExists] where the session has it already.
func (e NewEntry) WithID(id string) NewEntry {
	e.id = id
	return e
}

// Message is a message: of a user, an assistant, a tool, the system.
func Message(message any) NewEntry {
	return NewEntry{typ: "message", after: jsonl.Members{{Key: "message", Value: message}}}
}

// ModelChange selects a model.
func ModelChange(provider, modelID string) NewEntry {
	return NewEntry{typ: "model_change", after: jsonl.Members{{Key: "provider", Value: provider}, {Key: "modelId", Value: modelID}}}
}

// ThinkingLevel selects how much the model thinks.
func ThinkingLevel(level string) NewEntry {
	return NewEntry{typ: "thinking_level_change", after: jsonl.Members{{Key: "thinkingLevel", Value: level}}}
}

// ActiveTools says which tools the model has. pi 1.6.0 no longer writes such entries; it
// keeps them.
func ActiveTools(names ...string) NewEntry {
	if names == nil {
		names = []string{}
	}
	return NewEntry{typ: "active_tools_change", after: jsonl.Members{{Key: "activeToolNames", Value: names}}}
}

// SummaryOptions are the members of a compaction or a branch summary that may be left out.
type SummaryOptions struct {
	Details  any   // of an extension
	Usage    any   // what making the summary cost
	FromHook *bool // an extension made it
}

func (opts *SummaryOptions) members() jsonl.Members {
	if opts == nil {
		return nil
	}
	list := jsonl.Members{{Key: "details", Value: optional(opts.Details)}, {Key: "usage", Value: optional(opts.Usage)}}
	if opts.FromHook != nil {
		list = append(list, jsonl.Member{Key: "fromHook", Value: *opts.FromHook})
	}
	return list
}

// optional turns nil into undefined.
func optional(v any) any {
	if v == nil {
		return jsonl.Undefined
	}
	return v
}

// Compaction stands for what came before it on its branch: from then on the context
// begins with the system message as it is then, which is computed and kept in the entry,
// and the summary, and goes on with the entries from firstKept on. An empty firstKept
// keeps none of those before the compaction.
func Compaction(summary, firstKept string, tokensBefore int64, opts *SummaryOptions) NewEntry {
	after := jsonl.Members{{Key: "summary", Value: summary}, {Key: "firstKeptEntryId", Value: idText(firstKept)}, {Key: "tokensBefore", Value: tokensBefore}}
	return NewEntry{kind: kindCompaction, typ: "compaction", after: append(after, opts.members()...), target: firstKept}
}

// BranchSummary goes back to an entry, or before the first for an empty id, and tells
// there what happened on the branch that is left.
func BranchSummary(to, summary string, opts *SummaryOptions) NewEntry {
	after := append(jsonl.Members{{Key: "summary", Value: summary}}, opts.members()...)
	return NewEntry{kind: kindSummary, typ: "branch_summary", after: after, target: to}
}

// Custom holds the state of an extension. It is no part of the context.
func Custom(customType string, data any) NewEntry {
	return NewEntry{typ: "custom", before: jsonl.Members{{Key: "customType", Value: customType}, {Key: "data", Value: data}}}
}

// CustomMessage is a message of an extension, and part of the context. display says
// whether it is shown to the user; details are not given to the model.
func CustomMessage(customType string, content any, display bool, details any) NewEntry {
	return NewEntry{typ: "custom_message", before: jsonl.Members{
		{Key: "customType", Value: customType},
		{Key: "content", Value: content},
		{Key: "display", Value: display},
		{Key: "details", Value: details},
	}}
}

// Label marks an entry of the session; an empty text takes the mark away, as
// [ClearLabel] does. The append fails with [ErrNotFound] where there is no such entry.
func Label(target, text string) NewEntry {
	return NewEntry{kind: kindLabel, typ: "label", target: target, after: jsonl.Members{{Key: "targetId", Value: idText(target)}, {Key: "label", Value: text}}}
}

// ClearLabel takes the mark of an entry away.
func ClearLabel(target string) NewEntry {
	return NewEntry{kind: kindLabel, typ: "label", target: target, after: jsonl.Members{{Key: "targetId", Value: idText(target)}}}
}

var lineBreaks = regexp.MustCompile(`[\r\n]+`)

// SessionName names the session; an empty name takes the name away. Line breaks become
// spaces, and white space around the name is left out. The append fails with
// [ErrInvalidEntry] where the name is not UTF-8.
func SessionName(name string) NewEntry {
	if err := checkText(name); err != nil {
		return NewEntry{err: fmt.Errorf("name: %w", err)} // at the byte of the name as it is
	}
	return NewEntry{typ: "session_info", after: jsonl.Members{{Key: "name", Value: cleanName(name)}}}
}

func cleanName(name string) string {
	return jsonl.TrimSpace(lineBreaks.ReplaceAllString(name, " "))
}

// Usage says what a model cost beside the messages. An empty note is left out.
func Usage(kind, provider, model string, usage any, note string) NewEntry {
	after := jsonl.Members{
		{Key: "kind", Value: kind},
		{Key: "provider", Value: provider},
		{Key: "model", Value: model},
		{Key: "usage", Value: usage},
	}
	if note != "" {
		after = append(after, jsonl.Member{Key: "note", Value: note})
	}
	return NewEntry{typ: "usage", after: after}
}

// ContextEdit changes what the model sees of an earlier entry of the branch from then
// on: nil leaves it out, otherwise replacement is an object whose content, a string or an
// array, stands in place of its own. Only messages of users, assistants, tools and
// extensions can be edited; the append fails with [ErrNotFound] or [ErrInvalidEntry].
func ContextEdit(target string, replacement any) NewEntry {
	return NewEntry{kind: kindEdit, typ: "context_edit", target: target, value: replacement}
}

// Raw is an entry of any type, also one that pidb does not know: an object with a type.
// Its id, parent and time are made new, as in all that is appended. The append fails with
// [ErrInvalidEntry] where the value is no object, has no type, or is a session header.
func Raw(entry any) NewEntry { return NewEntry{kind: kindRaw, value: entry} }

// plain returns a value that jsonl.Append takes.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, float64, float32, int, int32, int64, uint64:
		return v, nil
	case string:
		return v, checkText(v)
	case json.RawMessage:
		return v, checkText(string(v))
	case jsonl.Value:
		return v, checkText(string(v.Raw()))
	case []string:
		for i := range v {
			if err := checkText(v[i]); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		return v, nil
	case jsonl.Members:
		list := make(jsonl.Members, len(v))
		for i, m := range v {
			if err := checkText(m.Key); err != nil {
				return nil, fmt.Errorf("member %q: %w", m.Key, err)
			}
			value, err := plain(m.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Key, err)
			}
			list[i] = jsonl.Member{Key: m.Key, Value: value}
		}
		return list, nil
	case map[string]any:
		list := make(map[string]any, len(v))
		for key, value := range v {
			if err := checkText(key); err != nil {
				return nil, fmt.Errorf("member %q: %w", key, err)
			}
			value, err := plain(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			list[key] = value
		}
		return list, nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			value, err := plain(v[i])
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
			list[i] = value
		}
		return list, nil
	}
	if v == jsonl.Undefined {
		return v, nil
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return json.RawMessage(text.Bytes()), nil
}

// memberText returns the members as JSON text without the braces of the object.
func memberText(list jsonl.Members) ([]byte, error) {
	value, err := plain(list)
	if err != nil {
		return nil, err
	}
	text, err := jsonl.Append(nil, value)
	if err != nil {
		return nil, err
	}
	return text[1 : len(text)-1], nil
}

// rawMembers splits a raw entry into its type and the text of its other members.
func rawMembers(value any) (typ string, own []byte, err error) {
	value, err = plain(value)
	if err != nil {
		return "", nil, err
	}
	text, ok := value.(json.RawMessage)
	if !ok {
		if text, err = jsonl.Append(nil, value); err != nil {
			return "", nil, err
		}
	}
	var doc jsonl.Doc
	if err := doc.Parse(text); err != nil {
		return "", nil, err
	}
	root := doc.Root()
	if root.Kind() != jsonl.KindObject {
		return "", nil, errors.New("not an object")
	}
	typ, ok = root.Get("type").Text()
	switch {
	case !ok || typ == "":
		return "", nil, errors.New("no type")
	case typ == "session":
		return "", nil, errors.New("a session header is no entry")
	}
	for name, member := range root.Members() {
		if name.IsString("type") || name.IsString("id") || name.IsString("parentId") || name.IsString("timestamp") {
			continue
		}
		if len(own) > 0 {
			own = append(own, ',')
		}
		own = append(append(append(own, name.Raw()...), ':'), member.Raw()...)
	}
	return typ, own, nil
}

// idText is an entry id, in key form, as a value to be written.
func idText(id string) json.RawMessage { return jsonl.AppendKey(nil, id) }
