package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"pidb/jsonl"
	"pidb/query"
)

// compaction returns a compaction with the first kept entry that it means, and with the
// system message of the context at the leaf where there is one.
func (a *appending) compaction(ctx context.Context, e *NewEntry, id string) (*NewEntry, error) {
	c := *e
	c.after = slices.Clone(e.after)
	if e.target == "" {
		c.after[slices.IndexFunc(c.after, func(m jsonl.Member) bool { return m.Key == "firstKeptEntryId" })].Value = idText(id)
	}
	if a.leaf == 0 {
		return &c, nil
	}
	// The context is read from the archive.
	if err := a.flush(ctx); err != nil {
		return nil, err
	}
	at, err := a.tx.Context(ctx, a.leaf)
	if err != nil {
		return nil, err
	}
	system, err := systemMessage(at.Messages, a.tx.now.UnixMilli())
	if err == nil && system != nil {
		c.after = append(c.after, jsonl.Member{Key: "systemMessage", Value: json.RawMessage(system)})
	}
	return &c, err
}

// ordered is JavaScript's Map.
type ordered[V any] struct {
	keys   []string
	values map[string]V
}

// set gives a key a value: a new key comes last, another keeps its place.
func (m *ordered[V]) set(key string, value V) {
	if m.values == nil {
		m.values = map[string]V{}
	}
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
}

func (m *ordered[V]) remove(key string) {
	if _, ok := m.values[key]; ok {
		delete(m.values, key)
		m.keys = slices.DeleteFunc(m.keys, func(k string) bool { return k == key })
	}
}

// systemMessage is pi's getCurrentSystemMessage: all system messages of a context in one,
// as of the given time; nil where there is none. What pi throws at is left out.
func systemMessage(messages []query.Message, ms int64) ([]byte, error) {
	// The messages are in normal form: equal values are equal bytes, and no name repeats.
	var content [][]byte
	var sections, tools ordered[[]byte]
	found := false
	var doc jsonl.Doc
	for _, m := range messages {
		if err := doc.Parse(m.JSON); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		message := doc.Root()
		if !message.Get("role").IsString("system") {
			continue
		}
		found = found || message.Get("timestamp").Exists()
		if text := contentText(message.Get("content")); len(text) > 0 {
			content = append(content, text)
		}
		for name, value := range message.Get("sections").Members() {
			if value.Kind() == jsonl.KindNull {
				sections.remove(string(name.Raw()))
			} else {
				sections.set(string(name.Raw()), value.Raw())
			}
		}
		for tool := range message.Get("toolsRemoved").Elements() {
			tools.remove(string(tool.Get("name").Raw()))
		}
		for tool := range message.Get("toolsAdded").Elements() {
			tools.set(string(tool.Get("name").Raw()), tool.Raw())
		}
	}
	if !found && len(tools.keys) == 0 {
		return nil, nil
	}
	text := fmt.Appendf(nil, `{"role":"system","content":"%s"`, bytes.Join(content, []byte(`\n\n`)))
	if len(sections.keys) > 0 {
		var list [][]byte
		for _, name := range sections.keys {
			list = append(list, fmt.Appendf(nil, "%s:%s", name, sections.values[name]))
		}
		text = fmt.Appendf(text, `,"sections":{%s}`, bytes.Join(list, []byte(",")))
	}
	if len(tools.keys) > 0 {
		var list [][]byte
		for _, name := range tools.keys {
			list = append(list, tools.values[name])
		}
		text = fmt.Appendf(text, `,"toolsAdded":[%s]`, bytes.Join(list, []byte(",")))
	}
	return fmt.Appendf(text, `,"timestamp":%d}`, ms), nil
}

// contentText is pi's contentText of a value in normal form: its text or that of its
// blocks, as it stands within the quotes of a JSON string.
func contentText(content jsonl.Value) []byte {
	if text, ok := quoted(content); ok {
		return text
	}
	var texts [][]byte
	for block := range content.Elements() {
		if block.Get("type").IsString("text") {
			text, _ := quoted(block.Get("text"))
			texts = append(texts, text)
		}
	}
	return bytes.Join(texts, []byte(`\n`))
}

func quoted(v jsonl.Value) ([]byte, bool) {
	if v.Kind() != jsonl.KindString {
		return nil, false
	}
	raw := v.Raw()
	return raw[1 : len(raw)-1], true
}
