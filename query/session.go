package query

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"pidb/jsonl"
)

// State says where a session stands beside its source.
type State string

const (
	Live       State = "live"       // the newest version of a source that is there, or a session born in the archive
	Missing    State = "missing"    // its source is gone
	Superseded State = "superseded" // its source was rewritten, and a later version exists
)

// sessionRow is a row of the session table with the path of its source, as sessionColumns lists it.
type sessionRow struct {
	Key          Key     `db:"key"`
	ID           string  `db:"id"`
	Path         *string `db:"path"`
	Version      int     `db:"version"`
	State        State   `db:"state"`
	Native       bool    `db:"native"`
	Headerless   bool    `db:"headerless"`
	Format       int     `db:"format"`
	Bytes        int64   `db:"bytes"`
	Lines        int64   `db:"lines"`
	CWD          *string `db:"cwd"`
	ParentPath   *string `db:"parent_path"`
	CreatedMS    *int64  `db:"created_ms"`
	ModifiedMS   int64   `db:"modified_ms"`
	Name         *string `db:"name"`
	Messages     int64   `db:"messages"`
	Entries      int64   `db:"entries"`
	Tips         int64   `db:"tips"`
	Problems     int64   `db:"problems"`
	Leaf         *Ref    `db:"leaf"`
	LeafID       *string `db:"leaf_id"`
	LeafLine     *int64  `db:"leaf_line"`
	LeafPart     *int64  `db:"leaf_part"`
	Model        *string `db:"model"`
	Tokens       int64   `db:"tokens"`
	Cost         float64 `db:"cost"`
	FirstMessage *string `db:"first_message"` // its beginning, of a long one
}

const sessionColumns = `
	s.key, s.id, o.path, s.version, s.state, s.native, s.headerless, s.format, s.bytes, s.lines,
	s.cwd, s.parent_path, s.created_ms, s.modified_ms, s.name, s.messages, s.entries, s.tips, s.problems,
	s.leaf, l.id AS leaf_id, l.line AS leaf_line, l.part AS leaf_part, s.model, s.tokens, s.cost, s.first_message`

const sessionTables = `
	session s LEFT JOIN source o ON o.key = s.source LEFT JOIN entry l ON l.ref = s.leaf`

// Session is what a listing shows of a session. The listing fields Created, Modified,
// Messages, Name and FirstMessage are those of pi's own listing.
type Session struct {
	Key           Key
	ID            string // pi's session id; not unique
	Path          string // of the source; empty for a session that is in no file
	Version       int    // of the source, from 1
	State         State
	Native        bool // born in the archive
	Headerless    bool // the file has no header; ID is made from its name
	Format        int  // version in the header
	Bytes         int64
	Lines         int64
	CWD           string
	ParentSession string    // path of the session that this one was forked from, as written
	Created       time.Time // zero: unknown
	Modified      time.Time // last activity
	Name          string
	Messages      int64 // message entries on all branches
	Entries       int64
	Tips          int64 // entries without a child
	Problems      int64 // malformed lines, and one for a missing header
	Leaf          Ref   // 0: none
	LeafID        string
	LeafLine      LineNumber // zero: none
	Model         string     // provider/model at the last entry
	Tokens        int64
	Cost          float64 // US dollars
	FirstMessage  string  // text of the first user message that has any; of a long one the beginning, see [Rx.FirstMessage]
}

// firstMessageSize is how many bytes of a first message a session row holds.
const firstMessageSize = 4 << 10

// CutFirstMessage returns what a session row holds of the text of its first message.
func CutFirstMessage(text []byte) string {
	if len(text) <= firstMessageSize {
		return string(text)
	}
	n := firstMessageSize
	for n > firstMessageSize-utf8.UTFMax+1 && !utf8.RuneStart(text[n]) {
		n--
	}
	return string(text[:n])
}

// The messages of users in file order.
const sqlUserMessages = `
	SELECT ref, start, size FROM entry WHERE ref >= ?1 AND ref < ?2 AND kind = 'entry' AND type = 'message' AND role = 'user' ORDER BY ref`

// FirstMessage returns the text of the first user message of a session whole. Only where
// the session may hold no more than its beginning a line is read for that.
func (rx *Rx) FirstMessage(ctx context.Context, s *Session) (string, error) {
	if n := len(s.FirstMessage); n <= firstMessageSize-utf8.UTFMax || n > firstMessageSize {
		return s.FirstMessage, nil
	}
	first, end := s.Key.refRange()
	var doc jsonl.Doc
	var raw, text []byte
	err := each(ctx, rx, func(row *struct {
		Ref   Ref   `db:"ref"`
		Start int64 `db:"start"`
		Size  int64 `db:"size"`
	},
	) (err error) {
		if raw, err = rx.Bytes(ctx, s.Key, row.Start, row.Size, raw); err != nil {
			return err
		}
		if err := doc.Parse(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))); err != nil {
			return fmt.Errorf("%w: row %d: %w", ErrDamaged, row.Ref.Seq(), err)
		}
		if text, _ = jsonl.NewObject(doc.Root()).ListText(text[:0]); len(text) > 0 {
			return errEnough
		}
		return nil
	}, sqlUserMessages, first, end)
	if err != nil && !errors.Is(err, errEnough) {
		return "", fmt.Errorf("read first message of session #%d: %w", s.Key, err)
	}
	if len(text) == 0 {
		return s.FirstMessage, nil
	}
	return string(text), nil
}

// LineNumber names a physical line, from 1, or the K-th object recovered from it.
type LineNumber struct {
	Line int64
	Part int64 // 0: the whole line
}

func (row *sessionRow) session() Session {
	s := Session{
		Key: row.Key, ID: row.ID, Path: deref(row.Path), Version: row.Version, State: row.State, Native: row.Native,
		Headerless: row.Headerless, Format: row.Format, Bytes: row.Bytes, Lines: row.Lines,
		CWD: deref(row.CWD), ParentSession: deref(row.ParentPath), Modified: time.UnixMilli(row.ModifiedMS).UTC(),
		Name: deref(row.Name), Messages: row.Messages, Entries: row.Entries, Tips: row.Tips, Problems: row.Problems,
		Leaf: deref(row.Leaf), LeafID: deref(row.LeafID), LeafLine: LineNumber{deref(row.LeafLine), deref(row.LeafPart)},
		Model: deref(row.Model), Tokens: row.Tokens, Cost: row.Cost, FirstMessage: deref(row.FirstMessage),
	}
	if row.CreatedMS != nil {
		s.Created = time.UnixMilli(*row.CreatedMS).UTC()
	}
	return s
}

// deref returns what p points to, or the zero value for nil.
func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
