package repo_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"pidb/jsonl"
	"pidb/migrations"
	"pidb/query"
	"pidb/repo"
)

// programEnv names the variable with the program that the test binary is, and its arguments.
const programEnv = "PIDB_TEST_PROGRAM"

// programs are what a test may start as a process of its own, and kill.
var programs = map[string]func(ctx context.Context, args []string) error{}

// program returns the command that runs a program.
func program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programEnv+"="+strings.Join(append([]string{name}, args...), "\n"))
	return cmd
}

func init() {
	processes[programEnv] = func(ctx context.Context, args []string) error { return programs[args[0]](ctx, args[1:]) }
	for name, work := range crashWork {
		programs["crash "+name] = func(ctx context.Context, args []string) error {
			return crashing(ctx, work, args)
		}
	}
	programs["crash migrate"] = func(ctx context.Context, args []string) error {
		fmt.Println("ready")
		a, err := repo.Open(ctx, filepath.Join(args[0], "pidb.db"), nil)
		if err != nil {
			return err
		}
		defer a.Close()
		fmt.Println("open")
		time.Sleep(time.Hour)
		return nil
	}
}

// number returns the whole number in a variable of the environment, or another one where there is none.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// crashWork are the programs that are killed: each does its work once, and says on standard
// output what it is about to do and what is done. round tells one time from another.
var crashWork = map[string]func(w *crashWriter, round string) error{
	"append":  (*crashWriter).appends,
	"import":  (*crashWriter).imports,
	"bulk":    (*crashWriter).bulk,
	"fork":    (*crashWriter).forks,
	"delete":  (*crashWriter).deletes,
	"index":   (*crashWriter).indexes,
	"rebuild": (*crashWriter).rebuilds,
	"backup":  (*crashWriter).backups,
	"merge":   (*crashWriter).merges,
	"prune":   (*crashWriter).prunes,
	"vacuum":  (*crashWriter).vacuums,
}

// crashWriter is the program that works until it is killed.
type crashWriter struct {
	ctx  context.Context
	dir  string
	a    *repo.Archive
	rand *rand.Rand
}

func crashing(ctx context.Context, work func(*crashWriter, string) error, args []string) error {
	seed, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return err
	}
	w := &crashWriter{ctx: ctx, dir: args[0], rand: rand.New(rand.NewPCG(seed, 1))}
	if w.a, err = repo.Open(ctx, filepath.Join(w.dir, "pidb.db"), nil); err != nil {
		return err
	}
	defer w.a.Close()
	fmt.Println("ready")
	for i := 0; ; i++ {
		if err := work(w, fmt.Sprintf("%s-%d", args[1], i)); err != nil {
			return err
		}
	}
}

// sum returns the hash of an export.
func (w *crashWriter) sum(session query.Key) (string, error) {
	h := sha256.New()
	err := w.a.Export(w.ctx, session, h)
	return hex.EncodeToString(h.Sum(nil)), err
}

// born makes a session with some entries and says so.
func (w *crashWriter) born(round string) (*repo.Session, error) {
	s, err := w.bornIn(round)
	if err != nil {
		return nil, err
	}
	sum, err := w.sum(s.Key())
	fmt.Println("kept", s.Key(), sum)
	return s, err
}

// bornIn makes a session with some entries.
func (w *crashWriter) bornIn(round string) (*repo.Session, error) {
	s, err := w.a.Create(w.ctx, "/work", &repo.CreateOptions{ID: "s-" + round})
	if err != nil {
		return nil, err
	}
	var entries []repo.NewEntry
	for i := range 1 + w.rand.IntN(20) {
		entries = append(entries, said(fmt.Sprintf("needle %s number %d %s", round, i, strings.Repeat("straw ", w.rand.IntN(40)))))
	}
	_, err = s.Append(w.ctx, entries...)
	return s, err
}

func said(text string) repo.NewEntry {
	return repo.Message(jsonl.Members{{Key: "role", Value: "user"}, {Key: "content", Value: text}})
}

// appends appends to the one session of the world, in one to four entries at a time.
func (w *crashWriter) appends(round string) error {
	s, err := w.a.OpenSession(w.ctx, "grows")
	if err != nil {
		return err
	}
	var entries []repo.NewEntry
	for i := range 1 + w.rand.IntN(4) {
		entries = append(entries, said(fmt.Sprintf("%s.%d %s", round, i, strings.Repeat("x", w.rand.IntN(3000)))))
	}
	ids, err := s.Append(w.ctx, entries...)
	for _, id := range ids {
		fmt.Println("entry", id)
	}
	return err
}

