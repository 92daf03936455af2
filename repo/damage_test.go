package repo_test

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pidb/query"
	"pidb/repo"
)

// TestDamage changes a byte of a stored chunk behind the archive's back.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	good := write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "good.jsonl")
	bad := write(t, header+user1+reply1+strings.Repeat(user2, 3000), dir, "bad.jsonl")
	importPaths(t, a, good, bad)
	damaged := bySource(t, a, bad)

	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`
		UPDATE chunk SET data = CAST(substr(data, 1, length(data) / 2) || x'00ff' || substr(data, length(data) / 2 + 3) AS BLOB)
		WHERE key = (SELECT chunk FROM piece WHERE session = ? ORDER BY start LIMIT 1 OFFSET 1)`, damaged.Key); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if err := a.Export(t.Context(), damaged.Key, io.Discard); !errors.Is(err, repo.ErrDamaged) {
		t.Errorf("export: %v, want ErrDamaged", err)
	}
	proof, err := a.Verify(t.Context(), nil, nil)
	if err != nil || proof.OK != 1 || len(proof.Failed) != 1 {
		t.Fatalf("verify: %+v, %v: want one right and one failed", proof, err)
	}
	if f := proof.Failed[0]; f.Session != damaged.Key || f.Path != bad || f.Line < 4 {
		t.Errorf("verify: %+v, want a line behind the first chunk of %s", f, bad)
	}
	if err := a.Rebuild(t.Context(), nil); !errors.Is(err, repo.ErrDamaged) {
		t.Errorf("rebuild: %v, want ErrDamaged", err)
	}
	if got := exported(t, a, bySource(t, a, good).Key); got != strings.Replace(header, "s-1", "s-2", 1)+user1 {
		t.Errorf("the other session: %q", got)
	}
}

