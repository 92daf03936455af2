package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// FuzzImport takes any bytes in as a file: what is taken in comes out as it was, and a
// second import changes nothing, also when the file grows.
func FuzzImport(f *testing.F) {
	for _, text := range fieldCases() {
		if len(text) < 4000 {
			f.Add([]byte(text), []byte(user2))
		}
	}
	f.Add([]byte(header+user1[:40]), []byte(user1[40:]+"\r"))
	f.Add([]byte(header+strings.Repeat("[", 3000)), []byte("\n"))
	f.Add([]byte(`{"type":"session","id":"../../x","cwd":"NUL\n"}`+"\n"+user1), []byte("\x00"))
	dir := f.TempDir()
	a, err := repo.Open(f.Context(), filepath.Join(dir, "pidb.db"), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { a.Close() })
	f.Fuzz(func(t *testing.T, first, then []byte) {
		path := filepath.Join(dir, "fuzz.jsonl")
		defer os.Remove(path)
		for i, text := range [][]byte{first, append(append([]byte(nil), first...), then...)} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			result := importPaths(t, a, path)
			if result.Files != 1 {
				t.Fatalf("%+v", result)
			}
			if result.Rejected == 0 && len(text) > 0 {
				if got := exported(t, a, bySource(t, a, path).Key); got != string(text) {
					t.Fatalf("step %d: exported %q, want %q", i, got, text)
				}
			}
			if again := importPaths(t, a, path); again.Sessions != 0 || again.Entries != 0 || again.Rejected != result.Rejected {
				t.Fatalf("step %d: the second import: %+v", i, again)
			}
		}
		isWhole(t, a)
		for _, s := range sessions(t, a) {
			if s.Leaf != 0 {
				err := a.View(t.Context(), func(rx *query.Rx) error { _, err := rx.Context(t.Context(), s.Leaf); return err })
				if err != nil {
					t.Fatalf("context: %v", err)
				}
			}
			if _, err := a.Delete(t.Context(), s.Key); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// FuzzExportPaths exports sessions with any ids and folders: each file is written below the
// folder that was asked for, once, with its bytes.
func FuzzExportPaths(f *testing.F) {
	for _, text := range []string{"", ".", "..", "../../x", "/etc/passwd", `C:\x`, "NUL", "con.jsonl", strings.Repeat("x", 300), strings.Repeat("修", 120), "a\nb", "a\x00b", "~/x", "-rf", ".hidden", "\xff\xfe", "\u202egpj", "a/../../b"} {
		f.Add(text, text)
		f.Add("s-1", text)
	}
	f.Fuzz(func(t *testing.T, id, cwd string) {
		dir := t.TempDir()
		a, err := repo.Open(t.Context(), filepath.Join(dir, "pidb.db"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		texts := map[string]bool{}
		for _, h := range []string{
			`{"type":"session","version":3,"id":` + quoted(t, id) + `,"timestamp":"2026-01-01T00:00:00.000Z","cwd":` + quoted(t, cwd) + "}\n",
			`{"type":"session","version":3,"id":` + quoted(t, id) + `,"cwd":` + quoted(t, cwd) + "}\n",
		} {
			texts[h+user1] = true
			if _, err := a.ImportReader(t.Context(), "reader", strings.NewReader(h+user1), nil); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := a.Create(t.Context(), cwd, &repo.CreateOptions{ID: id}); err == nil {
			appendTo(t, s, said("x"))
			texts[exported(t, a, s.Key())] = true
		}
		out := filepath.Join(dir, "deep", "out")
		result, err := a.ExportAll(t.Context(), out, nil)
		if err != nil || len(result.Failed) > 0 {
			t.Fatalf("%+v, %v", result, err)
		}
		files := 0
		err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !strings.HasPrefix(path, out+string(filepath.Separator)) {
				if !strings.HasPrefix(d.Name(), "pidb.") {
					t.Errorf("%q is outside", path)
				}
				return nil
			}
			files++
			text, err := os.ReadFile(path)
			if err == nil && !texts[string(text)] {
				t.Errorf("%q has other bytes", path)
			}
			return err
		})
		if err != nil || files != result.Sessions || files != len(texts) {
			t.Errorf("%d files of %d sessions, %v", files, result.Sessions, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "x")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("a file outside")
		}
	})
}

// quoted returns text as a string of JSON, whatever bytes it has.
func quoted(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ':
			b.WriteString(`\u00` + string("0123456789abcdef"[c>>4]) + string("0123456789abcdef"[c&15]))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