// lines makes lines of entries for a file.
func (w *crashWriter) lines(round string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(entry(fmt.Sprintf("%s.%d", round, i), "", fmt.Sprintf("needle %d %s", w.rand.Int64(), strings.Repeat("straw ", w.rand.IntN(60)))))
	}
	return b.String()
}

// imports lets files grow, be rewritten and come, and takes them in.
func (w *crashWriter) imports(round string) error {
	for i := range 6 {
		path := filepath.Join(w.dir, "sources", fmt.Sprintf("f%d.jsonl", w.rand.IntN(12)))
		old, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if len(old) == 0 || w.rand.IntN(12) == 0 {
			// A new file, or one that is written anew.
			old = []byte(strings.Replace(header, "s-1", "f-"+round+strconv.Itoa(i), 1))
		}
		next := path + ".tmp"
		if err := os.WriteFile(next, append(old, w.lines(round+strconv.Itoa(i), w.rand.IntN(50))...), 0o600); err != nil {
			return err
		}
		if err := os.Rename(next, path); err != nil {
			return err
		}
	}
	_, err := w.a.Import(w.ctx, []string{filepath.Join(w.dir, "sources")}, nil)
	fmt.Println("imported")
	return err
}

// bulk takes in a folder that is large enough for several transactions, and parts of one file.
func (w *crashWriter) bulk(string) error {
	_, err := w.a.Import(w.ctx, []string{filepath.Join(w.dir, "bulk")}, &repo.ImportOptions{Rehash: true})
	if err != nil {
		return err
	}
	fmt.Println("all imported")
	var keys []query.Key
	err = w.a.View(w.ctx, func(rx *query.Rx) error {
		list, _, err := rx.List(w.ctx, &query.ListOptions{All: true})
		for i := range list {
			keys = append(keys, list[i].Key)
		}
		return err
	})
	for _, key := range keys {
		if err == nil {
			fmt.Println("forgetting", key)
			_, err = w.a.Delete(w.ctx, key)
		}
	}
	return err
}

// forks copies sessions, whole and in part.
func (w *crashWriter) forks(round string) error {
	s, err := w.born(round)
	if err != nil {
		return err
	}
	forked, err := w.a.Fork(w.ctx, s.Key(), nil)
	if err != nil {
		return err
	}
	sum, err := w.sum(forked.Key())
	if err != nil {
		return err
	}
	fmt.Println("kept", forked.Key(), sum)
	extracted, err := w.a.Extract(w.ctx, s.Leaf(), nil)
	if err != nil {
		return err
	}
	sum, err = w.sum(extracted.Key())
	fmt.Println("kept", extracted.Key(), sum)
	return err
}

// deletes makes sessions and deletes most of them.
func (w *crashWriter) deletes(round string) error {
	s, err := w.born(round)
	if err != nil || w.rand.IntN(4) == 0 {
		return err
	}
	fmt.Println("forgetting", s.Key())
	if _, err := s.Delete(w.ctx); err != nil {
		return err
	}
	fmt.Println("gone", s.Key())
	return nil
}

// indexes feeds the index in many steps, so that segments are merged, and deletes from it.
func (w *crashWriter) indexes(round string) error {
	s, err := w.born(round)
	if err != nil {
		return err
	}
	if err := w.a.UpdateIndex(w.ctx, nil); err != nil || w.rand.IntN(4) > 0 {
		return err
	}
	fmt.Println("forgetting", s.Key())
	if _, err := s.Delete(w.ctx); err != nil {
		return err
	}
	fmt.Println("gone", s.Key())
	return nil
}

// rebuilds makes what is derived anew.
func (w *crashWriter) rebuilds(round string) error {
	if _, err := w.born(round); err != nil {
		return err
	}
	err := w.a.Rebuild(w.ctx, nil)
	fmt.Println("rebuilt")
	return err
}

// backups writes copies.
func (w *crashWriter) backups(round string) error {
	s, err := w.born(round)
	if err != nil {
		return err
	}
	path := filepath.Join(w.dir, "backup-"+round+".db")
	if _, err := w.a.Backup(w.ctx, path, nil); err != nil {
		return err
	}
	fmt.Println("copied", s.Key(), path)
	return nil
}

