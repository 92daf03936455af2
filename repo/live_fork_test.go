package repo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// refs returns the entries of a session by their ids.
func refs(t *testing.T, a *repo.Archive, session query.Key) map[string]query.Ref {
	t.Helper()
	out := map[string]query.Ref{}
	err := a.View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), session, nil) {
			if err != nil {
				return err
			}
			if e.Kind == query.KindEntry {
				out[e.ID] = e.Ref
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// entryIDs returns the ids of a session's entries in file order.
func entryIDs(t *testing.T, s *repo.Session) string {
	t.Helper()
	var ids []string
	err := s.Archive().View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), s.Key(), nil) {
			if err != nil {
				return err
			}
			if e.Kind == query.KindEntry {
				ids = append(ids, e.ID)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(ids, " ")
}

func TestFork(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, &repo.CreateOptions{Metadata: map[string]any{"title": "one"}})
	appendTo(t, s, userMessage("one").WithID("a"), reply("two").WithID("b"), userMessage("left").WithID("c"))
	if err := s.Branch(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, repo.Label("a", "mark").WithID("d"), userMessage("right").WithID("e"))
	at := refs(t, a, s.Key())
	for name, c := range map[string]struct {
		opts *repo.ForkOptions
		want string
		cwd  string
	}{
		"whole":           {nil, "a b c d e", "/work"},
		"elsewhere":       {&repo.ForkOptions{CWD: "/else"}, "a b c d e", "/else"},
		"up to a tip":     {&repo.ForkOptions{UpTo: at["e"]}, "a b d e", "/work"},
		"before an entry": {&repo.ForkOptions{Before: at["c"]}, "a b", "/work"},
		"before a root":   {&repo.ForkOptions{Before: at["a"]}, "", "/work"},
	} {
		t.Run(name, func(t *testing.T) {
			fork, err := a.Fork(t.Context(), s.Key(), c.opts)
			if err != nil {
				t.Fatal(err)
			}
			info, err := fork.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !info.Native || info.ParentSession != s.ID() || info.CWD != c.cwd || fork.CWD() != c.cwd || info.Leaf != fork.Leaf() {
				t.Errorf("info %+v", info)
			}
			if got := entryIDs(t, fork); got != c.want {
				t.Errorf("entries %q, not %q", got, c.want)
			}
			if metadata, err := fork.Metadata(t.Context()); err != nil || string(metadata["title"]) != `"one"` {
				t.Errorf("metadata %v, %v", metadata, err)
			}
			appendTo(t, fork, userMessage("goes on"))
		})
	}
	for name, c := range map[string]struct {
		opts *repo.ForkOptions
		want error
	}{
		"an entry of nothing":         {&repo.ForkOptions{UpTo: query.MakeRef(s.Key(), 999)}, repo.ErrNotFound},
		"an entry of another session": {&repo.ForkOptions{Before: query.MakeRef(s.Key()+1, 1)}, repo.ErrNotFound},
		"the header":                  {&repo.ForkOptions{UpTo: query.MakeRef(s.Key(), 0)}, repo.ErrNotFound},
		"a bad id":                    {&repo.ForkOptions{ID: "../x"}, repo.ErrInvalidID},
		"a taken id":                  {&repo.ForkOptions{ID: s.ID()}, repo.ErrExists},
	} {
		if _, err := a.Fork(t.Context(), s.Key(), c.opts); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.Fork(t.Context(), 999, nil); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("fork of nothing: %v", err)
	}
}

// A fork has its leaf where branch has moved it in the other, also before the first entry.
func TestForkMovedLeaf(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(t, s, userMessage("one").WithID("a"), reply("two").WithID("b"))
	for _, to := range []string{"a", ""} {
		if err := s.Branch(t.Context(), to); err != nil {
			t.Fatal(err)
		}
		fork, err := a.Fork(t.Context(), s.Key(), nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := fork.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.LeafID != to || info.Leaf != fork.Leaf() || info.Entries != 2 {
			t.Errorf("a fork with the leaf at %q: %+v", to, info)
		}
		ids := appendTo(t, fork, userMessage("three"))
		path, err := fork.Path(t.Context())
		if err != nil || path[len(path)-1].ID != ids[0] || path[len(path)-1].ParentID != to {
			t.Errorf("it goes on at %+v, %v", path, err)
		}
	}
}

// Every conformance session can be forked and goes on, what it has for a tree, and its
// paths can be extracted; the checks at the end of the test look at the rows.
func TestForkConformance(t *testing.T) {
	a := open(t, nil)
	dir := t.TempDir()
	for name, text := range conformance(t) {
		write(t, text, dir, name)
	}
	importPaths(t, a, dir)
	for _, source := range sessions(t, a) {
		fork, err := a.Fork(t.Context(), source.Key, nil)
		if err != nil {
			t.Errorf("%s: %v", source.Path, err)
			continue
		}
		info, err := fork.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.Format != 3 || info.Entries != source.Entries || info.Tips != source.Tips || info.Problems != 0 {
			t.Errorf("%s: fork %+v of %+v", source.Path, info, source)
		}
		appendTo(t, fork, userMessage("goes on"), reply("yes"), repo.Compaction("sum", "", 1, nil))
		if source.Leaf == 0 {
			continue
		}
		extract, err := a.Extract(t.Context(), source.Leaf, nil)
		if err != nil {
			t.Errorf("%s: %v", source.Path, err)
			continue
		}
		if path, err := extract.Path(t.Context()); err != nil || len(path) == 0 {
			t.Errorf("%s: an extract with a path of %d, %v", source.Path, len(path), err)
		}
		appendTo(t, extract, userMessage("goes on"))
	}
}

// A version 1 file becomes version 3, with the ids that it has in the archive.
func TestForkUpgrades(t *testing.T) {
	a := open(t, nil)
	path := write(t, `{"type":"session","id":"old","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/work"}
{"type":"message","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"hookMessage","content":"two"}}
{"type":"compaction","timestamp":"2026-01-01T00:00:03.000Z","summary":"s","firstKeptEntryIndex":2,"tokensBefore":1}
`, t.TempDir(), "old.jsonl")
	importPaths(t, a, path)
	old := bySource(t, a, path)
	whole, err := a.Fork(t.Context(), old.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	upTo, err := a.Fork(t.Context(), old.Key, &repo.ForkOptions{UpTo: old.Leaf})
	if err != nil {
		t.Fatal(err)
	}
	extract, err := a.Extract(t.Context(), old.Leaf, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(exported(t, a, whole.Key()), "\n")
	for _, other := range []*repo.Session{upTo, extract} {
		if _, got, _ := strings.Cut(exported(t, a, other.Key()), "\n"); got != want {
			t.Errorf("a fork of the path\n%s\nof the whole\n%s", got, want)
		}
	}
	if got := contextOf(t, whole); got != "compactionSummary custom" {
		t.Errorf("context: %s", got)
	}
	if ids := strings.Fields(entryIDs(t, whole)); !strings.Contains(want, fmt.Sprintf(`"firstKeptEntryId":%q`, ids[1])) {
		t.Errorf("the compaction keeps something else: %s", want)
	}
}

func TestExtract(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(
		t, s, userMessage("one").WithID("a"), repo.Label("a", "first").WithID("l1"), reply("two").WithID("b"),
		repo.Compaction("sum", "l1", 1, nil).WithID("c"), userMessage("three").WithID("d"), repo.Label("b", "second").WithID("l2"),
		repo.ClearLabel("a").WithID("l3"), repo.Label("a", "again").WithID("l4"), repo.Label("d", "gone").WithID("l5"), repo.Label("d", "").WithID("l6"),
	)
	at := refs(t, a, s.Key())
	extract, err := a.Extract(t.Context(), at["d"], nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := entryIDs(t, extract); !strings.HasPrefix(got, "a b c d ") || len(strings.Fields(got)) != 6 {
		t.Errorf("entries %q", got)
	}
	text := exported(t, a, extract.Key())
	if !strings.Contains(text, `"firstKeptEntryId":"b"`) {
		t.Errorf("the compaction keeps from elsewhere: %s", text)
	}
	labels, err := extract.Labels(t.Context())
	if err != nil || len(labels) != 2 || labels[0].Text != "second" || labels[1].Text != "again" {
		t.Errorf("labels %v, %v", labels, err)
	}
	if _, err := a.Extract(t.Context(), query.MakeRef(s.Key(), 0), nil); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("extract of a header: %v", err)
	}
}
