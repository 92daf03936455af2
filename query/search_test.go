package query_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

func search(t testing.TB, a *repo.Archive, q string, opts *query.SearchOptions) *query.SearchResult {
	t.Helper()
	var result *query.SearchResult
	view(t, a, func(rx *query.Rx) (err error) {
		result, err = rx.Search(t.Context(), q, opts)
		return err
	})
	return result
}

// entriesOf names the entries of hits in their order.
func entriesOf(hits []query.Hit) string {
	var list []string
	for _, h := range hits {
		list = append(list, h.EntryID)
	}
	return strings.Join(list, " ")
}

// sortedEntriesOf names the entries of hits in the order of their names.
func sortedEntriesOf(hits []query.Hit) string {
	list := strings.Fields(entriesOf(hits))
	slices.Sort(list)
	return strings.Join(list, " ")
}

// searched is an archive of two sessions with all that can be found.
func searched(t testing.TB) *repo.Archive {
	a := openArchive(t)
	importFiles(t, a, t.TempDir(), map[string]string{
		"a.jsonl": head("aa", "/home/dev/one", 1) +
			line("model_change", "model", "", 2, `"provider":"acme","modelId":"big-1"`) +
			said("user", "ask", "model", 10, "Please fix the retry backoff in parseSessionEntry, it's foo-bar a::b --flag 修复登录。") +
			line("message", "call", "ask", 20, `"message":{"role":"assistant","provider":"acme","model":"big-1","content":[`+
				`{"type":"thinking","thinking":"secretthought about backoff"},{"type":"text","text":"Looking at the code"},`+
				`{"type":"toolCall","id":"t1","name":"grep","arguments":{"pattern":"backoffpattern","path":"src/retry.go","limit":42}},`+
				`{"type":"toolCall","id":"t2","name":"bash","arguments":{"command":"ls -la naïve"}}]}`) +
			line("message", "grepped", "call", 30, `"message":{"role":"toolResult","toolCallId":"t1","toolName":"grep","content":[{"type":"text","text":"src/retry.go:42: \u001b[31mbackoff\u001b[0m := base * 2"},{"type":"image","data":"imagedata"}]}`) +
			line("message", "listed", "grepped", 40, `"message":{"role":"toolResult","toolCallId":"t2","toolName":"Bash","content":"total 0 error outputword"}`) +
			line("message", "shell", "listed", 50, `"message":{"role":"bashExecution","command":"make shellcommand","output":"shelloutput error"}`) +
			line("compaction", "compact", "shell", 60, `"summary":"summaryword of it all","firstKeptEntryId":"shell","tokensBefore":9`) +
			line("label", "labelled", "compact", 70, `"targetId":"ask","label":"labelword"`) +
			line("session_info", "named", "labelled", 80, `"name":"retry nameword"`) +
			line("custom_message", "custom", "named", 90, `"customType":"x","content":"customword","display":true`) +
			line("custom", "data", "custom", 95, `"customType":"x","data":{"text":"hiddenword"}`),
		"b.jsonl": head("bb", "/home/dev/two", 2) +
			line("model_change", "model2", "", 3, `"provider":"other","modelId":"small-1"`) +
			said("user", "ask2", "model2", 1000, "the retry of the backoff, again") +
			said("assistant", "answer2", "ask2", 1010, "No idea; an error here. retry retry") +
			line("message", "system2", "answer2", 1020, `"message":{"role":"system","content":"systemword"}`) +
			`{"type":"message","id":"undated","parentId":"system2","timestamp":"never","message":{"role":"user","content":"undatedword"}}` + "\n" +
			"{torn" + said("user", "recovered", "undated", 1030, "recoveredword"),
	})
	return a
}

