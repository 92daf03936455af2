package jsonl

import "math"

// CurrentVersion is the version of the format that the views show and that is written.
const CurrentVersion = 3

// textOf returns the text of a string, "" for another value.
func textOf(v Value) string {
	s, _ := v.Text()
	return s
}

// Type returns the type of the entry, "" if it has none.
func (o Object) Type() string {
	v := o.member(o.at.typ)
	if !v.is(KindString) {
		return ""
	}
	raw := v.Raw()
	// The common ones without an allocation.
	switch string(raw) {
	case `"message"`:
		return "message"
	case `"session"`:
		return headerType
	case `"custom"`:
		return "custom"
	case `"custom_message"`:
		return "custom_message"
	case `"compaction"`:
		return "compaction"
	case `"model_change"`:
		return "model_change"
	case `"thinking_level_change"`:
		return "thinking_level_change"
	case `"usage"`:
		return "usage"
	case `"label"`:
		return "label"
	case `"session_info"`:
		return "session_info"
	case `"context_edit"`:
		return "context_edit"
	case `"branch_summary"`:
		return "branch_summary"
	}
	return textOf(v)
}

// ID returns the entry's id in key form.
func (o Object) ID() (string, bool) {
	if o.v1 != nil {
		return o.v1.id, true
	}
	return o.member(o.at.id).Key()
}

// ParentID returns the id of the entry's parent in key form, or null where it has none. It is not ok when the entry
// does not say so, or says it with neither a string nor null.
func (o Object) ParentID() (id string, null, ok bool) {
	if o.v1 != nil {
		return o.v1.parent, o.v1.parent == "", true
	}
	v := o.member(o.at.parent)
	if v.is(KindNull) {
		return "", true, true
	}
	id, ok = v.Key()
	return id, false, ok
}

// Timestamp returns the entry's time in milliseconds, if it is one.
func (o Object) Timestamp() (ms int64, ok bool) { return ParseTime(o.member(o.at.time)) }

// TimestampValue returns the entry's timestamp as it is.
func (o Object) TimestampValue() Value { return o.member(o.at.time) }

// Message returns the message of a message entry, of whatever kind it is.
func (o Object) Message() Value {
	if !o.member(o.at.typ).IsString("message") {
		return Value{}
	}
	return o.member(o.at.message)
}

// Role returns the role of a message entry's message; "" for other entries and roles that are no string.
func (o Object) Role() string {
	v := o.Message().Get("role")
	if !v.is(KindString) {
		return ""
	}
	switch string(v.Raw()) {
	case `"user"`:
		return "user"
	case `"assistant"`:
		return "assistant"
	case `"toolResult"`:
		return "toolResult"
	case `"system"`:
		return "system"
	case `"bashExecution"`:
		return "bashExecution"
	case `"custom"`:
		return "custom"
	}
	role := textOf(v)
	if role == "hookMessage" && o.version < 3 {
		return "custom"
	}
	return role
}

// ActivityTime returns when a user or assistant message was active, in milliseconds: its own timestamp if that is a
// number, or the entry's.
func (o Object) ActivityTime() (ms float64, ok bool) {
	m := o.Message()
	if role := o.Role(); role != "user" && role != "assistant" || !m.Get("content").Exists() {
		return 0, false
	}
	if f, ok := m.Get("timestamp").Float(); ok {
		return f, true
	}
	t, ok := o.Timestamp()
	return float64(t), ok
}

// A Compaction is an entry that stands for what came before it.
type Compaction struct {
	Summary          string
	FirstKeptEntryID string // in key form
	HasFirstKept     bool   // it is a string
	TokensBefore     int64
	SystemMessage    Value
	Usage            Usage
	HasUsage         bool
	Details          Value
	FromHook         bool
}

// Compaction returns the view of a compaction entry.
func (o Object) Compaction() (Compaction, bool) {
	if o.Type() != "compaction" {
		return Compaction{}, false
	}
	c := Compaction{
		Summary:       textOf(o.Value.Get("summary")),
		TokensBefore:  o.Value.Get("tokensBefore").tokens(),
		SystemMessage: o.Value.Get("systemMessage"),
		Details:       o.Value.Get("details"),
		FromHook:      o.Value.Get("fromHook").Truthy(),
	}
	c.Usage, c.HasUsage = newUsage(o.Value.Get("usage"))
	if o.v1 != nil && o.v1.kept != "" {
		c.FirstKeptEntryID, c.HasFirstKept = o.v1.kept, true
	} else {
		c.FirstKeptEntryID, c.HasFirstKept = o.Value.Get("firstKeptEntryId").Key()
	}
	return c, true
}

