package repo_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// calling is an assistant message that calls tools, toolResult the result of a call, in pi's form.
func calling(calls ...string) repo.NewEntry {
	content := []any{}
	for _, c := range calls {
		content = append(content, jsonl.Members{{Key: "type", Value: "toolCall"}, {Key: "id", Value: c}, {Key: "name", Value: "read"}, {Key: "arguments", Value: map[string]any{}}})
	}
	return repo.Message(jsonl.Members{{Key: "role", Value: "assistant"}, {Key: "content", Value: content}})
}

func toolResult(of string) repo.NewEntry {
	return repo.Message(jsonl.Members{{Key: "role", Value: "toolResult"}, {Key: "toolCallId", Value: of}, {Key: "content", Value: []any{}}})
}

func view(t *testing.T, a *repo.Archive, f func(rx *query.Rx) error) {
	t.Helper()
	ok(t, a.View(t.Context(), f))
}

func idsOf(entries []query.Entry) string {
	var ids []string
	for i := range entries {
		ids = append(ids, entries[i].ID)
	}
	return strings.Join(ids, " ")
}

func TestMoa_Tree_Append(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ids := appendTo(t, s, userMessage("one").WithID("msg-1"), userMessage("two"))
	e, err := s.Entry(t.Context(), ids[1])
	if err != nil || ids[0] != "msg-1" || e.ParentID != "msg-1" || e.Timestamp.IsZero() || s.Leaf() != e.Ref {
		t.Errorf("%v, %+v, %v", ids, e, err)
	}
	if _, err := s.Append(t.Context(), userMessage("x").WithID("msg-1")); !errors.Is(err, repo.ErrExists) {
		t.Errorf("an id that is taken: %v", err)
	}
}

func TestMoa_Tree_Branch(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(t, s, userMessage("one").WithID("u1"), calling("c2", "c1", "c3").WithID("t1"), toolResult("c2").WithID("r2"), toolResult("c1").WithID("r1"), toolResult("c3").WithID("r3"), reply("done").WithID("d"))
	leaf := s.Leaf()
	for _, test := range []struct {
		id, call string
		result   bool
	}{{"t1", "c1", false}, {"r2", "c2", true}, {"r3", "c3", true}} {
		err := s.BranchIfAnswered(t.Context(), test.id)
		unanswered, is := errors.AsType[*query.UnansweredError](err)
		if !is || !errors.Is(err, repo.ErrUnanswered) || unanswered.CallID != test.call || unanswered.ToolResult != test.result || unanswered.Entry != test.id {
			t.Errorf("%s: %v", test.id, err)
		}
		if s.Leaf() != leaf {
			t.Errorf("%s: the leaf has moved", test.id)
		}
	}
	if err := s.BranchIfAnswered(t.Context(), "none"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of no entry: %v", err)
	}
	for _, id := range []string{"u1", "d", ""} {
		ok(t, s.BranchIfAnswered(t.Context(), id))
	}
	ok(t, s.Branch(t.Context(), "t1")) // without the rule
}

func TestMoa_Tree_ValidBranchTarget(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	// A call without a result before the boundary of a compaction does not count.
	appendTo(t, s, userMessage("one").WithID("u1"), calling("old").WithID("t1"), userMessage("two").WithID("u2"), repo.Compaction("sum", "u2", 1, nil).WithID("p1"), userMessage("three").WithID("u3"))
	appendTo(t, s, calling("new").WithID("t2"))
	ok(t, s.Branch(t.Context(), "t1"))
	appendTo(t, s, repo.Compaction("kept", "t1", 1, nil).WithID("p2"), repo.Compaction("none", "", 1, nil).WithID("p3"), toolResult("old").WithID("r1"), reply("x").WithID("d1"))
	for id, want := range map[string]string{"u1": "", "t1": "old", "u2": "old", "p1": "", "u3": "", "t2": "new", "p2": "old", "p3": "", "r1": "old", "d1": "", "": ""} {
		err := s.CheckBranch(t.Context(), id)
		got := ""
		if unanswered, is := errors.AsType[*query.UnansweredError](err); is {
			got = unanswered.CallID
		}
		if got != want {
			t.Errorf("%s: %v, want call %q", id, err, want)
		}
	}
	targets, err := s.BranchTargets(t.Context())
	ok(t, err)
	same(t, "targets", "u1 p1 u3 p3 d1", idsOf(targets))
}

