package query_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"pidb/jsonl"
	"pidb/query"
)

// model is a session as plain Go values: no database, no integers but places in a slice,
// every question answered by looking at everything. Its rules are those of docs/differences.md.
type model struct {
	rows    []*modelRow // entries in file order
	version int         // in the header
}

// modelRow is an entry.
type modelRow struct {
	at       query.LineNumber
	value    map[string]any // as version 3 has it
	id       string
	parentID any // as written: nil for null, absent{} for none
	parent   int // place in rows; -1: none
	ms       *int64
	depth    int // in the tree
}

type absent struct{}

// newModel reads a session. It returns false for a file that is none.
func newModel(t *testing.T, file []byte) (*model, bool) {
	t.Helper()
	m := &model{}
	d := jsonl.NewDecoder(bytes.NewReader(file), nil)
	for {
		rec, err := d.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false
		}
		for _, object := range rec.Entries() {
			m.add(t, int64(rec.Line.Number), object)
		}
	}
	header, ok := d.Header()
	if !ok && !d.HeaderlessSession() && len(file) > 0 {
		return nil, false
	}
	m.version = header.Version
	m.resolve()
	return m, true
}

func (m *model) add(t *testing.T, line int64, o jsonl.Object) {
	row := &modelRow{at: query.LineNumber{Line: line, Part: int64(o.Part)}, parent: -1, parentID: absent{}}
	if err := json.Unmarshal(o.AppendNormal(nil, nil), &row.value); err != nil {
		t.Fatalf("line %d: %v", line, err)
	}
	row.id, _ = o.ID()
	if id, null, ok := o.ParentID(); ok && !null {
		row.parentID = id
	} else if ok {
		row.parentID = nil
	} else if v, found := row.value["parentId"]; found {
		row.parentID = v
	}
	if ms, ok := o.Timestamp(); ok {
		row.ms = &ms
	}
	m.rows = append(m.rows, row)
}

// resolve gives every entry its parent: the nearest earlier line with that id, else the
// first later one. An entry that would be its own parent has none.
func (m *model) resolve() {
	for i, row := range m.rows {
		id, ok := row.parentID.(string)
		if !ok || id == "" {
			continue
		}
		for j := i - 1; j >= 0 && row.parent < 0; j-- {
			if m.rows[j].id == id {
				row.parent = j
			}
		}
		if row.id == id {
			continue
		}
		for j := i + 1; j < len(m.rows) && row.parent < 0; j++ {
			if m.rows[j].id == id {
				row.parent = j
			}
		}
	}
}

// branch returns the places of the path to an entry, its root first.
func (m *model) branch(leaf int) []int {
	var path []int
	for at := leaf; at >= 0 && !slices.Contains(path, at); at = m.rows[at].parent {
		path = append(path, at)
	}
	slices.Reverse(path)
	return path
}

func (row *modelRow) is(kind string) bool { return row.value["type"] == kind }

func (row *modelRow) role() any {
	if message, ok := row.value["message"].(map[string]any); ok && row.is("message") {
		return message["role"]
	}
	return nil
}

// context returns the places of the entries of the context at an entry.
func (m *model) context(leaf int) []int {
	path := m.branch(leaf)
	last := -1
	for i, at := range path {
		if m.rows[at].is("compaction") {
			last = i
		}
	}
	if last < 0 {
		return path
	}
	compaction := m.rows[path[last]]
	context := []int{path[last]}
	found := false
	for _, at := range path[:last] {
		if m.rows[at].id == compaction.value["firstKeptEntryId"] {
			found = true
		}
		if found && m.rows[at].role() != "system" {
			context = append(context, at)
		}
	}
	return append(context, path[last+1:]...)
}

// settings returns model and thinking level at an entry, each as JSON has it, absent left out.
func (m *model) settings(leaf int) (modelValue map[string]any, thinking any) {
	thinking = "off"
	named := func(provider, id any) map[string]any {
		found := map[string]any{}
		if s, ok := provider.(string); ok {
			found["provider"] = s
		}
		if s, ok := id.(string); ok {
			found["modelId"] = s
		}
		return found
	}
	for _, at := range m.branch(leaf) {
		row := m.rows[at]
		switch {
		case row.is("thinking_level_change"):
			thinking = row.value["thinkingLevel"]
		case row.is("model_change"):
			modelValue = named(row.value["provider"], row.value["modelId"])
		case row.role() == "assistant":
			message := row.value["message"].(map[string]any)
			modelValue = named(message["provider"], message["model"])
		}
	}
	return modelValue, thinking
}

// messages returns the messages of the context at an entry.
func (m *model) messages(leaf int) []any {
	context := m.context(leaf)
	edits := map[string]*modelRow{}
	for _, at := range context {
		row := m.rows[at]
		target, ok := row.value["targetId"].(string)
		if _, given := row.value["replacement"]; ok && given && row.is("context_edit") {
			edits[target] = row
		}
	}
	messages := []any{}
	for i, at := range context {
		row := m.rows[at]
		if row.is("compaction") && i > 0 {
			continue
		}
		made := row.messages()
		if edit := edits[row.id]; edit != nil {
			if edit.value["replacement"] == nil {
				continue
			}
			for j := range made {
				made[j] = edited(made[j], edit.value["replacement"])
			}
		}
		messages = append(messages, made...)
	}
	return messages
}