func TestSearchWords(t *testing.T) {
	a := searched(t)
	at := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	tests := []struct {
		query string
		opts  *query.SearchOptions
		want  string // entries by name
	}{
		{query: "retry", want: "answer2 ask ask2 call grepped named"},
		{query: "retry backoff", want: "ask ask2 grepped"},
		{query: "retry -backoff", want: "answer2 call named"},
		{query: `"retry backoff"`, want: "ask"},
		{query: `"retry backoff`, want: "ask"},
		{query: "backoff*", want: "ask ask2 call grepped"},
		{query: "nameword OR labelword", want: "labelled named"},
		{query: "foo-bar", want: "ask"},
		{query: "a::b", want: "ask"},
		{query: "it's", want: "ask"},
		{query: "--flag", want: "ask"},
		{query: "PARSESESSIONENTRY", want: "ask"},
		{query: "naive", want: "call"},
		{query: "修复登录", want: "ask"},
		{query: "复登", want: "ask"},
		{query: "登复", want: ""},
		{query: "src/retry.go:42", want: "grepped"},
		{query: "base * 2", want: "grepped"},
		{query: "42", want: "call grepped"},
		{query: "pattern", want: "call"},
		{query: "outputword", want: "listed"},
		{query: "shellcommand shelloutput", want: "shell"},
		{query: "summaryword", want: "compact"},
		{query: "customword", want: "custom"},
		{query: "systemword", want: "system2"},
		{query: "recoveredword", want: "recovered"},
		{query: "hiddenword OR imagedata", want: ""},
		{query: "secretthought", want: ""},
		{query: "secretthought", opts: &query.SearchOptions{Thinking: true}, want: "call"},
		{query: "", want: ""},
		{query: "::", want: ""},
		{query: "nosuchword", want: ""},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"user"}}, want: "ask ask2"},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"assistant"}}, want: "answer2 call"},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"tool"}}, want: "call grepped"},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"tool", "user"}}, want: "ask ask2 call grepped"},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"tool", "assistant"}}, want: "answer2 call grepped"},
		{query: "looking", opts: &query.SearchOptions{Roles: []string{"tool"}}, want: ""},
		{query: "looking", opts: &query.SearchOptions{Roles: []string{"tool", "user"}}, want: ""},
		{query: "retry", opts: &query.SearchOptions{Roles: []string{"name"}}, want: "named"},
		{query: "error", opts: &query.SearchOptions{Roles: []string{"bash"}}, want: "shell"},
		{query: "error", opts: &query.SearchOptions{Roles: []string{"toolResult"}}, want: "listed"},
		{query: "*word*", opts: &query.SearchOptions{Roles: []string{"summary"}}, want: ""},
		{query: "summaryword OR labelword OR customword", opts: &query.SearchOptions{Roles: []string{"summary", "label"}}, want: "compact labelled"},
		{query: "customword", opts: &query.SearchOptions{Roles: []string{"custom"}}, want: "custom"},
		{query: "systemword", opts: &query.SearchOptions{Roles: []string{"system"}}, want: "system2"},
		{query: "retry", opts: &query.SearchOptions{Tools: []string{"GREP"}}, want: "call grepped"},
		{query: "ls OR error", opts: &query.SearchOptions{Tools: []string{"bash"}}, want: "call listed"},
		{query: "ls", opts: &query.SearchOptions{Tools: []string{"grep"}}, want: ""},
		{query: "retry", opts: &query.SearchOptions{CWD: "/home/dev/two"}, want: "answer2 ask2"},
		{query: "retry", opts: &query.SearchOptions{CWD: "/home/dev/tw"}, want: ""},
		{query: "retry", opts: &query.SearchOptions{Model: "OTHER/"}, want: "ask2"},
		{query: "retry", opts: &query.SearchOptions{Since: at(30), Until: at(1010)}, want: "ask2 grepped named"},
		{query: "undatedword", opts: &query.SearchOptions{Since: at(1000)}, want: "undated"},
		{query: "undatedword", opts: &query.SearchOptions{Until: at(1000)}, want: ""},
		{query: "retry", opts: &query.SearchOptions{Session: 1}, want: "ask call grepped named"},
		{query: "retry", opts: &query.SearchOptions{Session: 99}, want: ""},
		{query: "re:RETRY\\.go:\\d+", want: "grepped"},
		{query: "re:", want: ""},
		{query: "retry.go", opts: &query.SearchOptions{Mode: query.Substring}, want: "call grepped"},
		{query: "etry back", opts: &query.SearchOptions{Mode: query.Substring}, want: "ask"},
		{query: "Retry", opts: &query.SearchOptions{Mode: query.Substring}, want: ""},
		{query: "::", opts: &query.SearchOptions{Mode: query.Substring}, want: "ask"},
		{query: "复", opts: &query.SearchOptions{Mode: query.Substring}, want: "ask"},
		{query: "secretth", opts: &query.SearchOptions{Mode: query.Substring}, want: ""},
		{query: "secretth", opts: &query.SearchOptions{Mode: query.Substring, Thinking: true}, want: "call"},
		{query: "path src", opts: &query.SearchOptions{Mode: query.Substring}, want: "call"},
		{query: "", opts: &query.SearchOptions{Mode: query.Substring}, want: ""},
		{query: "w?rd$", opts: &query.SearchOptions{Mode: query.Regexp, Roles: []string{"custom", "label"}}, want: "custom labelled"},
		{query: "^total", opts: &query.SearchOptions{Mode: query.Regexp}, want: "listed"},
		{query: "(?i)LOOK.*code", opts: &query.SearchOptions{Mode: query.Regexp}, want: "call"},
		{query: "error", opts: &query.SearchOptions{Mode: query.Regexp, Tools: []string{"bash"}}, want: "listed"},
		{query: "recovered|undated", opts: &query.SearchOptions{Mode: query.Regexp}, want: "recovered undated"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s %+v", test.query, test.opts), func(t *testing.T) {
			result := search(t, a, test.query, test.opts)
			if got := sortedEntriesOf(result.Hits); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			for _, h := range result.Hits {
				if len(h.Snippet.Matches) == 0 {
					t.Errorf("%s: nothing is marked in %q", h.EntryID, h.Snippet.Text)
				}
			}
		})
	}
}

