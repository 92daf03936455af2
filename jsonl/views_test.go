package jsonl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"pidb/jsonl"
)

func object(t testing.TB, text string) jsonl.Object { return jsonl.NewObject(parse(t, text)) }

const usageJSON = `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"reasoning":5,"cacheWrite1h":6,"cost":{"input":0.1,"output":0.2,"cacheRead":0.3,"cacheWrite":0.4,"total":1}}`

var usage = jsonl.Usage{
	Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Total: 10, Reasoning: 5, CacheWrite1h: 6,
	Cost: 1, CostInput: 0.1, CostOutput: 0.2, CostCacheRead: 0.3, CostCacheWrite: 0.4,
}

// view gives what each view of an entry says, for the views that are of its type.
func view(o jsonl.Object) map[string]any {
	m := map[string]any{}
	add := func(name string, v any, ok bool) {
		if ok {
			m[name] = v
		}
	}
	compaction, ok := o.Compaction()
	add("compaction", compaction, ok)
	branch, ok := o.BranchSummary()
	add("branch_summary", branch, ok)
	model, ok := o.ModelChange()
	add("model_change", model, ok)
	level, ok := o.ThinkingLevelChange()
	add("thinking_level_change", level, ok)
	label, ok := o.Label()
	add("label", label, ok)
	name, ok := o.SessionInfo()
	add("session_info", name, ok)
	edit, ok := o.ContextEdit()
	add("context_edit", edit, ok)
	custom, ok := o.Custom()
	add("custom", custom, ok)
	message, ok := o.CustomMessage()
	add("custom_message", message, ok)
	entry, ok := o.UsageEntry()
	add("usage", entry, ok)
	target, null, ok := o.Leaf()
	add("leaf", []any{target, null}, ok)
	tools, ok := o.ActiveToolsChange()
	add("active_tools_change", tools, ok)
	assistant, ok := o.AssistantMessage()
	add("assistant", assistant, ok)
	result, ok := o.ToolResult()
	add("toolResult", result, ok)
	bash, ok := o.BashExecution()
	add("bashExecution", bash, ok)
	return m
}

func TestViews(t *testing.T) {
	tests := []struct {
		text string
		want map[string]any
	}{
		{
			`{"type":"compaction","summary":"s","firstKeptEntryId":"k","tokensBefore":9,"usage":` + usageJSON + `,"fromHook":true}`,
			map[string]any{"compaction": jsonl.Compaction{Summary: "s", FirstKeptEntryID: "k", HasFirstKept: true, TokensBefore: 9, Usage: usage, HasUsage: true, FromHook: true}},
		},
		{`{"type":"compaction","summary":1,"firstKeptEntryId":null,"tokensBefore":"9"}`, map[string]any{"compaction": jsonl.Compaction{}}},
		{`{"type":"branch_summary","fromId":"f","summary":"s"}`, map[string]any{"branch_summary": jsonl.BranchSummary{FromID: "f", Summary: "s"}}},
		{`{"type":"model_change","provider":"p","modelId":"m"}`, map[string]any{"model_change": jsonl.ModelChange{Provider: "p", ModelID: "m"}}},
		{`{"type":"thinking_level_change","thinkingLevel":"high"}`, map[string]any{"thinking_level_change": "high"}},
		{`{"type":"label","targetId":"t","label":" l "}`, map[string]any{"label": jsonl.Label{TargetID: "t", Text: " l "}}},
		{`{"type":"label","targetId":"t","label":7}`, map[string]any{"label": jsonl.Label{TargetID: "t", Text: "7"}}},
		{`{"type":"label","targetId":"t","label":""}`, map[string]any{"label": jsonl.Label{TargetID: "t", Cleared: true}}},
		{`{"type":"label","targetId":"t"}`, map[string]any{"label": jsonl.Label{TargetID: "t", Cleared: true}}},
		{`{"type":"label","targetId":1,"label":"l"}`, map[string]any{}},
		{`{"type":"session_info","name":"\ufeff a b\n"}`, map[string]any{"session_info": "a b"}},
		{`{"type":"session_info","name":" "}`, map[string]any{"session_info": ""}},
		{`{"type":"session_info"}`, map[string]any{"session_info": ""}},
		{`{"type":"session_info","name":1}`, map[string]any{}},
		{`{"type":"context_edit","targetId":"t","replacement":null}`, map[string]any{"context_edit": jsonl.ContextEdit{TargetID: "t", HasTarget: true}}},
		{`{"type":"custom","customType":"c"}`, map[string]any{"custom": jsonl.Custom{CustomType: "c"}}},
		{`{"type":"custom_message","customType":"c","display":true}`, map[string]any{"custom_message": jsonl.CustomMessage{CustomType: "c", Display: true}}},
		{
			`{"type":"usage","kind":"k","provider":"p","model":"m","usage":` + usageJSON + `}`,
			map[string]any{"usage": jsonl.UsageEntry{Kind: "k", Provider: "p", Model: "m", Usage: usage, HasUsage: true}},
		},
		{`{"type":"leaf","targetId":"t"}`, map[string]any{"leaf": []any{"t", false}}},
		{`{"type":"leaf","targetId":null}`, map[string]any{"leaf": []any{"", true}}},
		{`{"type":"leaf"}`, map[string]any{}},
		{`{"type":"active_tools_change","activeToolNames":["read",1,"bash"]}`, map[string]any{"active_tools_change": []string{"read", "bash"}}},
		{
			`{"type":"message","message":{"role":"assistant","provider":"p","model":"m","stopReason":"stop","api":"a","usage":1}}`,
			map[string]any{"assistant": jsonl.AssistantMessage{Provider: "p", Model: "m", StopReason: "stop", API: "a"}},
		},
		{
			`{"type":"message","message":{"role":"toolResult","toolCallId":"c","toolName":"n","isError":true,"usage":` + usageJSON + `}}`,
			map[string]any{"toolResult": jsonl.ToolResult{ToolCallID: "c", ToolName: "n", IsError: true, Usage: usage, HasUsage: true}},
		},
		{
			`{"type":"message","message":{"role":"bashExecution","command":"ls","output":"o","exitCode":1,"cancelled":true,"truncated":true,"excludeFromContext":true,"fullOutputPath":"/f"}}`,
			map[string]any{"bashExecution": jsonl.BashExecution{Command: "ls", Output: "o", ExitCode: 1, HasExitCode: true, Cancelled: true, Truncated: true, ExcludeFromContext: true, FullOutputPath: "/f"}},
		},
		{`{"type":"message","message":{"role":"bashExecution","exitCode":1e99}}`, map[string]any{"bashExecution": jsonl.BashExecution{}}},
		{`{"type":"message","message":null}`, map[string]any{}},
		{`{"type":["label"],"targetId":"t"}`, map[string]any{}},
		{`[]`, map[string]any{}},
	}
	for _, tt := range tests {
		got := view(object(t, tt.text))
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreTypes(jsonl.Value{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.text, diff)
		}
	}
}

