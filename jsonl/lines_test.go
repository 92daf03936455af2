package jsonl_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

type line struct {
	Number int
	Offset int64
	Data   string
	End    string
}

func readLines(t testing.TB, r io.Reader) []line {
	t.Helper()
	lr := jsonl.NewLineReader(r, 1, 0)
	var lines []line
	for {
		l, err := lr.Next()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line{l.Number, l.Offset, string(l.Data), l.Terminator.String()})
	}
}

func TestLines(t *testing.T) {
	tests := []struct {
		name, input string
		want        []line
	}{
		{"nothing", "", nil},
		{"one", "a\n", []line{{1, 0, "a", "\n"}}},
		{"no end", "a\nb", []line{{1, 0, "a", "\n"}, {2, 2, "b", ""}}},
		{"CRLF", "a\r\n\r\nb\r", []line{{1, 0, "a", "\r\n"}, {2, 3, "", "\r\n"}, {3, 5, "b\r", ""}}},
		{"empty lines", "\n\n", []line{{1, 0, "", "\n"}, {2, 1, "", "\n"}}},
		{"what ends no line", "a\rb\u2028c\u2029d\u0085e\x00f\v\f\r\r\n", []line{{1, 0, "a\rb\u2028c\u2029d\u0085e\x00f\v\f\r", "\r\n"}}},
		{"invalid UTF-8", "\xff\xfe\n\xed\xa0\x80", []line{{1, 0, "\xff\xfe", "\n"}, {2, 3, "\xed\xa0\x80", ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, readLines(t, strings.NewReader(tt.input))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, readLines(t, iotest.OneByteReader(strings.NewReader(tt.input)))); diff != "" {
				t.Errorf("byte by byte: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, readLines(t, iotest.DataErrReader(strings.NewReader(tt.input)))); diff != "" {
				t.Errorf("data with EOF: -want +got:\n%s", diff)
			}
		})
	}
}

func TestLinesAroundTheBufferSize(t *testing.T) {
	var input bytes.Buffer
	for _, size := range []int{64 << 10, 512 << 10, 1 << 20, 4 << 20} {
		for delta := -2; delta <= 2; delta++ {
			input.Write(bytes.Repeat([]byte{'x'}, size+delta-4))
			input.WriteString("🚀\r\nshort\n")
		}
	}
	lr := jsonl.NewLineReader(bytes.NewReader(input.Bytes()), 1, 0)
	rest := input.Bytes()
	for {
		l, err := lr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if l.Offset != int64(input.Len()-len(rest)) {
			t.Fatalf("line %d is at %d", l.Number, l.Offset)
		}
		if !bytes.HasPrefix(rest, l.Data) || !bytes.HasPrefix(rest[len(l.Data):], []byte(l.Terminator.String())) {
			t.Fatalf("line %d is not what was written", l.Number)
		}
		rest = rest[l.Size():]
	}
	if len(rest) > 0 {
		t.Errorf("%d bytes are missing", len(rest))
	}
}

func TestLineReaderGoesOn(t *testing.T) {
	lr := jsonl.NewLineReader(strings.NewReader("c\n"), 3, 100)
	l, err := lr.Next()
	if err != nil || l.Number != 3 || l.Offset != 100 {
		t.Errorf("line %d at %d, %v", l.Number, l.Offset, err)
	}
	lr.Reset(strings.NewReader("a\n"), 1, 0)
	l, err = lr.Next()
	if err != nil || l.Number != 1 || l.Offset != 0 || string(l.Data) != "a" {
		t.Errorf("after Reset: line %d at %d, %v", l.Number, l.Offset, err)
	}
}

func TestLineReaderError(t *testing.T) {
	broken := errors.New("broken")
	lr := jsonl.NewLineReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), 1, 0)
	if l, err := lr.Next(); err != nil || string(l.Data) != "a" {
		t.Fatalf("%q, %v", l.Data, err)
	}
	for range 2 {
		if _, err := lr.Next(); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	}
}

// A longReader streams a user message of so many bytes.
func longReader(size int64) io.Reader {
	return io.MultiReader(
		strings.NewReader(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}`+"\n"+
			`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"`),
		io.LimitReader(filler{}, size),
		strings.NewReader(`"}}`+"\n"+`{"type":"label","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","targetId":"a","label":"x"}`+"\n"),
	)
}

type filler struct{}

var block = bytes.Repeat([]byte{'x'}, 64<<10)

func (filler) Read(b []byte) (int, error) { return copy(b, block), nil }

func TestLongLine(t *testing.T) {
	const size = 200 << 20
	d := jsonl.NewDecoder(longReader(size), nil)
	for want := 1; ; want++ {
		r, err := d.Next()
		if err == io.EOF {
			if want != 4 {
				t.Errorf("%d lines", want-1)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if want == 2 && len(r.Whole.Message().Get("content").Raw()) != size+2 {
			t.Errorf("a content of %d bytes", len(r.Whole.Message().Get("content").Raw()))
		}
		if want == 3 && r.Kind != jsonl.LineEntry {
			t.Errorf("a last line of kind %v", r.Kind)
		}
	}
}

func TestLineTooLong(t *testing.T) {
	for _, tt := range []struct {
		input string
		lines int // before the one that is too long
		bad   bool
	}{
		{"1234567\n1234567", 2, false},
		{"1234567\r\n1234567\r\n", 2, false},
		{"1234567\n12345678\n1", 1, true},
		{"12345678\r\n", 0, true},
		{"1\n12345678", 1, true},
		{"1\n" + strings.Repeat("x", 4<<20), 1, true},
	} {
		d := jsonl.NewDecoder(iotest.OneByteReader(strings.NewReader(tt.input)), &jsonl.DecoderOptions{MaxLine: 7})
		lines := 0
		_, err := d.Next()
		for ; err == nil; _, err = d.Next() {
			lines++
		}
		tooLong, bad := errors.AsType[*jsonl.LineTooLongError](err)
		if bad != tt.bad || lines != tt.lines || bad && (tooLong.Line != tt.lines+1 || tooLong.Limit != 7) {
			t.Errorf("%.20q: %d lines and %v, want %d, too long: %v", tt.input, lines, err, tt.lines, tt.bad)
		}
	}
}
