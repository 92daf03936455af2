package repo

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"

	"pidb/jsonl"
	"pidb/query"
)

// tombstoneRow is a row of the tombstone table: what was deleted here.
type tombstoneRow struct {
	Key    int64  `db:"key"`
	ID     string `db:"id"`
	Bytes  int64  `db:"bytes"`
	SHA256 []byte `db:"sha256"`
}

// graves are the tombstones, by what a file must have to lie in one.
type graves struct {
	byID    map[string][]tombstoneRow
	byBytes map[int64][]tombstoneRow
}

func (im *importer) findGraves(ctx context.Context) error {
	var rows []tombstoneRow
	err := im.archive.view(ctx, func(rx *reading) error {
		return rx.tx.SelectContext(ctx, &rows, `SELECT key, id, bytes, sha256 FROM tombstone WHERE bytes > 0`)
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	im.graves = graves{map[string][]tombstoneRow{}, map[int64][]tombstoneRow{}}
	for _, row := range rows {
		im.graves.byID[row.ID] = append(im.graves.byID[row.ID], row)
		im.graves.byBytes[row.Bytes] = append(im.graves.byBytes[row.Bytes], row)
	}
	return nil
}

// start is bytes that a file may begin with.
type start struct {
	bytes     int64
	sha256    []byte
	tombstone int64 // 0: of a session that is in the archive
}

// bury finds out whether a file holds what was deleted, or that and more. Where a
// session in the archive is a longer part of it, the file is a copy of that one. Files
// whose id and size are those of nothing deleted are not read.
func (im *importer) bury(ctx context.Context, j *job) error {
	if len(im.graves.byID) == 0 || j.path == "" {
		return nil
	}
	id, ok := im.headerID(ctx, j)
	if !ok {
		id = nameID(j.name)
	}
	rows := slices.Clone(im.graves.byID[id])
	for _, row := range im.graves.byBytes[j.stat.Size] {
		if row.ID != id {
			rows = append(rows, row)
		}
	}
	var starts []start
	for _, row := range rows {
		if row.Bytes <= j.stat.Size {
			starts = append(starts, start{row.Bytes, row.SHA256, row.Key})
		}
	}
	if len(starts) == 0 {
		return nil
	}
	err := im.archive.view(ctx, func(rx *reading) error {
		var kept []*sessionState
		if err := rx.tx.SelectContext(ctx, &kept, `SELECT `+sessionStateColumns+` FROM session WHERE id = ? AND bytes <= ?`, id, j.stat.Size); err != nil {
			return err
		}
		for _, s := range kept {
			sum, err := unmarshalHash(s.SHA256)
			if err != nil {
				return fmt.Errorf("%w: hash state of session #%d: %w", query.ErrDamaged, s.Key, err)
			}
			starts = append(starts, start{bytes: s.Bytes, sha256: sum.Sum(nil)})
		}
		return nil
	})
	if err != nil {
		return err
	}
	found, err := j.begins(ctx, starts)
	if err != nil {
		return err
	}
	var longest start
	for _, s := range found {
		if s.tombstone != 0 {
			j.graves = append(j.graves, s.tombstone)
		}
		if s.bytes > longest.bytes || s.bytes == longest.bytes && s.tombstone != 0 {
			longest = s
		}
	}
	j.buried = longest.tombstone != 0 && !j.explicit
	return nil
}

// begins returns those of some starts that a file begins with. It reads no more of the
// file than the longest of them.
func (j *job) begins(ctx context.Context, starts []start) ([]start, error) {
	file, err := j.open()
	if err != nil {
		return nil, nil // loading it says why
	}
	defer file.Close()
	slices.SortFunc(starts, func(a, b start) int { return int(min(max(a.bytes-b.bytes, -1), 1)) })
	var found []start
	sum := sha256.New()
	buffer := make([]byte, 256<<10)
	at := int64(0)
	for _, s := range starts {
		n, err := io.CopyBuffer(onlyWriter{sum}, contextReader{ctx, io.LimitReader(file, s.bytes-at)}, buffer)
		if at += n; at < s.bytes || err != nil {
			return found, ctx.Err()
		}
		if slices.Equal(sum.Sum(nil), s.sha256) {
			found = append(found, s)
		}
	}
	return found, nil
}

// remember notes that a file holds what was deleted, so that a sync leaves it alone
// until it changes.
func (tx *Tx) remember(ctx context.Context, j *job) error {
	mtime := j.stat.MtimeNS
	if j.racy() {
		mtime = -1
	}
	_, err := tx.exec(ctx, `
		INSERT INTO source (path, root, size, mtime_ns, ctime_ns, inode, state) VALUES (?, ?, ?, ?, ?, ?, 'deleted')
		ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns,
			inode = excluded.inode, state = 'deleted', problem = NULL, detail = ''`,
		j.path, j.root, j.stat.Size, mtime, j.stat.CtimeNS, j.stat.Inode)
	return err
}

// exhume takes away the tombstones of a session that someone brings back by its name.
func (tx *Tx) exhume(ctx context.Context, j *job) error {
	for _, key := range j.graves {
		if _, err := tx.exec(ctx, `DELETE FROM tombstone WHERE key = ?`, key); err != nil {
			return err
		}
	}
	return nil
}

// headerID returns the session id in the header of a file, false where it has none.
func (im *importer) headerID(ctx context.Context, j *job) (string, bool) {
	file, err := j.open()
	if err != nil {
		return "", false // loading it says why
	}
	defer file.Close()
	decoder := jsonl.NewDecoder(contextReader{ctx, file}, &jsonl.DecoderOptions{MaxLine: im.opts.maxLine()})
	if _, err := decoder.Next(); err != nil {
		return "", false
	}
	header, ok := decoder.Header()
	return header.ID, ok
}
