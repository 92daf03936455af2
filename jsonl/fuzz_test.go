package jsonl_test

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"unicode/utf8"

	"pidb/jsonl"
)

// addSessions seeds a fuzz test with the smaller sessions of the conformance set.
func addSessions(f *testing.F, lines bool) {
	files, err := filepath.Glob(conformance + "/sessions/*.jsonl")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) > 20000 {
			continue
		}
		if !lines {
			f.Add(data)
			continue
		}
		for i, l := range bytes.Split(data, []byte("\n")) {
			if i%5 == 0 {
				f.Add(l)
			}
		}
	}
}

func FuzzLines(f *testing.F) {
	addSessions(f, false)
	f.Add([]byte("a\r\n\r\r\n\nb\x00\u2028"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var joined []byte
		for i, l := range readLines(t, bytes.NewReader(data)) {
			if l.Number != i+1 || l.Offset != int64(len(joined)) {
				t.Fatalf("line %d at %d is called %d at %d", i+1, len(joined), l.Number, l.Offset)
			}
			joined = append(append(joined, l.Data...), l.End...)
		}
		if !bytes.Equal(joined, data) {
			t.Errorf("the lines of %q are %q", data, joined)
		}
	})
}

func FuzzNormal(f *testing.F) {
	addSessions(f, true)
	f.Add([]byte(`{"2":[1e400,-0,1E2],"1":"\ud800\/","a":1,"\u0061":{"__proto__":null}}`))
	f.Add([]byte("\"\xff\xe2\x82\""))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d jsonl.Doc
		err := d.Parse(data)
		var std any
		if stdErr := json.Unmarshal(data, &std); utf8.Valid(data) && stdErr == nil && err != nil {
			t.Fatalf("%v, but encoding/json reads %q", err, data)
		}
		if err != nil {
			return
		}
		if !json.Valid(data) && utf8.Valid(data) {
			t.Fatalf("encoding/json does not read %q", data)
		}
		normal := d.Root().AppendNormal(nil)
		if !utf8.Valid(normal) {
			t.Fatalf("%q is not UTF-8", normal)
		}
		var again jsonl.Doc
		if err := again.Parse(normal); err != nil {
			t.Fatalf("%v in the normal form %q", err, normal)
		}
		if twice := again.Root().AppendNormal(nil); !bytes.Equal(twice, normal) {
			t.Fatalf("the normal form %q has the normal form %q", normal, twice)
		}
		if utf8.Valid(data) && std != nil {
			var value any
			if err := json.Unmarshal(normal, &value); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(std, value) {
				t.Fatalf("%q is another value than %q", normal, data)
			}
		}
	})
}

func FuzzDecoder(f *testing.F) {
	addSessions(f, false)
	f.Add([]byte(version1))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := jsonl.NewDecoder(bytes.NewReader(data), nil)
		end := int64(0)
		for {
			r, err := d.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				return
			}
			if r.Line.Offset != end {
				t.Fatalf("line %d is at %d, not %d", r.Line.Number, r.Line.Offset, end)
			}
			end += r.Line.Size()
			if s := d.State(); s.Offset != end || s.Lines != r.Line.Number {
				t.Fatalf("behind line %d: state %+v", r.Line.Number, s)
			}
			if (r.Kind == jsonl.LineMalformed) != (r.Err != nil) {
				t.Fatalf("line %d is %v, error %v", r.Line.Number, r.Kind, r.Err)
			}
			if r.Err != nil && (r.Err.Offset < 0 || r.Err.Offset > len(r.Line.Data)) {
				t.Fatalf("an error at %d of %d", r.Err.Offset, len(r.Line.Data))
			}
			last := 0
			for _, o := range r.Entries() {
				if o.Start < last || o.End <= o.Start || o.End > len(r.Line.Data) || !bytes.Equal(r.Line.Data[o.Start:o.End], o.Value.Raw()) {
					t.Fatalf("range %d to %d behind %d", o.Start, o.End, last)
				}
				last = o.End
				checkViews(t, o)
			}
			if r.Whole.Value.Exists() {
				checkViews(t, r.Whole)
			}
		}
		if end != int64(len(data)) {
			t.Fatalf("%d of %d bytes", end, len(data))
		}
	})
}

// checkViews calls every view, and checks what holds for all.
func checkViews(t *testing.T, o jsonl.Object) {
	t.Helper()
	view(o)
	o.Usage()
	if ms, ok := o.Timestamp(); ok && math.Abs(float64(ms)) > 8.64e15 {
		t.Fatalf("time %d", ms)
	}
	o.ActivityTime()
	id, _ := o.ID()
	parent, _, _ := o.ParentID()
	if !utf8.ValidString(id) || !utf8.ValidString(parent) || !utf8.ValidString(o.Type()) || !utf8.ValidString(o.Role()) {
		t.Fatal("a text is not UTF-8")
	}
	list, _ := o.AppendSegments(nil, nil)
	for _, s := range list {
		if len(s.Text) == 0 || !utf8.Valid(s.Text) || !utf8.ValidString(s.Tool) {
			t.Fatalf("a segment of %q", s.Text)
		}
	}
	if text, _ := o.ListText(nil); !utf8.Valid(text) {
		t.Fatalf("listed as %q", text)
	}
	line := o.AppendNormal(nil, &jsonl.NormalOptions{Parent: &jsonl.ParentRef{ID: id}})
	var d jsonl.Doc
	if err := d.Parse(line); err != nil {
		t.Fatalf("%v in %q", err, line)
	}
	if o.Value.Kind() == jsonl.KindObject {
		if got, _ := d.Root().Get("parentId").Key(); got != id {
			t.Fatalf("a parent %q instead of %q", got, id)
		}
	}
}

func FuzzRecover(f *testing.F) {
	for _, s := range []string{entry("a") + entry("b"), `{"type":"torn` + entry("a"), "[" + entry("a"), `{"x":[` + entry("a") + `,"` + entry("b"), entry("a") + " x " + entry("b")} {
		f.Add([]byte(s), "text {} { [ , : größe")
	}
	f.Fuzz(func(t *testing.T, before []byte, text string) {
		before = bytes.ReplaceAll(before, []byte("\n"), nil)
		line := append(append([]byte(header3+"\n"), before...), '\n')
		d := jsonl.NewDecoder(bytes.NewReader(line), nil)
		last := 0
		for {
			r, err := d.Next()
			if err != nil {
				break
			}
			if r.Kind != jsonl.LineMalformed {
				continue
			}
			for i, o := range r.Recovered {
				if o.Part != i+1 || o.Start < last || o.End > len(r.Line.Data) || !bytes.Equal(r.Line.Data[o.Start:o.End], o.Value.Raw()) {
					t.Fatalf("part %d is %d, %d to %d behind %d", i+1, o.Part, o.Start, o.End, last)
				}
				last = o.End
				if id, ok := o.ID(); !ok || o.Type() == "" || o.Type() == "session" {
					t.Fatalf("recovered %q %q", id, o.Type())
				}
			}
		}
		// What was torn off, be it in a string, hides no entry behind it.
		if d := jsonl.NewDecoder(bytes.NewReader([]byte(header3+"\n"+`{"type":"x","y":"`+text+entry("z"))), nil); plain(text) {
			if got := describe(t, d); len(got) != 2 || got[1] != "malformed z" {
				t.Fatalf("behind %q: %v", text, got)
			}
		}
	})
}

// plain reports whether text may stand in a string as it is.
func plain(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
