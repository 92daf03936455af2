package repo_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// processes are what the test binary does instead of tests where it is started with the
// variable that is named, on the lines of its value.
var processes = map[string]func(ctx context.Context, args []string) error{"PIDB_TEST_APPEND": appendMany, "PIDB_TEST_TICK": tick}

func TestMain(m *testing.M) {
	for name, do := range processes {
		if spec := os.Getenv(name); spec != "" {
			if err := do(context.Background(), strings.Split(spec, "\n")); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// appendMany appends messages that name their writer and their number to a session.
func appendMany(ctx context.Context, args []string) error {
	path, session, writer, insist := args[0], args[1], args[2], args[4] == "true"
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	a, err := repo.Open(ctx, path, nil)
	if err != nil {
		return err
	}
	defer a.Close()
	s, err := a.OpenSession(ctx, session)
	if err != nil {
		return err
	}
	for i := range n {
		message := repo.Message(jsonl.Members{{Key: "role", Value: "user"}, {Key: "content", Value: fmt.Sprintf("writer %s number %d", writer, i)}})
		if !insist {
			ids, err := s.Append(ctx, message)
			if err != nil {
				return err
			}
			fmt.Println(ids[0])
			continue
		}
		for {
			_, err := s.AppendIfLeaf(ctx, s.Leaf(), message)
			if err == nil {
				break
			}
			if !errors.Is(err, repo.ErrConflict) {
				return err
			}
			if err := s.Refresh(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// Eight processes append to one session or to one each, with and without IfLeaf, while
// others read and search. PIDB_CONTENTION says how many entries each appends.
func TestContention(t *testing.T) {
	const writers = 8
	n := 60
	if many := os.Getenv("PIDB_CONTENTION"); many != "" {
		var err error
		if n, err = strconv.Atoi(many); err != nil {
			t.Fatal(err)
		}
	}
	for _, insist := range []bool{false, true} {
		for _, shared := range []bool{true, false} {
			t.Run(fmt.Sprintf("shared=%v/ifleaf=%v", shared, insist), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "pidb.db")
				a, err := repo.Open(t.Context(), path, nil)
				if err != nil {
					t.Fatal(err)
				}
				// The checks at the end are those of another handle: FTS5's own may take what it
				// remembers of an index that others have changed since for damage.
				openAt(t, path, nil)
				defer a.Close()
				var list []*repo.Session
				for range writers {
					if len(list) == 0 || !shared {
						list = append(list, create(t, a, nil))
					}
				}
				contend(t, a, path, list, writers, n, insist)
				for i, s := range list {
					if shared {
						checkWritten(t, a, s, writers, n, insist)
					} else {
						checkAlone(t, s, i, n)
					}
				}
			})
		}
	}
}

// contend starts the writers, reads and searches until they are done, and shows their errors.
func contend(t *testing.T, a *repo.Archive, path string, list []*repo.Session, writers, n int, insist bool) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var readers sync.WaitGroup
	for _, ask := range []func(context.Context, *repo.Archive, *repo.Session) error{searchAll, readAll} {
		readers.Go(func() {
			for ctx.Err() == nil {
				if err := ask(ctx, a, list[0]); err != nil && ctx.Err() == nil {
					t.Errorf("reader: %v", err)
					return
				}
			}
		})
	}
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			cmd := exec.Command(os.Args[0])
			spec := []string{path, list[i%len(list)].ID(), strconv.Itoa(i), strconv.Itoa(n), strconv.FormatBool(insist)}
			cmd.Env = append(os.Environ(), "PIDB_TEST_APPEND="+strings.Join(spec, "\n"))
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Run(); err != nil {
				t.Errorf("writer %d: %v: %s", i, err, stderr.String())
			}
		})
	}
	running.Wait()
	stop()
	readers.Wait()
}

// searchAll brings the index up to date and searches; each hit must be whole.
func searchAll(ctx context.Context, a *repo.Archive, _ *repo.Session) error {
	if err := a.UpdateIndex(ctx, nil); err != nil {
		return err
	}
	return a.View(ctx, func(rx *query.Rx) error {
		found, err := rx.Search(ctx, "writer number", nil)
		if err != nil {
			return err
		}
		for _, hit := range found.Hits {
			if !strings.HasPrefix(hit.Snippet.Text, "writer ") {
				return fmt.Errorf("torn: %q", hit.Snippet.Text)
			}
		}
		return nil
	})
}

// readAll asks for the context at the leaf and for a listing; both must fit each other.
func readAll(ctx context.Context, a *repo.Archive, s *repo.Session) error {
	return a.View(ctx, func(rx *query.Rx) error {
		if _, _, err := rx.List(ctx, nil); err != nil {
			return err
		}
		info, err := rx.Session(ctx, s.Key())
		if err != nil || info.Leaf == 0 {
			return err
		}
		c, err := rx.Context(ctx, info.Leaf)
		if err == nil && int64(len(c.Messages)) > info.Messages {
			err = fmt.Errorf("%d messages in the context, %d in the session", len(c.Messages), info.Messages)
		}
		return err
	})
}

// written returns the texts of a session's messages in file order, with their entries.
func written(t *testing.T, a *repo.Archive, s *repo.Session) (texts []string, entries []query.Entry) {
	t.Helper()
	err := a.View(t.Context(), func(rx *query.Rx) error {
		for e, err := range rx.Entries(t.Context(), s.Key(), &query.EntriesOptions{Types: []string{"message"}}) {
			if err != nil {
				return err
			}
			line, err := rx.Raw(t.Context(), e.Ref)
			if err != nil {
				return err
			}
			var doc jsonl.Doc
			if err := doc.Parse(line); err != nil {
				return err
			}
			text, _ := doc.Root().Get("message").Get("content").Text()
			texts, entries = append(texts, text), append(entries, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts, entries
}

// checkWritten looks at a session that all writers had: every message once, those of a
// writer in order; each under that writer's last one, or under the one before it in the file.
func checkWritten(t *testing.T, a *repo.Archive, s *repo.Session, writers, n int, insist bool) {
	t.Helper()
	texts, entries := written(t, a, s)
	if len(texts) != writers*n {
		t.Fatalf("%d messages, not %d", len(texts), writers*n)
	}
	next := make([]int, writers)
	last := make([]query.Ref, writers)
	for i, text := range texts {
		var writer, number int
		if _, err := fmt.Sscanf(text, "writer %d number %d", &writer, &number); err != nil {
			t.Fatalf("torn: %q", text)
		}
		if number != next[writer] {
			t.Errorf("writer %d: number %d came after %d", writer, number, next[writer]-1)
		}
		want := last[writer]
		if insist && i > 0 {
			want = entries[i-1].Ref
		}
		// A writer begins at the leaf that the session has when it comes.
		if entries[i].Parent != want && (insist || number > 0) {
			t.Errorf("%q is under %d, not %d", text, entries[i].Parent, want)
		}
		next[writer], last[writer] = number+1, entries[i].Ref
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tips := int64(writers)
	if insist {
		tips = 1
	}
	if info.Tips > tips || info.Leaf != entries[len(entries)-1].Ref {
		t.Errorf("%d tips, leaf %d", info.Tips, info.Leaf)
	}
}

// checkAlone looks at a session that one writer had.
func checkAlone(t *testing.T, s *repo.Session, writer, n int) {
	t.Helper()
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	path, err := s.Path(t.Context())
	if err != nil || len(path) != n {
		t.Errorf("writer %d: a path of %d, %v", writer, len(path), err)
	}
}

// What was acknowledged is there after a kill, and what is there is whole: the checks at
// the end of the test see to that.
func TestKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	a := openAt(t, path, nil)
	s := create(t, a, nil)
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "PIDB_TEST_APPEND="+strings.Join([]string{path, s.ID(), strconv.Itoa(round), "1000000", "false"}, "\n"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var ids []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if ids = append(ids, lines.Text()); len(ids) == 40+17*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // it was killed
		at := refs(t, a, s.Key())
		for _, id := range ids {
			if at[id] == 0 {
				t.Errorf("round %d: %s was acknowledged and is lost", round, id)
			}
		}
	}
}
