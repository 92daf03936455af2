package query_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// line returns a line of a session: an object of the given members behind its type, id,
// parent and a time that is n seconds after the start of 2026.
func line(typ, id, parent string, n int, members string) string {
	at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
	link := "null"
	if parent != "" {
		link = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":%q,"id":%q,"parentId":%s,"timestamp":%q,%s}`+"\n", typ, id, link, at, members)
}

// head returns the first line of a session.
func head(id, cwd string, n int) string {
	at := time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf(`{"type":"session","version":3,"id":%q,"timestamp":%q,"cwd":%q}`+"\n", id, at, cwd)
}

// said returns a message of a user or an assistant.
func said(role, id, parent string, n int, text string) string {
	return line("message", id, parent, n, fmt.Sprintf(`"message":{"role":%q,"content":[{"type":"text","text":%q}]}`, role, text))
}

// importFiles writes files in a folder, and imports them in the order of their names.
func importFiles(t testing.TB, a *repo.Archive, dir string, files map[string]string) {
	t.Helper()
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		path := writeAt(t, filepath.Join(dir, name), files[name])
		result, err := a.Import(t.Context(), []string{path}, nil)
		if err == nil {
			err = result.IndexErr
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func view(t testing.TB, a *repo.Archive, f func(rx *query.Rx) error) {
	t.Helper()
	if err := a.View(t.Context(), f); err != nil {
		t.Fatal(err)
	}
}

func list(t testing.TB, a *repo.Archive, opts *query.ListOptions) ([]query.Session, string) {
	t.Helper()
	var sessions []query.Session
	var next string
	view(t, a, func(rx *query.Rx) (err error) {
		sessions, next, err = rx.List(t.Context(), opts)
		return err
	})
	return sessions, next
}

func ids(sessions []query.Session) string {
	var list []string
	for _, s := range sessions {
		list = append(list, s.ID)
	}
	return strings.Join(list, " ")
}

// listed is an archive of five sessions, an empty file among their sources.
func listed(t testing.TB) *repo.Archive {
	a := openArchive(t)
	use := func(n int, model string, cost float64) string {
		return line("message", "u", "m", n, fmt.Sprintf(`"message":{"role":"assistant","provider":"acme","model":%q,"timestamp":%d,"content":[{"type":"text","text":"done"}],`+
			`"usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"total":%v}}}`, model, time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).UnixMilli(), cost))
	}
	name := func(n int, parent, name string) string {
		return line("session_info", "n", parent, n, fmt.Sprintf(`"name":%q`, name))
	}
	importFiles(t, a, t.TempDir(), map[string]string{
		"a.jsonl": head("aa", "/home/dev/one", 50) + said("user", "m", "", 100, "first") + use(500, "Big-1", 0.5),
		"b.jsonl": head("ab", "/home/dev/one/sub", 40) + said("user", "m", "", 100, "second") + name(150, "m", "Größe ändern") + use(400, "small-1", 2),
		"c.jsonl": head("ba", "/home/dev/one-more", 30) + said("user", "m", "", 100, strings.Repeat("x", 2000)) + use(300, "small-1", 1),
		"d.jsonl": head("bb", `C:\work\one`, 20) + said("user", "m", "", 100, "fourth") + use(200, "big-2", 0) + name(201, "u", "plain name"),
		"e.jsonl": `{"type":"session","version":3,"id":"ca","timestamp":"bad"}` + "\n" + said("user", "m", "", 100, "fifth") + use(100, "big-2", 0),
		"f.jsonl": "",
	})
	return a
}

func TestList(t *testing.T) {
	a := listed(t)
	at := func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) }
	tests := []struct {
		name string
		opts *query.ListOptions
		want string
	}{
		{"all", nil, "aa ab ba bb ca"},
		{"folder", &query.ListOptions{CWD: "/home/dev/one"}, "aa ab"},
		{"folder with a slash", &query.ListOptions{CWD: "/home/dev/one/"}, "aa ab"},
		{"root", &query.ListOptions{CWD: "/"}, "aa ab ba"},
		{"folder of Windows", &query.ListOptions{CWD: `C:\work`}, "bb"},
		{"since", &query.ListOptions{Since: at(300)}, "aa ab ba"},
		{"since a little later", &query.ListOptions{Since: at(300).Add(time.Microsecond)}, "aa ab"},
		{"until", &query.ListOptions{Until: at(300)}, "bb ca"},
		{"name", &query.ListOptions{Name: "NAME"}, "bb"},
		{"name beyond ASCII", &query.ListOptions{Name: "ÄNDERN"}, "ab"},
		{"no such name", &query.ListOptions{Name: "%"}, ""},
		{"model", &query.ListOptions{Model: "acme/BIG"}, "aa bb ca"},
		{"created", &query.ListOptions{Sort: query.SortCreated}, "aa ab ba bb ca"},
		{"size", &query.ListOptions{Sort: query.SortSize, Limit: 1}, "ba"},
		{"cost", &query.ListOptions{Sort: query.SortCost}, "ab ba aa ca bb"},
		{"limit", &query.ListOptions{Limit: 2}, "aa ab"},
		{"archived", &query.ListOptions{Archived: true}, "aa ab ba bb ca"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			sessions, _ := list(t, a, test.opts)
			if got := ids(sessions); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestListPages(t *testing.T) {
	a := listed(t)
	for _, sort := range []query.Sort{query.SortModified, query.SortCreated, query.SortSize, query.SortCost} {
		for _, archived := range []bool{false, true} {
			whole, next := list(t, a, &query.ListOptions{Sort: sort, All: true, Archived: archived})
			if next != "" || len(whole) != 5 {
				t.Fatalf("%s: %d sessions, cursor %q", sort, len(whole), next)
			}
			for limit := 1; limit <= 5; limit++ {
				var pages []query.Session
				opts := query.ListOptions{Sort: sort, Limit: limit, Archived: archived}
				for {
					page, next := list(t, a, &opts)
					pages = append(pages, page...)
					if opts.After = next; next == "" {
						break
					}
				}
				if ids(pages) != ids(whole) {
					t.Errorf("%s, pages of %d: %s, want %s", sort, limit, ids(pages), ids(whole))
				}
			}
		}
	}
}

func TestListBadCursor(t *testing.T) {
	a := listed(t)
	_, cursor := list(t, a, &query.ListOptions{Limit: 1})
	for _, opts := range []*query.ListOptions{
		{After: "nonsense"},
		{After: cursor[1:]},
		{After: cursor + "A"},
		{After: cursor, Sort: query.SortCreated},
	} {
		view(t, a, func(rx *query.Rx) error {
			if _, _, err := rx.List(t.Context(), opts); !errors.Is(err, query.ErrBadCursor) {
				t.Errorf("%+v: %v", opts, err)
			}
			return nil
		})
	}
}

func TestSuccessor(t *testing.T) {
	for prefix, want := range map[string]string{"": "", "a": "b", "a/": "a0", "a\xff": "b", "\xff\xff": ""} {
		if got := query.Successor(prefix); got != want {
			t.Errorf("Successor(%q) = %q, want %q", prefix, got, want)
		}
	}
}
