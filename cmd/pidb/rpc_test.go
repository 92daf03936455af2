package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/google/go-cmp/cmp"

	"pidb/repo"
)

// rpcClient is a client of pidb rpc.
type rpcClient struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	code chan int
	n    int
}

// rpcAnswer is a response.
type rpcAnswer struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int          `json:"code"`
		Message string       `json:"message"`
		Data    rpcErrorJSON `json:"data"`
	} `json:"error"`
}

// startRPC starts pidb rpc on an archive.
func startRPC(t *testing.T, db string) *rpcClient {
	t.Helper()
	stdin, in := io.Pipe()
	out, stdout, err := os.Pipe() // which holds some answers that are not read yet
	if err != nil {
		t.Fatal(err)
	}
	c := &rpcClient{t: t, in: in, out: bufio.NewReader(out), code: make(chan int, 1)}
	go func() {
		code := run(t.Context(), []string{"--db", db, "rpc"}, func(string) string { return "" }, stdin, stdout, os.Stderr)
		stdout.Close()
		c.code <- code
	}()
	t.Cleanup(func() { in.Close(); out.Close() })
	return c
}

func (c *rpcClient) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line); err != nil {
		c.t.Error(err) // Fatal is for the goroutine of the test
	}
}

func (c *rpcClient) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

func (c *rpcClient) answer() rpcAnswer {
	c.t.Helper()
	var a rpcAnswer
	if err := json.Unmarshal([]byte(c.line()), &a); err != nil {
		c.t.Fatal(err)
	}
	return a
}

// post sends a request and returns its id.
func (c *rpcClient) post(method, params string) string {
	c.t.Helper()
	c.n++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.n, method, params))
	return fmt.Sprint(c.n)
}

// call sends a request and decodes the result.
func (c *rpcClient) call(method, params string, result any) {
	c.t.Helper()
	id := c.post(method, params)
	a := c.answer()
	if a.Error != nil || string(a.ID) != id {
		c.t.Fatalf("%s %s: answer to %s: %+v", method, params, a.ID, a.Error)
	}
	if result != nil {
		if err := json.Unmarshal(a.Result, result); err != nil {
			c.t.Fatalf("%s: %v: %s", method, err, a.Result)
		}
	}
}

// end closes the input and returns what is answered yet.
func (c *rpcClient) end() []rpcAnswer {
	c.t.Helper()
	c.in.Close()
	var answers []rpcAnswer
	for {
		line, err := c.out.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var a rpcAnswer
		if err := json.Unmarshal(line, &a); err != nil {
			c.t.Fatal(err)
		}
		answers = append(answers, a)
	}
	if code := <-c.code; code != exitDone {
		c.t.Errorf("ended with %d", code)
	}
	return answers
}

func newRPCArchive(t *testing.T) string { return filepath.Join(t.TempDir(), "pidb.db") }

