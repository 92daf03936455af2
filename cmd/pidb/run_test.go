package main

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pidb/query"
)

// TestInterrupt ends a command that waits for more, and finds kept what was finished.
func TestInterrupt(t *testing.T) {
	samples := filepath.Join("..", "..", "testdata", "sessions")
	db := filepath.Join(t.TempDir(), "pidb.db")
	none := func(string) string { return "" }
	ctx, cancel := context.WithCancel(t.Context())
	stdin, hold := io.Pipe()
	t.Cleanup(func() { hold.CloseWithError(io.EOF) })
	var stdout, stderr strings.Builder
	time.AfterFunc(2*time.Second, cancel)
	if code := run(ctx, []string{"--db", db, "import", samples, "-"}, none, stdin, &stdout, &stderr); code != exitInterrupted {
		t.Fatalf("ended with %d, want %d; %s", code, exitInterrupted, stderr.String())
	}
	if !strings.Contains(stderr.String(), "pidb: interrupted\n") {
		t.Errorf("stderr: %s", stderr.String())
	}
	stdout.Reset()
	if code := run(t.Context(), []string{"--db", db, "ls", "--json"}, none, strings.NewReader(""), &stdout, &stderr); code != exitDone {
		t.Fatalf("ls ended with %d; %s", code, stderr.String())
	}
	if n := strings.Count(stdout.String(), "\n"); n != 5 {
		t.Errorf("%d sessions were kept, want 5", n)
	}
}

// TestSearchRepairs damages the search index in ways that only a search sees.
func TestSearchRepairs(t *testing.T) {
	samples := filepath.Join("..", "..", "testdata", "sessions")
	path := filepath.Join(t.TempDir(), "pidb.db")
	pidb := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, err strings.Builder
		if code := run(t.Context(), append([]string{"--db", path}, args...), func(string) string { return "" }, strings.NewReader(""), &out, &err); code != exitDone {
			t.Fatalf("pidb %s ended with %d: %s", strings.Join(args, " "), code, err.String())
		}
		return out.String(), err.String()
	}
	pidb("import", samples)
	want, _ := pidb("search", "--json", "backoff")
	if want == "" {
		t.Fatal("nothing is found before")
	}
	for _, statement := range []string{
		`UPDATE segment SET sum = sum + 1`, `UPDATE segment SET runs = x'00'`, `UPDATE block SET heads = x'ff'`, `UPDATE block SET words = x'00'`,
		`DELETE FROM block`, `DROP TABLE block`,
	} {
		db, err := sql.Open("sqlite", strings.TrimSuffix(path, ".db")+".index.db")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		got, stderr := pidb("search", "--json", "backoff")
		if got != want || !strings.Contains(stderr, "pidb: the search index was damaged and has been made anew\n") {
			t.Errorf("%s: found %s; stderr: %s", statement, got, stderr)
		}
		if out, _ := pidb("doctor"); !strings.Contains(out, "nothing is wrong") {
			t.Errorf("%s: doctor: %s", statement, out)
		}
	}
}