// merges brings sessions of other archives in.
func (w *crashWriter) merges(round string) error {
	path := filepath.Join(w.dir, "other-"+round+".db")
	other, err := repo.Open(w.ctx, path, nil)
	if err != nil {
		return err
	}
	ours := w.a
	w.a = other
	for i := 0; i < 3 && err == nil; i++ {
		var s *repo.Session
		if s, err = w.bornIn(fmt.Sprintf("%s-%d", round, i)); err == nil {
			_, err = other.Fork(w.ctx, s.Key(), nil)
		}
	}
	w.a = ours
	if err = cmp.Or(err, other.Close()); err != nil {
		return err
	}
	if _, err := w.a.Merge(w.ctx, path, nil); err != nil {
		return err
	}
	for i := range 3 {
		s, err := w.a.OpenSession(w.ctx, fmt.Sprintf("s-%s-%d", round, i))
		if err != nil {
			return err
		}
		sum, err := w.sum(s.Key())
		if err != nil {
			return err
		}
		fmt.Println("kept", s.Key(), sum)
	}
	return nil
}

// prunes makes old versions and takes them out.
func (w *crashWriter) prunes(round string) error {
	if err := w.imports(round); err != nil {
		return err
	}
	_, err := w.a.Prune(w.ctx, &repo.PruneOptions{LastCopies: true})
	fmt.Println("pruned")
	return err
}

// vacuums makes sessions, deletes some, and gives their room back.
func (w *crashWriter) vacuums(round string) error {
	if err := w.deletes(round); err != nil {
		return err
	}
	_, err := w.a.Vacuum(w.ctx, nil)
	fmt.Println("smaller")
	return err
}

// crashWorld is an archive whose writers are killed, and what they said of it.
type crashWorld struct {
	dir, path string
	entries   map[string]bool      // acknowledged entries of the session that grows
	kept      map[query.Key]string // hashes of acknowledged sessions
	gone      map[query.Key]bool   // acknowledged deletions
	copies    map[string]query.Key // acknowledged backups, with a session that each holds
	grown     string               // the session that grows, as it was exported last
	acked     int                  // acknowledgements in all
}

func newCrashWorld(t *testing.T, dir string) *crashWorld {
	t.Helper()
	return &crashWorld{
		dir: dir, path: filepath.Join(dir, "pidb.db"),
		entries: map[string]bool{}, kept: map[query.Key]string{}, gone: map[query.Key]bool{}, copies: map[string]query.Key{},
	}
}

// TestCrashes kills writers at random instants. PIDB_KILLS says how often, PIDB_SEED with
// which instants.
func TestCrashes(t *testing.T) {
	works := []string{"migrate"}
	for name := range crashWork {
		works = append(works, name)
	}
	slices.Sort(works)
	kills := number(t, "PIDB_KILLS", 32)
	seed := uint64(number(t, "PIDB_SEED", 1))
	for i, name := range works {
		n := kills / len(works)
		if i < kills%len(works) {
			n++
		}
		if os.Getenv("PIDB_KILLS") == "" && name == "bulk" {
			n = 0 // each takes as long as ten of the others
		}
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			var world *crashWorld
			acked := 0
			for kill := range n {
				// A new world now and then keeps each kill short.
				if name == "migrate" || kill%25 == 0 {
					if world != nil {
						acked += world.acked
						if err := os.RemoveAll(world.dir); err != nil {
							t.Fatal(err)
						}
					}
					world = newCrashWorld(t, filepath.Join(t.TempDir(), strconv.Itoa(kill)))
					world.begin(t, name)
				}
				world.kill(t, name, random)
				world.check(t, name)
				if t.Failed() {
					t.Fatalf("kill %d of %s, seed %d", kill, name, seed)
				}
			}
			if world != nil {
				t.Logf("%d kills, %d acknowledgements kept", n, acked+world.acked)
			}
		})
	}
}

