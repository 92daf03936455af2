package repo_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"modernc.org/sqlite"

	"pidb/query"
	"pidb/repo"
)

var errInjected = errors.New("this step fails")

// stepper makes the n-th step of the connections of an archive fail, or calls a function
// at it. A step is a statement, the begin of a transaction, or its end.
type stepper struct {
	left atomic.Int64 // steps until then
	at   func() error
}

func (s *stepper) step() error {
	if s.left.Add(-1) == 0 {
		return s.at()
	}
	return nil
}

func (s *stepper) wrap(c driver.Connector) driver.Connector { return stepConnector{c, s} }

type stepConnector struct {
	driver.Connector
	steps *stepper
}

func (c stepConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return stepConn{conn.(driverConn), c.steps}, nil
}

// driverConn is what the connections of the driver can do, as far as it is used.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
	NewRestore(string) (*sqlite.Backup, error)
}

type stepConn struct {
	driverConn
	steps *stepper
}

func (c stepConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.steps.step(); err != nil {
		return nil, err
	}
	tx, err := c.driverConn.BeginTx(ctx, opts)
	return stepTx{tx, c.steps}, err
}

func (c stepConn) PrepareContext(ctx context.Context, statement string) (driver.Stmt, error) {
	stmt, err := c.driverConn.PrepareContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	return stepStmt{stmt.(driverStmt), c.steps}, nil
}

func (c stepConn) ExecContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.steps.step(); err != nil {
		return nil, err
	}
	return c.driverConn.ExecContext(ctx, statement, args)
}

func (c stepConn) QueryContext(ctx context.Context, statement string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.steps.step(); err != nil {
		return nil, err
	}
	return c.driverConn.QueryContext(ctx, statement, args)
}

type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stepStmt struct {
	driverStmt
	steps *stepper
}

func (s stepStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.steps.step(); err != nil {
		return nil, err
	}
	return s.driverStmt.ExecContext(ctx, args)
}

func (s stepStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.steps.step(); err != nil {
		return nil, err
	}
	return s.driverStmt.QueryContext(ctx, args)
}

type stepTx struct {
	driver.Tx
	steps *stepper
}

func (t stepTx) Commit() error {
	if err := t.steps.step(); err != nil {
		// A transaction whose commit failed is undone.
		return errors.Join(err, t.Tx.Rollback())
	}
	return t.Tx.Commit()
}

// stepCalls are calls in which a step fails. Each works on the archive that faultWorld makes.
var stepCalls = []struct {
	name  string
	whole bool // all or nothing
	do    func(ctx context.Context, a *repo.Archive, dir string) error
}{
	{"create", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		_, err := a.Create(ctx, "/work", nil)
		return err
	}},
	{"append", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		s, err := a.OpenSession(ctx, "grows")
		if err != nil {
			return err
		}
		_, err = s.Append(ctx, said("one"), said("two"))
		return err
	}},
	{"fork", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		s, err := a.OpenSession(ctx, "grows")
		if err != nil {
			return err
		}
		_, err = a.Fork(ctx, s.Key(), nil)
		return err
	}},
	{"delete", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		s, err := a.OpenSession(ctx, "grows")
		if errors.Is(err, repo.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = s.Delete(ctx)
		return err
	}},
	{"branch", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		s, err := a.OpenSession(ctx, "grows")
		if err != nil {
			return err
		}
		return s.ResetLeaf(ctx)
	}},
	{"import", false, func(ctx context.Context, a *repo.Archive, dir string) error {
		result, err := a.Import(ctx, []string{filepath.Join(dir, "more")}, nil)
		if err == nil {
			err = result.IndexErr
		}
		return err
	}},
	{"index", true, func(ctx context.Context, a *repo.Archive, _ string) error { return a.UpdateIndex(ctx, nil) }},
	{"rebuild", true, func(ctx context.Context, a *repo.Archive, _ string) error { return a.Rebuild(ctx, nil) }},
	{"merge", false, func(ctx context.Context, a *repo.Archive, dir string) error {
		_, err := a.Merge(ctx, filepath.Join(dir, "other.db"), nil)
		return err
	}},
	{"prune", false, func(ctx context.Context, a *repo.Archive, _ string) error {
		_, err := a.Prune(ctx, &repo.PruneOptions{LastCopies: true})
		return err
	}},
	{"backup", true, func(ctx context.Context, a *repo.Archive, dir string) error {
		_, err := a.Backup(ctx, filepath.Join(dir, "copy.db"), &repo.BackupOptions{Replace: true})
		return err
	}},
	{"vacuum", true, func(ctx context.Context, a *repo.Archive, _ string) error {
		_, err := a.Vacuum(ctx, nil)
		return err
	}},
	{"export", true, func(ctx context.Context, a *repo.Archive, dir string) error {
		result, err := a.ExportAll(ctx, filepath.Join(dir, "out"), nil)
		if err == nil && len(result.Failed) > 0 {
			err = result.Failed[0].Err
		}
		return err
	}},
}

