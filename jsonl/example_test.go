package jsonl_test

import (
	"fmt"
	"io"
	"log"
	"strings"

	"pidb/jsonl"
)

func ExampleDecoder() {
	file := `{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hello"}}
{"type":"message","id":"b","par{"type":"label","id":"c","parentId":"a","timestamp":"2026-01-01T00:00:02.000Z","targetId":"a","label":"start"}
`
	d := jsonl.NewDecoder(strings.NewReader(file), nil)
	for {
		r, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Line.Number, r.Kind)
		for _, o := range r.Entries() {
			id, _ := o.ID()
			segments, _ := o.AppendSegments(nil, nil)
			for _, s := range segments {
				fmt.Printf("  %s: %s\n", id, s.Text)
			}
		}
	}
	h, _ := d.Header()
	fmt.Println(h.ID, h.CWD)
	// Output:
	// 1 header
	// 2 entry
	//   a: hello
	// 3 malformed
	//   c: start
	// s1 /work
}

func ExampleAppend() {
	line, err := jsonl.Append(nil, jsonl.Members{
		{Key: "type", Value: "label"},
		{Key: "id", Value: "c"},
		{Key: "parentId", Value: nil},
		{Key: "label", Value: jsonl.Undefined},
	})
	fmt.Printf("%s %v\n", line, err)
	// Output: {"type":"label","id":"c","parentId":null} <nil>
}

func ExampleValue_AppendNormal() {
	var d jsonl.Doc
	if err := d.Parse([]byte(`{ "b": 1e+2, "2": "\u0041", "b": -0 }`)); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", d.Root().AppendNormal(nil))
	// Output: {"2":"A","b":0}
}
