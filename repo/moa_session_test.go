package repo_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// The tests of the files moa_*_test.go are named after the functions of moa's package
// session whose contract they hold pidb to: docs/moa.md.

// metadataOf returns all metadata of a session as text.
func metadataOf(t *testing.T, s *repo.Session) map[string]string {
	t.Helper()
	metadata, err := s.Metadata(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return texts(metadata)
}

func texts(metadata map[string]json.RawMessage) map[string]string {
	out := map[string]string{}
	for name, value := range metadata {
		out[name] = string(value)
	}
	return out
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What is fixed at creation outlives every later write of metadata, the whole of it too.
func TestMoa_ApplyPreservedMetadata(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, &repo.CreateOptions{
		Metadata: map[string]any{"callback_url": "https://x", "model": "m1", "mcp_servers": []any{map[string]any{"name": "n"}}},
		Fixed:    []string{"callback_url", "mcp_servers", "not there"},
	})
	ok(t, s.SetMetadata(t.Context(), map[string]any{"callback_url": "other", "model": "m2"}))
	ok(t, s.ReplaceMetadata(t.Context(), map[string]any{"thinking": "high", "mcp_servers": nil}))
	want := map[string]string{"callback_url": `"https://x"`, "mcp_servers": `[{"name":"n"}]`, "thinking": `"high"`}
	same(t, "metadata", want, metadataOf(t, s))

	fork, err := a.Fork(t.Context(), s.Key(), nil)
	ok(t, err)
	ok(t, fork.ReplaceMetadata(t.Context(), nil))
	delete(want, "thinking")
	same(t, "metadata of the fork", want, metadataOf(t, fork))
}

func TestMoa_PreservedMetadata(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, &repo.CreateOptions{Metadata: map[string]any{"cwd": "/x"}})
	fixed, err := s.FixedMetadata(t.Context())
	if err != nil || len(fixed) != 0 {
		t.Errorf("fixed %v, %v; want none", fixed, err)
	}
	ok(t, s.FixMetadata(t.Context(), map[string]any{"callback_url": "a"}))
	ok(t, s.FixMetadata(t.Context(), map[string]any{"callback_url": "b", "origin": "hook"}))
	fixed, err = s.FixedMetadata(t.Context())
	ok(t, err)
	same(t, "fixed", map[string]string{"callback_url": `"a"`, "origin": `"hook"`}, texts(fixed))
	same(t, "all", map[string]string{"callback_url": `"a"`, "origin": `"hook"`, "cwd": `"/x"`}, metadataOf(t, s))
}

func TestMoa_Session_Origin(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	for _, step := range []struct{ set, want string }{{"", repo.OriginUser}, {"linear-webhook", "linear-webhook"}, {"user", "linear-webhook"}} {
		ok(t, s.SetOrigin(t.Context(), step.set))
		if got, err := s.Origin(t.Context()); err != nil || got != step.want {
			t.Errorf("after SetOrigin(%q): %q, %v; want %q", step.set, got, err, step.want)
		}
	}
}

func TestMoa_Session_SetOrigin(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ok(t, s.SetOrigin(t.Context(), ""))
	same(t, "an empty origin is not kept", map[string]string{}, metadataOf(t, s))
	ok(t, s.SetOrigin(t.Context(), "automation"))
	ok(t, s.ReplaceMetadata(t.Context(), map[string]any{"model": "m"}))
	same(t, "metadata", map[string]string{"origin": `"automation"`, "model": `"m"`}, metadataOf(t, s))
}

func TestMoa_Session_CompactAtMeta(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	threshold := func() int {
		metadata, err := s.Metadata(t.Context())
		ok(t, err)
		var n int
		if metadata["compact_at"] != nil {
			ok(t, json.Unmarshal(metadata["compact_at"], &n))
		}
		return n
	}
	if n := threshold(); n != 0 {
		t.Errorf("threshold %d, want none", n)
	}
	for _, value := range []any{120000, float64(120000)} {
		ok(t, s.SetMetadata(t.Context(), map[string]any{"compact_at": value}))
		if n := threshold(); n != 120000 {
			t.Errorf("threshold %d after %T", n, value)
		}
	}
}

func TestMoa_Session_RuntimeMeta(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ok(t, s.SetMetadata(t.Context(), map[string]any{"model": "m", "cwd": "/x", "permission_mode": "ask", "thinking": "low"}))
	ok(t, s.SetMetadata(t.Context(), map[string]any{"model": "m2"}))
	other, err := a.Session(t.Context(), s.Key())
	ok(t, err)
	same(t, "metadata", map[string]string{"model": `"m2"`, "cwd": `"/x"`, "permission_mode": `"ask"`, "thinking": `"low"`}, metadataOf(t, other))
}