func TestSearchHit(t *testing.T) {
	a := searched(t)
	result := search(t, a, "backoff", &query.SearchOptions{Tools: []string{"grep"}})
	if len(result.Hits) != 1 {
		t.Fatalf("%d hits", len(result.Hits))
	}
	h := result.Hits[0]
	if h.Session.ID != "aa" || h.Line != (query.LineNumber{Line: 5}) || h.EntryID != "grepped" || h.Type != "message" ||
		h.Role != "toolResult" || h.Tool != "grep" || h.Timestamp != time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC) || h.Score <= 0 || h.Copies != 0 {
		t.Errorf("got %+v", h)
	}
	if got, want := marked(h.Snippet), "src/retry.go:42: [backoff] := base * 2"; got != want {
		t.Errorf("snippet %q, want %q", got, want)
	}
	h = search(t, a, "naive", nil).Hits[0]
	if h.Role != "assistant" || h.Tool != "bash" || marked(h.Snippet) != "command ls -la [naïve]" {
		t.Errorf("a call: %+v", h)
	}
	if h = search(t, a, "recoveredword", nil).Hits[0]; h.Line != (query.LineNumber{Line: 7, Part: 1}) {
		t.Errorf("recovered: %+v", h)
	}
}

func TestSearchOrder(t *testing.T) {
	a := searched(t)
	if got := search(t, a, "retry", nil).Hits[0].EntryID; got != "named" {
		t.Errorf("%s comes before the name of a session", got)
	}
	if got, want := entriesOf(search(t, a, "retry", &query.SearchOptions{Sort: query.SortRecent}).Hits), "answer2 ask2 named grepped call ask"; got != want {
		t.Errorf("newest first: %s, want %s", got, want)
	}
	if got, want := entriesOf(search(t, a, "retry", &query.SearchOptions{Mode: query.Substring}).Hits), "answer2 ask2 named grepped call ask"; got != want {
		t.Errorf("substring: %s, want %s", got, want)
	}
	for _, mode := range []query.Mode{query.Words, query.Substring} {
		result := search(t, a, "retry", &query.SearchOptions{Mode: mode, Limit: 2})
		if len(result.Hits) != 2 || !result.More {
			t.Errorf("limit: %d hits, more: %v", len(result.Hits), result.More)
		}
		result = search(t, a, "retry", &query.SearchOptions{Mode: mode, Limit: 6})
		if len(result.Hits) != 6 || result.More {
			t.Errorf("limit of all: %d hits, more: %v", len(result.Hits), result.More)
		}
	}
}