// TestRPCErrors compares the codes and names of errors.
func TestRPCErrors(t *testing.T) {
	db := newRPCArchive(t)
	c := startRPC(t, db)
	c.call("create", `{"id":"s-1","cwd":"/work"}`, nil)
	c.call("create", `{"id":"s-2"}`, nil)
	c.call("append", `{"session":"s-1","entries":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"toolCall","id":"c1"}]}]}`, nil)
	samples, err := filepath.Abs(filepath.Join("..", "..", "testdata", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"--db", db, "import", samples}, func(string) string { return "" }, strings.NewReader(""), io.Discard, io.Discard); code != exitDone {
		t.Fatalf("import ended with %d", code)
	}
	request := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	for _, test := range []struct {
		request string
		code    int
		name    string
	}{
		{`{`, -32700, ""},
		{`hello`, -32700, ""},
		{"\"\xff\"", -32700, ""},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append\",\"params\":{\"session\":\"s-1\",\"entries\":[{\"role\":\"user\",\"content\":\"\xff\"}]}}", -32700, ""},
		{strings.Repeat("[", 100000), -32700, ""},
		{`[]`, -32600, ""},
		{`{"jsonrpc":"1.0","id":1,"method":"list"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":{},"method":"list"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":1}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"list","more":1}`, -32600, ""},
		{`1`, -32600, ""},
		{`"x"`, -32600, ""},
		{`null`, -32600, ""},
		{`{"jsonrpc":"2.0","id":1,"method":3}`, -32600, ""},
		{`{"jsonrpc":"2.0","method":3}`, -32600, ""},
		{`{"jsonrpc":2.0,"id":1,"method":"list"}`, -32600, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"list","error":3}`, -32600, ""},
		{request("nothing", `{}`), -32601, ""},
		{request("rpc.serverInfo", `{}`), -32601, ""},
		{request("list", `[]`), -32602, ""},
		{request("list", `[1]`), -32602, ""},
		{request("list", `{"limit":"x"}`), -32602, ""},
		{request("list", `{"limit":-1}`), -32602, ""},
		{request("list", `{"Limit":1}`), -32602, ""},
		{request("list", `{"sort":"x"}`), -32602, ""},
		{request("list", `{"since":"x"}`), -32602, ""},
		{request("list", `{"after":"x"}`), -32000, "ErrBadCursor"},
		{request("search", `{"query":"(","mode":"regex"}`), -32000, "ErrBadPattern"},
		{request("search", `{"query":"x","mode":"x"}`), -32602, ""},
		{request("stats", `{"by":"x"}`), -32602, ""},
		{request("open", `{}`), -32602, ""},
		{request("open", `{"session":null}`), -32602, ""},
		{request("open", `{"session":"none"}`), -32000, "ErrNotFound"},
		{request("open", `{"session":99}`), -32000, "ErrNotFound"},
		{request("open", `{"session":"s-"}`), -32000, "ErrAmbiguous"},
		{request("create", `{"id":"../x"}`), -32000, "ErrInvalidID"},
		{request("create", `{"id":"s-1"}`), -32000, "ErrExists"},
		{request("append", `{"session":"s-1","entries":[]}`), -32602, ""},
		{request("append", `{"session":"s-1","entries":[{}]}`), -32000, "ErrInvalidEntry"},
		{request("append", `{"session":"s-1","entries":[1]}`), -32000, "ErrInvalidEntry"},
		{request("append", `{"session":"s-1","ifLeaf":":2","entries":[{"role":"user"}]}`), -32000, "ErrConflict"},
		{request("append", `{"session":"019cadd3","entries":[{"role":"user"}]}`), -32000, "ErrNotNative"},
		{request("branch", `{"session":"s-1","entry":"none"}`), -32000, "ErrNotFound"},
		{request("branch", `{"session":"s-1","entry":":3","answered":true}`), -32000, "ErrUnanswered"},
		{request("branch", `{"session":"s-1","entry":":3","answered":true,"summary":"x"}`), -32000, "ErrUnanswered"},
		{request("fork", `{"session":"s-1","upTo":":2","before":":2"}`), -32602, ""},
		{request("extract", `{"session":"s-2"}`), -32000, "ErrNotFound"},
		{request("export", `{"session":"s-1","form":"x"}`), -32602, ""},
		{request("export", `{"session":"s-1","output":`+fmt.Sprintf("%q", db)+`}`), -32000, "ErrExists"},
		{request("label", `{"session":"s-1","entry":"none","text":"x"}`), -32000, "ErrNotFound"},
		{request("wait", `{"timeout":-1}`), -32602, ""},
		{request("wait", `{"session":"none"}`), -32000, "ErrNotFound"},
	} {
		c.send(test.request + "\n")
		a := c.answer()
		if a.Error == nil || a.Error.Code != test.code || a.Error.Data.Name != test.name || a.Error.Message == "" {
			t.Errorf("%.100s\nanswer: %+v %s, want %d %s", test.request, a.Error, a.Result, test.code, test.name)
		}
		if test.name == "ErrAmbiguous" && len(a.Error.Data.Candidates) != 2 || test.name == "ErrUnanswered" && a.Error.Data.Call != "c1" {
			t.Errorf("%s: %+v", test.name, a.Error.Data)
		}
	}
	c.call("pidb.version", `{}`, nil)

	// One in a batch does not spoil the others.
	c.send(`[1,{"jsonrpc":"2.0","id":7,"method":3},{"jsonrpc":"2.0","id":8,"method":"pidb.version"}]` + "\n")
	var batch []rpcAnswer
	if err := json.Unmarshal([]byte(c.line()), &batch); err != nil || len(batch) != 3 {
		t.Fatalf("%v: %+v", err, batch)
	}
	if string(batch[0].ID) != "null" || batch[0].Error.Code != -32600 || string(batch[1].ID) != "7" || batch[1].Error.Code != -32600 || batch[2].Error != nil {
		t.Errorf("%+v", batch)
	}
}

// UnmarshalJSON takes the data of other errors too.
func (j *rpcErrorJSON) UnmarshalJSON(text []byte) error {
	type plain rpcErrorJSON
	if text[0] != '{' {
		return nil
	}
	return json.Unmarshal(text, (*plain)(j))
}

// Every exported sentinel of the packages below has a name, which is its own.
func TestRPCSentinels(t *testing.T) {
	var named []string
	for _, sentinel := range sentinels {
		named = append(named, sentinel.name)
		got, ok := errors.AsType[*jrpc2.Error](rpcError(fmt.Errorf("x: %w", sentinel.err)))
		var data rpcErrorJSON
		if !ok || json.Unmarshal(got.Data, &data) != nil || data.Name != sentinel.name {
			t.Errorf("%s becomes %v", sentinel.name, got)
		}
	}
	for _, dir := range []string{"repo", "query", "jsonl", "migrations"} {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				vars, ok := declaration.(*ast.GenDecl)
				if !ok || vars.Tok != token.VAR {
					continue
				}
				for _, spec := range vars.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						// ErrUndecided is between packages of pidb.
						if strings.HasPrefix(name.Name, "Err") && name.Name != "ErrUndecided" && !slices.Contains(named, name.Name) {
							t.Errorf("%s has no name for a client", name.Name)
						}
					}
				}
			}
		}
	}
}

// Requests that are sent without waiting for answers are carried out in their order.
func TestRPCOrder(t *testing.T) {
	c := startRPC(t, newRPCArchive(t))
	c.call("create", `{"id":"s"}`, nil)
	const n = 50
	go func() {
		var batch []string
		for i := range n {
			switch i % 3 {
			case 0:
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"append","params":{"session":"s","entries":[{"type":"custom","customType":"%d"}]}}`+"\n", i))
			default:
				batch = append(batch, fmt.Sprintf(`{"jsonrpc":"2.0","id":"b%d","method":"append","params":{"session":"s","entries":[{"type":"custom","customType":"%d"}]}}`, i, i))
				if len(batch) == 2 {
					c.send("[" + strings.Join(batch, ",") + "]\n")
					batch = nil
				}
			}
		}
		c.send(strings.Join(batch, ""))
		c.send("\n" + `{"jsonrpc":"2.0","id":"all","method":"entries","params":{"session":"s","raw":true}}` + "\n")
	}()
	for {
		line := c.line()
		if !strings.Contains(line, `"id":"all"`) {
			continue
		}
		var a struct{ Result entriesJSON }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Result.Entries) != n+1 {
			t.Fatalf("%d lines, want %d", len(a.Result.Entries), n+1)
		}
		for i, e := range a.Result.Entries[1:] {
			if !strings.Contains(*e.Raw, fmt.Sprintf(`"customType":"%d"`, i)) {
				t.Fatalf("entry %d is %s", i, *e.Raw)
			}
		}
		return
	}
}

