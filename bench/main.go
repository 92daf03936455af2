// Command bench times whole processes of pidb over a folder of session files, beside pi,
// ripgrep and an empty program, and prints a table in Markdown: for each row the median,
// the least and the greatest of several runs, which take turns so that a noisy machine
// troubles all alike.
//
//	go run ./bench [-runs 5] [-pidb FILE] [-words a,b,…] DIR
//
// The folder is only read. With PIDB_PI naming a folder that has the real pi in its
// node_modules, one call of SessionManager.listAll over the same files is a row, and the
// others are given as multiples of it too. The ten searches need the words of the corpus
// they are asked of; the defaults are those of a generated one.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var out bytes.Buffer
	err := run(context.Background(), os.Args[1:], &out)
	if _, writeErr := out.WriteTo(os.Stdout); err == nil {
		err = writeErr
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// row is something that is timed.
type row struct {
	name    string
	before  func() error // made ready for each run; not timed
	command []string
	env     []string
	times   []time.Duration
	memory  int64 // greatest, in bytes
}

// bench is one run of the program.
type bench struct {
	runs   int
	pidb   string
	corpus string
	dir    string // scratch
	out    *bytes.Buffer
	words  []string
}

func run(ctx context.Context, args []string, out *bytes.Buffer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	b := bench{out: out}
	flags.IntVar(&b.runs, "runs", 5, "how often each command runs")
	flags.StringVar(&b.pidb, "pidb", "", "the binary; empty: it is built from this folder")
	words := flags.String("words", "needle00005quartz,ZetaParserError,of,\"error retry\",err*,error retry,修复,okenCach,okenC[a-z]+e,nosuchwordx",
		"what is searched: a rare word, a word with many hits, the commonest, a phrase, a prefix, two words, CJK, a substring, a regular expression, nothing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one folder of session files is needed")
	}
	if b.words = strings.Split(*words, ","); len(b.words) != 10 {
		return errors.New("-words takes ten searches")
	}
	if b.corpus, err = filepath.Abs(flags.Arg(0)); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "pidb-bench-*"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	return b.run(ctx)
}