func TestIdentity(t *testing.T) {
	tests := []struct {
		text, id, parent string
		hasID, null, ok  bool
	}{
		{`{"id":"a","parentId":"b"}`, "a", "b", true, false, true},
		{`{"id":"\udc88","parentId":null}`, `\udc88`, "", true, true, true},
		{`{"id":"","parentId":""}`, "", "", true, false, true},
		{`{"id":1,"parentId":1}`, "", "", false, false, false},
		{`{}`, "", "", false, false, false},
	}
	for _, tt := range tests {
		o := object(t, tt.text)
		id, hasID := o.ID()
		parent, null, ok := o.ParentID()
		if id != tt.id || hasID != tt.hasID || parent != tt.parent || null != tt.null || ok != tt.ok {
			t.Errorf("%s: %q %v, %q %v %v", tt.text, id, hasID, parent, null, ok)
		}
	}
}

func TestUsage(t *testing.T) {
	for _, text := range []string{
		`{"type":"message","message":{"role":"assistant","model":"m","provider":"p","usage":` + usageJSON + `}}`,
		`{"type":"message","message":{"role":"toolResult","model":"m","provider":"p","usage":` + usageJSON + `}}`,
		`{"type":"compaction","model":"m","provider":"p","usage":` + usageJSON + `}`,
		`{"type":"branch_summary","model":"m","provider":"p","usage":` + usageJSON + `}`,
		`{"type":"usage","model":"m","provider":"p","usage":` + usageJSON + `}`,
	} {
		got, model, provider, ok := object(t, text).Usage()
		if got != usage || model != "m" || provider != "p" || !ok {
			t.Errorf("%s: %+v %s %s %v", text, got, model, provider, ok)
		}
	}
	for _, text := range []string{
		`{"type":"message","message":{"role":"user","usage":` + usageJSON + `}}`,
		`{"type":"custom","usage":` + usageJSON + `}`,
		`{"type":"usage","usage":7}`,
	} {
		if _, _, _, ok := object(t, text).Usage(); ok {
			t.Errorf("%s has usage", text)
		}
	}
	got, _, _, ok := object(t, `{"type":"usage","usage":{"input":"1","output":1.9,"cacheRead":1e300,"cacheWrite":-1,"cost":{"total":1e400}}}`).Usage()
	if want := (jsonl.Usage{Output: 1, CacheWrite: -1}); !ok || got != want {
		t.Errorf("odd numbers: %+v", got)
	}
}

func TestActivityTime(t *testing.T) {
	tests := []struct {
		text string
		ms   float64
		ok   bool
	}{
		{`{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":1,"timestamp":1.5}}`, 1.5, true},
		{`{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":null,"timestamp":"1"}}`, 1767225600000, true},
		{`{"type":"message","timestamp":"yesterday","message":{"role":"user","content":""}}`, 0, false},
		{`{"type":"message","timestamp":null,"message":{"role":"user","content":""}}`, 0, true},
		{`{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","timestamp":1}}`, 0, false},
		{`{"type":"message","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"toolResult","content":"","timestamp":1}}`, 0, false},
		{`{"type":"custom","message":{"role":"user","content":"","timestamp":1}}`, 0, false},
	}
	for _, tt := range tests {
		if ms, ok := object(t, tt.text).ActivityTime(); ms != tt.ms || ok != tt.ok {
			t.Errorf("%s: %v %v", tt.text, ms, ok)
		}
	}
}
