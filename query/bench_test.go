package query_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// chain writes a session of one branch, n messages long, each with text of some size, and
// where compactAt is not 0 a compaction there that keeps the 20 entries before it.
func chain(n, size, compactAt int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"type":"session","version":3,"id":"chain","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/tmp"}` + "\n")
	word := []string{"retry", "backoff", "cursor", "index", "branch", "leaf", "socket", "panic"}
	parent := "null"
	for i := range n {
		id := fmt.Sprintf(`"%08x"`, i)
		fmt.Fprintf(&b, `{"type":`)
		if i == compactAt && i > 0 {
			fmt.Fprintf(&b, `"compaction","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","summary":"so far","firstKeptEntryId":"%08x","tokensBefore":1000}`, id, parent, max(i-20, 0))
		} else {
			fmt.Fprintf(&b, `"message","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"`, id, parent)
			for at := b.Len(); b.Len() < at+size; {
				fmt.Fprintf(&b, "%s %d ", word[(i+b.Len())%len(word)], i*31+b.Len()%97)
			}
			b.WriteString(`","timestamp":1767225600000}}`)
		}
		b.WriteByte('\n')
		parent = id
	}
	return b.Bytes()
}

// benchSession imports a chain and returns its archive and leaf.
func benchSession(b *testing.B, n, size, compactAt int) (*repo.Archive, query.Session) {
	b.Helper()
	a := openArchive(b)
	key, ok := importFile(b, a, writeFile(b, "chain.jsonl", chain(n, size, compactAt)))
	if !ok {
		b.Fatal("no session")
	}
	var session query.Session
	err := a.View(b.Context(), func(rx *query.Rx) error {
		var err error
		session, err = rx.Find(b.Context(), fmt.Sprintf("#%d", key))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return a, session
}

var depths = []int{1_000, 10_000, 100_000}

// BenchmarkBranch walks from the leaf to the root.
func BenchmarkBranch(b *testing.B) {
	for _, depth := range depths {
		a, session := benchSession(b, depth, 200, 0)
		b.Run(fmt.Sprint("walk/", depth), func(b *testing.B) {
			for b.Loop() {
				err := a.View(b.Context(), func(rx *query.Rx) error {
					branch, err := rx.Branch(b.Context(), session.Leaf)
					if len(branch) != depth {
						b.Errorf("%d entries", len(branch))
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		// What a program does that has no walk in SQL.
		b.Run(fmt.Sprint("load/", depth), func(b *testing.B) {
			for b.Loop() {
				err := a.View(b.Context(), func(rx *query.Rx) error {
					rows := map[query.Ref]query.Entry{}
					for e, err := range rx.Entries(b.Context(), session.Key, nil) {
						if err != nil {
							return err
						}
						rows[e.Ref] = e
					}
					var branch []query.Entry
					for ref := session.Leaf; ref != 0; ref = rows[ref].Parent {
						branch = append(branch, rows[ref])
					}
					if len(branch) != depth {
						b.Errorf("%d entries", len(branch))
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkContextAfterCompaction asks for the context at the end of sessions of 100,000
// entries with a compaction 50 entries before the end. Entries of 200 bytes and of 2,000
// bytes tell whether the size of the session matters.
func BenchmarkContextAfterCompaction(b *testing.B) {
	const n = 100_000
	for _, size := range []int{200, 2000} {
		a, session := benchSession(b, n, size, n-50)
		b.Run(fmt.Sprint("context/", size), func(b *testing.B) {
			for b.Loop() {
				err := a.View(b.Context(), func(rx *query.Rx) error {
					c, err := rx.Context(b.Context(), session.Leaf)
					if err == nil && len(c.Messages) != 70 {
						b.Errorf("%d messages", len(c.Messages))
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		// All lines parsed and walked, as pi does at every start.
		b.Run(fmt.Sprint("load/", size), func(b *testing.B) {
			for b.Loop() {
				err := a.View(b.Context(), func(rx *query.Rx) error {
					parents := map[string]string{}
					var file bytes.Buffer
					if _, err := rx.Write(b.Context(), session.Key, 0, &file); err != nil {
						return err
					}
					for line := range bytes.Lines(file.Bytes()) {
						var entry struct{ ID, ParentID string }
						if err := json.Unmarshal(line, &entry); err != nil {
							return err
						}
						parents[entry.ID] = entry.ParentID
					}
					depth := 0
					for id := session.LeafID; id != ""; id = parents[id] {
						depth++
					}
					if depth != n {
						b.Errorf("%d entries", depth)
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTree walks the whole tree of a session of one branch.
func BenchmarkTree(b *testing.B) {
	a, session := benchSession(b, 100_000, 200, 0)
	for b.Loop() {
		err := a.View(b.Context(), func(rx *query.Rx) error {
			nodes := 0
			for _, err := range rx.Tree(b.Context(), session.Key) {
				if err != nil {
					return err
				}
				nodes++
			}
			if nodes != 100_000 {
				b.Errorf("%d nodes", nodes)
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
