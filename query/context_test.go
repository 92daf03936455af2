package query_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

// contextOf returns the messages at the last entry of a session.
func contextOf(t *testing.T, rx *query.Rx, key query.Key) []query.Message {
	t.Helper()
	s := newSubject(t, rx, key)
	return s.context(s.entries[len(s.entries)-1].Ref).Messages
}

func texts(messages []query.Message) []string {
	texts := []string{}
	for _, m := range messages {
		texts = append(texts, string(m.JSON))
	}
	return texts
}

// TestContextEdits has replacements of the content of entry "a", in the order of the file, and the
// message that is left.
func TestContextEdits(t *testing.T) {
	user := `{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"old","n":1}}`
	assistant := `{"type":"message","id":"a","parentId":null,"message":{"content":[],"role":"assistant"}}`
	tests := map[string]struct {
		target string
		edits  []string
		want   []string
	}{
		"none":                     {user, nil, []string{`{"role":"user","content":"old","n":1}`}},
		"null":                     {user, []string{`null`}, []string{}},
		"string":                   {user, []string{`{"content":"new"}`}, []string{`{"role":"user","content":"new","n":1}`}},
		"string for assistant":     {assistant, []string{`{"content":"new"}`}, []string{`{"content":[{"type":"text","text":"new"}],"role":"assistant"}`}},
		"array":                    {user, []string{`{"content":[ {"2":1,"1":-0} ]}`}, []string{`{"role":"user","content":[{"1":0,"2":1}],"n":1}`}},
		"the last wins":            {user, []string{`null`, `{"content":"b"}`}, []string{`{"role":"user","content":"b","n":1}`}},
		"the last wins, null":      {user, []string{`{"content":"b"}`, `null`}, []string{}},
		"no content":               {user, []string{`{}`}, []string{`{"role":"user","n":1}`}},
		"no content for assistant": {assistant, []string{`5`}, []string{`{"role":"assistant"}`}},
		"no replacement":           {user, []string{``}, []string{`{"role":"user","content":"old","n":1}`}},
		"an earlier one stands":    {user, []string{`null`, ``}, []string{}},
		"content at the end": {
			`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":1}}`,
			[]string{`"x"`},
			[]string{`{"role":"user"}`},
		},
		"content alone": {
			`{"type":"message","id":"a","parentId":null,"message":{"role":"custom"}}`,
			[]string{`{"content":"new"}`},
			[]string{`{"role":"custom","content":"new"}`},
		},
		"of a shell run": {
			`{"type":"message","id":"a","parentId":null,"message":{"role":"bashExecution","command":"ls"}}`,
			[]string{`{"content":"new"}`},
			[]string{`{"role":"bashExecution","command":"ls"}`},
		},
		"of a custom message": {
			`{"type":"custom_message","customType":"c","display":true,"id":"a","parentId":null,"timestamp":"1970-01-01T00:00:00.005Z"}`,
			[]string{`{"content":"new"}`},
			[]string{`{"role":"custom","customType":"c","content":"new","display":true,"timestamp":5}`},
		},
		"of a compaction": {
			`{"type":"compaction","id":"a","parentId":null,"summary":"s","tokensBefore":1e2,"timestamp":"never","systemMessage":{"role":"system","content":"x"}}`,
			[]string{`{"content":"new"}`},
			[]string{`{"role":"system","content":"x"}`, `{"role":"compactionSummary","summary":"s","tokensBefore":100,"timestamp":null}`},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lines := []string{`{"type":"session","version":3,"id":"s"}`, test.target}
			parent := "a"
			for i, replacement := range test.edits {
				id := "e" + string(rune('0'+i))
				line := `{"type":"context_edit","id":"` + id + `","parentId":"` + parent + `","targetId":"a"`
				if replacement != "" {
					line += `,"replacement":` + replacement
				}
				lines = append(lines, line+"}")
				parent = id
			}
			viewSession(t, strings.Join(lines, "\n"), func(rx *query.Rx, key query.Key) {
				if diff := cmp.Diff(test.want, texts(contextOf(t, rx, key))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestLLM(t *testing.T) {
	user := func(text, more string) string {
		return `{"role":"user","content":[{"type":"text","text":"` + text + `"}]` + more + `}`
	}
	tests := map[string]struct{ message, want string }{
		"user":       {`{"role":"user","content":"x"}`, `{"role":"user","content":"x"}`},
		"system":     {`{"role":"system","content":""}`, `{"role":"system","content":""}`},
		"unknown":    {`{"role":"notice","content":"x"}`, ``},
		"no object":  {`"text"`, ``},
		"custom":     {`{"role":"custom","content":"a\"b\ud800","timestamp":5}`, user(`a\"b\ud800`, `,"timestamp":5`)},
		"of blocks":  {`{"role":"custom","content":[1],"timestamp":null}`, `{"role":"user","content":[1],"timestamp":null}`},
		"no content": {`{"role":"custom"}`, `{"role":"user"}`},
		"branch":     {`{"role":"branchSummary","summary":"s\n","timestamp":1}`, user(`The following is a summary of a branch that this conversation came back from:\n\n<summary>\ns\n</summary>`, `,"timestamp":1`)},
		"compaction": {`{"role":"compactionSummary","timestamp":1}`, user(`The conversation history before this point was compacted into the following summary:\n\n<summary>\nundefined\n</summary>`, `,"timestamp":1`)},
		"shell":      {`{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0,"timestamp":1}`, user("Ran `ls`\\n```\\na\\nb\\n```", `,"timestamp":1`)},
		"excluded":   {`{"role":"bashExecution","command":"ls","excludeFromContext":true}`, ``},
		"no output":  {`{"role":"bashExecution","command":"ls","output":"","exitCode":127}`, user("Ran `ls`\\n(no output)\\n\\nCommand exited with code 127", ``)},
		"cancelled":  {`{"role":"bashExecution","command":"ls","cancelled":true,"exitCode":1}`, user("Ran `ls`\\n(no output)\\n\\n(command cancelled)", ``)},
		"truncated":  {`{"role":"bashExecution","command":"ls","output":"x","truncated":true,"fullOutputPath":"/t/\"x"}`, user("Ran `ls`\\n```\\nx\\n```\\n\\n[Output truncated. Full output: /t/\\\"x]", ``)},
		"odd values": {`{"role":"bashExecution","command":[1,[null,"a"],{}],"output":true,"exitCode":"0"}`, user("Ran `1,,a,[object Object]`\\n```\\ntrue\\n```\\n\\nCommand exited with code 0", ``)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sent, err := query.LLM([]query.Message{{Source: 1, JSON: []byte(test.message)}})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{}
			if test.want != "" {
				want = append(want, test.want)
			}
			if diff := cmp.Diff(want, texts(sent)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, m := range sent {
				if m.Source != 1 {
					t.Errorf("source %d", m.Source)
				}
			}
		})
	}
	if _, err := query.LLM([]query.Message{{JSON: []byte("torn{")}}); err == nil {
		t.Error("no error for what is no message")
	}
}

// TestSettingsWithForwardParents asks for model and level where a parent stands behind its child, so
// that the walk has to find them.
func TestSettingsWithForwardParents(t *testing.T) {
	viewSession(t, `{"type":"session","version":3,"id":"s"}
{"type":"custom","id":"z","parentId":"m"}
{"type":"message","id":"a","parentId":null,"message":{"role":"assistant","provider":"p","model":"old"}}
{"type":"thinking_level_change","id":"t","parentId":"a","thinkingLevel":"high"}
{"type":"model_change","id":"m","parentId":"t","provider":"q","modelId":5}
`, func(rx *query.Rx, key query.Key) {
		s := newSubject(t, rx, key)
		c := s.context(s.entries[0].Ref)
		if got := named2(c.Model); got != `"q" ""` || c.ThinkingLevel != "high" {
			t.Errorf("%s, %s", got, c.ThinkingLevel)
		}
		c = s.context(s.entries[2].Ref)
		if got := named2(c.Model); got != `"p" "old"` || c.ThinkingLevel != "high" {
			t.Errorf("%s, %s", got, c.ThinkingLevel)
		}
	})
}
