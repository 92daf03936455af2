package repo_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

// info is what pi's listing says of a session file.
type info struct {
	ID            string  `json:"id"`
	CWD           string  `json:"cwd"`
	Name          *string `json:"name"`
	ParentSession *string `json:"parentSessionPath"`
	Created       *string `json:"created"`
	Modified      *string `json:"modified"`
	MessageCount  int64   `json:"messageCount"`
	FirstMessage  string  `json:"firstMessage"`
}

// withNullContent is what pi would list of a session if null content were no text to
// it: pi drops such sessions, pidb lists them. The files hold one object a line.
func withNullContent(t *testing.T, text string) *info {
	t.Helper()
	out := &info{FirstMessage: "(no messages)"}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		var e struct {
			Type, ID, CWD, Timestamp, Name string
			Message                        struct {
				Role      string
				Content   json.RawMessage // nil: absent
				Timestamp *int64
			}
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case i == 0:
			out.ID, out.CWD, out.Created, out.Modified = e.ID, e.CWD, &e.Timestamp, &e.Timestamp
		case e.Type == "session_info" && e.Name != "":
			out.Name = &e.Name
		case e.Type == "message":
			out.MessageCount++
			if e.Message.Role != "user" && e.Message.Role != "assistant" || e.Message.Content == nil {
				break
			}
			at := e.Timestamp
			if e.Message.Timestamp != nil {
				at = time.UnixMilli(*e.Message.Timestamp).UTC().Format("2006-01-02T15:04:05.000Z")
			}
			out.Modified = new(max(*out.Modified, at))
			var content string
			if json.Unmarshal(e.Message.Content, &content) == nil && content != "" && e.Message.Role == "user" && out.FirstMessage == "(no messages)" {
				out.FirstMessage = content
			}
		}
	}
	return out
}

// TestListing compares the listing fields of every conformance case with pi's.
func TestListing(t *testing.T) {
	dir := t.TempDir()
	for name, text := range conformance(t) {
		write(t, text, dir, name)
	}
	a := open(t, nil)
	importPaths(t, a, dir)
	listed := map[string]query.Session{}
	for _, s := range sessions(t, a) {
		listed[filepath.Base(s.Path)] = s
	}
	compared := 0
	for name, text := range conformance(t) {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("../testdata/conformance/expected", strings.TrimSuffix(name, "l")))
			if err != nil {
				t.Fatal(err)
			}
			var expected struct {
				Info  *info  `json:"info"`
				Error string `json:"error"`
				Empty bool   `json:"empty"`
			}
			if err := json.Unmarshal(data, &expected); err != nil {
				t.Fatal(err)
			}
			s, ok := listed[name]
			want := expected.Info
			if want == nil && !expected.Empty && expected.Error == "" {
				want = withNullContent(t, text)
			}
			if ok != (want != nil) {
				t.Fatalf("listed: %v, want %v", ok, want != nil)
			}
			if want == nil {
				return
			}
			got := &info{ID: s.ID, CWD: s.CWD, MessageCount: s.Messages, FirstMessage: s.FirstMessage}
			if s.Name != "" {
				got.Name = &s.Name
			}
			if s.ParentSession != "" {
				got.ParentSession = &s.ParentSession
			}
			if !s.Created.IsZero() {
				got.Created = new(s.Created.Format("2006-01-02T15:04:05.000Z"))
			}
			got.Modified = new(s.Modified.Format("2006-01-02T15:04:05.000Z"))
			if got.FirstMessage == "" {
				got.FirstMessage = "(no messages)" // pi's words for none
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("listing (-pi +pidb):\n%s", diff)
			}
			compared++
		})
	}
	t.Logf("%d listings compared", compared)
}