func TestSearchErrors(t *testing.T) {
	a := searched(t)
	view(t, a, func(rx *query.Rx) error {
		for q, mode := range map[string]query.Mode{"(": query.Regexp, "re:(": query.Words} {
			if _, err := rx.Search(t.Context(), q, &query.SearchOptions{Mode: mode}); !errors.Is(err, query.ErrBadPattern) {
				t.Errorf("%q: %v", q, err)
			}
		}
		return nil
	})
	if got := search(t, a, ":: retry", nil); len(got.Hits) != 6 || !slices.Equal(got.Ignored, []string{"::"}) {
		t.Errorf("%d hits, ignored %q", len(got.Hits), got.Ignored)
	}
}

// TestSearchHostile gives queries that other programs choke on: each is a query.
func TestSearchHostile(t *testing.T) {
	a := searched(t)
	queries := []string{
		"", " ", `"`, `""`, `"unbalanced`, "'", "it's", "*", "**", "a*b", "^a", "-", "--", "-a", "- a", "+a", "a:b", "talk:a", "talk : a", "{talk}: a",
		"(", ")", "()", "a AND", "AND", "OR", "NOT", "NOT a", "a NOT b", "NEAR(a b, 2)", "a NEAR/2 b", "a + b", "foo-bar", "a::b", "--flag", "-4i", "blah=", "C++",
		"re", "re :x", "re:a|", "re:\\Q(", "path/to/file.go:42", "%", "_", "\\", "\x00", "a\x00b", "\xff\xfe", "\u202e", "\x1b[31m", "🎉", "修", "ー", "é", "e\u0301", "\u0301",
		strings.Repeat("a", 100000), strings.Repeat("a ", 5000), strings.Repeat(`"`, 1001), strings.Repeat("(", 3000), strings.Repeat("a OR ", 2000),
	}
	view(t, a, func(rx *query.Rx) error {
		for _, q := range queries {
			for _, opts := range []*query.SearchOptions{
				nil,
				{Thinking: true, Sort: query.SortRecent},
				{Roles: []string{"tool", "user", q}, Tools: []string{q}, CWD: q, Model: q},
				{Mode: query.Substring},
				{Mode: query.Regexp},
			} {
				_, err := rx.Search(t.Context(), q, opts)
				if err != nil && !errors.Is(err, query.ErrBadPattern) || err != nil && opts != nil && opts.Mode != query.Regexp {
					t.Errorf("%.60q, %+v: %v", q, opts, err)
				}
			}
		}
		return nil
	})
}

