package repo_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// wreckage is an archive to be damaged, and what was in it.
type wreckage struct {
	data   []byte
	pages  int
	bytes  map[query.Key]string // of each session
	native query.Key
}

const wreckPage = 8192

func newWreckage(t *testing.T) *wreckage {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	for i, lines := range []int{1, 3, 40, 200, 900, 2500} {
		var text strings.Builder
		text.WriteString(strings.Replace(header, "s-1", fmt.Sprint("s-", i), 1))
		for n := range lines {
			noise := make([]byte, 20+random.IntN(200))
			for i := range noise {
				noise[i] = byte(random.IntN(256))
			}
			fmt.Fprintf(&text, `{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"%d %x"}}`+"\n", n, n, noise)
		}
		file := write(t, text.String(), dir, "in", fmt.Sprint(i, ".jsonl"))
		importPaths(t, a, file)
		if i == 3 {
			write(t, strings.Replace(text.String(), "message", "notice", 1), dir, "in", "3.jsonl")
			importPaths(t, a, file)
		}
		if i == 1 {
			if _, err := a.Delete(t.Context(), bySource(t, a, file).Key); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, err := a.Create(t.Context(), "/work", &repo.CreateOptions{Metadata: map[string]any{"task": "T-1"}})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Append(t.Context(), userMessage("one"), userMessage("two"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Branch(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	w := &wreckage{bytes: map[query.Key]string{}, native: s.Key()}
	for _, s := range sessions(t, a) {
		w.bytes[s.Key] = exported(t, a, s.Key)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if w.data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	w.pages = len(w.data) / wreckPage
	return w
}

// salvaged brings out what is left of some bytes, and proves it. It returns nil where
// nothing of an archive was found.
func (w *wreckage) salvaged(t *testing.T, data []byte) *repo.SalvageResult {
	t.Helper()
	dir := t.TempDir()
	old := write(t, string(data), dir, "old.db")
	result, err := repo.Salvage(t.Context(), old, filepath.Join(dir, "new.db"), nil)
	if errors.Is(err, repo.ErrForeign) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if result.Sessions != result.Intact+result.Partial+result.Lost {
		t.Errorf("%+v: the counts do not add up", result)
	}
	if after, err := os.ReadFile(old); err != nil || !bytes.Equal(after, data) {
		t.Error("the damaged archive was written")
	}
	a := openAt(t, result.Path, nil)
	partial := map[query.Key]query.Key{}
	for _, d := range result.Damaged {
		if d.Saved != 0 && (len(d.Lost) > 0 || strings.Contains(d.Detail, "together")) {
			partial[d.Saved] = d.Session
		}
	}
	originals := map[string]bool{}
	for _, text := range w.bytes {
		originals[text] = true
	}
	for _, s := range sessions(t, a) {
		text := exported(t, a, s.Key)
		old, damaged := partial[s.Key]
		if !damaged {
			if !originals[text] {
				t.Errorf("session #%d is called intact and is not", s.Key)
			}
			continue
		}
		if !strings.Contains(text, "# pidb: ") || s.Problems == 0 {
			t.Errorf("session #%d is not marked", s.Key)
		}
		for i, segment := range segments(text) {
			if !strings.Contains(w.bytes[old], segment) {
				t.Errorf("session #%d, segment %d: not of the original: %.200q", s.Key, i, segment)
			}
		}
	}
	return result
}

// segments returns what stands between the marks of a salvaged session.
func segments(text string) []string {
	var out []string
	start, at := 0, 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		if strings.HasPrefix(line, "# pidb: ") {
			out = append(out, strings.TrimSuffix(text[start:at], "\n"))
			start = at + len(line)
		}
		at += len(line)
	}
	return append(out, text[start:])
}

// TestSalvageWhole brings all out of an archive that is not damaged.
func TestSalvageWhole(t *testing.T) {
	w := newWreckage(t)
	dir := t.TempDir()
	old := write(t, string(w.data), dir, "old.db")
	result, err := repo.Salvage(t.Context(), old, filepath.Join(dir, "new.db"), nil)
	if err != nil || result.Intact != len(w.bytes) || result.Sessions != result.Intact || len(result.Damaged) != 0 {
		t.Fatalf("%+v, %v: want %d intact", result, err, len(w.bytes))
	}
	a := openAt(t, result.Path, nil)
	natives, superseded := 0, 0
	for _, s := range sessions(t, a) {
		if s.State == query.Superseded {
			superseded++
		}
		if !s.Native {
			continue
		}
		natives++
		live, err := a.Session(t.Context(), s.Key)
		if err != nil {
			t.Fatal(err)
		}
		path, err := live.Path(t.Context())
		if err != nil || len(path) != 1 {
			t.Errorf("path to the leaf: %v, %v, want one entry", path, err)
		}
		metadata, err := live.Metadata(t.Context())
		if err != nil || string(metadata["task"]) != `"T-1"` {
			t.Errorf("metadata: %s, %v", metadata, err)
		}
	}
	if natives != 1 || superseded != 1 {
		t.Errorf("%d native, %d superseded, want one each", natives, superseded)
	}
	if _, err := repo.Salvage(t.Context(), old, result.Path, nil); !errors.Is(err, repo.ErrExists) {
		t.Errorf("again: %v, want ErrExists", err)
	}
	if _, err := repo.Salvage(t.Context(), filepath.Join(dir, "none.db"), filepath.Join(dir, "x.db"), nil); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("no archive: %v, want ErrNotFound", err)
	}
	if _, err := repo.Salvage(t.Context(), write(t, strings.Repeat("noise", 9000), dir, "noise"), filepath.Join(dir, "x.db"), nil); !errors.Is(err, repo.ErrForeign) {
		t.Errorf("noise: %v, want ErrForeign", err)
	}
}

// TestSalvageLog brings out what stands in the write-ahead log of a process that was killed.
func TestSalvageLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	at := t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		write(t, string(data), at, "copy.db"+suffix)
	}
	result, err := repo.Salvage(t.Context(), filepath.Join(at, "copy.db"), filepath.Join(at, "new.db"), nil)
	if err != nil || result.Intact != 1 {
		t.Fatalf("%+v, %v: want one intact", result, err)
	}
}

// TestSalvageDamage damages an archive in a fixed series of random ways. PIDB_DAMAGE is how
// many of each are tried.
func TestSalvageDamage(t *testing.T) {
	cases := 5
	if n, err := strconv.Atoi(os.Getenv("PIDB_DAMAGE")); err == nil {
		cases = n
	}
	w := newWreckage(t)
	random := rand.New(rand.NewPCG(1, 2))
	page := func(data []byte) []byte {
		n := 1 + random.IntN(w.pages-1) // never the one of the schema
		return data[n*wreckPage : (n+1)*wreckPage]
	}
	for _, kind := range []string{"flip a bit", "flip many bits", "zero a page", "zero pages", "noise in a page", "swap pages", "cut", "lose the schema"} {
		t.Run(kind, func(t *testing.T) {
			var total repo.SalvageResult
			whole, nothing := 0, 0
			for range cases {
				data := bytes.Clone(w.data)
				switch kind {
				case "flip a bit":
					data[wreckPage+random.IntN(len(data)-wreckPage)] ^= 1 << random.IntN(8)
				case "flip many bits":
					for range 1 + random.IntN(200) {
						data[wreckPage+random.IntN(len(data)-wreckPage)] ^= 1 << random.IntN(8)
					}
				case "zero a page":
					clear(page(data))
				case "zero pages":
					for range 1 + random.IntN(w.pages/4) {
						clear(page(data))
					}
				case "noise in a page":
					for at, p := 0, page(data); at < len(p); at++ {
						p[at] = byte(random.IntN(256))
					}
				case "swap pages":
					a, b := page(data), page(data)
					keep := bytes.Clone(a)
					copy(a, b)
					copy(b, keep)
				case "cut":
					data = data[:wreckPage+random.IntN(len(data)-wreckPage)]
				case "lose the schema":
					clear(data[:wreckPage])
					clear(page(data))
				}
				result := w.salvaged(t, data)
				if result == nil {
					nothing++
					continue
				}
				if result.Intact == len(w.bytes) {
					whole++
				}
				total.Intact += result.Intact
				total.Partial += result.Partial
				total.Lost += result.Lost
			}
			t.Logf("%d cases of %d sessions: all intact in %d, nothing found in %d; sessions: %d intact, %d partial, %d lost",
				cases, len(w.bytes), whole, nothing, total.Intact, total.Partial, total.Lost)
		})
	}
}

// TestSalvageNewer salvages an archive whose schema is of a newer pidb, and refuses names
// that belong to the damaged one.
func TestSalvageNewer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for i, newer := range []int{0, 99} {
		if newer > 0 {
			stamp(t, path, newer)
		}
		result, err := repo.Salvage(t.Context(), path, filepath.Join(dir, fmt.Sprint("new", i, ".db")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if result.Newer != newer || result.Intact != 1 {
			t.Errorf("%+v, want Newer %d and 1 intact", result, newer)
		}
	}
	for _, suffix := range []string{"-wal", "-journal", "-shm"} {
		_, err := repo.Salvage(t.Context(), path, path+suffix, nil)
		if _, ok := errors.AsType[*repo.DatabaseNameError](err); !ok {
			t.Errorf("to %s: %v", suffix, err)
		}
	}
}

// stamp gives the file of an archive another version of its schema.
func stamp(t *testing.T, path string, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(fmt.Sprint("PRAGMA user_version = ", version)); err != nil {
		t.Fatal(err)
	}
}