// TestSearchSaysRepairs fills pages of the search index with noise, which the commands find
// before they search.
func TestSearchSaysRepairs(t *testing.T) {
	samples := filepath.Join("..", "..", "testdata", "sessions")
	path := filepath.Join(t.TempDir(), "pidb.db")
	index := strings.TrimSuffix(path, ".db") + ".index.db"
	for _, from := range []int64{100, 32768} {
		if code, _, stderr := runAt(t, path, "import", samples); code != exitDone {
			t.Fatal(stderr)
		}
		data, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		for i := from; i < int64(len(data)); i++ {
			data[i] = byte(i * 7)
		}
		if err := os.WriteFile(index, data, 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := runAt(t, path, "search", "--json", "backoff")
		if code != exitDone || stdout == "" || strings.Count(stderr, "pidb: the search index was damaged and has been made anew\n") != 1 {
			t.Errorf("from byte %d: ended with %d, found %s; stderr: %s", from, code, stdout, stderr)
		}
	}
}

// TestSalvageSaysNewer salvages an archive that says that a newer pidb has written it.
func TestSalvageSaysNewer(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	if code, _, stderr := runAt(t, path, "import", filepath.Join("..", "..", "testdata", "sessions")); code != exitDone {
		t.Fatal(stderr)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA user_version = 99`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := runAt(t, path, "doctor", "--json", "--salvage", filepath.Join(dir, "new.db"))
	if code != exitDone || !strings.Contains(stdout, `"newerSchema":99,`) || !strings.Contains(stderr, "pidb: the archive has schema 99, that of a newer pidb: ") {
		t.Errorf("ended with %d, said %s; stderr: %s", code, stdout, stderr)
	}
}

// runAt runs the command on the archive at path, without a home.
func runAt(t *testing.T, path string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), append([]string{"--db", path}, args...), func(string) string { return "" }, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// TestHarmful compares what JSON escapes with what is not printed.
func TestHarmful(t *testing.T) {
	for r := rune(0x7f); r <= 0x10ffff; r++ {
		if r >= 0xd800 && r < 0xe000 || r == 0xfffd {
			continue
		}
		if want := query.Printable(string(r)) != string(r); isHarmful(r) != want {
			t.Errorf("isHarmful(%U) is %v, want %v", r, !want, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"one two three", 7, "one two|three"},
		{"  one two three", 7, "  one|  two|  three"},
		{"abcdefghijkl", 5, "abcde|fghij|kl"},
		{"修复登录 修复", 5, "修复|登录|修复"},
		{"a\n\nb  ", 5, "a||b"},
		{"a\tb", 20, "a    b"},
		{"修", 1, "修|"},
	} {
		if got := strings.Join(wrap(test.text, test.width), "|"); got != test.want {
			t.Errorf("wrap(%q, %d) is %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct{ text, right, left string }{
		{"short", "short", "short"},
		{"longer text", "longer…", "…r text"},
		{"修复登录问题", "修复登…", "…登录问题"[:3] + "录问题"},
	} {
		if got := cut(test.text, 7); got != test.right {
			t.Errorf("cut(%q) is %q, want %q", test.text, got, test.right)
		}
		if got := cutLeft(test.text, 7); got != test.left {
			t.Errorf("cutLeft(%q) is %q, want %q", test.text, got, test.left)
		}
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"2026-03-01": "2026-02-28T23:00:00Z", "2026-03-01T10:00:00+02:00": "2026-03-01T08:00:00Z", "2026-03-01T10:00:00.5Z": "2026-03-01T10:00:00.5Z",
		"7d": "2026-03-03T12:00:00Z", "12h": "2026-03-10T00:00:00Z", "2w": "2026-02-24T12:00:00Z", "": "0001-01-01T00:00:00Z",
	} {
		got, err := moment("since", text, now, berlin)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("moment(%q) is %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"x", "7", "d", "-7d", "2026-13-01", "7 d"} {
		if _, err := moment("since", text, now, berlin); exitCode(err) != exitUsage {
			t.Errorf("moment(%q) is no error of usage: %v", text, err)
		}
	}
}

// TestConformance calls every command that reads for all sessions of the conformance
// cases: none fails, none prints what could drive a terminal, and all but titles fit 80
// columns.
func TestConformance(t *testing.T) {
	sessions := filepath.Join("..", "..", "testdata", "conformance", "sessions")
	db := filepath.Join(t.TempDir(), "pidb.db")
	pidb := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, err strings.Builder
		if code := run(t.Context(), append([]string{"--db", db, "--no-sync"}, args...), func(string) string { return "" }, strings.NewReader(""), &out, &err); code != exitDone {
			t.Fatalf("pidb %s ended with %d: %s", strings.Join(args, " "), code, err.String())
		}
		for _, r := range out.String() + err.String() {
			if args[0] == "export" {
				break // the file as it is
			}
			if r < ' ' && r != '\n' || isHarmful(r) {
				t.Errorf("pidb %s prints %U", strings.Join(args, " "), r)
				break
			}
		}
		return out.String(), err.String()
	}
	pidb("import", sessions)
	list, _ := pidb("ls", "--json", "--limit", "0", "--archived")
	pidb("ls", "--limit", "0", "--archived")
	n := 0
	for line := range strings.Lines(list) {
		var s sessionJSON
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		n++
		key := fmt.Sprintf("#%d", s.Session)
		for _, command := range [][]string{{"show"}, {"show", "--all"}, {"tree", "--all"}, {"context", "--llm"}, {"entries"}} {
			out, _ := pidb(append(command, key)...)
			first, rest, _ := strings.Cut(out, "\n")
			if title := head(cmp.Or(s.Name, s.FirstMessage), wholeTitle); (command[0] == "show" || command[0] == "tree") && first == title {
				out = rest
			}
			for line := range strings.Lines(out) {
				if line = strings.TrimSuffix(line, "\n"); command[0] != "entries" && cut(line, 80) != line {
					t.Errorf("pidb %s %s: wider than 80 columns: %s", strings.Join(command, " "), s.ID, line)
				}
			}
			out, _ = pidb(append(command, key, "--json")...)
			for line := range strings.Lines(out) {
				if !json.Valid([]byte(line)) {
					t.Errorf("pidb %s %s --json: %s", strings.Join(command, " "), s.ID, line)
				}
			}
		}
		pidb("export", key, "--form", "normalized")
		pidb("verify", key)
	}
	if n < 50 {
		t.Errorf("%d sessions, want at least 50", n)
	}
}