func TestSearchCopies(t *testing.T) {
	a := openArchive(t)
	dir := t.TempDir()
	shared := said("user", "m1", "", 10, "sharedword in all")
	own := func(id string, n int) string { return said("user", id, "m1", n, "ownword") }
	importFiles(t, a, dir, map[string]string{
		"1.jsonl": head("fork", "/b", 200) + shared + own("f1", 210),
		"2.jsonl": head("first", "/a", 1) + shared + own("o1", 20) + shared,
		"3.jsonl": head("gone", "/a", 0) + shared + own("g1", 30),
		"4.jsonl": head("rewritten", "/a", 300) + shared,
		"5.jsonl": head("other", "/a", 400) + said("user", "m1", "", 10, "sharedword with another text"),
	})
	writeAt(t, filepath.Join(dir, "4.jsonl"), head("rewritten", "/a", 301)+said("user", "new", "", 310, "something else"))
	if err := os.Remove(filepath.Join(dir, "3.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Sync(t.Context(), []string{dir}, nil); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*query.SearchOptions{nil, {Mode: query.Substring}} {
		hits := search(t, a, "sharedword", opts).Hits
		var got []string
		for _, h := range hits {
			got = append(got, fmt.Sprint(h.Session.ID, " ", h.Line.Line, " +", h.Copies))
		}
		slices.Sort(got)
		if want := []string{"first 4 +2", "other 2 +0"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := search(t, a, "ownword", nil).Hits; len(got) != 3 {
		t.Errorf("%d hits for what each has, want 3: a missing source is searched", len(got))
	}
	hits := search(t, a, "sharedword", &query.SearchOptions{CWD: "/b"}).Hits
	if len(hits) != 1 || hits[0].Session.ID != "fork" || hits[0].Copies != 2 {
		t.Errorf("in a folder: %+v", hits)
	}
	if hits := search(t, a, "sharedword", &query.SearchOptions{Session: 4}).Hits; len(hits) != 1 || hits[0].Session.State != query.Superseded {
		t.Errorf("in an old version: %+v", hits)
	}
}

// words reports whether a query that is this text asks for anything.
func words(text string) bool {
	expr, _ := query.Expression(text)
	return expr != ""
}

// TestSearchBehind searches what the index does not have yet.
func TestSearchBehind(t *testing.T) {
	a := openArchive(t)
	path := writeAt(t, filepath.Join(t.TempDir(), "a.jsonl"), head("a", "/", 1)+said("user", "m1", "", 1, "one needle here"))
	if _, err := a.Import(t.Context(), []string{path}, &repo.ImportOptions{NoIndex: true}); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*query.SearchOptions{{Mode: query.Substring}, {Mode: query.Regexp}} {
		if hits := search(t, a, " needle ", opts).Hits; len(hits) != 1 {
			t.Errorf("%+v: %d hits", opts, len(hits))
		}
	}
	if result := search(t, a, "needle", nil); len(result.Hits) != 0 || result.Behind != 1 {
		t.Errorf("words: %d hits, %d sessions behind", len(result.Hits), result.Behind)
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if result := search(t, a, "needle", nil); len(result.Hits) != 1 || result.Behind != 0 {
		t.Errorf("words, once indexed: %d hits, %d sessions behind", len(result.Hits), result.Behind)
	}
}

// TestSearchFillsTheLimit asks for more than one window of entries that all are copies.
func TestSearchFillsTheLimit(t *testing.T) {
	a := openArchive(t)
	first := strings.Builder{}
	first.WriteString(head("first", "/", 1))
	for i := range 30 {
		first.WriteString(said("user", fmt.Sprint("m", i), "", i, "word"))
	}
	second := strings.Builder{}
	second.WriteString(head("second", "/", 2))
	for range 2100 {
		second.WriteString(said("user", "same", "", 50, "word"))
	}
	importFiles(t, a, t.TempDir(), map[string]string{"1.jsonl": first.String(), "2.jsonl": second.String()})
	for _, opts := range []query.SearchOptions{{}, {Sort: query.SortRecent}, {Mode: query.Substring}} {
		result := search(t, a, "word", &opts)
		if len(result.Hits) != query.DefaultSearchLimit || !result.More {
			t.Errorf("%+v: %d hits, more: %v", opts, len(result.Hits), result.More)
		}
		opts.All = true
		result = search(t, a, "word", &opts)
		if len(result.Hits) != 31 || result.More {
			t.Errorf("%+v: %d hits, more: %v", opts, len(result.Hits), result.More)
		}
	}
}

// TestSearchConformance looks for parts of what the cases say, in every mode, and
// compares with a look at all of it.
func TestSearchConformance(t *testing.T) {
	a := openArchive(t)
	if _, err := a.Import(t.Context(), []string{"../testdata/conformance/sessions"}, nil); err != nil {
		t.Fatal(err)
	}
	type document struct {
		key  string // of what makes entries the same
		text []string
	}
	var documents []document
	view(t, a, func(rx *query.Rx) error {
		sessions, _, err := rx.List(t.Context(), &query.ListOptions{All: true})
		if err != nil {
			return err
		}
		for _, s := range sessions {
			for e, err := range rx.Entries(t.Context(), s.Key, nil) {
				if err != nil {
					return err
				}
				if e.Kind != query.KindEntry {
					continue
				}
				raw, err := rx.Raw(t.Context(), e.Ref)
				if err != nil {
					return err
				}
				var doc jsonl.Doc
				if err := doc.Parse([]byte(strings.TrimPrefix(string(raw), "\ufeff"))); err != nil {
					return err
				}
				segments, _ := jsonl.NewObject(doc.Root()).AppendSegments(nil, nil)
				d := document{key: fmt.Sprint(e.ID, e.Timestamp)}
				for _, segment := range segments {
					if segment.Kind != jsonl.SegThinking {
						d.text = append(d.text, string(segment.Text))
						d.key += "\x00" + string(segment.Text)
					}
				}
				if len(d.text) > 0 {
					documents = append(documents, d)
				}
			}
		}
		return nil
	})
	checks := 0
	for i := 0; i < len(documents); i += len(documents)/20 + 1 {
		whole := documents[i].text[0]
		for _, n := range []int{3, 12} {
			part := whole
			if runes := []rune(whole); len(runes) > n {
				at := (i * 7) % (len(runes) - n)
				part = string(runes[at : at+n])
			}
			want := map[string]bool{}
			for _, d := range documents {
				if slices.ContainsFunc(d.text, func(text string) bool { return strings.Contains(text, part) }) {
					want[d.key] = true
				}
			}
			result := search(t, a, part, &query.SearchOptions{Mode: query.Substring, All: true})
			if len(result.Hits) != len(want) {
				t.Errorf("substring %q: %d hits, want %d", part, len(result.Hits), len(want))
			}
			if words(part) {
				if result := search(t, a, `"`+strings.ReplaceAll(whole, `"`, " ")+`"`, nil); len(result.Hits) == 0 && words(whole) {
					t.Errorf("the phrase %q is not found", whole)
				}
			}
			checks++
		}
	}
	if checks < 40 {
		t.Errorf("only %d checks", checks)
	}
}

// TestHits takes hits one by one, stops early, and goes on with the same transaction.
func TestHits(t *testing.T) {
	a := searched(t)
	view(t, a, func(rx *query.Rx) error {
		whole, err := rx.Search(t.Context(), "retry", &query.SearchOptions{All: true})
		if err != nil {
			return err
		}
		for stop := range len(whole.Hits) + 1 {
			n := 0
			for hit, err := range rx.Hits(t.Context(), "retry", nil) {
				if err != nil {
					return err
				}
				if diff := cmp.Diff(whole.Hits[n], hit); diff != "" {
					t.Errorf("hit %d (-search +hits):\n%s", n, diff)
				}
				if n++; n == stop {
					break
				}
			}
			if want := max(stop, 1); stop > 0 && n != want {
				t.Errorf("%d hits, want %d", n, want)
			}
		}
		for _, err := range rx.Hits(t.Context(), "re:(", nil) {
			if !errors.Is(err, query.ErrBadPattern) {
				t.Errorf("bad pattern: %v", err)
			}
		}
		return nil
	})
}

func TestSearchFlags(t *testing.T) {
	a := searched(t)
	for _, test := range []struct {
		query string
		opts  query.SearchOptions
		want  string
	}{
		{"retry", query.SearchOptions{Name: "NAMEWORD"}, "ask call grepped named"},
		{"retry", query.SearchOptions{Name: "other"}, ""},
		{"summaryword OR retry", query.SearchOptions{Types: []string{"compaction"}}, "compact"},
		{"error", query.SearchOptions{Errors: true}, ""},
		{"retry", query.SearchOptions{Types: []string{"message"}, Roles: []string{"user"}}, "ask ask2"},
		{"l", query.SearchOptions{Mode: query.Substring, Types: []string{"label", "compaction"}}, "compact labelled"},
		{".", query.SearchOptions{Mode: query.Regexp, Types: []string{"session_info"}}, "named"},
		{"er", query.SearchOptions{Mode: query.Substring, Errors: true}, ""},
		{"retry cwd:/home/dev/two", query.SearchOptions{Session: 1}, ""},
		{"retry session:bb", query.SearchOptions{Session: 1}, ""},
		{"retry name:other", query.SearchOptions{Session: 1}, ""},
		{"retry", query.SearchOptions{Session: 1, Name: "other"}, ""},
		{"retry name:nameword cwd:one", query.SearchOptions{Session: 1}, "ask call grepped named"},
		{"retry cwd:~/two", query.SearchOptions{Home: "/home/dev"}, "answer2 ask2"},
		{"retry cwd:~/two", query.SearchOptions{Home: "/home/mira"}, ""},
		{"retry cwd:/", query.SearchOptions{Session: 2}, "answer2 ask2"},
		{"retry model:other model:small", query.SearchOptions{}, "ask2"},
		{"retry model:small", query.SearchOptions{Model: "acme"}, ""},
		{"role:user re:^the retry", query.SearchOptions{}, "ask2"},
		{"-role:assistant -role:tool -tool:grep re:retry", query.SearchOptions{}, "ask ask2 named"},
		{"-role:assistant -tool:grep re:r.", query.SearchOptions{Session: 1, Types: []string{"message"}}, "ask listed shell"},
	} {
		if got := sortedEntriesOf(search(t, a, test.query, &test.opts).Hits); got != test.want {
			t.Errorf("%s %+v: %q, want %q", test.query, test.opts, got, test.want)
		}
	}
}
