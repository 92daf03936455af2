package jsonl_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pidb/jsonl"
)

func TestAppend(t *testing.T) {
	tests := []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{true, `true`},
		{"</a>&\u2028\x7f\x01\"\\\n\t\r\b\f\xff", `"</a>&` + "\u2028\x7f" + `\u0001\"\\\n\t\r\b\f` + "\ufffd" + `"`},
		{1, `1`},
		{int32(-1), `-1`},
		{int64(1) << 53, `9007199254740992`},
		{uint64(7), `7`},
		{float32(0.5), `0.5`},
		{math.Copysign(0, -1), `0`},
		{1e21, `1e+21`},
		{math.NaN(), `null`},
		{jsonl.Undefined, `null`},
		{jsonl.Value{}, `null`},
		{[]any{1, jsonl.Undefined, nil, []string{"a"}}, `[1,null,null,["a"]]`},
		{jsonl.Members{}, `{}`},
		{jsonl.Members{{Key: "b", Value: 1}, {Key: "x", Value: jsonl.Undefined}, {Key: "y", Value: jsonl.Value{}}, {Key: "a", Value: jsonl.Members{{Key: "\n", Value: nil}}}}, `{"b":1,"a":{"\n":null}}`},
		{map[string]any{"b": 1, "a": []any{}}, `{"a":[],"b":1}`},
		{json.RawMessage(` { "b" : 1.0 , "1" : "\u0041\udc88" } `), `{"1":"A\udc88","b":1}`},
		{parse(t, ` [ 1e2 ] `), `[100]`},
	}
	for _, tt := range tests {
		got, err := jsonl.Append([]byte("> "), tt.value)
		if err != nil || string(got) != "> "+tt.want {
			t.Errorf("%v is written %s, %v, want %s", tt.value, got, err, tt.want)
		}
	}
	for _, bad := range []any{struct{}{}, json.RawMessage(`{`), []any{struct{}{}}, jsonl.Members{{Key: "a", Value: make(chan int)}}} {
		if _, err := jsonl.Append(nil, bad); err == nil {
			t.Errorf("%v is written", bad)
		}
	}
}

func TestObjectNormal(t *testing.T) {
	null := &jsonl.NormalOptions{Parent: &jsonl.ParentRef{Null: true}}
	other := &jsonl.NormalOptions{Parent: &jsonl.ParentRef{ID: `\udc88`}}
	tests := []struct {
		text string
		opts *jsonl.NormalOptions
		want string
	}{
		{`{ "type":"x", "parentId":"a", "id":"b" }`, nil, `{"type":"x","parentId":"a","id":"b"}`},
		{`{"type":"x","parentId":"a","id":"b"}`, null, `{"type":"x","parentId":null,"id":"b"}`},
		{`{"type":"x","parentId":"a","id":"b","parentId":"c"}`, other, `{"type":"x","parentId":"\udc88","id":"b"}`},
		{`{"type":"x","id":"b","9":1}`, null, `{"9":1,"type":"x","id":"b","parentId":null}`},
		{`{"type":"x","par\u0065ntId":"b"}`, null, `{"type":"x","parentId":null}`},
		{`{"type":"message","message":{"role":"hookMessage"}}`, nil, `{"type":"message","message":{"role":"hookMessage"}}`},
		{`{}`, nil, `{}`},
		{`[1.0]`, null, `[1]`},
	}
	for _, tt := range tests {
		if got := string(object(t, tt.text).AppendNormal(nil, tt.opts)); got != tt.want {
			t.Errorf("%s is written %s, want %s", tt.text, got, tt.want)
		}
	}
}

func TestMigratedNormal(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{
			"version 1",
			`{"type":"session","id":"s","version":null,"x":1}
{"parentId":"own","type":"compaction","timestamp":"t","firstKeptEntryIndex":1,"id":"own","z":0}
{"type":"compaction","timestamp":"t","firstKeptEntryIndex":"1","firstKeptEntryId":"f"}
{"type":"session","id":"later"}
[1.0]
`,
			`{"type":"session","id":"s","version":3,"x":1}
{"parentId":null,"type":"compaction","timestamp":"t","id":"A","z":0,"firstKeptEntryId":"A"}
{"type":"compaction","timestamp":"t","firstKeptEntryIndex":"1","firstKeptEntryId":"f","id":"B","parentId":"A"}
{"type":"session","id":"later","version":3}
[1]
`,
		},
		{
			"version 2",
			`{"type":"session","id":"s","version":2}
{"type":"message","id":"a","message":{"role":"user","role":"hookMessage","content":{"role":"hookMessage"}}}
{"type":"other","id":"a","message":{"role":"hookMessage"}}
`,
			`{"type":"session","id":"s","version":3}
{"type":"message","id":"a","message":{"role":"custom","content":{"role":"hookMessage"}}}
{"type":"other","id":"a","message":{"role":"hookMessage"}}
`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jsonl.NewDecoder(strings.NewReader(tt.input), nil)
			var got strings.Builder
			ids := strings.NewReplacer()
			var pairs []string
			for {
				r, err := d.Next()
				if err != nil {
					break
				}
				if id, ok := r.Whole.ID(); ok && r.Kind == jsonl.LineEntry && len(id) == 16 {
					pairs = append(pairs, id, string(rune('A'+len(pairs)/2)))
					ids = strings.NewReplacer(pairs...)
				}
				got.WriteString(ids.Replace(string(r.Whole.AppendNormal(nil, nil))) + "\n")
			}
			if got.String() != tt.want {
				t.Errorf("got\n%swant\n%s", got.String(), tt.want)
			}
		})
	}
}

func TestFormatTime(t *testing.T) {
	for ms, want := range map[int64]string{
		0:                 "1970-01-01T00:00:00.000Z",
		1767225600123:     "2026-01-01T00:00:00.123Z",
		-1:                "1969-12-31T23:59:59.999Z",
		-62167219200000:   "0000-01-01T00:00:00.000Z",
		-62167219200001:   "-000001-12-31T23:59:59.999Z",
		-62198755200000:   "-000001-01-01T00:00:00.000Z",
		253402300800000:   "+010000-01-01T00:00:00.000Z",
		8640000000000000:  "+275760-09-13T00:00:00.000Z",
		-8640000000000000: "-271821-04-20T00:00:00.000Z",
	} {
		if got := jsonl.FormatTime(ms); got != want {
			t.Errorf("%d is %s, want %s", ms, got, want)
		}
	}
}

func TestIsBlank(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " \t\r\v\f\u00a0\u2028\ufeff\u3000": true, "\u0085": false, "a": false, " a": false, "\x00": false, "\xff": false, "\u200b": false,
	} {
		if got := jsonl.IsBlank([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