// A BranchSummary is an entry that tells what happened on another branch.
type BranchSummary struct {
	FromID   string // in key form
	Summary  string
	Usage    Usage
	HasUsage bool
	Details  Value
	FromHook bool
}

// BranchSummary returns the view of a branch_summary entry.
func (o Object) BranchSummary() (BranchSummary, bool) {
	if o.Type() != "branch_summary" {
		return BranchSummary{}, false
	}
	b := BranchSummary{
		Summary:  textOf(o.Value.Get("summary")),
		Details:  o.Value.Get("details"),
		FromHook: o.Value.Get("fromHook").Truthy(),
	}
	b.FromID, _ = o.Value.Get("fromId").Key()
	b.Usage, b.HasUsage = newUsage(o.Value.Get("usage"))
	return b, true
}

// A ModelChange is an entry that selects a model.
type ModelChange struct{ Provider, ModelID string }

// ModelChange returns the view of a model_change entry.
func (o Object) ModelChange() (ModelChange, bool) {
	if o.Type() != "model_change" {
		return ModelChange{}, false
	}
	return ModelChange{textOf(o.Value.Get("provider")), textOf(o.Value.Get("modelId"))}, true
}

// ThinkingLevelChange returns the level that a thinking_level_change entry selects.
func (o Object) ThinkingLevelChange() (level string, ok bool) {
	if o.Type() != "thinking_level_change" {
		return "", false
	}
	return textOf(o.Value.Get("thinkingLevel")), true
}

// A Label is an entry that marks another entry, or takes its mark away.
type Label struct {
	TargetID string // in key form
	Text     string // "" if it is cleared
	Cleared  bool
	Value    Value // the label as it is
}

// Label returns the view of a label entry. It is not ok when the target is no string.
func (o Object) Label() (Label, bool) {
	if o.Type() != "label" {
		return Label{}, false
	}
	target, ok := o.Value.Get("targetId").Key()
	if !ok {
		return Label{}, false
	}
	l := Label{TargetID: target, Value: o.Value.Get("label")}
	if l.Value.Truthy() {
		l.Text = string(l.Value.appendString(nil))
	} else {
		l.Cleared = true
	}
	return l, true
}

// SessionInfo returns the name that a session_info entry gives to its session, trimmed; "" takes the name away. It is
// not ok when there is a name that is no string: such an entry says nothing.
func (o Object) SessionInfo() (name string, ok bool) {
	if o.Type() != "session_info" {
		return "", false
	}
	switch v := o.Value.Get("name"); v.Kind() {
	case KindAbsent, KindNull:
		return "", true
	case KindString:
		return TrimSpace(textOf(v)), true
	default:
		return "", false
	}
}

// A ContextEdit is an entry that changes what the model sees of an earlier one.
type ContextEdit struct {
	TargetID    string // in key form
	HasTarget   bool
	Replacement Value // null: nothing; otherwise an object with the new content
}

// ContextEdit returns the view of a context_edit entry.
func (o Object) ContextEdit() (ContextEdit, bool) {
	if o.Type() != "context_edit" {
		return ContextEdit{}, false
	}
	target, ok := o.Value.Get("targetId").Key()
	return ContextEdit{target, ok, o.Value.Get("replacement")}, true
}

// A Custom is an entry that holds the state of an extension.
type Custom struct {
	CustomType string
	Data       Value
}

// Custom returns the view of a custom entry.
func (o Object) Custom() (Custom, bool) {
	if o.Type() != "custom" {
		return Custom{}, false
	}
	return Custom{textOf(o.Value.Get("customType")), o.Value.Get("data")}, true
}

// A CustomMessage is an entry by which an extension speaks to the model.
type CustomMessage struct {
	CustomType string
	Content    Value
	Display    bool
	Details    Value
}

// CustomMessage returns the view of a custom_message entry.
func (o Object) CustomMessage() (CustomMessage, bool) {
	if o.Type() != "custom_message" {
		return CustomMessage{}, false
	}
	v := o.Value
	return CustomMessage{textOf(v.Get("customType")), v.Get("content"), v.Get("display").Truthy(), v.Get("details")}, true
}

// A UsageEntry is an entry that accounts for a model call outside of the conversation.
type UsageEntry struct {
	Kind, Provider, Model string
	Usage                 Usage
	HasUsage              bool
}

