package repo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pidb/query"
	"pidb/repo"
)

// flips are ways to damage a file at random.
var flips = []struct {
	name  string
	spoil func(random *rand.Rand, file []byte) []byte
}{
	{"a bit", func(random *rand.Rand, file []byte) []byte {
		file[random.IntN(len(file))] ^= 1 << random.IntN(8)
		return file
	}},
	{"bits", func(random *rand.Rand, file []byte) []byte {
		for range 2 + random.IntN(60) {
			file[random.IntN(len(file))] ^= 1 << random.IntN(8)
		}
		return file
	}},
	{"a bit near the start of a page", func(random *rand.Rand, file []byte) []byte {
		// Headers of pages and the places of their cells.
		at := random.IntN(len(file)/pageBytes)*pageBytes + random.IntN(200)
		file[at] ^= 1 << random.IntN(8)
		return file
	}},
	{"a sector of zeros", func(random *rand.Rand, file []byte) []byte {
		at := random.IntN(len(file)/512) * 512
		clear(file[at : at+512])
		return file
	}},
	{"a sector of noise", func(random *rand.Rand, file []byte) []byte {
		at := random.IntN(len(file)/512) * 512
		for i := range 512 {
			file[at+i] = byte(random.Uint32())
		}
		return file
	}},
	{"two pages swapped", func(random *rand.Rand, file []byte) []byte {
		a, b := random.IntN(len(file)/pageBytes)*pageBytes, random.IntN(len(file)/pageBytes)*pageBytes
		page := bytes.Clone(file[a : a+pageBytes])
		copy(file[a:a+pageBytes], file[b:b+pageBytes])
		copy(file[b:b+pageBytes], page)
		return file
	}},
	{"a cut", func(random *rand.Rand, file []byte) []byte { return file[:random.IntN(len(file))] }},
	{"a cut at a page", func(random *rand.Rand, file []byte) []byte {
		return file[:random.IntN(len(file)/pageBytes)*pageBytes]
	}},
}

const pageBytes = 8192

// spoiltSessions makes an archive in which every kind of row is, closes it, and returns
// the bytes of its sessions.
func spoiltSessions(t *testing.T, path string) map[query.Key]string {
	t.Helper()
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	dir := filepath.Join(filepath.Dir(path), "sources")
	random := rand.New(rand.NewPCG(1, 1))
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprint(&lines, entry(fmt.Sprintf("e%d", i), "", fmt.Sprintf("needle %d %x", i, random.Uint64())))
	}
	for i, text := range []string{user1 + reply1, lines.String(), reply1 + lines.String() + user2, user1 + "{broken\n\n" + user2[:40], lines.String() + reply1[:90]} {
		write(t, strings.Replace(header, "s-1", fmt.Sprint("s-", i), 1)+text, dir, fmt.Sprint(i, ".jsonl"))
	}
	importPaths(t, a, dir)
	write(t, strings.Replace(header, "s-1", "s-0", 1)+user2, dir, "0.jsonl") // a version
	importPaths(t, a, dir)
	s := create(t, a, &repo.CreateOptions{Metadata: map[string]any{"k": "v"}})
	for i := range 30 {
		appendTo(t, s, said(fmt.Sprint("needle of the live session ", i)))
	}
	if _, err := a.Fork(t.Context(), s.Key(), nil); err != nil {
		t.Fatal(err)
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := map[query.Key]string{}
	for _, s := range sessions(t, a) {
		want[s.Key] = exported(t, a, s.Key)
	}
	return want
}

// TestFlips damages the archive at random: whatever is exported without an error is right,
// and nothing panics. PIDB_FLIPS says how many cases of each kind, PIDB_SEED which ones.
func TestFlips(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from.db")
	want := spoiltSessions(t, from)
	whole, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(number(t, "PIDB_SEED", 1))
	n := number(t, "PIDB_FLIPS", 3)
	for i, flip := range flips {
		t.Run(flip.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			counts := map[string]int{}
			for c := range n {
				path := write(t, string(flip.spoil(random, bytes.Clone(whole))), dir, "case", "pidb.db")
				readSpoilt(t, path, want, counts)
				if err := os.RemoveAll(filepath.Join(dir, "case")); err != nil {
					t.Fatal(err)
				}
				if t.Failed() {
					t.Fatalf("case %d, seed %d", c, seed)
				}
			}
			t.Log(counts)
		})
	}
}