// The list of targets holds what the check takes, whatever the tree.
func TestBranchTargets(t *testing.T) {
	a := open(t, nil)
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 1))
		s := create(t, a, nil)
		var ids []string
		for range 60 {
			if len(ids) > 0 && random.IntN(4) == 0 {
				ok(t, s.Branch(t.Context(), ids[random.IntN(len(ids))]))
			}
			call := fmt.Sprint("c", random.IntN(4))
			var e repo.NewEntry
			switch random.IntN(6) {
			case 0:
				e = userMessage("x")
			case 1, 2:
				e = calling(call)
			case 3, 4:
				e = toolResult(call)
			default:
				kept := ""
				if len(ids) > 0 {
					kept = ids[random.IntN(len(ids))]
				}
				e = repo.Compaction("sum", kept, 1, nil)
			}
			ids = append(ids, appendTo(t, s, e)...)
		}
		var want []string
		for _, id := range ids {
			if err := s.CheckBranch(t.Context(), id); err == nil {
				want = append(want, id)
			} else if !errors.Is(err, repo.ErrUnanswered) {
				t.Fatal(err)
			}
		}
		targets, err := s.BranchTargets(t.Context())
		ok(t, err)
		same(t, fmt.Sprint("targets of seed ", seed), strings.Join(want, " "), idsOf(targets))
	}
}

// contextAt shows the model's view of a session with moa's rule for what is kept elsewhere.
func contextAt(t *testing.T, a *repo.Archive, s *repo.Session, opts *query.ContextOptions) string {
	t.Helper()
	var out []string
	view(t, a, func(rx *query.Rx) error {
		c, err := rx.ContextWith(t.Context(), s.Leaf(), opts)
		ok(t, err)
		for _, m := range c.Messages {
			e, err := rx.Entry(t.Context(), m.Source)
			ok(t, err)
			out = append(out, e.ID)
		}
		return nil
	})
	return strings.Join(out, " ")
}

func TestMoa_Tree_BuildContext(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	summary := &query.ContextOptions{KeptElsewhere: query.KeepSummary}
	epoch := func() (n int) {
		view(t, a, func(rx *query.Rx) (err error) {
			n, err = rx.Epoch(t.Context(), s.Leaf())
			return err
		})
		return n
	}
	appendTo(t, s, userMessage("1").WithID("u1"), reply("2").WithID("u2"))
	same(t, "without a compaction", "u1 u2", contextAt(t, a, s, summary))
	appendTo(t, s, repo.Compaction("s", "u2", 1, nil).WithID("p1"), userMessage("3").WithID("u3"))
	same(t, "after one", "p1 u2 u3", contextAt(t, a, s, summary))
	appendTo(t, s, repo.Compaction("s", "u3", 1, nil).WithID("p2"))
	same(t, "the last one counts", "p2 u3", contextAt(t, a, s, summary))
	if n := epoch(); n != 2 {
		t.Errorf("epoch %d, want 2", n)
	}
	// What it keeps is not on the path: the summary alone, or what pi makes of it.
	ok(t, s.Branch(t.Context(), "u1"))
	appendTo(t, s, repo.Compaction("s", "", 1, nil).WithID("p3"), userMessage("4").WithID("u4"))
	same(t, "keeps none before it", "p3 u4", contextAt(t, a, s, summary))
	appendTo(t, s, repo.Raw(jsonl.Members{{Key: "type", Value: "compaction"}, {Key: "summary", Value: "s"}, {Key: "firstKeptEntryId", Value: "u2"}, {Key: "tokensBefore", Value: 1}}).WithID("p4"), userMessage("5").WithID("u5"))
	same(t, "off the path", "p4", contextAt(t, a, s, summary))
	same(t, "off the path, as pi", "p4 u5", contextAt(t, a, s, nil))
	if n := epoch(); n != 2 {
		t.Errorf("epoch %d on the other branch, want 2", n)
	}
}

func TestMoa_Tree_AllMessages(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(t, s, userMessage("1").WithID("u1"), repo.Label("u1", "x"), repo.Compaction("so far", "", 7, nil).WithID("p1"), reply("2").WithID("u2"))
	ok(t, s.Branch(t.Context(), "p1"))
	appendTo(t, s, userMessage("3").WithID("u3"))
	var got []string
	view(t, a, func(rx *query.Rx) error {
		shown, err := rx.Display(t.Context(), s.Leaf())
		ok(t, err)
		for _, item := range shown {
			got = append(got, fmt.Sprint(item.Entry.ID, " ", item.Marker))
			if item.Marker && !strings.HasPrefix(string(item.JSON), `{"role":"sessionEvent","event":"compaction","summary":"so far","tokensBefore":7,"timestamp":`) {
				t.Errorf("marker %s", item.JSON)
			}
		}
		_, err = rx.Display(t.Context(), query.MakeRef(s.Key(), 0))
		if !errors.Is(err, query.ErrNotFound) {
			t.Errorf("of the header: %v", err)
		}
		return nil
	})
	same(t, "shown", []string{"u1 false", "p1 true", "u3 false"}, got)
}