// Each state change keeps what was kept before.
func TestMoa_Session_SetRuntimeMetadata(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, &repo.CreateOptions{Metadata: map[string]any{"origin": "hook"}, Fixed: []string{"origin"}})
	for _, model := range []string{"m", "m2"} {
		ok(t, s.ReplaceMetadata(t.Context(), map[string]any{"model": model}))
		same(t, "metadata", map[string]string{"model": `"` + model + `"`, "origin": `"hook"`}, metadataOf(t, s))
	}
}

func TestMoa_Session_PathMeta(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	for _, paths := range []any{[]string{"/a", "/b"}, []any{"/a", "/b"}} {
		ok(t, s.SetMetadata(t.Context(), map[string]any{"path_scope": "project", "allowed_paths": paths}))
		same(t, "metadata", map[string]string{"path_scope": `"project"`, "allowed_paths": `["/a","/b"]`}, metadataOf(t, s))
	}
}

func TestMoa_Session_SetPathMetadata(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	ok(t, s.SetMetadata(t.Context(), map[string]any{"path_scope": "project", "allowed_paths": []string{"/a"}}))
	ok(t, s.SetMetadata(t.Context(), map[string]any{"path_scope": "all", "allowed_paths": jsonl.Undefined}))
	same(t, "metadata", map[string]string{"path_scope": `"all"`}, metadataOf(t, s))
}

func nameOf(t *testing.T, s *repo.Session) string {
	t.Helper()
	name, err := s.Name(t.Context())
	ok(t, err)
	source, err := s.NameSource(t.Context())
	ok(t, err)
	return name + "|" + string(source)
}

// naming is one call of SetName.
type naming struct {
	name string
	opts *repo.SetNameOptions
}

var (
	byPerson  = &repo.SetNameOptions{MaxRunes: 10}
	byProgram = &repo.SetNameOptions{Source: repo.NameAutomatic, MaxRunes: 10}
	byMessage = &repo.SetNameOptions{Source: repo.NameAutomatic, IfNone: true, MaxRunes: 10}
)