// readSpoilt asks a damaged archive for all that it has.
func readSpoilt(t *testing.T, path string, want map[query.Key]string, counts map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := repo.Open(ctx, path, nil)
	if err != nil {
		if !isNamed(err) || !strings.Contains(err.Error(), path) {
			t.Errorf("open: %v", err)
		}
		counts["not opened"]++
		return
	}
	defer a.Close()
	for key, text := range want {
		var got bytes.Buffer
		err := a.Export(ctx, key, &got)
		switch {
		case err == nil && got.String() != text:
			t.Errorf("session #%d is exported with other bytes and no error", key)
		case err == nil:
			counts["right"]++
		case !isNamed(err):
			t.Errorf("export of session #%d: %v", key, err)
		default:
			counts["refused"]++
		}
	}
	result, err := a.ExportAll(ctx, filepath.Join(filepath.Dir(path), "all"), nil)
	if err != nil && !isNamed(err) {
		t.Errorf("export of all: %v", err)
	}
	if result != nil {
		for _, failure := range result.Failed {
			if !isNamed(failure.Err) {
				t.Errorf("export of all: %s: %v", failure.Path, failure.Err)
			}
		}
	}
	known := map[string]bool{}
	for _, text := range want {
		known[text] = true
	}
	err = filepath.WalkDir(filepath.Join(filepath.Dir(path), "all"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err == nil && !known[string(text)] {
			t.Errorf("%s is written with the bytes of no session", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for name, call := range map[string]func() error{
		"list": func() error {
			return a.View(ctx, func(rx *query.Rx) error {
				list, _, err := rx.List(ctx, &query.ListOptions{Archived: true, All: true})
				for i := range list {
					for node, err := range rx.Tree(ctx, list[i].Key) {
						if err != nil {
							return err
						}
						if _, err := rx.Raw(ctx, node.Ref); err != nil && !isNamed(err) {
							return err
						}
					}
					if list[i].Leaf != 0 {
						if _, err := rx.Context(ctx, list[i].Leaf); err != nil {
							return err
						}
					}
				}
				return err
			})
		},
		"search": func() error {
			if err := a.UpdateIndex(ctx, nil); err != nil {
				return err
			}
			return a.View(ctx, func(rx *query.Rx) error {
				_, err := rx.Search(ctx, "needle", nil)
				return err
			})
		},
		"verify": func() error { _, err := a.Verify(ctx, nil, nil); return err },
		"check":  func() error { _, err := a.Check(ctx); return err },
		"stats": func() error {
			return a.View(ctx, func(rx *query.Rx) error { _, err := rx.Stats(ctx, nil); return err })
		},
		"append": func() error {
			s, err := a.Create(ctx, "", nil)
			if err != nil {
				return err
			}
			_, err = s.Append(ctx, said("more"))
			return err
		},
	} {
		if err := call(); err != nil {
			counts[name+" refused"]++
		}
	}
}

// TestIndexFlips damages the search index at random: an update and a search heal it, or do
// not see it, and then a repair does. PIDB_FLIPS says how many cases of each kind,
// PIDB_SEED which ones.
func TestIndexFlips(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	spoiltSessions(t, path)
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	indexPath := strings.TrimSuffix(path, ".db") + ".index.db"
	whole, err := os.ReadFile(indexPath)
	if err != nil {
		t.Fatal(err)
	}
	queries := []string{"needle", "live session", "first question", "needle 17"}
	counts := map[string]int{}
	ask := func(a *repo.Archive) (answer string, err error) {
		err = a.View(t.Context(), func(rx *query.Rx) error {
			for _, q := range queries {
				result, err := rx.Search(t.Context(), q, &query.SearchOptions{All: true})
				if err != nil {
					return err
				}
				for _, hit := range result.Hits {
					answer += fmt.Sprint(hit.Ref, " ")
				}
			}
			return nil
		})
		return answer, err
	}
	var want string
	seed := uint64(number(t, "PIDB_SEED", 1))
	for i, flip := range flips {
		random := rand.New(rand.NewPCG(seed, uint64(100+i)))
		for c := range number(t, "PIDB_FLIPS", 3) {
			fault := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%s, case %d, seed %d: %s", flip.name, c, seed, fmt.Sprintf(format, args...))
			}
			write(t, string(archive), path)
			write(t, string(flip.spoil(random, bytes.Clone(whole))), indexPath)
			a, err := repo.Open(t.Context(), path, nil)
			if err != nil {
				fault("open: %v", err)
				continue
			}
			if want == "" {
				if _, err := a.RepairIndex(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if want, err = ask(a); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.UpdateIndex(t.Context(), nil); err != nil {
				fault("update: %v", err)
			}
			got, err := ask(a)
			switch {
			case err != nil:
				counts["search refused"]++
			case got != want:
				counts["search missed words"]++
			default:
				counts["search right"]++
			}
			renewed, repairErr := a.RepairIndex(t.Context(), nil)
			if repairErr != nil {
				fault("repair: %v", repairErr)
			}
			if renewed {
				counts["repaired"]++
			} else if err != nil {
				fault("search: %v, and a repair sees no damage", err)
			}
			if got, err := ask(a); err != nil || got != want {
				fault("search after the repair: %v, %d bytes of hits for %d", err, len(got), len(want))
			}
			checked, err := a.Check(t.Context())
			if err != nil || len(checked.Findings) > 0 {
				fault("check after the repair: %+v, %v", checked.Findings, err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log(counts)
}

// isNamed reports whether an error says that it is about damage.
func isNamed(err error) bool {
	for _, sentinel := range []error{repo.ErrDamaged, repo.ErrForeign, repo.ErrNewer, repo.ErrNotFound} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