// treeSession is a session with two branches: u1 (u2 (u3), v2).
func treeSession(t *testing.T, a *repo.Archive) *repo.Session {
	t.Helper()
	s := create(t, a, nil)
	appendTo(t, s, userMessage("1").WithID("u1"), reply("2").WithID("u2"), userMessage("3").WithID("u3"))
	ok(t, s.Branch(t.Context(), "u1"))
	appendTo(t, s, reply("other").WithID("v2"))
	return s
}

func TestMoa_Tree_Children(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	view(t, a, func(rx *query.Rx) error {
		e, err := rx.EntryByID(t.Context(), s.Key(), "u1")
		ok(t, err)
		children, err := rx.Children(t.Context(), e.Ref)
		ok(t, err)
		same(t, "children", "u2 v2", idsOf(children))
		var roots []query.Entry
		for n, err := range rx.Tree(t.Context(), s.Key()) {
			if ok(t, err); n.Depth == 0 {
				roots = append(roots, n.Entry)
			}
		}
		same(t, "roots", "u1", idsOf(roots))
		return nil
	})
}

// A session forgets nothing: a document saved without entries does. A session begins anew
// before its first entry.
func TestMoa_Tree_Clear(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	ok(t, s.ResetLeaf(t.Context()))
	appendTo(t, s, userMessage("anew").WithID("n1"))
	path, err := s.Path(t.Context())
	ok(t, err)
	same(t, "path", "n1", idsOf(path))

	d := openStore(t, a, "/work", nil)
	doc := newDocument(t, d, say("a1", "", "user", "x"))
	ok(t, d.Save(t.Context(), doc))
	doc.Entries, doc.Leaf = nil, ""
	ok(t, d.Save(t.Context(), doc))
	same(t, "cleared", doc, load(t, d, doc.ID))
}

func allEntries(t *testing.T, a *repo.Archive, s *repo.Session) []query.Entry {
	t.Helper()
	var entries []query.Entry
	view(t, a, func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), s.Key(), nil) {
			if ok(t, err); e.Kind == query.KindEntry {
				entries = append(entries, e)
			}
		}
		return nil
	})
	return entries
}

func TestMoa_Tree_Entries(t *testing.T) {
	a := open(t, nil)
	same(t, "entries", "u1 u2 u3 v2", idsOf(allEntries(t, a, treeSession(t, a))))
}

func TestMoa_Tree_Entry(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	if e, err := s.Entry(t.Context(), "u3"); err != nil || e.ParentID != "u2" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := s.Entry(t.Context(), "none"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of no entry: %v", err)
	}
}

// A message is named by its entry, on whatever branch.
func TestMoa_Tree_HasMsgID(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	for id, want := range map[string]bool{"u3": true, "v2": true, "none": false, "": false} {
		if _, err := s.Entry(t.Context(), id); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestMoa_Tree_LeafID(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	if s.Leaf() != 0 {
		t.Error("a new session has a leaf")
	}
	ids := appendTo(t, s, userMessage("1"))
	if info, err := s.Info(t.Context()); err != nil || info.LeafID != ids[0] || info.Leaf != s.Leaf() {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestMoa_Tree_Len(t *testing.T) {
	a := open(t, nil)
	if info, err := treeSession(t, a).Info(t.Context()); err != nil || info.Entries != 4 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestMoa_Tree_Path(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	path, err := s.Path(t.Context())
	ok(t, err)
	same(t, "path", "u1 v2", idsOf(path))
}

// Entries and leaf of one transaction belong together.
func TestMoa_Tree_Snapshot(t *testing.T) {
	a := open(t, nil)
	s := treeSession(t, a)
	view(t, a, func(rx *query.Rx) error {
		if _, err := rx.Session(t.Context(), s.Key()); err != nil {
			t.Fatal(err) // the first question is of the instant
		}
		appendTo(t, s, userMessage("meanwhile"))
		info, err := rx.Session(t.Context(), s.Key())
		ok(t, err)
		var last query.Entry
		for e, err := range rx.Entries(t.Context(), s.Key(), nil) {
			ok(t, err)
			last = e
		}
		if info.LeafID != "v2" || last.ID != "v2" || info.Entries != 4 {
			t.Errorf("leaf %s, last %s", info.LeafID, last.ID)
		}
		return nil
	})
}
