package jsonl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

type segment struct {
	Kind jsonl.SegmentKind
	Tool string
	Text string
}

func segments(o jsonl.Object) []segment {
	list, _ := o.AppendSegments(nil, nil)
	var got []segment
	for _, s := range list {
		got = append(got, segment{s.Kind, s.Tool, string(s.Text)})
	}
	return got
}

func message(rest string) string { return `{"type":"message","message":{` + rest + `}}` }

func TestSegments(t *testing.T) {
	tests := []struct {
		name, text string
		want       []segment
	}{
		{"user", message(`"role":"user","content":"a\nb\ud800"`), []segment{{jsonl.SegUser, "", "a\nb\ufffd"}}},
		{"blocks", message(`"role":"user","content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"text","text":"b","textSignature":"x"}]`), []segment{{jsonl.SegUser, "", "a"}, {jsonl.SegUser, "", "b"}}},
		{
			"assistant",
			message(`"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"x"},{"type":"text","text":"a"},{"type":"toolCall","id":"i","name":"bash","arguments":{"command":"ls -l","n":[1.0,{"k":"v"}],"b":true,"e":""}},{"type":"toolCall","name":"mine","arguments":{}}],"errorMessage":"429"`),
			[]segment{
				{jsonl.SegThinking, "", "t"},
				{jsonl.SegAssistant, "", "a"},
				{jsonl.SegToolName, "bash", "bash"},
				{jsonl.SegToolArguments, "bash", "command ls -l\nn 1.0\nk v\nb e "},
				{jsonl.SegToolName, "mine", "mine"},
				{jsonl.SegError, "", "429"},
			},
		},
		{"system", message(`"role":"system","content":"c","sections":{"a":"s","b":null}`), []segment{{jsonl.SegSystem, "", "c"}, {jsonl.SegSystem, "", "s"}}},
		{"tool result", message(`"role":"toolResult","toolName":"mine","content":[{"type":"text","text":"o"}],"details":{"x":"no"}`), []segment{{jsonl.SegToolOutput, "mine", "o"}}},
		{"command", message(`"role":"bashExecution","command":"ls","output":"o"`), []segment{{jsonl.SegCommand, "", "ls"}, {jsonl.SegCommandOutput, "", "o"}}},
		{"custom role", message(`"role":"custom","content":"c"`), []segment{{jsonl.SegCustom, "", "c"}}},
		{"unknown role", message(`"role":"new","content":[{"type":"text","text":"c"}]`), []segment{{jsonl.SegCustom, "", "c"}}},
		{"summary role", message(`"role":"branchSummary","summary":"s"`), []segment{{jsonl.SegSummary, "", "s"}}},
		{"custom message", `{"type":"custom_message","content":[{"type":"text","text":"c"}]}`, []segment{{jsonl.SegCustom, "", "c"}}},
		{"custom", `{"type":"custom","data":{"text":"no"}}`, nil},
		{"compaction", `{"type":"compaction","summary":"s"}`, []segment{{jsonl.SegSummary, "", "s"}}},
		{"branch summary", `{"type":"branch_summary","summary":"s"}`, []segment{{jsonl.SegSummary, "", "s"}}},
		{"label", `{"type":"label","targetId":"t","label":"l"}`, []segment{{jsonl.SegLabel, "", "l"}}},
		{"name", `{"type":"session_info","name":"n"}`, []segment{{jsonl.SegName, "", "n"}}},
		{"no message", `{"type":"message"}`, nil},
		{"no role", message(`"content":"c"`), nil},
		{"null content", message(`"role":"user","content":null`), nil},
		{"odd blocks", message(`"role":"assistant","content":[null,1,"x",[],{"type":"text"},{"type":"text","text":1},{"type":"text","text":""},{"type":"toolCall","arguments":"a"},{"type":"text","text":"good"}]`), []segment{{jsonl.SegToolArguments, "", "a"}, {jsonl.SegAssistant, "", "good"}}},
		{"another type", `{"type":"future","content":"c"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, segments(object(t, tt.text))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSegmentsReuseMemory(t *testing.T) {
	o := object(t, message(`"role":"user","content":"abc"`))
	list, buf := o.AppendSegments(make([]jsonl.Segment, 1, 4), append(make([]byte, 0, 64), "kept"...))
	if len(list) != 2 || string(buf) != "keptabc" || &list[1].Text[0] != &buf[4] {
		t.Errorf("%d segments, buffer %q", len(list), buf)
	}
}

func TestListText(t *testing.T) {
	tests := []struct {
		text, want string
		ok         bool
	}{
		{message(`"role":"user","content":"a"`), "a", true},
		{message(`"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"no"},{"type":"text","text":"b"}]`), "a b", true},
		{message(`"role":"user","content":[{"type":"text"},{"type":"text","text":null},{"type":"text","text":1e21},{"type":"text","text":true},{"type":"text","text":[1,[null,"x"],{}]},{"type":"text","text":{}}]`), "  1e+21 true 1,,x,[object Object] [object Object]", true},
		{message(`"role":"user","content":[1,"x",[],true]`), "", true},
		{message(`"role":"user","content":[{"type":"text","text":"a"},null]`), "", false},
		{message(`"role":"user","content":null`), "", false},
		{message(`"role":"user","content":1`), "", false},
		{message(`"role":"user","content":{}`), "", false},
		{message(`"role":"user"`), "", true},
		{message(`"role":"toolResult","content":null`), "", true},
		{`{"type":"message","message":null}`, "", false},
		{`{"type":"message"}`, "", false},
		{`{"type":"message","message":"x"}`, "", true},
		{`{"type":"custom"}`, "", true},
	}
	for _, tt := range tests {
		got, ok := object(t, tt.text).ListText([]byte("> "))
		if string(got) != "> "+tt.want || ok != tt.ok {
			t.Errorf("%s: %q %v", tt.text, got, ok)
		}
	}
}