// faultWorld makes an archive, one to merge, and files to import, and returns the bytes of
// the archive's files by their names.
func faultWorld(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	path := filepath.Join(dir, "pidb.db")
	spoiltSessions(t, path)
	for _, at := range []string{path, filepath.Join(dir, "other.db")} {
		a, err := repo.Open(t.Context(), at, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := create(t, a, &repo.CreateOptions{ID: "grows" + strings.Repeat("-there", strings.Count(at, "other"))})
		appendTo(t, s, said("begins"), said("goes on"))
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		write(t, strings.Replace(header, "s-1", fmt.Sprint("m-", i), 1)+user1+reply1, dir, "more", fmt.Sprint(i, ".jsonl"))
	}
	files := map[string][]byte{}
	for _, name := range []string{"pidb.db", "pidb.index.db"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
	}
	return files
}

// state returns the sessions of an archive by what tells them in any order.
func state(t *testing.T, a *repo.Archive) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, s := range sessions(t, a) {
		text := exported(t, a, s.Key)
		// What a call makes has other ids and times each time.
		out[fmt.Sprintf("%s, %s, version %d, %d lines, leaf %d, %d bytes", s.Path, s.State, s.Version, strings.Count(text, "\n"), s.Leaf.Seq(), len(text))]++
	}
	return out
}

// TestSteps lets one step of a call fail, or ends its context there: what the call does is
// done or not done, and the archive is whole. PIDB_FAULTS says how many steps of each call
// are tried, PIDB_SEED which ones.
func TestSteps(t *testing.T) {
	dir := t.TempDir()
	files := faultWorld(t, dir)
	path := filepath.Join(dir, "pidb.db")
	fresh := func() *repo.Archive {
		for _, name := range []string{"copy.db", "pidb.db-wal", "pidb.db-shm", "pidb.index.db-wal", "pidb.index.db-shm"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			write(t, string(text), dir, name)
		}
		a, err := repo.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	tries := number(t, "PIDB_FAULTS", 1)
	seed := uint64(number(t, "PIDB_SEED", 1))
	for i, call := range stepCalls {
		t.Run(call.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			a := fresh()
			before := state(t, a)
			count := &stepper{at: func() error { return nil }}
			if err := a.Wrap(count.wrap); err != nil {
				t.Fatal(err)
			}
			if err := call.do(t.Context(), a, dir); err != nil {
				t.Fatalf("without a fault: %v", err)
			}
			steps := -count.left.Load()
			after := state(t, a)
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for try := range 2 * tries {
				a := fresh()
				ctx, cancel := context.WithCancel(t.Context())
				n := 1 + random.Int64N(max(steps, 1))
				s := &stepper{at: func() error { return errInjected }}
				what := fmt.Sprintf("step %d of %d fails", n, steps)
				if try%2 == 1 {
					s.at = func() error { cancel(); return nil }
					what = fmt.Sprintf("the context ends at step %d of %d", n, steps)
				}
				s.left.Store(n)
				if err := a.Wrap(s.wrap); err != nil {
					t.Fatal(err)
				}
				err := call.do(ctx, a, dir)
				cancel()
				if err != nil {
					failed++
				}
				if err != nil && !errors.Is(err, errInjected) && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", what, err)
				}
				if closeErr := a.Close(); closeErr != nil {
					t.Errorf("%s: close: %v", what, closeErr)
				}
				checkStep(t, path, dir, what, call.do, err, call.whole, before, after)
			}
			t.Logf("%d steps, %d tries, %d failed", steps, 2*tries, failed)
		})
	}
}

// checkStep looks at an archive after a call that a fault may have ended with err, and makes
// the call once more.
func checkStep(t *testing.T, path, dir, what string, do func(context.Context, *repo.Archive, string) error, err error, whole bool, before, after map[string]int) {
	t.Helper()
	a, openErr := repo.Open(t.Context(), path, nil)
	if openErr != nil {
		t.Fatalf("%s: open: %v", what, openErr)
	}
	defer a.Close()
	isWhole(t, a)
	now := state(t, a)
	switch {
	case err == nil && !maps.Equal(now, after):
		t.Errorf("%s: done, and not all is there (-want +got):\n%s", what, cmp.Diff(after, now))
	case whole && !maps.Equal(now, before) && !maps.Equal(now, after):
		t.Errorf("%s: half done (-before +now):\n%s", what, cmp.Diff(before, now))
	}
	done := maps.Equal(now, after)
	if err := do(t.Context(), a, dir); err != nil {
		t.Errorf("%s: once more: %v", what, err)
	}
	isWhole(t, a)
	if again := state(t, a); !done && !maps.Equal(again, after) {
		t.Errorf("%s: once more (-want +got):\n%s", what, cmp.Diff(after, again))
	}
	err = a.View(t.Context(), func(rx *query.Rx) error {
		list, _, err := rx.List(t.Context(), &query.ListOptions{All: true})
		for i := range list {
			if _, err := rx.Write(t.Context(), list[i].Key, 0, io.Discard); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
