package repo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pidb/query"
	"pidb/repo"
)

// conformance returns the session files of testdata/conformance.
func conformance(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/conformance/sessions/*.jsonl")
	if err != nil || len(files) < 56 {
		t.Fatalf("conformance sessions: %d, %v", len(files), err)
	}
	out := map[string]string{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = string(data)
	}
	return out
}

// TestLossless imports every file of the conformance suite and of the field, removes
// the sources, and gets every byte back.
func TestLossless(t *testing.T) {
	dir := t.TempDir()
	content := map[string]string{}
	stats := map[string]os.FileInfo{}
	for name, text := range conformance(t) {
		path := write(t, text, dir, "conformance", name)
		content[path] = text
	}
	for name, text := range fieldCases() {
		path := write(t, text, dir, "field", strings.ReplaceAll(name, " ", "-")+".jsonl")
		content[path] = text
	}
	for path := range content {
		age(t, path)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		stats[path] = info
	}
	a := open(t, nil)
	first := importPaths(t, a, dir)
	var rejected []string
	for _, p := range first.Problems {
		if p.Code == repo.CodeNotASession {
			rejected = append(rejected, filepath.Base(p.Path))
			delete(content, p.Path)
		}
	}
	slices.Sort(rejected)
	if diff := cmp.Diff([]string{"025-notsession.jsonl"}, rejected); diff != "" {
		t.Errorf("files that are no sessions (-want +got):\n%s", diff)
	}
	if first.Imported != len(content) || first.Files != len(stats) {
		t.Errorf("imported %d of %d files, want %d of %d", first.Imported, first.Files, len(content), len(stats))
	}
	again := importPaths(t, a, dir)
	if again.Unchanged != len(content) || again.Imported+again.Updated != 0 {
		t.Errorf("second import: %+v, want all unchanged", again)
	}
	for path, before := range stats {
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if !after.ModTime().Equal(before.ModTime()) || after.Size() != before.Size() {
			t.Errorf("%s was touched", path)
		}
		if data, err := os.ReadFile(path); err != nil || content[path] != "" && digest(string(data)) != digest(content[path]) {
			t.Errorf("%s was changed: %v", path, err)
		}
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil || proof.OK != proof.Sessions || proof.Changed+proof.Missing != 0 {
		t.Errorf("verify: %+v, %v", proof, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for path, text := range content {
		var session query.Session
		err := a.View(t.Context(), func(rx *query.Rx) (err error) {
			session, err = rx.Find(t.Context(), path)
			return err
		})
		if err != nil {
			t.Errorf("find %s: %v", path, err)
			continue
		}
		if digest(exported(t, a, session.Key)) != digest(text) {
			t.Errorf("%s: other bytes came back", path)
		}
	}
}

// TestLosslessArchive writes the whole archive back and compares the trees.
func TestLosslessArchive(t *testing.T) {
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	want := map[string]string{}
	for name, text := range fieldCases() {
		name = filepath.Join("folder of "+name[:1], strings.ReplaceAll(name, " ", "-")+".jsonl")
		write(t, text, dir, name)
		want[name] = text
	}
	a := open(t, nil)
	importPaths(t, a, dir)
	result, err := a.ExportAll(t.Context(), out, nil)
	if err != nil || len(result.Failed) > 0 || result.Sessions != len(want) {
		t.Fatalf("export: %+v, %v", result, err)
	}
	got := map[string]string{}
	for path := range walk(t, out) {
		data, err := os.ReadFile(filepath.Join(out, path))
		if err != nil {
			t.Fatal(err)
		}
		got[path] = string(data)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for name := range want {
		if digest(want[name]) != digest(got[name]) {
			t.Errorf("%s: other bytes came back", name)
		}
	}
	// Nothing is replaced: a second export leaves what is there, and takes another name
	// beside a file with other bytes.
	write(t, "mine", out, "folder of p", "plain.jsonl")
	again, err := a.ExportAll(t.Context(), out, nil)
	if err != nil || again.Sessions != len(want) || again.Present != len(want)-1 {
		t.Errorf("second export: %+v, %v", again, err)
	}
	if n := len(walk(t, out)); n != len(want)+1 {
		t.Errorf("%d files after a second export, want %d", n, len(want)+1)
	}
	if data, err := os.ReadFile(filepath.Join(out, "folder of p", "plain~2.jsonl")); err != nil || string(data) != want[filepath.Join("folder of p", "plain.jsonl")] {
		t.Errorf("the file beside the other: %q, %v", data, err)
	}
}

// walk returns the regular files below a folder, by relative path.
func walk(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files := map[string]bool{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			relative, _ := filepath.Rel(dir, path)
			files[relative] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestExportStaysInside exports sessions with hostile ids and paths.
func TestExportStaysInside(t *testing.T) {
	a := open(t, nil)
	for i, id := range []string{"../../../outside", "/etc/passwd", "NUL", "..", ".", "", strings.Repeat("long", 100), `a\nb`, `C:\\x`} {
		text := strings.Replace(header, "s-1", id, 1) + entry("a", "", fmt.Sprint(i))
		if _, err := a.ImportReader(t.Context(), "stdin", strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
	}
	parent := t.TempDir()
	out := filepath.Join(parent, "in", "out")
	outside := t.TempDir()
	if err := os.MkdirAll(out, 0o700); err != nil {
		t.Fatal(err)
	}
	// A link in the target leads out of it.
	if err := os.Symlink(outside, filepath.Join(out, "--work--")); err != nil {
		t.Fatal(err)
	}
	result, err := a.ExportAll(t.Context(), out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(walk(t, outside)) != 0 {
		t.Errorf("files outside: %v", walk(t, outside))
	}
	if result.Sessions+len(result.Failed) != 9 {
		t.Errorf("%d written, %d failed, want 9 in all", result.Sessions, len(result.Failed))
	}
	for path := range walk(t, parent) {
		if !strings.HasPrefix(path, filepath.Join("in", "out")+string(filepath.Separator)) {
			t.Errorf("%s is outside", path)
		}
	}
}

// TestGrowth appends to a file in every way that a line can end, and compares the
// session with that of a file that was read at once.
func TestGrowth(t *testing.T) {
	v1 := strings.Replace(header, `"version":3,`, "", 1)
	whole := map[string]string{
		"lines":                 header + user1 + reply1 + user2,
		"crlf":                  strings.ReplaceAll(header+user1+reply1+user2, "\n", "\r\n"),
		"no final newline":      strings.TrimSuffix(header+user1+reply1+user2, "\n"),
		"damage":                header + user1 + "{broken\n" + reply1 + "\x00\n\n" + user2,
		"several objects":       header + strings.TrimSuffix(user1, "\n") + reply1 + user2,
		"torn piece":            header + user1[:100] + reply1 + user2,
		"a parent that is late": header + entry("b", "c", "b") + entry("c", "", "c") + entry("d", "b", "d"),
		"a late cycle":          header + entry("b", "c", "b") + entry("c", "b", "c") + entry("d", "b", "d"),
		"repeated ids":          header + entry("a", "", "1") + entry("b", "a", "2") + entry("a", "b", "3") + entry("c", "a", "4"),
		"version 1":             v1 + entry("", "", "one") + entry("", "", "two") + `{"type":"compaction","timestamp":"2026-01-01T00:00:02.000Z","summary":"s","firstKeptEntryIndex":2,"tokensBefore":3}` + "\n",
		"no header":             user1 + reply1 + user2,
		"compaction":            header + user1 + reply1 + `{"type":"compaction","id":"k","parentId":"a2","timestamp":"2026-01-01T00:00:02.500Z","summary":"s","firstKeptEntryId":"a1","tokensBefore":3}` + "\n" + strings.Replace(user2, `"parentId":"a2"`, `"parentId":"k"`, 1) + `{"type":"compaction","id":"k2","parentId":"a3","timestamp":"2026-01-01T00:00:04.000Z","summary":"s","firstKeptEntryId":"a2","tokensBefore":3}` + "\n",
		"bom":                   "\xef\xbb\xbf" + header + user1 + reply1,
	}
	for name, text := range whole {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			a, once := open(t, nil), open(t, nil)
			// Every prefix that ends near a line end, and some in the middle of lines.
			var cuts []int
			for i := range text {
				if text[i] == '\n' {
					cuts = append(cuts, i-1, i, i+1, i+2, i+30)
				}
			}
			slices.Sort(cuts)
			path := filepath.Join(dir, "grows.jsonl")
			for _, cut := range append(cuts, len(text)) {
				if cut <= 0 || cut > len(text) {
					continue
				}
				write(t, text[:cut], path)
				if result := importPaths(t, a, path); result.Rejected == 0 {
					if s := bySource(t, a, path); s.Bytes != int64(cut) || exported(t, a, s.Key) != text[:cut] {
						t.Fatalf("after %d bytes the session holds %d", cut, s.Bytes)
					}
				}
			}
			importPaths(t, once, path)
			got, want := bySource(t, a, path), bySource(t, once, path)
			if versions := sessions(t, a); len(versions) != 1 {
				t.Errorf("%d versions of a file that only grew", len(versions))
			}
			if diff := cmp.Diff(rows(t, once, want.Key), rows(t, a, got.Key)); diff != "" {
				t.Errorf("rows (-read at once +grown):\n%s", diff)
			}
			want.Key, want.Leaf, got.Key, got.Leaf = 0, 0, 0, 0
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("session (-read at once +grown):\n%s", diff)
			}
		})
	}
}

// rows returns the entries of a session without what differs between archives.
func rows(t *testing.T, a *repo.Archive, session query.Key) []string {
	t.Helper()
	var out []string
	err := a.View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), session, nil) {
			if err != nil {
				return err
			}
			raw, err := rx.Raw(t.Context(), e.Ref)
			if err != nil {
				return err
			}
			out = append(out, fmt.Sprintf("%v %s %s %s %q parent %q %v top %v: %s",
				e.Line, e.Kind, e.Type, e.Role, e.ID, e.ParentID, e.ParentLine, e.Top, raw))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVersions(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1+reply1, dir, "s.jsonl")
	importPaths(t, a, dir)
	original := bySource(t, a, path)

	// Cut short: a new version, the old one kept.
	write(t, header+user1, path)
	if r := importPaths(t, a, dir); r.Updated != 1 {
		t.Errorf("cut short: %+v, want one updated", r)
	}
	short := bySource(t, a, path)
	if short.Key == original.Key || short.Version != 2 || exported(t, a, short.Key) != header+user1 {
		t.Errorf("cut short: %+v", short)
	}
	if got := exported(t, a, original.Key); got != header+user1+reply1 {
		t.Errorf("the old version lost its bytes: %q", got)
	}

	// Replaced by another session, as long as before.
	other := strings.Replace(header, "s-1", "s-2", 1) + user1
	write(t, other, path)
	importPaths(t, a, dir)
	if s := bySource(t, a, path); s.ID != "s-2" || s.Version != 3 || exported(t, a, s.Key) != other {
		t.Errorf("replaced: %+v", s)
	}

	// Emptied: what was there is missing, not superseded by nothing.
	write(t, "", path)
	if r := importPaths(t, a, dir); r.Updated != 1 || len(r.Problems) != 1 {
		t.Errorf("emptied: %+v, want it updated, with a problem", r)
	}
	if s := bySource(t, a, path); s.State != query.Missing || s.ID != "s-2" {
		t.Errorf("emptied: %+v", s)
	}

	// Written again and grown.
	write(t, other+reply1, path)
	importPaths(t, a, dir)
	if s := bySource(t, a, path); s.State != query.Live || s.Version != 3 || exported(t, a, s.Key) != other+reply1 {
		t.Errorf("back: %+v", s)
	}

	// Replaced by something that is no session.
	write(t, "just notes\n", path)
	r := importPaths(t, a, dir)
	if r.Rejected != 1 || len(r.Problems) != 1 || r.Problems[0].Code != repo.CodeNotASession {
		t.Errorf("no session: %+v", r)
	}
	if s := bySource(t, a, path); s.State != query.Missing || exported(t, a, s.Key) != other+reply1 {
		t.Errorf("no session: %+v", s)
	}
	age(t, path)
	importPaths(t, a, dir)
	if r := importPaths(t, a, dir); r.Rejected != 1 || len(r.Problems) != 1 {
		t.Errorf("a rejected file did not stay rejected: %+v", r)
	}
}

func TestRemovedFolder(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	kept := write(t, header+user1, dir, "kept", "a.jsonl")
	gone := write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "gone", "b.jsonl")
	importPaths(t, a, dir)
	if err := os.RemoveAll(filepath.Dir(gone)); err != nil {
		t.Fatal(err)
	}
	r, err := a.Sync(t.Context(), []string{dir}, nil)
	if err != nil || r.Missing != 1 {
		t.Fatalf("%+v, %v: want one missing", r, err)
	}
	if s := bySource(t, a, gone); s.State != query.Missing || exported(t, a, s.Key) == "" {
		t.Errorf("the session of a removed file: %+v", s)
	}
	if s := bySource(t, a, kept); s.State != query.Live {
		t.Errorf("the other session: %+v", s)
	}
	// Restored, it is live again, and no file is replaced.
	path, err := a.Restore(t.Context(), bySource(t, a, gone).Key)
	if err != nil || path != gone {
		t.Fatalf("restore: %s, %v", path, err)
	}
	if _, err := a.Restore(t.Context(), bySource(t, a, gone).Key); !errors.Is(err, repo.ErrExists) {
		t.Errorf("restore over a file: %v", err)
	}
	importPaths(t, a, dir)
	if s := bySource(t, a, gone); s.State != query.Live {
		t.Errorf("the restored session: %+v", s)
	}
}

func TestSyncOfMissingRoot(t *testing.T) {
	a := open(t, nil)
	r, err := a.Sync(t.Context(), []string{filepath.Join(t.TempDir(), "nowhere")}, nil)
	if err != nil || len(r.Problems) != 0 {
		t.Errorf("sync: %+v, %v", r, err)
	}
	r, err = a.Import(t.Context(), []string{filepath.Join(t.TempDir(), "nowhere")}, nil)
	if err != nil || len(r.Problems) != 1 || r.Problems[0].Code != repo.CodeNotFound {
		t.Errorf("import: %+v, %v", r, err)
	}
}

func TestLinks(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	write(t, header+user1, dir, "a", "real.jsonl")
	write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, elsewhere, "far.jsonl")
	for link, target := range map[string]string{
		filepath.Join(dir, "a", "up"):           "..",
		filepath.Join(dir, "self"):              "self",
		filepath.Join(dir, "broken.jsonl"):      "nowhere.jsonl",
		filepath.Join(dir, "again.jsonl"):       filepath.Join("a", "real.jsonl"),
		filepath.Join(dir, "elsewhere"):         elsewhere,
		filepath.Join(elsewhere, "back"):        dir,
		filepath.Join(elsewhere, "other.jsonl"): "far.jsonl",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	a := open(t, nil)
	r := importPaths(t, a, dir)
	if r.Imported != 2 || len(r.Problems) != 0 {
		t.Errorf("%+v, want two imported and no problem", r)
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{"x.jsonl", "x.jsonl.bak-1", "y.jsonl.reset.2026-01-01T00-00-00", "z.jsonl.deleted.1767225600", "quote\"d name.jsonl", "new\nline.jsonl", "byte\xff.jsonl"}
	for i, name := range names {
		write(t, header+user1+entry("n", "a1", fmt.Sprint(i)), dir, name)
	}
	for _, name := range []string{"notes.txt", ".jsonl", "x.jsonl2", "x.json", "x.jsonl.lock"} {
		write(t, header, dir, name)
	}
	a := open(t, nil)
	if r := importPaths(t, a, dir); r.Imported != len(names) || r.Files != len(names) {
		t.Fatalf("%+v, want %d imported", r, len(names))
	}
	states := map[string]query.State{}
	for _, s := range sessions(t, a) {
		states[filepath.Base(s.Path)] = s.State
	}
	want := map[string]query.State{}
	for _, name := range names {
		want[name] = query.Live
	}
	want["x.jsonl.bak-1"] = query.Superseded // x.jsonl is there, with the same id
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	write(t, header+user1, dir, "good.jsonl")
	if err := os.Mkdir(filepath.Join(dir, "folder.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, `{"kind":"header","version":4,"id":"x"}`+"\n", dir, "v4.jsonl")
	a := open(t, nil)
	r := importPaths(t, a, dir, "/dev/null")
	if r.Imported != 1 || r.Rejected != 2 {
		t.Errorf("%+v, want one imported and two rejected", r)
	}
	codes := map[repo.ProblemCode]bool{}
	for _, p := range r.Problems {
		codes[p.Code] = true
	}
	if !codes[repo.CodeUnsupportedFormat] || !codes[repo.CodeUnreadable] {
		t.Errorf("problems: %+v", r.Problems)
	}
}

func TestProblemsNameLines(t *testing.T) {
	a := open(t, nil)
	path := write(t, header+"{broken\n"+user1+"nonsense\n"+strings.TrimSuffix(reply1, "\n")+user2, t.TempDir(), "s.jsonl")
	r := importPaths(t, a, path)
	var lines []int64
	for _, p := range r.Problems {
		if p.Path != path || p.Code != repo.CodeMalformedLine || p.Detail == "" {
			t.Errorf("problem %+v", p)
		}
		lines = append(lines, p.Line)
	}
	if diff := cmp.Diff([]int64{2, 4, 5}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if s := bySource(t, a, path); s.Problems != 3 || s.Entries != 3 {
		t.Errorf("%d problems and %d entries, want 3 and 3", s.Problems, s.Entries)
	}
}

func TestDelete(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1, dir, "sub", "s.jsonl")
	write(t, header+user1+reply1, dir, "copy.jsonl")
	importPaths(t, a, dir)
	write(t, strings.Replace(header, "/work", "/else", 1)+user1, path) // a second version
	importPaths(t, a, dir)
	session := bySource(t, a, path)
	for i, want := range []bool{true, false} {
		deleted, err := a.Delete(t.Context(), session.Key)
		if err != nil || deleted != want {
			t.Errorf("delete %d: %v, %v", i, deleted, err)
		}
	}
	if left := sessions(t, a); len(left) != 1 || filepath.Base(left[0].Path) != "copy.jsonl" {
		t.Errorf("left: %+v", left)
	}
	// A sync leaves it alone, also after it has grown, and so does the import of its folder.
	write(t, strings.Replace(header, "/work", "/else", 1)+user1+reply1, path)
	if r, err := a.Sync(t.Context(), []string{dir}, nil); err != nil || r.Imported+r.Updated != 0 {
		t.Errorf("sync: %+v, %v", r, err)
	}
	importPaths(t, a, dir)
	if left := sessions(t, a); len(left) != 1 {
		t.Errorf("came back: %+v", left)
	}
	// A copy of what was deleted is left alone too.
	write(t, strings.Replace(header, "/work", "/else", 1)+user1, dir, "moved.jsonl")
	importPaths(t, a, dir)
	if left := sessions(t, a); len(left) != 1 {
		t.Errorf("came back under another name: %+v", left)
	}
	// Naming the file brings it back, and to its place in an export.
	if r := importPaths(t, a, path); r.Imported != 1 {
		t.Errorf("named: %+v", r)
	}
	bySource(t, a, path)
	out := t.TempDir()
	if _, err := a.ExportAll(t.Context(), out, nil); err != nil || !walk(t, out)[filepath.Join("sub", "s.jsonl")] {
		t.Errorf("export: %v, %v", walk(t, out), err)
	}
}

func TestImportReader(t *testing.T) {
	a := open(t, nil)
	for i, step := range []struct {
		text                string
		imported, unchanged int
	}{
		{header + user1, 1, 0},
		{header + user1, 0, 1},
		{header + user1 + reply1, 0, 0}, // goes on
	} {
		r, err := a.ImportReader(t.Context(), "standard input", strings.NewReader(step.text), nil)
		if err != nil || r.Imported != step.imported || r.Unchanged != step.unchanged {
			t.Errorf("step %d: %+v, %v", i, r, err)
		}
	}
	if all := sessions(t, a); len(all) != 1 || exported(t, a, all[0].Key) != header+user1+reply1 {
		t.Errorf("sessions: %+v", all)
	}
	importPaths(t, a, write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, t.TempDir(), "file.jsonl"))
	same, err := a.ImportReader(t.Context(), "standard input", strings.NewReader(strings.Replace(header, "s-1", "s-2", 1)+user1), nil)
	if err != nil || same.Unchanged != 1 {
		t.Errorf("what a file holds already: %+v, %v", same, err)
	}
	r, err := a.ImportReader(t.Context(), "standard input", strings.NewReader("nothing\n"), nil)
	if err != nil || r.Rejected != 1 || r.Problems[0].Path != "standard input" {
		t.Errorf("no session: %+v, %v", r, err)
	}
}

// TestAppendWhileImporting lets a program write to files while they are imported.
func TestAppendWhileImporting(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	const files, lines = 8, 300
	for i := range files {
		write(t, strings.Replace(header, "s-1", fmt.Sprint("s-", i), 1), dir, fmt.Sprint(i, ".jsonl"))
	}
	written := make(chan error, 1)
	go func() {
		written <- func() error {
			for n := range lines {
				for i := range files {
					file, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(i, ".jsonl")), os.O_APPEND|os.O_WRONLY, 0)
					if err != nil {
						return err
					}
					text := entry(fmt.Sprint("e", n), "", strings.Repeat("text ", n))
					// In two pieces: an import may see half a line.
					for _, piece := range []string{text[:len(text)/2], text[len(text)/2:]} {
						if _, err := file.WriteString(piece); err != nil {
							return err
						}
					}
					if err := file.Close(); err != nil {
						return err
					}
				}
			}
			return nil
		}()
	}()
	var err error
	for done := false; !done; {
		select {
		case err = <-written:
			done = true
		default:
		}
		if r, importErr := a.Sync(t.Context(), []string{dir}, nil); importErr != nil || r.Rejected != 0 {
			t.Fatalf("sync: %+v, %v", r, importErr)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, dir)
	all := sessions(t, a)
	if len(all) != files {
		t.Errorf("%d sessions of %d files that only grew", len(all), files)
	}
	for _, s := range all {
		data, err := os.ReadFile(s.Path)
		if err != nil || digest(string(data)) != digest(exported(t, a, s.Key)) || s.Entries != lines || s.Problems != 0 {
			t.Errorf("%s: %d entries, %d problems, %v", s.Path, s.Entries, s.Problems, err)
		}
	}
}

// TestInterrupted ends an import in the middle: what was finished stays, and the next
// run does the rest.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	const files = 200
	for i := range files {
		write(t, strings.Replace(header, "s-1", fmt.Sprint("s-", i), 1)+entry("a", "", strings.Repeat("words and more ", 20000)), dir, fmt.Sprint(i, ".jsonl"))
	}
	a := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := a.Import(ctx, []string{dir}, &repo.ImportOptions{Progress: func(repo.Progress) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("import: %v", err)
	}
	if n := len(sessions(t, a)); n == 0 || n != r.Imported || n >= files {
		t.Errorf("%d sessions after the interruption, the result says %d", n, r.Imported)
	}
	r = importPaths(t, a, dir)
	if n := len(sessions(t, a)); n != files || r.Imported+r.Unchanged != files {
		t.Errorf("%d sessions in the end: %+v", n, r)
	}
}

func TestModes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "pidb.db")
	a := openAt(t, path, nil)
	importPaths(t, a, write(t, header+user1, t.TempDir(), "s.jsonl"))
	for name := range walk(t, filepath.Dir(path)) {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
}

func TestRebuild(t *testing.T) {
	dir := t.TempDir()
	for name, text := range conformance(t) {
		write(t, text, dir, name)
	}
	a := open(t, nil)
	importPaths(t, a, dir)
	before := sessions(t, a)
	want := map[query.Key][]string{}
	for _, s := range before {
		want[s.Key] = rows(t, a, s.Key)
	}
	if err := a.Rebuild(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, sessions(t, a)); diff != "" {
		t.Errorf("sessions (-before +after):\n%s", diff)
	}
	for key := range want {
		if diff := cmp.Diff(want[key], rows(t, a, key)); diff != "" {
			t.Errorf("rows of #%d (-before +after):\n%s", key, diff)
		}
	}
}

// TestLargeFile imports a file of several parts: interrupted after the first, and by
// two archives handles at once.
func TestLargeFile(t *testing.T) {
	var text strings.Builder
	text.WriteString(header)
	for i := range 800 {
		parent := ""
		if i > 0 {
			parent = fmt.Sprint("e", i-1)
		}
		text.WriteString(entry(fmt.Sprint("e", i), parent, strings.Repeat(fmt.Sprintf("line %d of many ", i), 6000)))
	}
	dir := t.TempDir()
	path := write(t, text.String(), dir, "s.jsonl")
	age(t, path)
	database := filepath.Join(dir, "pidb.db")
	a := openAt(t, database, nil)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := a.Import(ctx, []string{path}, &repo.ImportOptions{NoIndex: true, Progress: func(repo.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatalf("import: %v", err)
	}
	part := bySource(t, a, path)
	if got := exported(t, a, part.Key); part.Bytes == 0 || part.Bytes >= int64(text.Len()) || got != text.String()[:part.Bytes] {
		t.Fatalf("%d of %d bytes after the interruption", part.Bytes, text.Len())
	}
	b := openAt(t, database, nil)
	var group sync.WaitGroup
	for _, archive := range []*repo.Archive{a, b} {
		group.Go(func() {
			if _, err := archive.Import(t.Context(), []string{path}, &repo.ImportOptions{NoIndex: true}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	importPaths(t, a, path)
	whole := bySource(t, a, path)
	if whole.Key != part.Key || whole.Entries != 800 || digest(exported(t, a, whole.Key)) != digest(text.String()) {
		t.Errorf("%d entries in the end: %+v", whole.Entries, whole)
	}
}

// TestUnreadableStays makes a source unreadable: its session stays as it was.
func TestUnreadableStays(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	path := write(t, header+user1, dir, "s.jsonl")
	importPaths(t, a, path)
	// A folder in the place of the file cannot be read, whoever asks.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "s.jsonl"), path); err != nil {
		t.Fatal(err)
	}
	if r := importPaths(t, a, path); r.Rejected != 1 {
		t.Errorf("%+v, want one rejected", r)
	}
	if s := bySource(t, a, path); s.State != query.Live {
		t.Errorf("the session is %s", s.State)
	}
}