// checkNames names a session and compares its name and source with want.
func checkNames(t *testing.T, want string, calls ...naming) {
	t.Helper()
	a := open(t, nil)
	s := create(t, a, nil)
	for _, call := range calls {
		before := nameOf(t, s)
		changed, err := s.SetName(t.Context(), call.name, call.opts)
		ok(t, err)
		if after := nameOf(t, s); !changed && before != after {
			t.Errorf("SetName(%q) says that it changed nothing: %q, %q", call.name, before, after)
		}
	}
	if got := nameOf(t, s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMoa_Session_SetTitle(t *testing.T) {
	checkNames(t, "|")
	checkNames(t, "fix the l…|auto", naming{"fix the\nlogin", byMessage}, naming{"second", byMessage})
	checkNames(t, "修复登录页面上的循…|auto", naming{"修复登录页面上的循环问题", byMessage})
	checkNames(t, "ten runes!|auto", naming{"ten runes!", byMessage})
	checkNames(t, "|", naming{"  \n ", byMessage})
	checkNames(t, "mine|manual", naming{"mine", byPerson}, naming{"first", byMessage})
}

func TestMoa_Session_SetAutoTitle(t *testing.T) {
	checkNames(t, "two|auto", naming{"one", byMessage}, naming{"two", byProgram})
	checkNames(t, "one|auto", naming{"one", byProgram}, naming{" ", byProgram})
	checkNames(t, "mine|manual", naming{"one", byProgram}, naming{"mine", byPerson}, naming{"two", byProgram})
	checkNames(t, "one|auto", naming{"mine", nil}, naming{"", nil}, naming{"one", byProgram})
}

func TestMoa_Session_Rename(t *testing.T) {
	checkNames(t, "also mine|manual", naming{"mine", nil}, naming{"also mine", nil})
	checkNames(t, "also min…|manual", naming{"also min and others", byPerson})
	checkNames(t, "|", naming{"mine", nil}, naming{"", nil})
}

// A name that pi gave is one that a person chose, and forks keep the source.
func TestMoa_Session_TitleIsManual(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	appendTo(t, s, repo.SessionName("by pi"))
	if got := nameOf(t, s); got != "by pi|manual" {
		t.Errorf("got %q", got)
	}
	made := create(t, a, nil)
	_, err := made.SetName(t.Context(), "made up", &repo.SetNameOptions{Source: repo.NameAutomatic})
	ok(t, err)
	fork, err := a.Fork(t.Context(), made.Key(), nil)
	ok(t, err)
	if got := nameOf(t, fork); got != "made up|auto" {
		t.Errorf("the fork: %q", got)
	}
	path := write(t, header+user1, t.TempDir(), "s.jsonl")
	importPaths(t, a, path)
	of, err := a.OpenSession(t.Context(), path)
	ok(t, err)
	if _, err := of.SetName(t.Context(), "x", nil); !errors.Is(err, repo.ErrNotNative) {
		t.Errorf("of a file: %v", err)
	}
}

func TestMoa_Session_SetIdempotencyKey(t *testing.T) {
	a := open(t, nil)
	s, other := create(t, a, nil), create(t, a, nil)
	find := func(key string) query.Key {
		found, err := a.FindIdempotent(t.Context(), key)
		if errors.Is(err, repo.ErrNotFound) {
			return 0
		}
		ok(t, err)
		return found.Key()
	}
	ok(t, s.SetIdempotencyKey(t.Context(), ""))
	if find("") != 0 || find("k") != 0 {
		t.Error("a key is there")
	}
	ok(t, s.SetIdempotencyKey(t.Context(), "k"))
	ok(t, s.SetIdempotencyKey(t.Context(), "k"))
	if find("k") != s.Key() {
		t.Error("the session is not found by its key")
	}
	if err := other.SetIdempotencyKey(t.Context(), "k"); !errors.Is(err, repo.ErrExists) {
		t.Errorf("a second session for the key: %v", err)
	}
	if _, err := s.Delete(t.Context()); err != nil || find("k") != 0 {
		t.Errorf("after the session was deleted: %v", err)
	}
	ok(t, other.SetIdempotencyKey(t.Context(), "k"))
	if find("k") != other.Key() {
		t.Error("the key is not free again")
	}
	if err := s.SetIdempotencyKey(t.Context(), "z"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of a session that is gone: %v", err)
	}
}

// Of many who ask for a session with one key at once, one makes it.
func TestCreateOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	a, b := openAt(t, path, nil), openAt(t, path, nil)
	var mu sync.Mutex
	keys, births := map[query.Key]bool{}, 0
	var group sync.WaitGroup
	for i := range 20 {
		archive := a
		if i%2 == 0 {
			archive = b
		}
		group.Go(func() {
			s, made, err := archive.CreateOnce(t.Context(), "run-1", "/work", &repo.CreateOptions{Metadata: map[string]any{"n": i}})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			keys[s.Key()] = true
			if made {
				births++
			}
		})
	}
	group.Wait()
	if len(keys) != 1 || births != 1 {
		t.Errorf("%d sessions, made %d times", len(keys), births)
	}
	if s, made, err := a.CreateOnce(t.Context(), "", "/work", nil); err != nil || !made || keys[s.Key()] {
		t.Errorf("without a key: %v, %v", made, err)
	}
}

func TestMoa_ScanCWDs(t *testing.T) {
	dir := t.TempDir()
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a := open(t, &repo.OpenOptions{Now: func() time.Time { clock = clock.Add(time.Second); return clock }})
	for _, cwd := range []string{"/one", "/two", "/one", ""} {
		_, err := a.Create(t.Context(), cwd, nil)
		ok(t, err)
	}
	write(t, strings.Replace(header, `,"cwd":"/work"`, "", 1)+user1, dir, "silent.jsonl")
	write(t, `{"type":"session","version":3,"id":"to`+"\n"+user1, dir, "torn.jsonl")
	write(t, "no session\n", dir, "text.jsonl")
	importPaths(t, a, dir)
	ok(t, a.View(t.Context(), func(rx *query.Rx) error {
		folders, err := rx.Folders(t.Context())
		same(t, "folders", &query.Folders{CWDs: []string{"/one", "/two"}, Unreadable: 2, Silent: 2}, folders)
		return err
	}))
}

func TestMoa_ListAll(t *testing.T) {
	dir := t.TempDir()
	a := open(t, nil)
	_, err := a.Create(t.Context(), "/one", nil)
	ok(t, err)
	_, err = a.Create(t.Context(), "/two", nil)
	ok(t, err)
	write(t, "no session\n", dir, "text.jsonl")
	importPaths(t, a, dir)
	if got := len(sessions(t, a)); got != 2 {
		t.Errorf("%d sessions, want those that can be read", got)
	}
}

func TestMoa_FindSession(t *testing.T) {
	a := open(t, nil)
	one, err := a.Create(t.Context(), "/one", nil)
	ok(t, err)
	none, err := a.Create(t.Context(), "", nil)
	ok(t, err)
	for _, s := range []*repo.Session{one, none} {
		if found, err := a.OpenSession(t.Context(), s.ID()); err != nil || found.Key() != s.Key() {
			t.Errorf("%v, %v", found, err)
		}
	}
	for _, id := range []string{"not-there", "../x", ""} {
		if _, err := a.OpenSession(t.Context(), id); !errors.Is(err, repo.ErrNotFound) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestMoa_FindSessionReadOnly(t *testing.T) {
	a := open(t, nil)
	path := write(t, strings.Replace(header, `"version":3`, `"version":1`, 1), t.TempDir(), "old.jsonl")
	importPaths(t, a, path)
	before := exported(t, a, sessions(t, a)[0].Key)
	_, err := a.OpenSession(t.Context(), "s-1")
	ok(t, err)
	same(t, "bytes", before, exported(t, a, sessions(t, a)[0].Key))
}

// moa reports success after the first folder it looks in; here the answer is true.
func TestMoa_DeleteByID(t *testing.T) {
	a := open(t, nil)
	_, err := a.Create(t.Context(), "/a", nil)
	ok(t, err)
	s, err := a.Create(t.Context(), "/z", nil)
	ok(t, err)
	found, err := a.OpenSession(t.Context(), s.ID())
	ok(t, err)
	if deleted, err := found.Delete(t.Context()); err != nil || !deleted {
		t.Errorf("deleted %v, %v", deleted, err)
	}
	if deleted, err := found.Delete(t.Context()); err != nil || deleted {
		t.Errorf("again: deleted %v, %v", deleted, err)
	}
	if _, err := a.OpenSession(t.Context(), s.ID()); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestMoa_ValidateID(t *testing.T) {
	for id, want := range map[string]bool{
		"0123456789abcdef01234567": true, "a": true, "": false, "..": false, "a/b": false, `a\b`: false, "../x": false, ".a": false, "a\x00": false, "a\n": false,
	} {
		if err := repo.CheckSessionID(id); (err == nil) != want || !want && !errors.Is(err, repo.ErrInvalidID) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestMoa_ValidateEntries(t *testing.T) {
	list := func(pairs ...string) []repo.TreeEntry {
		var out []repo.TreeEntry
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, repo.TreeEntry{ID: pairs[i], Parent: pairs[i+1]})
		}
		return out
	}
	for _, test := range []struct {
		name    string
		entries []repo.TreeEntry
		leaf    string
		want    repo.TreeReport
	}{
		{"none", nil, "", repo.TreeReport{}},
		{"a tree", list("a", "", "b", "a", "c", "a"), "b", repo.TreeReport{}},
		{"duplicates", list("a", "", "a", "", "a", "a", "b", ""), "a", repo.TreeReport{Duplicates: []string{"a"}}},
		{"orphans", list("a", "x", "b", "a"), "b", repo.TreeReport{Orphans: []repo.OrphanEntry{{ID: "a", Parent: "x"}}}},
		{"leaf", list("a", ""), "z", repo.TreeReport{UnknownLeaf: "z"}},
		{"its own parent", list("a", "a"), "a", repo.TreeReport{Cycles: [][]string{{"a"}}}},
		{"cycle off the leaf", list("r", "", "a", "c", "b", "a", "c", "b", "d", "c"), "r", repo.TreeReport{Cycles: [][]string{{"a", "b", "c"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := repo.CheckTree(test.entries, test.leaf)
			same(t, "report", &test.want, got)
			if err := got.Err(); (err == nil) != got.OK() || err != nil && !errors.Is(err, repo.ErrInvalidTree) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A file with all of the faults is taken in, and the report names them.
func TestCheckTree(t *testing.T) {
	a := open(t, nil)
	entry := func(id, parent string) string {
		return `{"type":"custom","customType":"x","id":"` + id + `","parentId":` + parent + `,"timestamp":"2026-01-01T00:00:01.000Z"}` + "\n"
	}
	path := write(t, header+entry("a", "null")+entry("a", `"a"`)+entry("o", `"gone"`)+entry("x", `"y"`)+entry("y", `"x"`), t.TempDir(), "s.jsonl")
	importPaths(t, a, path)
	s, err := a.OpenSession(t.Context(), path)
	ok(t, err)
	got, err := s.CheckTree(t.Context())
	ok(t, err)
	same(t, "report", &repo.TreeReport{
		Duplicates: []string{"a"}, Orphans: []repo.OrphanEntry{{ID: "o", Parent: "gone"}}, Cycles: [][]string{{"x", "y"}},
	}, got)
}

// Each function in the tables of docs/moa.md has its test.
func TestMoa(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "moa.md"))
	ok(t, err)
	files, err := filepath.Glob("moa_*_test.go")
	ok(t, err)
	var tests strings.Builder
	for _, path := range files {
		source, err := os.ReadFile(path)
		ok(t, err)
		tests.Write(source)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for name := range strings.SplitSeq(strings.Split(line, "|")[1], ",") {
			name = strings.Trim(name, " `")
			n++
			if !strings.Contains(tests.String(), "\nfunc TestMoa_"+strings.ReplaceAll(name, ".", "_")+"(t") {
				t.Errorf("%s has no test", name)
			}
		}
	}
	if n != 49 {
		t.Errorf("%d functions, want 49", n)
	}
}