func (row *modelRow) messages() []any {
	made := func(role string, keys ...string) map[string]any {
		message := map[string]any{"role": role, "timestamp": nil}
		if row.ms != nil {
			message["timestamp"] = float64(*row.ms)
		}
		for _, key := range keys {
			if v, ok := row.value[key]; ok {
				message[key] = v
			}
		}
		return message
	}
	switch row.value["type"] {
	case "message":
		message, ok := row.value["message"].(map[string]any)
		if !ok {
			if row.value["message"] == nil {
				return nil
			}
			return []any{row.value["message"]}
		}
		if message["content"] != nil {
			return []any{message}
		}
		message = maps.Clone(message)
		switch message["role"] {
		case "system":
			message["content"] = ""
		case "user", "assistant", "toolResult":
			message["content"] = []any{}
		}
		return []any{message}
	case "custom_message":
		message := made("custom", "customType", "content", "display", "details")
		if message["content"] == nil {
			message["content"] = []any{}
		}
		return []any{message}
	case "branch_summary":
		if truthy(row.value["summary"]) {
			return []any{made("branchSummary", "summary", "fromId")}
		}
	case "compaction":
		summary := made("compactionSummary", "summary", "tokensBefore")
		if system := row.value["systemMessage"]; truthy(system) {
			return []any{system, summary}
		}
		return []any{summary}
	}
	return nil
}

// edited returns a message with the content of a replacement.
func edited(message, replacement any) any {
	object, ok := message.(map[string]any)
	if !ok {
		return message
	}
	object = maps.Clone(object)
	var content any = absent{}
	if r, ok := replacement.(map[string]any); ok {
		if c, ok := r["content"]; ok {
			content = c
		}
	}
	switch object["role"] {
	case "assistant", "toolResult":
		if text, ok := content.(string); ok {
			content = []any{map[string]any{"type": "text", "text": text}}
		}
	case "user", "custom":
	default:
		return message
	}
	if content == any(absent{}) {
		delete(object, "content")
	} else {
		object["content"] = content
	}
	return object
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	}
	return true
}

// byID returns the place of the last entry with an id, or -1.
func (m *model) byID(id string) int {
	for i := len(m.rows) - 1; i >= 0; i-- {
		if m.rows[i].id == id {
			return i
		}
	}
	return -1
}

// children returns the places of the entries whose parent is a given one.
func (m *model) children(parent int) []int {
	var children []int
	for i, row := range m.rows {
		if row.parent == parent {
			children = append(children, i)
		}
	}
	return children
}

// labels returns the labels by place of their entries.
func (m *model) labels() map[int]string {
	byTarget := map[string]string{}
	for _, row := range m.rows {
		target, ok := row.value["targetId"].(string)
		if !row.is("label") || !ok {
			continue
		}
		if truthy(row.value["label"]) {
			byTarget[target] = shown(row.value["label"])
		} else {
			delete(byTarget, target)
		}
	}
	labels := map[int]string{}
	for target, label := range byTarget {
		if at := m.byID(target); at >= 0 {
			labels[at] = label
		}
	}
	return labels
}

// shown is a value as JavaScript's String gives it, for those that occur.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		return "[object Object]"
	case []any:
		var b bytes.Buffer
		for i, e := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if e != nil {
				b.WriteString(shown(e))
			}
		}
		return b.String()
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// name returns the name that the session has now.
func (m *model) name() string {
	for _, row := range slices.Backward(m.rows) {
		if !row.is("session_info") {
			continue
		}
		switch name := row.value["name"].(type) {
		case nil:
			return ""
		case string:
			return jsonl.TrimSpace(name)
		}
	}
	return ""
}

// tops returns the places of the roots of the tree: entries without a parent, and the
// earliest line of each cycle.
func (m *model) tops() []int {
	var tops []int
	for i, row := range m.rows {
		if row.parent < 0 {
			tops = append(tops, i)
			continue
		}
		// A row of a cycle comes back to itself.
		earliest := true
		at := row.parent
		for steps := 0; at != i && at >= 0 && steps <= len(m.rows); steps++ {
			earliest = earliest && at > i
			at = m.rows[at].parent
		}
		if at == i && earliest {
			tops = append(tops, i)
		}
	}
	return tops
}

// tree returns the places of all entries in pre-order and sets their depth.
func (m *model) tree() []int {
	tops := m.tops()
	var order []int
	var visit func(at, depth int)
	visit = func(at, depth int) {
		m.rows[at].depth = depth
		order = append(order, at)
		children := slices.DeleteFunc(m.children(at), func(c int) bool { return slices.Contains(tops, c) })
		times := make([]*int64, len(children))
		for i, c := range children {
			times[i] = m.rows[c].ms
		}
		for _, i := range query.SortTimes(times) {
			visit(children[i], depth+1)
		}
	}
	for _, top := range tops {
		visit(top, 0)
	}
	return order
}

// tips returns, for each entry without a child, how many entries are on no other branch.
func (m *model) tips() map[int]int64 {
	branches := make([]int, len(m.rows)) // how many tips have the row on their branch
	var tips []int
	for i := range m.rows {
		if len(m.children(i)) > 0 {
			continue
		}
		tips = append(tips, i)
		for _, at := range m.branch(i) {
			branches[at]++
		}
	}
	own := map[int]int64{}
	for _, tip := range tips {
		own[tip] = 0
		for _, at := range m.branch(tip) {
			if branches[at] == 1 && !m.inCycle(at) {
				own[tip]++
			}
		}
	}
	return own
}

// inCycle reports whether an entry is among its own ancestors.
func (m *model) inCycle(i int) bool {
	at := m.rows[i].parent
	for range m.rows {
		if at < 0 || at == i {
			break
		}
		at = m.rows[at].parent
	}
	return at == i
}