// What was asked before the end of the input is answered; waits end.
func TestRPCEnd(t *testing.T) {
	c := startRPC(t, newRPCArchive(t))
	var want []string
	want = append(want, c.post("create", `{"id":"s"}`))
	wait := c.post("wait", `{"session":"s"}`)
	for range 20 {
		want = append(want, c.post("append", `{"session":"s","entries":[{"role":"user","content":"x"}]}`))
	}
	c.send(`{"jsonrpc":"2.0","id":"last","method":"append","params":{"session":"s","entries":[{"role":"user","content":"no newline"}]}}`)
	want = append(want, `"last"`)
	var got []string
	for _, a := range c.end() {
		if string(a.ID) == wait {
			continue // it may have seen an append
		}
		if a.Error != nil {
			t.Errorf("%s: %+v", a.ID, a.Error)
		}
		got = append(got, string(a.ID))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}

	c = startRPC(t, newRPCArchive(t))
	c.post("wait", `{}`)
	if answers := c.end(); len(answers) != 1 || answers[0].Error == nil || answers[0].Error.Code != -32097 {
		t.Errorf("a wait at the end: %+v", answers)
	}
}

func TestRPCCancel(t *testing.T) {
	c := startRPC(t, newRPCArchive(t))
	c.call("create", `{"id":"s"}`, nil)
	one, two := c.post("wait", `{"session":"s"}`), c.post("wait", `{}`)
	c.call("pidb.version", `{}`, nil) // waits let others pass
	for _, id := range []string{one, two} {
		c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":` + id + `}}` + "\n")
		if a := c.answer(); string(a.ID) != id || a.Error == nil || a.Error.Code != -32097 {
			t.Errorf("%+v", a)
		}
	}
	c.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":99}}` + "\n")
	c.send(`{"jsonrpc":"2.0","method":"wait","params":{}}` + "\n") // nobody to tell
	c.call("list", `{}`, nil)
}