func (b *bench) run(ctx context.Context) error {
	if b.pidb == "" {
		b.pidb = filepath.Join(b.dir, "pidb")
		if err := build(ctx, b.pidb, "./cmd/pidb"); err != nil {
			return err
		}
	}
	source, largest, err := measure(b.corpus)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "%d files, %d MB; %d runs a row\n\n", source.files, source.bytes>>20, b.runs)
	rows, err := b.rows(ctx, largest)
	if err != nil {
		return err
	}
	for range b.runs {
		for _, r := range rows {
			if err := r.once(ctx); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	var unit time.Duration
	for _, r := range rows {
		if r.name == listAll {
			unit = r.median()
		}
	}
	fmt.Fprintln(b.out, "| | median | least | greatest | × listAll | memory |\n|---|---|---|---|---|---|")
	for _, r := range rows {
		beside := ""
		if unit > 0 {
			beside = fmt.Sprintf("%.2f", float64(r.median())/float64(unit))
		}
		fmt.Fprintf(b.out, "| %s | %s | %s | %s | %s | %d MB |\n", r.name, short(r.median()), short(slices.Min(r.times)), short(slices.Max(r.times)), beside, r.memory>>20)
	}
	archive, _, err := measure(filepath.Join(b.dir, "archive"))
	if err != nil {
		return err
	}
	fmt.Fprintln(b.out, "\nThe memory of a small command is that of this program, from which it was started, at least.")
	fmt.Fprintf(b.out, "\narchive and index: %d MB, %.2f of the source\n", archive.bytes>>20, float64(archive.bytes)/float64(source.bytes))
	return nil
}

const listAll = "pi: SessionManager.listAll"

// rows returns what is to be timed, in the order of a run: the import comes first.
func (b *bench) rows(ctx context.Context, largest string) ([]*row, error) {
	archive := filepath.Join(b.dir, "archive")
	db := filepath.Join(archive, "pidb.db")
	grown := filepath.Join(b.dir, "grown", "s.jsonl")
	if err := copyFile(largest, grown); err != nil {
		return nil, err
	}
	empty := filepath.Join(b.dir, "empty")
	if err := os.WriteFile(empty+".go", []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		return nil, err
	}
	if err := build(ctx, empty, empty+".go"); err != nil {
		return nil, err
	}
	pidb := func(args ...string) []string {
		return append([]string{b.pidb, "--db", db, "--root", b.corpus}, args...)
	}
	rows := []*row{
		{name: "an empty program", command: []string{empty}},
		{name: "pidb version", command: []string{b.pidb, "version"}},
		{name: "cold import, all of it searchable", before: func() error { return os.RemoveAll(archive) }, command: pidb("import", b.corpus)},
		{name: "import again, nothing changed", command: pidb("import", b.corpus)},
		{name: "the largest file alone", command: pidb("import", grown)},
		{name: "import, one line more in the largest file", before: func() error { return appendLine(grown) }, command: pidb("import", grown)},
		{name: "ls --limit 200, with the check", command: pidb("ls", "--limit", "200")},
		{name: "export of everything", before: func() error { return os.RemoveAll(filepath.Join(b.dir, "out")) }, command: pidb("--no-sync", "export", "--all", "-o", filepath.Join(b.dir, "out"))},
	}
	kinds := []string{"a rare word", "a word with many hits", "the commonest word", "a phrase", "a prefix", "two common words", "CJK", "a substring", "a regular expression", "no hits"}
	for i, kind := range kinds {
		args := []string{"search", b.words[i]}
		switch kind {
		case "a substring":
			args = append(args, "--substring")
		case "a regular expression":
			args = append(args, "--regex")
		}
		rows = append(rows, &row{name: "search, with the check: " + kind, command: pidb(args...)})
	}
	if rg, err := exec.LookPath("rg"); err == nil {
		rows = append(rows, &row{name: "rg -l, a word with many hits", command: []string{rg, "-l", b.words[1], b.corpus}})
	}
	for _, peer := range []string{"agentsview", "deja", "gsc"} {
		if _, err := exec.LookPath(peer); err == nil {
			rows = append(rows, &row{name: peer + " --version (how to run it is not known here)", command: []string{peer, "--version"}})
		}
	}
	if pi := os.Getenv("PIDB_PI"); pi != "" {
		agent, script := filepath.Join(b.dir, "agent"), filepath.Join(b.dir, "listall.mjs")
		if err := os.MkdirAll(agent, 0o700); err != nil {
			return nil, err
		}
		if err := os.Symlink(b.corpus, filepath.Join(agent, "sessions")); err != nil {
			return nil, err
		}
		text := fmt.Sprintf("import { SessionManager } from %q;\nif ((await SessionManager.listAll()).length === 0) process.exit(1);\n",
			filepath.Join(pi, "node_modules/@earendil-works/pi-coding-agent/dist/core/session-manager.js"))
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return nil, err
		}
		rows = append(rows, &row{name: listAll, env: []string{"PI_CODING_AGENT_DIR=" + agent}, command: []string{filepath.Join(pi, "node_modules/node/bin/node"), script}})
	}
	return rows, nil
}

// once runs the command once.
func (r *row) once(ctx context.Context) error {
	if r.before != nil {
		if err := r.before(); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	cmd.Env = append(append(os.Environ(), "NO_COLOR=1"), r.env...)
	began := time.Now()
	output, err := cmd.CombinedOutput()
	r.times = append(r.times, time.Since(began))
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = max(r.memory, int64(usage.Maxrss)<<10)
	}
	return nil
}

func (r *row) median() time.Duration {
	times := slices.Sorted(slices.Values(r.times))
	return times[len(times)/2]
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

func build(ctx context.Context, to, what string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, what)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", what, err, output)
	}
	return nil
}

// size is files and what they hold.
type size struct {
	files int
	bytes int64
}

// measure returns the size of a folder and its largest file.
func measure(dir string) (total size, largest string, err error) {
	most := int64(-1)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		total.files++
		total.bytes += info.Size()
		if info.Size() > most {
			most, largest = info.Size(), path
		}
		return nil
	})
	if err == nil && total.files == 0 {
		err = fmt.Errorf("no file in %s", dir)
	}
	return total, largest, err
}

func copyFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}

// appendLine adds a line to a file, as an agent does.
func appendLine(path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, `{"type":"message","id":"%08x","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"one line more"}}`+"\n", time.Now().UnixNano()&0xffffffff)
	return errors.Join(err, file.Close())
}
