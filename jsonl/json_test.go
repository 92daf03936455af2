package jsonl_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

// parse reads a text into a document of its own.
func parse(t testing.TB, text string) jsonl.Value {
	t.Helper()
	var d jsonl.Doc
	if err := d.Parse([]byte(text)); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return d.Root()
}

func TestSyntaxError(t *testing.T) {
	tests := []struct {
		text   string
		offset int
	}{
		{``, 0},
		{`{"a":1`, 6},
		{`{"a" 1}`, 5},
		{`{"a":tru}`, 8},
		{`[1 2]`, 3},
		{`{} x`, 3},
		{`"a\*"`, 3},
		{"\"a\tb\"", 2},
		{`[01]`, 2},
		{`-`, 1},
		{`{"a":1,}`, 7},
	}
	for _, tt := range tests {
		var d jsonl.Doc
		err := d.Parse([]byte(tt.text))
		if e, ok := errors.AsType[*jsonl.SyntaxError](err); !ok || e.Offset != tt.offset || e.Msg == "" {
			t.Errorf("%q: error %v, want one at byte %d", tt.text, err, tt.offset)
		}
		if d.Root().Exists() {
			t.Errorf("%q: a value in spite of the error", tt.text)
		}
	}
}

func TestValue(t *testing.T) {
	v := parse(t, ` {"a":1,"b":[null,true,"x",{}],"a":{"c":"d"},"\u0065":-1.5e1,"n":{}} `)
	if got := v.Get("a").Get("c"); !got.IsString("d") || got.IsString("e") || string(got.Raw()) != `"d"` || got.Offset() != 40 {
		t.Errorf("the last a is %s at %d", v.Get("a").Raw(), got.Offset())
	}
	if f, ok := v.Get("e").Float(); !ok || f != -15 {
		t.Errorf("e is %v", f)
	}
	var kinds []jsonl.Kind
	for e := range v.Get("b").Elements() {
		kinds = append(kinds, e.Kind())
	}
	if want := []jsonl.Kind{jsonl.KindNull, jsonl.KindBool, jsonl.KindString, jsonl.KindObject}; !cmp.Equal(kinds, want) {
		t.Errorf("kinds %v", kinds)
	}
	var names []string
	for name := range v.Members() {
		s, _ := name.Text()
		names = append(names, s)
		if len(names) == 4 {
			break
		}
	}
	if want := []string{"a", "b", "a", "e"}; !cmp.Equal(names, want) {
		t.Errorf("names %v", names)
	}
	if v.Len() != 5 || v.Get("b").Len() != 4 || v.Get("e").Len() != 0 {
		t.Error("lengths", v.Len(), v.Get("b").Len(), v.Get("e").Len())
	}
	for _, absent := range []jsonl.Value{{}, v.Get("x"), v.Get("b").Get("0"), v.Get("e").Get("")} {
		_, isText := absent.Text()
		_, isKey := absent.Key()
		_, isFloat := absent.Float()
		_, isBool := absent.Bool()
		if absent.Exists() || absent.Kind() != jsonl.KindAbsent || absent.Raw() != nil || absent.Len() != 0 || absent.Truthy() ||
			isText || isKey || isFloat || isBool || absent.IsString("") || len(absent.AppendNormal(nil)) != 0 || absent.Get("a").Exists() {
			t.Error("an absent value is something")
		}
	}
}

func TestTruthy(t *testing.T) {
	for text, want := range map[string]bool{
		`null`: false, `false`: false, `true`: true, `0`: false, `-0`: false, `0e9`: false, `1e-400`: false, `1`: true,
		`1e400`: true, `""`: false, `"0"`: true, `" "`: true, `[]`: true, `{}`: true,
	} {
		if got := parse(t, text).Truthy(); got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]float64{
		`1e400`: math.Inf(1), `-1e400`: math.Inf(-1), `1e-400`: 0, `9007199254740993`: 9007199254740992, `0.1`: 0.1,
	} {
		if got, ok := parse(t, text).Float(); !ok || got != want {
			t.Errorf("%s is %v", text, got)
		}
	}
}