// begin makes what the program works on.
func (w *crashWorld) begin(t *testing.T, name string) {
	t.Helper()
	switch name {
	case "append":
		a, err := repo.Open(t.Context(), w.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		create(t, a, &repo.CreateOptions{ID: "grows"})
	case "import", "prune":
		write(t, header+user1, w.dir, "sources", "f0.jsonl")
	case "bulk":
		large := strings.Repeat(strings.Repeat("straw ", 500), 40)
		for i := range 4 {
			var b strings.Builder
			b.WriteString(strings.Replace(header, "s-1", fmt.Sprintf("bulk-%d", i), 1))
			for n := 0; b.Len() < []int{36, 14, 14, 1}[i]<<20; n++ {
				b.WriteString(entry(fmt.Sprintf("%d.%d", i, n), "", fmt.Sprintf("%d %d %s", i, n, large)))
			}
			write(t, b.String(), w.dir, "bulk", fmt.Sprintf("b%d.jsonl", i))
		}
	case "migrate":
		w.beginOld(t)
	}
}

// beginOld makes an archive of the first version of the schema with some sessions in it.
func (w *crashWorld) beginOld(t *testing.T) {
	t.Helper()
	source := write(t, header+user1+reply1+user2, w.dir, "sources", "old.jsonl")
	from := filepath.Join(w.dir, "new.db")
	a, err := repo.Open(t.Context(), from, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, source)
	s := create(t, a, nil)
	if _, err := s.Append(t.Context(), said("one"), said("two")); err != nil {
		t.Fatal(err)
	}
	for _, key := range []query.Key{s.Key(), bySource(t, a, source).Key} {
		sum := sha256.Sum256([]byte(exported(t, a, key)))
		w.kept[key] = hex.EncodeToString(sum[:])
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	oldArchive(t, w.path, from)
}

// oldArchive makes an archive of the first version of the schema at path with all of another archive that it can hold.
func oldArchive(t *testing.T, path, from string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS(filepath.Join("..", "migrations", "archive")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	exec := func(statement string, args ...any) {
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec(`ATTACH ? AS new`, from)
	rows, err := db.Query(`
		SELECT t.name, (SELECT group_concat(c.name) FROM pragma_table_info(t.name) c) FROM main.sqlite_schema t
		WHERE t.type = 'table' AND t.name NOT LIKE 'goose%' AND t.name NOT LIKE 'sqlite%'`)
	if err != nil {
		t.Fatal(err)
	}
	var copies []string
	for rows.Next() {
		var table, columns string
		if err := rows.Scan(&table, &columns); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, `INSERT OR REPLACE INTO main.`+table+` (`+columns+`) SELECT `+columns+` FROM new.`+table)
	}
	if err := cmp.Or(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	exec(`PRAGMA foreign_keys = OFF`)
	for _, statement := range copies {
		exec(statement)
	}
}

// kill starts a program, kills it at a random instant, and notes what it said.
func (w *crashWorld) kill(t *testing.T, name string, random *rand.Rand) {
	t.Helper()
	cmd := program("crash "+name, w.dir, strconv.FormatUint(random.Uint64()>>33, 10))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		_ = cmd.Wait()
		t.Fatalf("the program said %q, %v: %s", line, err, stderr.String())
	}
	within := 150 * time.Millisecond
	switch name {
	case "bulk":
		within = 1500 * time.Millisecond
	case "merge":
		within = time.Second
	case "import", "rebuild", "prune", "vacuum", "backup":
		within = 400 * time.Millisecond
	case "migrate":
		within = 40 * time.Millisecond
	}
	timer := time.AfterFunc(time.Duration(random.Int64N(int64(within))), func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	for {
		line, err := said.ReadString('\n')
		if err != nil {
			break // half a line was not said
		}
		w.heard(t, strings.Fields(line))
	}
	_ = cmd.Wait() // it was killed
	if stderr.Len() > 0 {
		t.Errorf("the program failed: %s", stderr.String())
	}
}

func (w *crashWorld) heard(t *testing.T, words []string) {
	t.Helper()
	w.acked++
	var key query.Key
	if len(words) > 1 && words[0] != "entry" {
		n, err := strconv.ParseInt(words[1], 10, 64)
		if key = query.Key(n); err != nil {
			w.acked--
			return // words without a key
		}
	}
	switch words[0] {
	case "entry":
		w.entries[words[1]] = true
	case "kept":
		w.kept[key] = words[2]
	case "forgetting":
		delete(w.kept, key)
		w.acked--
	case "copied":
		w.copies[words[2]] = key
	case "gone":
		w.gone[key] = true
	}
}

// check opens the archive after a kill and looks whether all is there and the work can go on.
func (w *crashWorld) check(t *testing.T, name string) {
	t.Helper()
	a, err := repo.Open(t.Context(), w.path, nil)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer a.Close()
	isWhole(t, a)
	there := map[query.Key]string{}
	for _, s := range sessions(t, a) {
		text := exported(t, a, s.Key)
		sum := sha256.Sum256([]byte(text))
		there[s.Key] = hex.EncodeToString(sum[:])
		if s.ID == "grows" {
			w.checkGrown(t, a, s.Key, text)
		}
		if s.Path != "" && s.State == query.Live && name != "migrate" {
			file, err := os.ReadFile(s.Path)
			if err != nil {
				t.Fatal(err)
			}
			// The kill may have come between the write of a file and its import.
			if !strings.HasPrefix(string(file), text) && name == "bulk" {
				t.Errorf("%s: what is exported is no part of the file", s.Path)
			}
		}
	}
	for key, sum := range w.kept {
		if there[key] != sum {
			t.Errorf("session #%d was acknowledged; its hash is %q, not %q", key, there[key], sum)
		}
	}
	for key := range w.gone {
		if there[key] != "" {
			t.Errorf("session #%d was deleted and is there", key)
		}
	}
	w.checkCopies(t)
	w.goesOn(t, a, name)
}

// checkCopies opens the backups that were made since the last time, and removes them.
func (w *crashWorld) checkCopies(t *testing.T) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(w.dir, "backup-*.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		a, err := repo.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatalf("a backup that has its name: %v", err)
		}
		isWhole(t, a)
		if key, ok := w.copies[path]; ok {
			sum := sha256.Sum256([]byte(exported(t, a, key)))
			if hex.EncodeToString(sum[:]) != w.kept[key] {
				t.Errorf("backup %s holds session #%d with other bytes", path, key)
			}
			delete(w.copies, path)
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		removeFile(t, path)
		removeFile(t, a.IndexPath())
	}
	if len(w.copies) > 0 {
		t.Errorf("backups were acknowledged and are not there: %v", w.copies)
	}
}

// isWhole checks an archive, its index and its bytes.
func isWhole(t *testing.T, a *repo.Archive) {
	t.Helper()
	checked, err := a.Check(t.Context())
	if err != nil {
		t.Fatalf("check: %v", err)
	}
	for _, finding := range checked.Findings {
		t.Errorf("check: %s: %s", finding.Area, finding.Detail)
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	for _, failure := range proof.Failed {
		t.Errorf("verify: session #%d: %v", failure.Session, failure.Err)
	}
}

func (w *crashWorld) checkGrown(t *testing.T, a *repo.Archive, session query.Key, text string) {
	t.Helper()
	if !strings.HasPrefix(text, w.grown) {
		t.Errorf("the session that grows does not begin with what it was")
	}
	w.grown = text
	at := refs(t, a, session)
	for id := range w.entries {
		if at[id] == 0 {
			t.Errorf("entry %s was acknowledged and is lost", id)
		}
	}
}

// goesOn does some work on the archive and checks what comes of it.
func (w *crashWorld) goesOn(t *testing.T, a *repo.Archive, name string) {
	t.Helper()
	folder := map[string]string{"import": "sources", "prune": "sources", "bulk": "bulk"}[name]
	if folder != "" {
		importPaths(t, a, filepath.Join(w.dir, folder))
		for _, s := range sessions(t, a) {
			if s.State != query.Live || s.Path == "" {
				continue
			}
			file, err := os.ReadFile(s.Path)
			if err != nil || string(file) != exported(t, a, s.Key) {
				t.Errorf("%s: the export is not the file, %v", s.Path, err)
			}
		}
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatalf("update index: %v", err)
	}
	s := create(t, a, nil)
	if _, err := s.Append(t.Context(), said("haystack of "+s.ID())); err != nil {
		t.Fatalf("append: %v", err)
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatalf("update index: %v", err)
	}
	if n := len(search(t, a, `"haystack of `+s.ID()+`"`)); n != 1 {
		t.Errorf("%d hits for what was appended, want 1", n)
	}
	w.checkFound(t, a)
	if name == "rebuild" {
		if err := a.Rebuild(t.Context(), nil); err != nil {
			t.Fatalf("rebuild: %v", err)
		}
		w.checkFound(t, a)
	}
	if name == "migrate" {
		if err := s.SetMetadata(t.Context(), map[string]any{"a": 1}); err != nil {
			t.Errorf("what the new schema has: %v", err)
		}
		version := 0
		db, err := sql.Open("sqlite", w.path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow(`PRAGMA user_version`).Scan(&version); err != nil || version != migrations.Version {
			t.Errorf("version %d, %v", version, err)
		}
	}
	isWhole(t, a)
}

// checkFound compares what a word finds with the entries that have it.
func (w *crashWorld) checkFound(t *testing.T, a *repo.Archive) {
	t.Helper()
	err := a.View(t.Context(), func(rx *query.Rx) error {
		list, _, err := rx.List(t.Context(), &query.ListOptions{All: true})
		if err != nil {
			return err
		}
		result, err := rx.Search(t.Context(), "needle", &query.SearchOptions{All: true})
		if err != nil {
			return err
		}
		for i := range list {
			var text bytes.Buffer
			if _, err := rx.Write(t.Context(), list[i].Key, 0, &text); err != nil {
				return err
			}
			if want := bytes.Count(text.Bytes(), []byte("needle ")); result.Counts[list[i].Key] != want {
				t.Errorf("%d entries of session #%d are found, want %d", result.Counts[list[i].Key], list[i].Key, want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
