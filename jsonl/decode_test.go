package jsonl_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

const header3 = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}`

// entry is an entry of that id, below null.
func entry(id string) string {
	return fmt.Sprintf(`{"type":"custom","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`, id)
}

// describe gives a line for each record: its kind and the ids of its entries.
func describe(t testing.TB, d *jsonl.Decoder) []string {
	t.Helper()
	var list []string
	for {
		r, err := d.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		var s strings.Builder
		s.WriteString(r.Kind.String())
		for _, o := range r.Entries() {
			id, ok := o.ID()
			if !ok {
				t.Errorf("line %d has an entry without id", r.Line.Number)
			}
			s.WriteString(" " + id)
			if r.Kind == jsonl.LineMalformed {
				b := strings.TrimPrefix(string(r.Line.Data[o.Start:o.End]), "\ufeff")
				if !json.Valid([]byte(b)) || b != string(o.Value.Raw()) {
					t.Errorf("line %d: the range of part %d holds %q", r.Line.Number, o.Part, b)
				}
			}
		}
		list = append(list, s.String())
	}
}

func TestLineKinds(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"header and entry", header3 + "\n" + entry("a"), "header|entry a"},
		{"blank", header3 + "\n\n \t\r\n\u2028\ufeff\n\u0085\n", "header|blank|blank|blank|malformed"},
		{"values", header3 + "\n1\nnull\n\"a\"\n[]\n{}\n" + `{"type":"x","id":1}` + "\n" + `{"id":"b"}`, "header|json|json|json|json|json|json|entry b"},
		{"later header", header3 + "\n" + entry("a") + "\n" + header3 + "\n" + entry("b"), "header|entry a|json|entry b"},
		{"BOM", "\ufeff" + header3 + "\n" + entry("a"), "header|entry a"},
		{"BOM in line 2", header3 + "\n\ufeff" + entry("a"), "header|malformed a"},
		{"BOM before a torn line", "\ufeff{\"x\" " + entry("a"), "malformed a"},
		{"title before the header", `{"type":"title","v":1,"title":"","pad":"    "}` + "\n" + header3 + "\n" + entry("a"), "json|header|entry a"},
		{"broken first line", "{\"type\":\"sess\n" + header3, "malformed|header"},
		{"header behind a piece", "{\"type\":\"sess" + header3 + "\n" + entry("a"), "malformed|entry a"},
		{"no header", entry("a") + "\n" + entry("b"), "entry a|entry b"},
		{"header without id", `{"type":"session","id":1}` + "\n" + header3 + "\n" + entry("a"), "json|json|entry a"},
		{"header as tenth object", strings.Repeat(entry("x")+"\n\n7\n", 9) + header3, strings.Repeat("entry x|blank|json|", 9) + "header"},
		{"header as eleventh object", strings.Repeat(entry("x")+"\n", 10) + header3, strings.Repeat("entry x|", 10) + "json"},
		{"escaped names", header3 + "\n" + `{"\u0074ype":"\u006dessage","i\u0064":"\u0061"}`, "header|entry a"},
		{"repeated names", header3 + "\n" + `{"id":1,"id":"a"}` + "\n" + `{"id":"a","id":1}`, "header|entry a|json"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(describe(t, jsonl.NewDecoder(strings.NewReader(tt.input), nil)), "|")
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestRecovered(t *testing.T) {
	a, b, c := entry("a"), entry("b"), entry("c")
	torn := `{"type":"message","id":"t","parentId":null,"timestamp":"x","message":{"role":"user","content":"some \"text\" {`
	nested := `{"type":"custom","id":"n","parentId":null,"timestamp":"x"}`
	tests := []struct{ name, line, want string }{
		{"two", a + b, "a b"},
		{"three with spaces", a + " \t" + b + " " + c + " ", "a b c"},
		{"with a comma", a + "," + b, "a b"},
		{"torn end", a + torn, "a"},
		{"torn in a string", torn + b, "b"},
		{"torn twice", torn + torn + b + torn, "b"},
		{"torn, then two", torn + a + b, "a b"},
		{"torn, complete, torn, complete", torn + a + torn + b, "a b"},
		{"garbage between", a + " garbage " + b, "a b"},
		{"garbage around", "[INFO] " + a + " garbage", "a"},
		{"NULs between", a + "\x00\x00\x00" + b, "a b"},
		{"NULs before", "\x00\x00\x00\x00" + b, "b"},
		{"bytes lost between", a[:20] + "\x00\x00" + b, "b"},
		{"torn in a name", `{"type":"message","pare` + b, "b"},
		{"torn behind a name", `{"type":"message","parentId"` + b, "b"},
		{"torn behind a comma", `{"type":"message",` + b, "b"},
		{"torn behind a brace", `{` + b, "b"},
		{"torn in an escape", `{"type":"mess\` + b, "b"},
		{"torn in a long escape", `{"type":"mess\u00` + b, "b"},
		{"torn in a number", `{"type":1` + b, "b"},
		{"torn in a fraction", `{"type":1.` + b, "b"},
		{"torn in a word", `{"type":tr` + b, "b"},
		{"torn in a rune", `{"type":"` + "\xf0\x9f" + b, "b"},
		{"torn behind an array", `{"type":[1]` + b, "b"},
		{"torn behind a brace in text", `{"type":"if (x) { {} {` + b, "b"},
		{"no entry", `{"type":"text"}{"type":"text","id":"x"}` + b, "b"},
		{"session", header3 + b, "b"},
		{"no timestamp", `{"type":"x","id":"x","parentId":null}` + b, "b"},
		{"parent of another type", `{"type":"x","id":"x","parentId":1,"timestamp":""}` + b, "b"},
		{"values before", `1 "x" null` + b, "b"},
		{"array of entries", "[" + a + "," + b + "]x", ""},
		{"torn array", "[" + a + "," + b, ""},

		{"nested, torn end", `{"type":"custom","data":` + nested + `,"z":"torn`, ""},
		{"nested in an array, torn end", `{"type":"custom","data":[` + nested + `,` + nested, ""},
		{"nested, torn behind it", `{"type":"custom","data":` + nested, ""},
		{"nested, bad word before", `{"type":"custom","bad":tru,"data":` + nested + `}`, ""},
		{"nested, bad escape before", `{"type":"custom","bad":"\*** {","data":[` + nested + `,` + nested + `]}`, ""},
		{"nested, comma missing", `{"type":"custom","list":[1 ` + nested + `]}`, ""},
		{"nested, commas missing", `{"type":"custom","list":[` + nested + nested + nested + `]}`, ""},
		{"nested, beginning missing", `ta":[` + nested + `,` + nested + `],"x":` + nested + `}`, ""},
		{"nested, beginning missing in a string", `lo","data":` + nested + `,"x":1}`, ""},
		{"nested, then complete", `{"type":"custom","data":[` + nested + `,"torn` + b, "b"},
		{"nested in the second", torn + `{"type":"custom","data":` + nested + `,"id":"b","parentId":null,"timestamp":""}`, "b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jsonl.NewDecoder(strings.NewReader(header3+"\n"+tt.line+"\n"+entry("end")), nil)
			got := describe(t, d)
			want := []string{"header", strings.TrimSpace("malformed " + tt.want), "entry end"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRecoveryIsLinear(t *testing.T) {
	const n = 1 << 20
	for _, unit := range []string{
		`{"`, `{"{"`, `{"a":`, `{ `, `{"a":"{`, `{"a":[`, `{}`, `{} x`, `"{`, `{"a":1,`, `[{`, `{"a":"\{`, `x{`, `:{`, ` `, entry("a"), entry("a") + " x",
	} {
		line := strings.Repeat(unit, n/len(unit))
		start := time.Now()
		d := jsonl.NewDecoder(strings.NewReader(line), nil)
		for {
			if _, err := d.Next(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("a line of %q took %v", unit, took)
		}
	}
}

func TestHeader(t *testing.T) {
	d := jsonl.NewDecoder(strings.NewReader("\n"+`{"type":"session","id":"\udc88","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/größe","parentSession":"p.jsonl","x":[1.0]}`), nil)
	if got := describe(t, d); !cmp.Equal(got, []string{"blank", "header"}) {
		t.Fatal(got)
	}
	got, ok := d.Header()
	want := jsonl.Header{
		Version: 1, ID: `\udc88`, Line: 2,
		Timestamp: "2026-01-01T00:00:00.000Z", HasTimestamp: true, CreatedMS: 1767225600000, HasCreated: true,
		CWD: "/größe", HasCWD: true, ParentSession: "p.jsonl", HasParentSession: true,
		Raw: []byte(`{"type":"session","id":"\udc88","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/größe","parentSession":"p.jsonl","x":[1.0]}`),
	}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("%v -want +got:\n%s", ok, diff)
	}
}

func TestHeaderVersion(t *testing.T) {
	tests := []struct {
		version string
		want    int
	}{
		{``, 1},
		{`,"version":null`, 1},
		{`,"version":1`, 1},
		{`,"version":2`, 2},
		{`,"version":2.5`, 2},
		{`,"version":3`, 3},
		{`,"version":4`, 4},
		{`,"version":"3"`, 3},
		{`,"version":" 0x2 "`, 2},
		{`,"version":""`, 1},
		{`,"version":"x"`, 3},
		{`,"version":true`, 1},
		{`,"version":{}`, 3},
		{`,"version":[2]`, 2},
		{`,"version":-1`, 1},
		{`,"version":1e400`, 1<<31 - 1},
	}
	for _, tt := range tests {
		d := jsonl.NewDecoder(strings.NewReader(`{"type":"session","id":"s"`+tt.version+`}`), nil)
		describe(t, d)
		if h, _ := d.Header(); h.Version != tt.want {
			t.Errorf("%s is version %d, want %d", tt.version, h.Version, tt.want)
		}
	}
}

func TestHeaderless(t *testing.T) {
	tests := []struct {
		name, input        string
		session, undecided bool
	}{
		{"entries", entry("a"), true, true},
		{"many entries", strings.Repeat(entry("a")+"\n", 10), true, false},
		{"not all members", `{"type":"x","id":"a","parentId":null}`, false, true},
		{"recovered", `{"x` + entry("a"), true, true},
		{"text", "not json at all\n", false, true},
		{"header without id", `{"type":"session","id":null}` + "\n" + entry("a"), true, false},
		{"header", header3 + "\n" + entry("a"), false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := jsonl.NewDecoder(strings.NewReader(tt.input), nil)
			describe(t, d)
			if got := d.HeaderlessSession(); got != tt.session {
				t.Errorf("HeaderlessSession = %v", got)
			}
			if got := d.State().Undecided; got != tt.undecided {
				t.Errorf("Undecided = %v", got)
			}
		})
	}
}

func TestUnsupportedFormat(t *testing.T) {
	for _, first := range []string{
		`{"kind":"header","version":4,"id":"x"}`,
		`{"v":4,"kind":"header","storageVersion":1,"id":"x"}`,
	} {
		d := jsonl.NewDecoder(strings.NewReader("\n"+first+"\n"+header3), nil)
		for range 2 {
			if r, err := d.Next(); !errors.Is(err, jsonl.ErrUnsupportedFormat) {
				// The blank line may come before the error.
				if err != nil || r.Kind != jsonl.LineBlank {
					t.Errorf("%s: error %v", first, err)
				}
			}
		}
		if _, err := d.Next(); !errors.Is(err, jsonl.ErrUnsupportedFormat) {
			t.Errorf("%s: error %v", first, err)
		}
	}
	d := jsonl.NewDecoder(strings.NewReader(`{"kind":"header","version":3}`+"\n"+header3), nil)
	if got := describe(t, d); !cmp.Equal(got, []string{"json", "header"}) {
		t.Error(got)
	}
}

// version1 has all that version 1 can show: a header that is not first, recovered entries, ids of its own, compactions.
const version1 = `{"type":"title"}
{"type":"session","id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}
{"type":"message","timestamp":"t1","message":{"role":"user","content":"x"}}

0
{"type":"message","timestamp":"t2","message":{"role":"hookMessage","content":"x"}}{"type":"message","timestamp":"t3","message":{"role":"user","content":"y"}}
[1]
{"type":"compaction","timestamp":"t4","firstKeptEntryIndex":2,"firstKeptEntryId":"wrong","summary":"s"}
{"type":"compaction","timestamp":"t5","firstKeptEntryIndex":3,"summary":"s"}
{"type":"compaction","timestamp":"t6","firstKeptEntryIndex":6,"summary":"s"}
{"type":"compaction","timestamp":"t7","firstKeptEntryIndex":1.5,"summary":"s"}
{"type":"session","id":"later"}
{"id":"own","parentId":"own","type":"custom","data":1}
`

func TestVersion1(t *testing.T) {
	d := jsonl.NewDecoder(strings.NewReader(version1), nil)
	var got []string
	lines := map[string]string{}
	for {
		r, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Entries() {
			id, _ := o.ID()
			if len(id) != 16 {
				t.Errorf("id %q", id)
			}
			lines[id] = fmt.Sprintf("%d.%d", r.Line.Number, o.Part)
			parent, null, ok := o.ParentID()
			s := fmt.Sprintf("%s < %s", lines[id], lines[parent])
			if !ok || null != (parent == "") {
				t.Errorf("%s: parent %q %v %v", lines[id], parent, null, ok)
			}
			if c, ok := o.Compaction(); ok {
				s += fmt.Sprintf(" keeps %s%v", lines[c.FirstKeptEntryID], c.HasFirstKept)
			}
			got = append(got, s+" "+o.Role())
		}
	}
	want := []string{
		"1.0 <  ",
		"3.0 < 1.0 user",
		"6.1 < 3.0 custom",
		"6.2 < 6.1 user",
		"8.0 < 6.2 keeps 3.0true ",
		"9.0 < 8.0 keeps false ",
		"10.0 < 9.0 keeps 10.0true ",
		"11.0 < 10.0 keeps false ",
		"13.0 < 11.0 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestResume(t *testing.T) {
	for _, input := range []string{
		version1,
		header3 + "\n" + entry("a") + "\r\n{torn\n" + header3 + "\n" + entry("b") + "\n" + entry("c"),
		`{"type":"session","version":2,"id":"s"}` + "\n" + `{"type":"message","id":"a","message":{"role":"hookMessage"}}` + "\n" + entry("b") + "\n",
	} {
		all := describe(t, jsonl.NewDecoder(strings.NewReader(input), nil))
		for cut := 1; cut < len(all); cut++ {
			d := jsonl.NewDecoder(strings.NewReader(input), nil)
			for range cut {
				if _, err := d.Next(); err != nil {
					t.Fatal(err)
				}
			}
			stored, err := json.Marshal(d.State())
			if err != nil {
				t.Fatal(err)
			}
			var state jsonl.State
			if err := json.Unmarshal(stored, &state); err != nil {
				t.Fatal(err)
			}
			resumed := jsonl.NewDecoder(strings.NewReader(input[state.Offset:]), &jsonl.DecoderOptions{Resume: &state})
			if diff := cmp.Diff(all[cut:], describe(t, resumed)); diff != "" {
				t.Errorf("behind line %d: -want +got:\n%s", cut, diff)
			}
			describe(t, d)
			if diff := cmp.Diff(d.State(), resumed.State()); diff != "" {
				t.Errorf("behind line %d: states: -want +got:\n%s", cut, diff)
			}
		}
	}
}

func TestResumeUndecided(t *testing.T) {
	d := jsonl.NewDecoder(strings.NewReader(entry("a")+"\n"), nil)
	describe(t, d)
	state := d.State()
	if _, err := jsonl.NewDecoder(strings.NewReader(header3), &jsonl.DecoderOptions{Resume: &state}).Next(); !errors.Is(err, jsonl.ErrUndecided) {
		t.Errorf("error %v", err)
	}
	d = jsonl.NewDecoder(strings.NewReader(""), nil)
	describe(t, d)
	state = d.State()
	d.Reset(strings.NewReader(header3), &jsonl.DecoderOptions{Resume: &state})
	if got := describe(t, d); !cmp.Equal(got, []string{"header"}) {
		t.Errorf("behind nothing: %v", got)
	}
}