// A wait without a cursor sees what is asked for right behind it.
func TestRPCWaitFromItsPlace(t *testing.T) {
	c := startRPC(t, newRPCArchive(t))
	c.call("create", `{"id":"s"}`, nil)
	for i := range 60 {
		params := `{"timeout":20}`
		if i%2 == 0 {
			params = `{"session":"s","timeout":20}`
		}
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"wait","params":%s}`+"\n"+
			`{"jsonrpc":"2.0","id":2,"method":"append","params":{"session":"s","entries":[{"role":"user","content":"x"}]}}`+"\n", params))
		for range 2 {
			a := c.answer()
			var result waitJSON
			if a.Error != nil || json.Unmarshal(a.Result, &result) != nil {
				t.Fatalf("%s: %+v", a.ID, a.Error)
			}
			if string(a.ID) == "1" && (result.TimedOut || len(result.Entries)+len(result.Sessions) != 1) {
				t.Fatalf("%s: %s", params, a.Result)
			}
		}
	}
}

// A request is cancelled though a notification waits for it; what a notification asks for
// is done in its turn, and before the end.
func TestRPCCancelBehindNotification(t *testing.T) {
	db := newRPCArchive(t)
	c := startRPC(t, db)
	c.call("create", `{"id":"s"}`, nil)
	archive, err := repo.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	held, release := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- archive.Update(t.Context(), func(*repo.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	say := func(text string) string {
		return `"method":"append","params":{"session":"s","entries":[{"role":"user","content":"` + text + `"}]}}` + "\n"
	}
	c.send(`{"jsonrpc":"2.0","id":1,` + say("cancelled") + `{"jsonrpc":"2.0",` + say("noted") + `{"jsonrpc":"2.0","id":2,` + say("asked") +
		`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}` + "\n")
	if a := c.answer(); string(a.ID) != "1" || a.Error == nil || a.Error.Code != -32097 {
		t.Errorf("%+v", a)
	}
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if a := c.answer(); string(a.ID) != "2" || a.Error != nil {
		t.Errorf("%+v", a)
	}
	c.send(`{"jsonrpc":"2.0",` + say("noted last"))
	c.end()
	var out exportedJSON
	startRPC(t, db).call("export", `{"session":"s"}`, &out)
	at := -1
	for _, text := range []string{"noted", "asked", "noted last"} {
		next := strings.Index(*out.Text, `"`+text+`"`)
		if next <= at {
			t.Errorf("%s is not in its place: %s", text, *out.Text)
		}
		at = next
	}
	if strings.Contains(*out.Text, "cancelled") {
		t.Errorf("what was cancelled is there: %s", *out.Text)
	}
}

// A command whose output nobody reads ends when it is told to.
func TestRPCEndUnread(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stdin, in := io.Pipe()
	defer in.Close()
	out, stdout := io.Pipe() // which holds nothing
	defer out.Close()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"--db", newRPCArchive(t), "rpc"}, func(string) string { return "" }, stdin, stdout, io.Discard)
	}()
	// More than one may not be taken while an answer is written.
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"pidb.version"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond)
	cancel()
	select {
	case got := <-code:
		if got != exitInterrupted {
			t.Errorf("ended with %d", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
}

// A line of many megabytes goes in and comes out again.
func TestRPCHuge(t *testing.T) {
	c := startRPC(t, newRPCArchive(t))
	c.call("create", `{"id":"s"}`, nil)
	content := strings.Repeat(`a\u0000\ud800é<>`, 1<<18)
	go c.send(`{"jsonrpc":"2.0","id":1,"method":"append","params":{"session":"s","entries":[{"role":"user","content":"` + content + `"}]}}` + "\n")
	if a := c.answer(); a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	var out exportedJSON
	c.call("export", `{"session":"s"}`, &out)
	if out.Text == nil || !strings.Contains(*out.Text, content) {
		t.Error("the line is not as it was sent")
	}
}

// TestRPCMethods calls each method and compares what it gives with what it should.
func TestRPCMethods(t *testing.T) {
	db := newRPCArchive(t)
	c := startRPC(t, db)
	var made, again madeJSON
	c.call("create", `{"cwd":"/work","metadata":{"n":12345678901234567},"idempotencyKey":"k"}`, &made)
	c.call("create", `{"cwd":"/work","idempotencyKey":"k"}`, &again)
	if made.Session != again.Session || made.CWD != "/work" {
		t.Errorf("%+v, %+v", made, again)
	}
	var appended appendedListJSON
	c.call("append", fmt.Sprintf(`{"session":%d,"ifLeaf":"","entries":[{"role":"user","content":"first words"},{"role":"assistant","content":[{"type":"text","text":"an answer"}]}]}`, made.Session), &appended)
	user, assistant := appended.Entries[0].Entry, appended.Entries[1].Entry
	session := fmt.Sprintf(`"session":%q`, made.ID)

	var branch branchJSON
	c.call("branch", `{`+session+`,"entry":"`+user+`","answered":true}`, &branch)
	if branch.Leaf != user {
		t.Errorf("%+v", branch)
	}
	var entry appendedJSON
	c.call("label", `{`+session+`,"entry":"`+assistant+`","text":"mark"}`, &entry)
	c.call("name", `{`+session+`,"name":"a name"}`, &entry)
	var tree treeJSON
	c.call("tree", `{`+session+`}`, &tree)
	if len(tree.Nodes) != 4 || tree.Nodes[1].Label != "mark" || tree.Nodes[2].Depth != 1 {
		t.Errorf("%+v", tree)
	}
	var context contextJSON
	c.call("context", `{`+session+`}`, &context)
	if len(context.Messages) != 1 || context.Leaf != entry.Entry {
		t.Errorf("%+v", context)
	}
	c.call("context", `{`+session+`,"leaf":"`+assistant+`","llm":true}`, &context)
	if len(context.Messages) != 2 || context.Leaf != assistant {
		t.Errorf("%+v", context)
	}
	c.call("branch", `{`+session+`,"summary":"began anew"}`, &branch)
	var list entriesJSON
	c.call("entries", `{`+session+`,"types":["message"]}`, &list)
	if len(list.Entries) != 2 || list.Entries[0].Raw != nil {
		t.Errorf("%+v", list)
	}
	var fork, extract madeJSON
	c.call("fork", `{`+session+`,"before":"`+assistant+`","cwd":"/fork"}`, &fork)
	c.call("extract", `{`+session+`,"leaf":"`+assistant+`","id":"part"}`, &extract)
	if fork.Entries != 1 || fork.CWD != "/fork" || fork.ParentSession != made.ID || extract.ID != "part" || extract.Entries != 3 {
		t.Errorf("%+v, %+v", fork, extract)
	}
	var sessions listJSON
	c.call("list", `{"limit":2,"sort":"created"}`, &sessions)
	if len(sessions.Sessions) != 2 || sessions.Next == "" {
		t.Errorf("%+v", sessions)
	}
	next := sessions.Next
	sessions = listJSON{}
	c.call("list", `{"after":"`+next+`","sort":"created"}`, &sessions)
	if len(sessions.Sessions) != 1 || sessions.Next != "" {
		t.Errorf("%+v", sessions)
	}
	var found searchJSON
	c.call("search", `{"query":"first words",`+session+`}`, &found)
	if len(found.Hits) != 1 || found.Hits[0].Entry != user {
		t.Errorf("%+v", found)
	}
	var stats statsJSON
	c.call("stats", `{"by":"model"}`, &stats)
	var out exportedJSON
	file := filepath.Join(t.TempDir(), "out.jsonl")
	c.call("export", fmt.Sprintf(`{%s,"form":"branch","leaf":%q,"output":%q}`, session, assistant, file), &out)
	if text, err := os.ReadFile(file); err != nil || int64(len(text)) != out.Bytes || out.Path != file {
		t.Errorf("%+v, %v", out, err)
	}
	var opened sessionJSON
	c.call("open", `{`+session+`}`, &opened)
	if opened.Name != "a name" || opened.Leaf != branch.Leaf {
		t.Errorf("%+v", opened)
	}
	var version rpcVersionJSON
	c.call("pidb.version", `null`, &version)
	if version.Protocol != rpcProtocol || !slices.Contains(version.Methods, "wait") {
		t.Errorf("%+v", version)
	}
	var deleted deletedJSON
	c.call("delete", `{`+session+`}`, &deleted)
	if !deleted.Deleted {
		t.Errorf("%+v", deleted)
	}

	// The archive has what the answers said.
	a, err := repo.Open(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s, err := a.OpenSession(t.Context(), "part")
	if err != nil {
		t.Fatal(err)
	}
	if metadata, err := s.Metadata(t.Context()); err != nil || metadata["n"] == nil {
		t.Errorf("%v, %v", metadata, err)
	}
}

func TestRPCWait(t *testing.T) {
	db := newRPCArchive(t)
	one, two := startRPC(t, db), startRPC(t, db)
	one.call("create", `{"id":"s"}`, nil)
	var now, got waitJSON
	one.call("wait", `{"session":"s","timeout":0}`, &now)
	if now.Cursor != 1 || !now.TimedOut || now.Entries != nil {
		t.Errorf("%+v", now)
	}
	one.post("wait", fmt.Sprintf(`{"session":"s","cursor":%d,"raw":true}`, now.Cursor))
	two.call("append", `{"session":"s","entries":[{"role":"user","content":"for the other"}]}`, nil)
	a := one.answer()
	if a.Error != nil {
		t.Fatalf("%+v", a.Error)
	}
	if err := json.Unmarshal(a.Result, &got); err != nil || got.Cursor != 2 || len(got.Entries) != 1 || !strings.Contains(*got.Entries[0].Raw, "for the other") {
		t.Errorf("%+v, %v", got, err)
	}
	one.call("wait", `{"cursor":0}`, &got)
	if got.Cursor == 0 || len(got.Sessions) != 1 || got.Sessions[0].ID != "s" {
		t.Errorf("%+v", got)
	}
	one.call("wait", fmt.Sprintf(`{"cursor":%d,"timeout":0.01}`, got.Cursor), &got)
	if !got.TimedOut {
		t.Errorf("%+v", got)
	}
}

// TestRPCClientOfPiNode runs a client in JavaScript, with two servers at once, on the Node
// that the real pi runs on.
func TestRPCClientOfPiNode(t *testing.T) {
	node := "node"
	if folder := os.Getenv("PIDB_PI"); folder != "" {
		if path := filepath.Join(folder, "node_modules", ".bin", "node"); fileExists(path) {
			node = path
		}
	}
	if _, err := exec.LookPath(node); err != nil {
		t.Skip("there is no node; PIDB_PI may name a folder that has it in node_modules")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "rpc", "client.mjs"), self, newRPCArchive(t))
	cmd.Env = append(os.Environ(), "PIDB_TEST_COMMAND=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