// UsageEntry returns the view of a usage entry.
func (o Object) UsageEntry() (UsageEntry, bool) {
	if o.Type() != "usage" {
		return UsageEntry{}, false
	}
	v := o.Value
	u := UsageEntry{Kind: textOf(v.Get("kind")), Provider: textOf(v.Get("provider")), Model: textOf(v.Get("model"))}
	u.Usage, u.HasUsage = newUsage(v.Get("usage"))
	return u, true
}

// Leaf returns the entry, in key form, to which a leaf entry of an older file moves; null stands for before the first.
func (o Object) Leaf() (targetID string, null, ok bool) {
	if o.Type() != "leaf" {
		return "", false, false
	}
	v := o.Value.Get("targetId")
	if v.is(KindNull) {
		return "", true, true
	}
	targetID, ok = v.Key()
	return targetID, false, ok
}

// ActiveToolsChange returns the tools that an active_tools_change entry of an older file names.
func (o Object) ActiveToolsChange() (tools []string, ok bool) {
	if o.Type() != "active_tools_change" {
		return nil, false
	}
	for e := range o.Value.Get("activeToolNames").Elements() {
		if s, ok := e.Text(); ok {
			tools = append(tools, s)
		}
	}
	return tools, true
}

// An AssistantMessage is a message by a model.
type AssistantMessage struct {
	Provider, Model, ResponseModel string
	API, StopReason, ErrorMessage  string
	ThinkingLevel                  string
	Content                        Value
	Usage                          Usage
	HasUsage                       bool
}

// AssistantMessage returns the view of a message entry of an assistant.
func (o Object) AssistantMessage() (AssistantMessage, bool) {
	if o.Role() != "assistant" {
		return AssistantMessage{}, false
	}
	m := o.Message()
	get := func(name string) string { return textOf(m.Get(name)) }
	a := AssistantMessage{
		Provider:      get("provider"),
		Model:         get("model"),
		ResponseModel: get("responseModel"),
		API:           get("api"),
		StopReason:    get("stopReason"),
		ErrorMessage:  get("errorMessage"),
		ThinkingLevel: get("thinkingLevel"),
		Content:       m.Get("content"),
	}
	a.Usage, a.HasUsage = newUsage(m.Get("usage"))
	return a, true
}

// A ToolResult is a message with what a tool gave back.
type ToolResult struct {
	ToolCallID, ToolName string
	IsError              bool
	Content              Value
	Details              Value
	Usage                Usage
	HasUsage             bool
}

// ToolResult returns the view of a message entry of a tool.
func (o Object) ToolResult() (ToolResult, bool) {
	if o.Role() != "toolResult" {
		return ToolResult{}, false
	}
	m := o.Message()
	t := ToolResult{
		ToolCallID: textOf(m.Get("toolCallId")),
		ToolName:   textOf(m.Get("toolName")),
		IsError:    m.Get("isError").Truthy(),
		Content:    m.Get("content"),
		Details:    m.Get("details"),
	}
	t.Usage, t.HasUsage = newUsage(m.Get("usage"))
	return t, true
}

// A ToolCall is a block of an assistant message that calls a tool.
type ToolCall struct {
	ID, Name  string
	Arguments Value
}

// ToolCall returns the view of a content block that calls a tool.
func (v Value) ToolCall() (ToolCall, bool) {
	if !v.Get("type").IsString("toolCall") {
		return ToolCall{}, false
	}
	return ToolCall{textOf(v.Get("id")), textOf(v.Get("name")), v.Get("arguments")}, true
}

// A BashExecution is a message about a command that the user ran.
type BashExecution struct {
	Command, Output      string
	ExitCode             int
	HasExitCode          bool
	Cancelled, Truncated bool
	ExcludeFromContext   bool
	FullOutputPath       string
}

// BashExecution returns the view of a message entry about a command.
func (o Object) BashExecution() (BashExecution, bool) {
	if o.Role() != "bashExecution" {
		return BashExecution{}, false
	}
	m := o.Message()
	code, ok := m.Get("exitCode").Float()
	if math.Abs(code) > math.MaxInt32 {
		code, ok = 0, false
	}
	return BashExecution{
		Command:            textOf(m.Get("command")),
		Output:             textOf(m.Get("output")),
		ExitCode:           int(code),
		HasExitCode:        ok,
		Cancelled:          m.Get("cancelled").Truthy(),
		Truncated:          m.Get("truncated").Truthy(),
		ExcludeFromContext: m.Get("excludeFromContext").Truthy(),
		FullOutputPath:     textOf(m.Get("fullOutputPath")),
	}, true
}