// behind changes an archive that is open or not, with no word to it.
func behind(t *testing.T, path, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

// spoilChunk changes bytes of a chunk of a session.
func spoilChunk(t *testing.T, path string, session query.Key) {
	t.Helper()
	behind(t, path, `
		UPDATE chunk SET data = CAST(substr(data, 1, length(data) / 2) || x'00ff' || substr(data, length(data) / 2 + 3) AS BLOB)
		WHERE key = (SELECT chunk FROM piece WHERE session = ? ORDER BY start LIMIT 1)`, session)
}

// TestDamagedChunkLeavesTheIndex feeds a new index from an archive with a damaged chunk.
func TestDamagedChunkLeavesTheIndex(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	good := write(t, strings.Replace(header, "s-1", "s-2", 1)+user1, dir, "good.jsonl")
	bad := write(t, header+strings.Replace(user1, "first", "the very first", 1)+reply1+strings.Repeat(user2, 50), dir, "bad.jsonl")
	later := write(t, strings.Replace(header, "s-1", "s-3", 1)+user1, dir, "later.jsonl")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, good, bad)
	damaged := bySource(t, a, bad).Key
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	spoilChunk(t, path, damaged)
	if err := os.Remove(a.IndexPath()); err != nil {
		t.Fatal(err)
	}
	if a, err = repo.Open(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	result, err := a.Import(t.Context(), []string{later}, nil)
	if err != nil || result.Imported != 1 || result.IndexErr != nil {
		t.Errorf("import: %+v, %v: want one new session and no error", result, err)
	}
	found := map[query.Key]bool{}
	for _, hit := range search(t, a, "first") {
		found[hit.Session.Key] = true
	}
	if found[damaged] || len(found) != 1 {
		t.Errorf("found in %v, want one of the undamaged sessions, which hold the same entry; #%d is damaged", found, damaged)
	}
}

// entryPages returns the leaf pages of the entry table, and their size, in the order of refs.
func entryPages(t *testing.T, path string) (pages []int64, size int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var root int64
	if err := db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = 'entry'`).Scan(&root); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(`PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(`PRAGMA page_size`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := text[(root-1)*size : root*size]
	if page[0] != 5 {
		t.Fatalf("the entry table has one page of kind %d: too small for the test", page[0])
	}
	for i := range int(binary.BigEndian.Uint16(page[3:])) {
		cell := binary.BigEndian.Uint16(page[12+2*i:])
		pages = append(pages, int64(binary.BigEndian.Uint32(page[cell:])))
	}
	return append(pages, int64(binary.BigEndian.Uint32(page[8:]))), size
}

// spoilEntries changes a page in the middle of the entry table of a closed archive.
func spoilEntries(t *testing.T, path string, spoil func(page []byte)) {
	t.Helper()
	pages, size := entryPages(t, path)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page, at := make([]byte, size), (pages[len(pages)/2]-1)*size
	if _, err := file.ReadAt(page, at); err != nil {
		t.Fatal(err)
	}
	spoil(page)
	if _, err := file.WriteAt(page, at); err != nil {
		t.Fatal(err)
	}
}

// Ways in which a page of a table may be damaged.
var spoilt = map[string]func(page []byte){
	"zeroed": func(page []byte) { clear(page) },
	"noise": func(page []byte) {
		for i := range page {
			page[i] = byte(i * 7)
		}
	},
	// The header of each record says that its second column is NULL, which no scan expects.
	"a column gone": func(page []byte) {
		for i := range int(binary.BigEndian.Uint16(page[3:])) {
			cell := page[binary.BigEndian.Uint16(page[8+2*i:]):]
			_, n := binary.Uvarint(cell[:1])
			for cell[n-1] >= 0x80 {
				n++
			}
			for n++; cell[n-1] >= 0x80; n++ {
			}
			cell[n+2] = 0
		}
	},
}

// threeSessions makes an archive of three sessions of hundreds of lines, and closes it.
func threeSessions(t *testing.T, path string) []query.Key {
	t.Helper()
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var keys []query.Key
	for _, id := range []string{"one", "two", "three"} {
		source := write(t, strings.Replace(header, "s-1", id, 1)+user1+reply1+strings.Repeat(user2, 600), filepath.Dir(path), "sources", id+".jsonl")
		importPaths(t, a, source)
		keys = append(keys, bySource(t, a, source).Key)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestVerifyGoesOn damages the rows of one session of three.
func TestVerifyGoesOn(t *testing.T) {
	for name, spoil := range spoilt {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pidb.db")
			keys := threeSessions(t, path)
			spoilEntries(t, path, spoil)
			a, err := repo.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			proof, err := a.Verify(t.Context(), nil, nil)
			if err != nil || proof.Sessions != 3 || proof.OK != 2 || len(proof.Failed) != 1 || proof.Failed[0].Session != keys[1] {
				t.Errorf("verify: %+v, %v: want two right ones and the second session failed", proof, err)
			}
		})
	}
}

// TestIndexIsDisposable loses and breaks the search index between two runs.
func TestIndexIsDisposable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	source := write(t, header+user1, dir, "s.jsonl")
	for name, spoil := range map[string]func(index string) error{
		"deleted":  os.Remove,
		"emptied":  func(index string) error { return os.WriteFile(index, nil, 0o600) },
		"no index": func(index string) error { return os.WriteFile(index, []byte(strings.Repeat("noise", 5000)), 0o600) },
		"other version": func(index string) error {
			db, err := sql.Open("sqlite", index)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec(`PRAGMA user_version = 12345`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := repo.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			importPaths(t, a, source)
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			if err := spoil(a.IndexPath()); err != nil {
				t.Fatal(err)
			}
			b := openAt(t, path, nil)
			if err := b.UpdateIndex(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if n := len(search(t, b, "question")); n != 1 {
				t.Errorf("%d hits, want 1", n)
			}
		})
	}
}

func search(t *testing.T, a *repo.Archive, text string) []query.Hit {
	t.Helper()
	var hits []query.Hit
	err := a.View(t.Context(), func(rx *query.Rx) error {
		result, err := rx.Search(t.Context(), text, nil)
		if err == nil {
			hits = result.Hits
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}

// TestDeletedIsNotFound deletes a session that a search has found.
func TestDeletedIsNotFound(t *testing.T) {
	a := open(t, nil)
	path := write(t, header+user1, t.TempDir(), "s.jsonl")
	importPaths(t, a, path)
	if n := len(search(t, a, "question")); n != 1 {
		t.Fatalf("%d hits before, want 1", n)
	}
	err := a.Update(t.Context(), func(tx *repo.Tx) error {
		_, err := tx.Delete(t.Context(), bySource(t, a, path).Key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "question")); n != 0 {
		t.Errorf("%d hits before the index was fed, want none", n)
	}
	if err := a.UpdateIndex(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(search(t, a, "question")); n != 0 {
		t.Errorf("%d hits after, want none", n)
	}
}

// rootPage returns the number of the first page of an index or a table.
func rootPage(t *testing.T, path, name string) (root, size int64) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(`SELECT rootpage FROM sqlite_schema WHERE name = ?`, name).Scan(&root); err != nil {
		t.Fatal(err)
	}
	if err := db.QueryRow(`PRAGMA page_size`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	return root, size
}

// TestRebuildRepairs damages tables and indexes that follow from the lines, or from other tables.
func TestRebuildRepairs(t *testing.T) {
	spoilers := map[string]func(path string){
		"two rows gone": func(path string) { behind(t, path, `DELETE FROM entry WHERE ref & 67108863 IN (1, 5)`) },
		"usage gone":    func(path string) { behind(t, path, `DELETE FROM usage`) },
	}
	for name, spoil := range spoilt {
		spoilers["entry page: "+name] = func(path string) { spoilEntries(t, path, spoil) }
	}
	for _, name := range []string{"entry", "usage", "setting", "entry_id", "entry_parent", "session_id", "session_modified", "piece_chunk", "tombstone_bytes"} {
		spoilers["zeroed: "+name] = func(path string) {
			root, size := rootPage(t, path, name)
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := file.WriteAt(make([]byte, size), (root-1)*size); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, spoil := range spoilers {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pidb.db")
			keys := threeSessions(t, path)
			behind(t, path, `UPDATE session SET leaf = (key << 26) + 7, leaf_moved = 1 WHERE key = ?`, keys[2])
			want := dumpDerived(t, path)
			spoil(path)
			a := openAt(t, path, nil)
			if err := a.Rebuild(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if got := dumpDerived(t, path); got != want {
				t.Errorf("derived rows differ: %s, want %s", got, want)
			}
			if n := len(search(t, a, "first")); n == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

// dumpDerived returns a digest of all that a rebuild makes, by table.
func dumpDerived(t *testing.T, path string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var dump strings.Builder
	for _, query := range []string{
		`SELECT count(*), sum(ref * 31 + line + start * 7 + coalesce(parent, 0) + coalesce(depth, 0) * 3 + coalesce(digest >> 20, 0)) FROM entry e`,
		`SELECT count(*), sum(ref + total) FROM usage`,
		`SELECT count(*), sum(leaf + rows + tips * 5 + messages * 7 + leaf_moved) FROM session`,
		`SELECT count(*), count(DISTINCT e.setting) FROM entry e JOIN setting s ON s.key = e.setting WHERE thinking = 'off'`,
	} {
		var count, sum int64
		if err := db.QueryRow(query).Scan(&count, &sum); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&dump, "%d %d; ", count, sum)
	}
	return dump.String()
}

// TestRebuildKeepsRows damages the bytes of a session, and rows of another.
func TestRebuildKeepsRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pidb.db")
	keys := threeSessions(t, path)
	spoilChunk(t, path, keys[0])
	spoilEntries(t, path, spoilt["zeroed"])
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Rebuild(t.Context(), nil); !errors.Is(err, repo.ErrDamaged) || strings.Contains(err.Error(), "store :") {
		t.Errorf("rebuild: %v, want ErrDamaged", err)
	}
	check, err := a.Check(t.Context())
	if err != nil || len(check.Findings) != 0 {
		t.Errorf("check: %+v, %v: want no findings", check.Findings, err)
	}
}

// TestExportProvesTheWhole changes rows so that every chunk is right and the file is not.
func TestExportProvesTheWhole(t *testing.T) {
	for name, statement := range map[string]string{
		"shorter": `UPDATE session SET bytes = bytes - 10 WHERE key = ?`,
		"other order": `UPDATE piece SET chunk = (SELECT min(chunk) + max(chunk) FROM piece WHERE session = ?1) - chunk
			WHERE session = ?1 AND chunk IN ((SELECT min(chunk) FROM piece WHERE session = ?1), (SELECT max(chunk) FROM piece WHERE session = ?1))`,
		"another file": `UPDATE piece SET chunk = (SELECT chunk FROM piece WHERE session <> ?1 AND start = 0) WHERE session = ?1 AND start = 0`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "pidb.db")
			a, err := repo.Open(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			var text strings.Builder
			for i := range 3000 {
				fmt.Fprint(&text, entry(fmt.Sprintf("%06d", i), "", fmt.Sprintf("%x", digest(fmt.Sprint(i)))))
			}
			source := write(t, header+text.String(), dir, "s.jsonl")
			importPaths(t, a, source, write(t, strings.Replace(header, "s-1", "s-2", 1)+text.String(), dir, "t.jsonl"))
			key := bySource(t, a, source).Key
			behind(t, path, statement, key)
			if err := a.Export(t.Context(), key, io.Discard); !errors.Is(err, repo.ErrDamaged) {
				t.Errorf("export: %v, want ErrDamaged", err)
			}
			out := filepath.Join(dir, "out.jsonl")
			if err := a.ExportFile(t.Context(), key, out); !errors.Is(err, repo.ErrDamaged) {
				t.Errorf("export to a file: %v, want ErrDamaged", err)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("the file is there")
			}
			result, err := a.ExportAll(t.Context(), filepath.Join(dir, "all"), nil)
			if err != nil || len(result.Failed) != 1 || result.Failed[0].Session != key {
				t.Errorf("export of all: %+v, %v: want one failure", result, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "all", "s.jsonl")); err == nil {
				t.Error("the file of the export of all is there")
			}
		})
	}
}

// TestExportAllWithoutRoot exports a session whose source has lost its root.
func TestExportAllWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pidb.db")
	a, err := repo.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	importPaths(t, a, write(t, header+user1, dir, "s.jsonl"))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	behind(t, path, `PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'root       TEXT    NOT NULL', 'root TEXT') WHERE name = 'source'`)
	behind(t, path, `UPDATE source SET root = NULL`)
	if a, err = repo.Open(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	result, err := a.ExportAll(t.Context(), filepath.Join(dir, "all"), nil)
	if err != nil || result.Sessions != 1 || len(result.Failed) != 0 {
		t.Errorf("export of all: %+v, %v", result, err)
	}
}
