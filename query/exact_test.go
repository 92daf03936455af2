package query_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// spoken is an entry and what can be read in it.
type spoken struct {
	name string
	text []string
}

// readAll returns all entries of the sessions that a search looks at.
func readAll(t testing.TB, a *repo.Archive) []spoken {
	t.Helper()
	var list []spoken
	view(t, a, func(rx *query.Rx) error {
		sessions, _, err := rx.List(t.Context(), &query.ListOptions{All: true, Archived: true})
		if err != nil {
			return err
		}
		for _, s := range sessions {
			for e, err := range rx.Entries(t.Context(), s.Key, nil) {
				if err != nil {
					return err
				}
				if e.Kind != query.KindEntry || s.State == query.Superseded {
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
				entry := spoken{name: fmt.Sprint(e.ID, " ", e.Timestamp.UnixMilli())}
				for _, segment := range segments {
					if segment.Kind != jsonl.SegThinking {
						entry.text = append(entry.text, string(segment.Text))
					}
				}
				if len(entry.text) > 0 {
					list = append(list, entry)
				}
			}
		}
		return nil
	})
	return list
}

// TestSearchIsExact takes 200 substrings and 100 regular expressions from the text of
// sessions and compares what a search finds with a look at all of it. PIDB_CORPUS names
// a folder of sessions to be taken instead of those in testdata.
func TestSearchIsExact(t *testing.T) {
	folders := []string{"../testdata/search/sessions", "../testdata/sessions"}
	if dir := os.Getenv("PIDB_CORPUS"); dir != "" {
		folders = []string{dir}
	}
	a := openArchive(t)
	if _, err := a.Import(t.Context(), folders, nil); err != nil {
		t.Fatal(err)
	}
	entries := readAll(t, a)
	r := rand.New(rand.NewPCG(11, 12))
	narrowed, hits := 0, 0
	compare := func(text string, mode query.Mode, matches func(string) bool) {
		want := map[string]bool{}
		for _, entry := range entries {
			if slices.ContainsFunc(entry.text, matches) {
				want[entry.name] = true
			}
		}
		result := search(t, a, text, &query.SearchOptions{Mode: mode, All: true})
		got := map[string]bool{}
		for i := range result.Hits {
			got[fmt.Sprint(result.Hits[i].EntryID, " ", result.Hits[i].Timestamp.UnixMilli())] = true
		}
		for name := range want {
			if !got[name] {
				t.Errorf("%q (mode %d) does not find %s", text, mode, name)
			}
		}
		for name := range got {
			if !want[name] {
				t.Errorf("%q (mode %d) finds %s", text, mode, name)
			}
		}
		hits += len(want)
		if !result.Scanned {
			narrowed++
		}
	}
	for range 200 {
		part := piece(r, entries, 3+r.IntN(18))
		compare(part, query.Substring, func(text string) bool { return strings.Contains(text, part) })
	}
	for range 100 {
		expr := expression(r, entries)
		re := regexp.MustCompile("(?m)" + expr)
		compare(expr, query.Regexp, re.MatchString)
	}
	t.Logf("%d entries, %d hits, %d of 300 patterns were narrowed", len(entries), hits, narrowed)
	if hits < 300 || narrowed < 150 {
		t.Errorf("the patterns say little: %d hits, %d narrowed", hits, narrowed)
	}
}

// piece returns so many characters of what an entry says.
func piece(r *rand.Rand, entries []spoken, n int) string {
	entry := entries[r.IntN(len(entries))]
	runes := []rune(entry.text[r.IntN(len(entry.text))])
	if len(runes) <= n {
		return string(runes)
	}
	at := r.IntN(len(runes) - n)
	return string(runes[at : at+n])
}

// expression returns a regular expression that matches a piece of what an entry says.
func expression(r *rand.Rand, entries []spoken) string {
	var b strings.Builder
	if r.IntN(4) == 0 {
		b.WriteString("(?i)")
	}
	for _, c := range piece(r, entries, 6+r.IntN(12)) {
		switch {
		case r.IntN(8) == 0 && c != '\n':
			b.WriteString(".")
		case unicode.IsDigit(c) && r.IntN(2) == 0:
			b.WriteString(`[0-9]+`)
		case c == ' ':
			b.WriteString(`\s+`)
		case unicode.IsLower(c) && c < utf8.RuneSelf && r.IntN(10) == 0:
			b.WriteString("[a-z]")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if r.IntN(4) == 0 {
		b.WriteString("|" + regexp.QuoteMeta(piece(r, entries, 5+r.IntN(8))))
	}
	return b.String()
}
