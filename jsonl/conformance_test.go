package jsonl_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
)

const conformance = "../testdata/conformance"

// expected is what pi answered, as far as this package speaks of it.
type expected struct {
	Error  string
	Empty  bool
	Header json.RawMessage
	Name   *string
	Count  int
	Types  string
	Leaf   *int
	Labels map[string]string
	Views  []struct {
		Leaf   int
		Branch json.RawMessage
	}
	Info *info
}

type info struct {
	ID           string
	CWD          string
	Created      string
	Modified     string
	MessageCount int
	FirstMessage string
	TextSha      string
	TextLen      int
}

// answers are the same of what the decoder reads.
func answers(t *testing.T, data []byte) (e expected, parents map[int]int) {
	t.Helper()
	d := jsonl.NewDecoder(bytes.NewReader(data), nil)
	byID := map[string]int{}
	labels := map[string]string{}
	parentIDs := map[int]string{}
	var types, texts []string
	i := &info{FirstMessage: "(no messages)"}
	listed := true
	active := 0.0
	for {
		r, err := d.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == jsonl.LineHeader {
			e.Header = r.Whole.AppendNormal(nil, nil)
		}
		for _, o := range r.Entries() {
			line := r.Line.Number
			e.Count++
			e.Leaf = &line
			types = append(types, o.Type())
			id, _ := o.ID()
			byID[id] = line
			if parent, null, ok := o.ParentID(); ok && !null {
				parentIDs[line] = parent
			}
			if l, ok := o.Label(); ok {
				if l.Cleared {
					delete(labels, l.TargetID)
				} else {
					labels[l.TargetID] = l.Text
				}
			}
			if name, ok := o.SessionInfo(); ok {
				e.Name = nil
				if name != "" {
					e.Name = &name
				}
			}
			if o.Type() == "message" {
				i.MessageCount++
			}
			if ms, ok := o.ActivityTime(); ok {
				active = max(active, ms)
			}
			text, ok := o.ListText(nil)
			listed = listed && ok
			if len(text) == 0 {
				continue
			}
			texts = append(texts, string(text))
			if o.Role() == "user" && i.FirstMessage == "(no messages)" {
				i.FirstMessage = string(text)
			}
		}
	}
	h, ok := d.Header()
	if !ok {
		return expected{}, nil
	}
	if listed {
		joined := strings.Join(texts, " ")
		i.ID, i.CWD = h.ID, h.CWD
		i.TextSha = fmt.Sprintf("%x", sha256.Sum256([]byte(joined)))[:16]
		i.TextLen = len(utf16.Encode([]rune(joined)))
		i.Created = jsonl.FormatTime(h.CreatedMS)
		i.Modified = i.Created
		if active > 0 {
			i.Modified = jsonl.FormatTime(int64(active))
		}
		e.Info = i
	}
	e.Types = strings.Join(types, ",")
	if len(types) > 200 {
		e.Types = fmt.Sprintf("%x", sha256.Sum256([]byte(e.Types)))[:16]
	}
	e.Labels = map[string]string{}
	for id, label := range labels {
		if line, ok := byID[id]; ok {
			e.Labels[strconv.Itoa(line)] = label
		}
	}
	parents = map[int]int{}
	for line, parent := range parentIDs {
		parents[line] = byID[parent]
	}
	return e, parents
}

func TestConformance(t *testing.T) {
	files, err := filepath.Glob(conformance + "/sessions/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no sessions", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := os.ReadFile(conformance + "/expected/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var want expected
			if err := json.Unmarshal(answer, &want); err != nil {
				t.Fatal(err)
			}
			got, parents := answers(t, data)
			if want.Error != "" || want.Empty {
				if got.Header != nil {
					t.Errorf("a header in a file that pi refuses: %s", got.Header)
				}
				return
			}
			var header bytes.Buffer
			if err := json.Compact(&header, want.Header); err != nil {
				t.Fatal(err)
			}
			want.Header = header.Bytes()
			views := want.Views
			want.Views = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-pi +got:\n%s", diff)
			}
			if strings.Contains(name, "dupids") {
				return
			}
			for _, v := range views {
				var branch []int
				if json.Unmarshal(v.Branch, &branch) != nil {
					continue // a long one, of which only the hash is there
				}
				for i := len(branch) - 1; i > 0; i-- {
					if parents[branch[i]] != branch[i-1] {
						t.Errorf("parent of line %d is line %d, want %d", branch[i], parents[branch[i]], branch[i-1])
					}
				}
			}
		})
	}
}
