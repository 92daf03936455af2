package fulltext_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite"

	"pidb/migrations"
	"pidb/query/fulltext"
)

func openIndex(t testing.TB) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "index.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), `PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY; `+migrations.Index); err != nil {
		t.Fatal(err)
	}
	return db
}

// with calls f with the index in a transaction that is committed.
func with(t testing.TB, db *sqlx.DB, f func(ctx context.Context, index *fulltext.Index) error) {
	t.Helper()
	ctx := context.Background()
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	index, err := fulltext.Open(ctx, tx, "")
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	if err := f(ctx, index); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

type document struct {
	session, seq, ms     int64
	talk, tool, thinking string
	tag                  string
}

func add(t testing.TB, db *sqlx.DB, docs ...document) {
	t.Helper()
	var b fulltext.Builder
	for _, d := range docs {
		b.Begin(d.session, 1, d.seq, d.ms, false)
		b.Add(fulltext.Talk, []byte(d.talk))
		b.Add(fulltext.Tool, []byte(d.tool))
		b.Add(fulltext.Thinking, []byte(d.thinking))
		if d.tag != "" {
			b.Tag(d.tag)
		}
		b.End()
	}
	with(t, db, func(ctx context.Context, index *fulltext.Index) error { return index.Write(ctx, b.Build()) })
}

// find returns the candidates of a query as session.seq in their order.
func find(t testing.TB, db *sqlx.DB, q *fulltext.Query) string {
	t.Helper()
	if q.Fields == 0 {
		q.Fields = fulltext.InTalk | fulltext.InTool
	}
	var list []string
	with(t, db, func(ctx context.Context, index *fulltext.Index) error {
		found, err := index.Candidates(ctx, q)
		if err != nil {
			return err
		}
		for {
			c, ok, err := found.Next(ctx)
			if err != nil || !ok {
				return err
			}
			list = append(list, fmt.Sprintf("%d.%d", c.Session, c.Seq))
		}
	})
	return strings.Join(list, " ")
}

// words asks for documents that have all of some words.
func all(words ...string) [][]fulltext.Choice {
	var needs [][]fulltext.Choice
	for _, word := range words {
		needs = append(needs, []fulltext.Choice{{{Word: word}}})
	}
	return needs
}

func one(m fulltext.Match) [][]fulltext.Choice { return [][]fulltext.Choice{{{m}}} }

func TestCandidates(t *testing.T) {
	db := openIndex(t)
	add(t, db,
		document{session: 1, seq: 0, ms: 1000, talk: "alpha beta", tag: "role user"},
		document{session: 1, seq: 3, ms: 2000, tool: "alpha beta gamma", tag: "role tool"},
		document{session: 2, seq: 1, ms: 3000, talk: "alpha parseSessionEntry", thinking: "delta"},
	)
	add(t, db,
		document{session: 3, seq: 0, talk: "alpha 修复登录错误 c++ code"},
		document{session: 3, seq: 1, ms: 5000, talk: "alphabet \x1b[31merror\x1b[0m " + strings.Repeat("x", 100) + "tail"},
	)
	modified := func(int64) int64 { return 4000 }
	tests := []struct {
		name string
		q    fulltext.Query
		want string
	}{
		{"word, talk before tools, new before old", fulltext.Query{Needs: all("alpha"), Modified: modified}, "3.0 2.1 1.0 1.3"},
		{"recent", fulltext.Query{Needs: all("alpha"), Modified: modified, Recent: true}, "3.0 2.1 1.3 1.0"},
		{"and", fulltext.Query{Needs: all("alpha", "beta")}, "1.0 1.3"},
		{"or", fulltext.Query{Needs: [][]fulltext.Choice{{{{Word: "gamma"}}, {{Word: "c++"}}}}}, "3.0 1.3"},
		{"not", fulltext.Query{Needs: all("alpha"), Not: []string{"beta"}}, "2.1 3.0"},
		{"none", fulltext.Query{Needs: all("alpha", "nothing")}, ""},
		{"part", fulltext.Query{Needs: all("session")}, "2.1"},
		{"whole", fulltext.Query{Needs: all("parsesessionentry")}, "2.1"},
		{"pair", fulltext.Query{Needs: all("复登")}, "3.0"},
		{"no pair", fulltext.Query{Needs: all("登复")}, ""},
		{"single", fulltext.Query{Needs: all("错")}, "3.0"},
		{"prefix", fulltext.Query{Needs: one(fulltext.Match{Word: "alph", Kind: fulltext.Prefix}), Recent: true}, "3.1 2.1 1.3 1.0 3.0"},
		{"suffix", fulltext.Query{Needs: one(fulltext.Match{Word: "amma", Kind: fulltext.Suffix}), Recent: true}, "3.1 1.3"},
		{"inside", fulltext.Query{Needs: one(fulltext.Match{Word: "sessione", Kind: fulltext.Inside}), Recent: true}, "3.1 2.1"},
		{"behind a control sequence", fulltext.Query{Needs: all("error")}, "3.1"},
		{"part of a control sequence", fulltext.Query{Needs: all("31merror")}, ""},
		{"raw", fulltext.Query{Needs: one(fulltext.Match{Word: "31merror", Raw: true})}, "3.1"},
		{"long word", fulltext.Query{Needs: all(strings.Repeat("x", 100) + "tail")}, "3.1"},
		{"thinking is not looked at", fulltext.Query{Needs: all("delta")}, ""},
		{"thinking", fulltext.Query{Needs: all("delta"), Fields: fulltext.InThinking}, "2.1"},
		{"tools only", fulltext.Query{Needs: all("beta"), Fields: fulltext.InTool}, "1.3"},
		{"tag", fulltext.Query{Needs: all("alpha"), Tags: [][]string{{"role user", "nothing"}}}, "1.0"},
		{"not a tag", fulltext.Query{Needs: all("beta"), NotTags: []string{"role user"}}, "1.3"},
		{"tag alone", fulltext.Query{All: true, Tags: [][]string{{"role tool"}}}, "1.3"},
		{"no words", fulltext.Query{}, ""},
		{"sessions", fulltext.Query{Needs: all("alpha"), Accept: func(session int64) bool { return session == 3 }}, "3.0"},
		{"since", fulltext.Query{Needs: all("alpha"), Since: 3000, Modified: modified}, "3.0 2.1"},
		{"until", fulltext.Query{Needs: all("alpha"), Until: 2000, Modified: modified}, "1.0"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := find(t, db, &test.q); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestAgainstModel adds, forgets and merges at random and asks a plain map the same.
func TestAgainstModel(t *testing.T) {
	db := openIndex(t)
	r := rand.New(rand.NewPCG(7, 7))
	words := func() string {
		var list []string
		for range 1 + r.IntN(12) {
			// Few common words and many rare ones.
			list = append(list, fmt.Sprintf("w%dx", int(float64(r.IntN(4000))*r.Float64()*r.Float64())))
		}
		return strings.Join(list, " ")
	}
	model := map[string][]string{} // words by session.seq
	next := map[int64]int64{}
	session := int64(0)
	for step := range 80 {
		switch {
		case step%10 == 9 && session > 3:
			lost := 1 + r.Int64N(session)
			with(t, db, func(ctx context.Context, index *fulltext.Index) error {
				if err := index.Forget(ctx, lost); err != nil {
					return err
				}
				if step%20 == 19 {
					return index.Purge(ctx)
				}
				return nil
			})
			for name := range model {
				if strings.HasPrefix(name, fmt.Sprintf("%d.", lost)) {
					delete(model, name)
				}
			}
			next[lost] = -1 // its nonce may not come again
		default:
			if session++; r.IntN(3) == 0 && session > 1 {
				session-- // go on with the last one
			}
			if next[session] < 0 {
				continue
			}
			var docs []document
			for range 1 + r.IntN(400) {
				d := document{session: session, seq: next[session], ms: r.Int64N(1e12), talk: words()}
				next[session] += 1 + r.Int64N(3)
				docs = append(docs, d)
				model[fmt.Sprintf("%d.%d", d.session, d.seq)] = strings.Fields(d.talk)
			}
			add(t, db, docs...)
		}
		with(t, db, func(ctx context.Context, index *fulltext.Index) error {
			_, err := index.Merge(ctx)
			return err
		})
	}
	with(t, db, func(ctx context.Context, index *fulltext.Index) error { return index.Check(ctx) })
	var segments int
	if err := db.GetContext(t.Context(), &segments, `SELECT count(*) FROM segment`); err != nil || segments > 40 {
		t.Errorf("%d segments: %v", segments, err)
	}
	for range 300 {
		asked := strings.Fields(words())
		asked = asked[:min(len(asked), 1+r.IntN(2))]
		var want []string
		for name, has := range model {
			if !slices.ContainsFunc(asked, func(word string) bool { return !slices.Contains(has, word) }) {
				want = append(want, name)
			}
		}
		got := strings.Fields(find(t, db, &fulltext.Query{Needs: all(asked...)}))
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: %d found, want %d", asked, len(got), len(want))
		}
	}
}

func TestForgottenWordsAreGone(t *testing.T) {
	db := openIndex(t)
	add(t, db, document{session: 1, talk: "secret"}, document{session: 2, talk: "other"})
	with(t, db, func(ctx context.Context, index *fulltext.Index) error { return index.Forget(ctx, 1) })
	if got := find(t, db, &fulltext.Query{Needs: all("secret")}); got != "" {
		t.Errorf("found %s", got)
	}
	with(t, db, func(ctx context.Context, index *fulltext.Index) error { return index.Purge(ctx) })
	var left int
	if err := db.GetContext(t.Context(), &left, `SELECT (SELECT count(*) FROM lost) + (SELECT count(*) FROM segment)`); err != nil || left != 1 {
		t.Errorf("%d segments and lost sessions, want one segment: %v", left, err)
	}
	with(t, db, func(ctx context.Context, index *fulltext.Index) error {
		_, known, err := index.Nearest(ctx, "secret", 1)
		if known {
			t.Error("the word is still there")
		}
		return err
	})
}

func TestNearest(t *testing.T) {
	db := openIndex(t)
	add(t, db, document{session: 1, talk: "backoff retry retry session sessions compile"}, document{session: 2, talk: "retry"})
	for word, want := range map[string]string{
		"bakcoff": "backoff", "retyr": "retry", "sesion": "session sessions", "compiel": "compile", "quartz": "", "rtry": "retry", "ab": "",
	} {
		with(t, db, func(ctx context.Context, index *fulltext.Index) error {
			nearest, known, err := index.Nearest(ctx, word, 5)
			if got := strings.Join(nearest, " "); got != want || known {
				t.Errorf("%s: got %q, known %v, want %q", word, got, known, want)
			}
			return err
		})
	}
}

// TestDamage changes each blob of an index and reads all of it: an error, never a panic
// or an answer that is wrong in silence.
func TestDamage(t *testing.T) {
	var b fulltext.Builder
	for i := range int64(6000) {
		b.Begin(1+i/100, 1, i, i, false)
		b.Add(fulltext.Talk, fmt.Append(nil, "common word", i))
		b.End()
	}
	segment := b.Build()
	for _, blob := range []struct{ table, column string }{
		{"segment", "runs"},
		{"segment", "directory"},
		{"segment", "seqs"},
		{"segment", "times"},
		{"block", "heads"},
		{"block", "words"},
		{"block", "lists"},
		{"list", "docs"},
	} {
		for _, change := range []string{`substr(%s, 1, length(%s) / 2)`, `CAST(x'ffffffffff' || %s AS BLOB)`, `x''`, `CAST(hex(%s) AS BLOB)`} {
			db := openIndex(t)
			with(t, db, func(ctx context.Context, index *fulltext.Index) error { return index.Write(ctx, segment) })
			if _, err := db.ExecContext(t.Context(), `UPDATE `+blob.table+` SET `+blob.column+` = `+strings.ReplaceAll(change, "%s", blob.column)); err != nil {
				t.Fatal(err)
			}
			err := func() error {
				tx, err := db.BeginTxx(t.Context(), nil)
				if err != nil {
					return err
				}
				defer tx.Rollback()
				index, err := fulltext.Open(t.Context(), tx, "")
				if err != nil {
					return err
				}
				defer index.Close()
				if found, err := index.Candidates(t.Context(), &fulltext.Query{Needs: all("common"), Fields: fulltext.InTalk}); err == nil {
					for ok := true; ok && err == nil; {
						_, ok, err = found.Next(t.Context())
					}
				}
				if _, _, err := index.Nearest(t.Context(), "comon", 3); err != nil && !errors.Is(err, fulltext.ErrDamaged) {
					return fmt.Errorf("nearest: %w", err)
				}
				return index.Check(t.Context())
			}()
			if !errors.Is(err, fulltext.ErrDamaged) {
				t.Errorf("%s.%s with %s: %v, want ErrDamaged", blob.table, blob.column, change, err)
			}
		}
	}
}
