package query_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// writeAt writes a file where it is to be, and the folders above it.
func writeAt(t testing.TB, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	a := openArchive(t)
	dir := t.TempDir()
	body := func(n int, text string) string { return said("user", "m", "", n, text) }
	importFiles(t, a, dir, map[string]string{
		"1.jsonl":    head("alpha-1", "/a", 1) + body(10, "one"),
		"2.jsonl":    head("alpha-2", "/a", 2) + body(20, "two"),
		"3.jsonl":    head("beta", "/a", 3) + body(30, "three"),
		"4.jsonl":    head("beta", "/a", 4) + body(40, "three in another file"),
		"5.jsonl":    head("gamma", "/a", 5) + body(50, "old version"),
		"6.jsonl":    head("last", "/a", 6) + body(60, "an id of ill will"),
		"7.jsonl":    head("#9", "/a", 7) + body(70, "another"),
		"8_%.jsonl":  head("wild%card", "/a", 8) + body(75, "wild"),
		"gone.jsonl": head("delta", "/a", 9) + body(90, "gone soon"),
	})
	writeAt(t, filepath.Join(dir, "5.jsonl"), head("gamma", "/a", 5)+body(55, "new version"))
	if err := os.Remove(filepath.Join(dir, "gone.jsonl")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Sync(t.Context(), []string{dir}, nil); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ spec, want string }{
		{"alpha-1", "alpha-1 one live"},
		{"alpha-", "ambiguous: alpha-2 alpha-1"},
		{"a", "ambiguous: alpha-2 alpha-1"},
		{"beta", "ambiguous: beta beta"},
		{"be", "ambiguous: beta beta"},
		{"gamma", "gamma new version live"},
		{"g", "gamma new version live"},
		{"#5", "gamma old version superseded"},
		{"delta", "delta gone soon missing"},
		{"last", "wild%card wild live"},
		{"las", "last an id of ill will live"},
		{"#9", "delta gone soon missing"},
		{"#", "#9 another live"},
		{filepath.Join(dir, "3.jsonl"), "beta three live"},
		{filepath.Join(dir, "5.jsonl"), "gamma new version live"},
		{filepath.Join(dir, "gone.jsonl"), "delta gone soon missing"},
		{"wild%", "wild%card wild live"},
		{"%", "not found"},
		{"alpha_1", "not found"},
		{"#0", "not found"},
		{"#99", "not found"},
		{"", "not found"},
		{"\xff", "not found"},
		{"zzz", "not found"},
	}
	for _, test := range tests {
		t.Run(test.spec, func(t *testing.T) {
			if got := found(t, a, test.spec); got != test.want {
				t.Errorf("Find(%q): %s, want %s", test.spec, got, test.want)
			}
		})
	}
}

// found says in words what Find gives.
func found(t *testing.T, a *repo.Archive, spec string) (words string) {
	t.Helper()
	view(t, a, func(rx *query.Rx) error {
		s, err := rx.Find(t.Context(), spec)
		if ambiguous := new(query.AmbiguousError); errors.As(err, &ambiguous) {
			if !errors.Is(err, query.ErrAmbiguous) || ambiguous.More {
				t.Errorf("%v, more: %v", err, ambiguous.More)
			}
			words = "ambiguous: " + ids(ambiguous.Candidates)
			return nil
		}
		if errors.Is(err, query.ErrNotFound) {
			words = "not found"
			return nil
		}
		words = fmt.Sprintf("%s %s %s", s.ID, s.FirstMessage, s.State)
		return err
	})
	return words
}

func TestFindEntry(t *testing.T) {
	a := openArchive(t)
	importFiles(t, a, t.TempDir(), map[string]string{
		"a.jsonl": head("a", "/", 1) +
			said("user", "m1", "", 1, "one") +
			said("user", "m2", "m1", 2, "two")[:40] + "\n" +
			said("user", "x", "m1", 4, "x")[:len(said("user", "x", "m1", 4, "x"))-1] + said("user", "y", "x", 5, "y") +
			said("user", "m1", "y", 6, "the same id") +
			said("user", ":2", "m1", 7, "an id like a line"),
		"b.jsonl": head("b", "/", 1) + said("user", "only-b", "", 1, "one"),
	})
	tests := []struct {
		spec string
		want string
	}{
		{":1", "1"},
		{":2", "2"},
		{":3", "3"},
		{":4", "4"},
		{":4.1", "4.1"},
		{":4.2", "4.2"},
		{":4.3", "not found"},
		{":5", "5"},
		{":6", "6"},
		{":7", "not found"},
		{":0", "not found"},
		{":5.1", "not found"},
		{":4.0", "not found"},
		{":-1", "not found"},
		{":99999999999", "not found"},
		{"m1", "5"},
		{"y", "4.2"},
		{"only-b", "not found"},
		{"", "not found"},
	}
	view(t, a, func(rx *query.Rx) error {
		s, err := rx.Find(t.Context(), "a")
		if err != nil {
			return err
		}
		for _, test := range tests {
			got := "not found"
			ref, err := rx.FindEntry(t.Context(), s.Key, test.spec)
			if err == nil {
				e, err := rx.Entry(t.Context(), ref)
				if err != nil {
					return err
				}
				got = fmt.Sprint(e.Line.Line)
				if e.Line.Part > 0 {
					got += fmt.Sprint(".", e.Line.Part)
				}
			} else if !errors.Is(err, query.ErrNotFound) {
				return err
			}
			if got != test.want {
				t.Errorf("FindEntry(%q) is line %s, want %s", test.spec, got, test.want)
			}
		}
		return nil
	})
}