func TestTextAndKey(t *testing.T) {
	tests := []struct{ literal, text, key string }{
		{`""`, "", ""},
		{`"plain größe 🚀"`, "plain größe 🚀", "plain größe 🚀"},
		{`"\"\\\/\b\f\n\r\t\u0000"`, "\"\\/\b\f\n\r\t\x00", "\"\\/\b\f\n\r\t\x00"},
		{`"\ud83d\ude80"`, "🚀", "🚀"},
		{`"a\udc88"`, "a\ufffd", `a\udc88`},
		{`"a\uDC88"`, "a\ufffd", `a\udc88`},
		{`"\ud83d\ud83d\ude80"`, "\ufffd🚀", `\ud83d🚀`},
		{`"\\\udc88"`, "\\\ufffd", `\\\udc88`},
		{`"a\\udc88"`, `a\udc88`, `a\\udc88`},
		{`"\\u0041\\"`, `\u0041\`, `\u0041\`},
		{"\"\xff\xe2\x82\"", "\ufffd\ufffd", "\ufffd\ufffd"},
		{"\"\xed\xa0\x80\\n\xf0\x9f\\u0041\"", "\ufffd\ufffd\ufffd\n\ufffdA", "\ufffd\ufffd\ufffd\n\ufffdA"},
	}
	for _, tt := range tests {
		v := parse(t, tt.literal)
		if got, _ := v.Text(); got != tt.text {
			t.Errorf("text of %s is %q, want %q", tt.literal, got, tt.text)
		}
		key, _ := v.Key()
		if key != tt.key {
			t.Errorf("key of %s is %q, want %q", tt.literal, key, tt.key)
		}
		if got := string(jsonl.AppendKey(nil, key)); got != string(v.AppendNormal(nil)) {
			t.Errorf("key %q is written %s, want %s", key, got, v.AppendNormal(nil))
		}
	}
}

func TestIsString(t *testing.T) {
	tests := []struct {
		literal, s string
		want       bool
	}{
		{`"a"`, "a", true},
		{`"\u0061"`, "a", true},
		{`"ä"`, "ä", true},
		{`"\u00e4"`, "ä", true},
		{"\"\xff\"", "\ufffd", true},
		{"\"\xff\"", "\xff", false},
		{`"\ud800"`, "\ufffd", false},
		{`1`, "1", false},
	}
	for _, tt := range tests {
		if got := parse(t, tt.literal).IsString(tt.s); got != tt.want {
			t.Errorf("%s is %q: %v", tt.literal, tt.s, got)
		}
	}
}

func TestDeepNesting(t *testing.T) {
	const depth = 1 << 20
	for _, pair := range [][2]string{{"[", "]"}, {`{"a":`, "}"}, {`[{"a":`, "}]"}} {
		text := strings.Repeat(pair[0], depth) + "1" + strings.Repeat(pair[1], depth)
		v := parse(t, text)
		if got := v.AppendNormal(nil); string(got) != text {
			t.Errorf("%d levels of %s are written otherwise", depth, pair[0])
		}
	}
	e := parse(t, `{"type":"message","message":{"role":"assistant","content":[{"type":"toolCall","arguments":`+
		strings.Repeat("[", depth)+`"deep"`+strings.Repeat("]", depth)+`},{"type":"text","text":`+
		strings.Repeat("[", depth)+`"deep"`+strings.Repeat("]", depth)+`}]}}`)
	o := jsonl.NewObject(e)
	if s, _ := o.AppendSegments(nil, nil); len(s) != 1 || string(s[0].Text) != "deep" {
		t.Errorf("%d segments", len(s))
	}
	if text, ok := o.ListText(nil); !ok || string(text) != "deep" {
		t.Errorf("listed as %.20q", text)
	}
	var d jsonl.Doc
	if d.Parse([]byte(strings.Repeat(`{"a":[`, depth))) == nil {
		t.Error("a torn text parses")
	}
}
