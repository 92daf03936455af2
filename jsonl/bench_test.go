package jsonl_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"pidb/jsonl"
)

// sessionBytes makes a session of about the given size: prose, code with many escapes, tool output, other scripts.
func sessionBytes(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}` + "\n")
	parent := "null"
	for i := 0; b.Len() < size; i++ {
		id := fmt.Sprintf(`"%08x"`, i)
		fmt.Fprintf(&b, `{"type":"message","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":`, id, parent)
		switch i % 4 {
		case 0:
			b.WriteString(`{"role":"user","content":"please look at the retry backoff in größe.go, 修复登录 and say why it never stops","timestamp":1767225600000}`)
		case 1, 3:
			b.WriteString(`{"role":"assistant","content":[{"type":"thinking","thinking":"the loop has no bound","thinkingSignature":"c2ln"},{"type":"text","text":"`)
			b.WriteString(bytes.NewBuffer(bytes.Repeat([]byte("It retries until the server answers, with no upper limit. "), 6)).String())
			fmt.Fprintf(&b, `"},{"type":"toolCall","id":"c%d","name":"bash","arguments":{"command":"go test ./... -run \"Retry\"","timeout":30}}],"api":"messages","provider":"p","model":"m","usage":{"input":6498,"output":2521,"cacheRead":28677,"cacheWrite":3037,"totalTokens":40733,"cost":{"input":0.019494,"output":0.037815,"cacheRead":0.0086,"cacheWrite":0.011,"total":0.0773}},"stopReason":"toolUse","timestamp":1767225600000}`, i)
		case 2:
			b.WriteString(`{"role":"toolResult","toolCallId":"c","toolName":"bash","content":[{"type":"text","text":"`)
			b.Write(bytes.Repeat([]byte(`func retry(ctx context.Context) error {\n\tfor i := 0; ; i++ {\n\t\tfmt.Println(\"attempt\", i)\n`), 40))
			b.WriteString(`"}],"isError":false,"timestamp":1767225600000}`)
		}
		b.WriteString("}\n")
		parent = id
	}
	return b.Bytes()
}

func BenchmarkLines(b *testing.B) {
	data := sessionBytes(8 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		lr := jsonl.NewLineReader(bytes.NewReader(data), 1, 0)
		for {
			if _, err := lr.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	data := sessionBytes(8 << 20)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var d jsonl.Doc
	for b.Loop() {
		for _, l := range lines {
			if err := d.Parse(l); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDecoder(b *testing.B) {
	data := sessionBytes(8 << 20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var segments []jsonl.Segment
	var buf, list []byte
	for b.Loop() {
		d := jsonl.NewDecoder(bytes.NewReader(data), nil)
		for {
			r, err := d.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				b.Fatal(err)
			}
			for _, o := range r.Entries() {
				o.ID()
				o.ParentID()
				o.Timestamp()
				o.Usage()
				segments, buf = o.AppendSegments(segments[:0], buf[:0])
				list, _ = o.ListText(list[:0])
			}
		}
	}
}

func BenchmarkNormal(b *testing.B) {
	data := sessionBytes(8 << 20)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	var d jsonl.Doc
	var buf []byte
	for b.Loop() {
		for _, l := range lines {
			if err := d.Parse(l); err != nil {
				b.Fatal(err)
			}
			buf = d.Root().AppendNormal(buf[:0])
		}
	}
}
