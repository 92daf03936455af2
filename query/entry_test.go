package query_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
)

const mixed = `{"type":"session","version":3,"id":"s"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x"}}

torn{"type":"label","id":"b","parentId":"a","timestamp":1,"targetId":"a","label":"here"}{"type":"custom","id":"c","parentId":"b","timestamp":2,"customType":"x"}
5
{"type":"message","id":"a","parentId":"c","timestamp":"never","message":{"role":"assistant","content":[]}}
{"type":"custom","id":"d","parentId":"gone","timestamp":3,"customType":"y"}
`

func TestEntries(t *testing.T) {
	tests := map[string]struct {
		opts query.EntriesOptions
		want string
	}{
		"all":               {query.EntriesOptions{}, "1 session, 2 message, 3 blank, 4 malformed, 4.1 label, 4.2 custom, 5 json, 6 message, 7 custom"},
		"messages":          {query.EntriesOptions{Types: []string{"message"}}, "2 message, 6 message"},
		"one type":          {query.EntriesOptions{Types: []string{"custom"}}, "4.2 custom, 7 custom"},
		"types and kinds":   {query.EntriesOptions{Types: []string{"label", "blank", "session"}}, "1 session, 3 blank, 4.1 label"},
		"one kind":          {query.EntriesOptions{Types: []string{"malformed"}}, "4 malformed"},
		"no such type":      {query.EntriesOptions{Types: []string{"x"}}, ""},
		"a branch":          {query.EntriesOptions{Leaf: query.MakeRef(1, 7)}, "2 message, 4.1 label, 4.2 custom, 6 message"},
		"types of a branch": {query.EntriesOptions{Leaf: query.MakeRef(1, 7), Types: []string{"label", "custom"}}, "4.1 label, 4.2 custom"},
	}
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				var got []string
				for e, err := range rx.Entries(t.Context(), key, &test.opts) {
					if err != nil {
						t.Fatal(err)
					}
					if e.Recovered != (e.Line.Part > 0) {
						t.Errorf("line %s: recovered %v", show(e.Line), e.Recovered)
					}
					got = append(got, show(e.Line)+" "+e.Word())
				}
				if diff := cmp.Diff(test.want, strings.Join(got, ", ")); diff != "" {
					t.Error(diff)
				}
			})
		}
	})
}

func TestEntriesEndEarly(t *testing.T) {
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		for range 100 {
			for e, err := range rx.Entries(t.Context(), key, nil) {
				if err != nil || e.Line.Line != 1 {
					t.Fatal(e, err)
				}
				break
			}
			for _, err := range rx.Tree(t.Context(), key) {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	})
}

func TestEntriesOfOtherSession(t *testing.T) {
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		for _, err := range rx.Entries(t.Context(), key, &query.EntriesOptions{Leaf: query.MakeRef(key+1, 1)}) {
			if !errors.Is(err, query.ErrNotFound) {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestEntryNames(t *testing.T) {
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		e, err := rx.EntryByID(t.Context(), key, "a")
		if err != nil {
			t.Fatal(err)
		}
		// The last line with the id, whose parent is a recovered entry.
		want := query.Entry{
			Ref: query.MakeRef(key, 7), Line: query.LineNumber{Line: 6}, Kind: query.KindEntry, Type: "message", Role: "assistant",
			ID: "a", HasID: true, Parent: query.MakeRef(key, 5), ParentID: "c", ParentLine: query.LineNumber{Line: 4, Part: 2}, Size: e.Size,
		}
		if diff := cmp.Diff(want, e); diff != "" {
			t.Error(diff)
		}
		for _, line := range []query.LineNumber{{Line: 1}, {Line: 2}, {Line: 4}, {Line: 4, Part: 1}, {Line: 4, Part: 2}, {Line: 5}, {Line: 7}} {
			e, err := rx.EntryAt(t.Context(), key, line)
			if err != nil || e.Line != line {
				t.Errorf("line %s: %s, %v", show(line), show(e.Line), err)
			}
		}
		for _, line := range []query.LineNumber{{}, {Line: -1}, {Line: 8}, {Line: 4, Part: 3}, {Line: 2, Part: 1}, {Line: 1 << 40}, {Line: 7, Part: 1 << 40}} {
			if _, err := rx.EntryAt(t.Context(), key, line); !errors.Is(err, query.ErrNotFound) {
				t.Errorf("line %s: error %v", show(line), err)
			}
		}
		if _, err := rx.EntryByID(t.Context(), key, "gone"); !errors.Is(err, query.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		if _, err := rx.Entry(t.Context(), query.MakeRef(key, 100)); !errors.Is(err, query.ErrNotFound) {
			t.Errorf("error %v", err)
		}
		orphan, err := rx.EntryAt(t.Context(), key, query.LineNumber{Line: 7})
		if err != nil || orphan.Parent != 0 || orphan.ParentID != "gone" || !orphan.Top {
			t.Errorf("orphan %+v, %v", orphan, err)
		}
		if want := time.UnixMilli(3).UTC(); orphan.Timestamp != want {
			t.Errorf("time %v", orphan.Timestamp)
		}
	})
}

func TestRaw(t *testing.T) {
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		lines := strings.Split(mixed, "\n")
		for e, err := range rx.Entries(t.Context(), key, nil) {
			if err != nil {
				t.Fatal(err)
			}
			want := lines[e.Line.Line-1]
			switch e.Line.Part {
			case 1:
				want = want[strings.Index(want, "{") : strings.Index(want, "}")+1]
			case 2:
				want = want[strings.Index(want, "}")+1:]
			}
			got, err := rx.Raw(t.Context(), e.Ref)
			if err != nil || string(got) != want {
				t.Errorf("line %s: %q instead of %q, %v", show(e.Line), got, want, err)
			}
		}
		if _, err := rx.Raw(t.Context(), query.MakeRef(key, 100)); !errors.Is(err, query.ErrNotFound) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLatestCompaction(t *testing.T) {
	viewSession(t, `{"type":"session","version":3,"id":"s"}
{"type":"custom","id":"a","parentId":null}
{"type":"compaction","id":"b","parentId":"a"}
{"type":"custom","id":"c","parentId":"b"}
{"type":"custom","id":"d","parentId":"f"}
{"type":"compaction","id":"f","parentId":"a"}
`, func(rx *query.Rx, key query.Key) {
		for leaf, want := range map[string]string{"a": "", "b": "b", "c": "b", "d": "f", "f": "f"} {
			e, err := rx.EntryByID(t.Context(), key, leaf)
			if err != nil {
				t.Fatal(err)
			}
			compaction, err := rx.LatestCompaction(t.Context(), e.Ref)
			if compaction.ID != want || (want == "") != errors.Is(err, query.ErrNotFound) {
				t.Errorf("%s: %q, %v", leaf, compaction.ID, err)
			}
		}
	})
}

func TestLinesThatAreNoEntriesHaveNoBranch(t *testing.T) {
	viewSession(t, mixed, func(rx *query.Rx, key query.Key) {
		for _, seq := range []int64{0, 2, 3, 6, 100} {
			ref := query.MakeRef(key, seq)
			if _, err := rx.Branch(t.Context(), ref); !errors.Is(err, query.ErrNotFound) {
				t.Errorf("row %d: error %v", seq, err)
			}
			if _, err := rx.Context(t.Context(), ref); !errors.Is(err, query.ErrNotFound) {
				t.Errorf("row %d: error %v", seq, err)
			}
		}
	})
}
