package repo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// documentRow is a row of the document table.
type documentRow struct {
	Session   query.Key `db:"session"`
	CreatedMS int64     `db:"created_ms"`
	UpdatedMS int64     `db:"updated_ms"`
}

// MessageShape says how to read a message of type M, for programs that have a message
// type of their own. All of its functions are needed.
type MessageShape[M any] struct {
	ID         func(m *M) string   // empty: none
	Role       func(m *M) string   // user, assistant, …
	ToolCalls  func(m *M) []string // ids of the calls that it makes
	ToolResult func(m *M) string   // id of the call that it is the result of; empty: it is none
}

// DocumentOptions are the choices of [NewDocumentStore].
type DocumentOptions struct {
	// Fixed are names of metadata whose values stay as the first save that has them left
	// them, whatever a later save says or leaves out.
	Fixed []string
}

// DocumentStore keeps conversations that a program saves as a whole: a [Document] is
// loaded, changed in memory and saved again. Each is a session of the archive, listed,
// searched and exported as all are; messages of type M stand in its lines as their JSON,
// in the form of JSON.stringify, whose numbers are those of JavaScript.
//
// Documents are kept by the folder that they are for. A store of no folder sees those of
// all folders.
//
// Methods may be called by several goroutines at once, and several processes may use one
// store: of two that save one document the later wins.
type DocumentStore[M any] struct {
	archive *Archive
	folder  string
	shape   MessageShape[M]
	fixed   []string
}

// NewDocumentStore returns a store of documents for a folder, which is made absolute. A
// shape that lacks a function is an error.
func NewDocumentStore[M any](a *Archive, folder string, shape MessageShape[M], opts *DocumentOptions) (*DocumentStore[M], error) {
	if opts == nil {
		opts = &DocumentOptions{}
	}
	if shape.ID == nil || shape.Role == nil || shape.ToolCalls == nil || shape.ToolResult == nil {
		return nil, errors.New("open document store: the message shape lacks a function")
	}
	if folder != "" {
		var err error
		if folder, err = filepath.Abs(folder); err != nil {
			return nil, fmt.Errorf("open document store: %w", err)
		}
	}
	return &DocumentStore[M]{archive: a, folder: folder, shape: shape, fixed: opts.Fixed}, nil
}

// Document is a conversation as a whole.
type Document[M any] struct {
	ID          string
	Created     time.Time // to the millisecond
	Updated     time.Time // of the last save; to the millisecond
	Title       string    // on one line
	TitleSource NameSource
	Metadata    map[string]any // JSON values
	Leaf        string         // id of the entry under which the next one goes; empty: before the first
	Entries     []DocumentEntry[M]
}

// DocumentEntryType says what an entry of a document is, and which of its members counts.
type DocumentEntryType string

const (
	DocumentMessage    DocumentEntryType = "message"
	DocumentCompaction DocumentEntryType = "compaction"
	DocumentConfig     DocumentEntryType = "config"
	DocumentLabel      DocumentEntryType = "label"
)

// DocumentEntry is an entry of a document.
type DocumentEntry[M any] struct {
	ID         string // of a message, empty means that of the message
	Parent     string // empty: a root
	Time       time.Time
	Type       DocumentEntryType
	Message    M
	Compaction *CompactionOf
	Config     *ConfigOf
	Label      string
}

// CompactionOf is what stands for the entries before a kept one.
type CompactionOf struct {
	Summary       string
	FirstKept     string // id of an entry
	TokensBefore  int64
	ReadFiles     []string
	ModifiedFiles []string
}

// ConfigOf is a change of model or thinking level; what is empty stays.
type ConfigOf struct {
	Model    string
	Thinking string
}

// DocumentSummary is a document without its entries.
type DocumentSummary struct {
	ID          string
	Created     time.Time
	Updated     time.Time
	Title       string
	TitleSource NameSource
	Metadata    map[string]any
}

// Create returns a new document with an id and times. It is in no store before
// [DocumentStore.Save].
func (d *DocumentStore[M]) Create() (*Document[M], error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("create document: %w", err)
	}
	now := d.archive.now().UTC().Truncate(time.Millisecond)
	return &Document[M]{ID: id.String(), Created: now, Updated: now}, nil
}

// Load returns a document. The error wraps [ErrNotFound], also for an id that cannot be
// one. What it returns shares no memory with anything else.
func (d *DocumentStore[M]) Load(ctx context.Context, id string) (*Document[M], error) {
	var doc *Document[M]
	err := d.archive.view(ctx, func(rx *reading) error {
		row, err := d.find(ctx, rx, id)
		if err == nil {
			doc, err = d.read(ctx, rx, row)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load document %q: %w", id, err)
	}
	return doc, nil
}

// Latest returns the document that was saved last, and nil where there is none.
func (d *DocumentStore[M]) Latest(ctx context.Context) (*Document[M], error) {
	var doc *Document[M]
	err := d.archive.view(ctx, func(rx *reading) error {
		rows, err := d.rows(ctx, rx, 1)
		if err == nil && len(rows) > 0 {
			doc, err = d.read(ctx, rx, &rows[0])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load latest document: %w", err)
	}
	return doc, nil
}

// List returns all documents without their entries, that which was saved last first; nil
// where there is none.
func (d *DocumentStore[M]) List(ctx context.Context) ([]DocumentSummary, error) {
	var list []DocumentSummary
	err := d.archive.view(ctx, func(rx *reading) error {
		rows, err := d.rows(ctx, rx, -1)
		if err != nil {
			return err
		}
		for i := range rows {
			summary, _, err := documentSummary(ctx, rx, &rows[i])
			if err != nil {
				return err
			}
			list = append(list, summary)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	return list, nil
}

// Delete takes a document out of the archive, with all that is kept with its session, and
// reports whether it was there. That it was not is no error.
func (d *DocumentStore[M]) Delete(ctx context.Context, id string) (bool, error) {
	var row *documentRow
	err := d.archive.view(ctx, func(rx *reading) (err error) {
		row, err = d.find(ctx, rx, id)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete document %q: %w", id, err)
	}
	return d.archive.Delete(ctx, row.Session)
}

// Session returns a handle on the session that a saved document is, for what is kept with
// a session beside its entries: subagents, an idempotency key, fixed metadata. The error
// wraps [ErrNotFound].
func (d *DocumentStore[M]) Session(ctx context.Context, id string) (*Session, error) {
	var s *Session
	err := d.archive.view(ctx, func(rx *reading) error {
		row, err := d.find(ctx, rx, id)
		if err != nil {
			return err
		}
		found, err := rx.Session(ctx, row.Session)
		s = d.archive.handle(&found)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open document %q: %w", id, err)
	}
	return s, nil
}

// find returns the row of a document.
func (d *DocumentStore[M]) find(ctx context.Context, rx *reading, id string) (*documentRow, error) {
	var row documentRow
	err := rx.tx.GetContext(ctx, &row, `
		SELECT d.session, d.created_ms, d.updated_ms FROM session s JOIN document d ON d.session = s.key
		WHERE s.id = ?1 AND (?2 = '' OR d.store = ?2) ORDER BY d.save DESC LIMIT 1`, id, d.folder)
	return &row, noRow(err)
}

// rows returns the rows of at most limit documents, all for -1, the last saved first.
func (d *DocumentStore[M]) rows(ctx context.Context, rx *reading, limit int) ([]documentRow, error) {
	var rows []documentRow
	err := rx.tx.SelectContext(ctx, &rows, `
		SELECT session, created_ms, updated_ms FROM document WHERE ?1 = '' OR store = ?1
		ORDER BY updated_ms DESC, save DESC LIMIT ?2`, d.folder, limit)
	return rows, err
}

// Path returns the entries from the root to the leaf of a document, nil where the leaf is
// none or not there. It ends at the first repeat.
func (doc *Document[M]) Path() []DocumentEntry[M] { return doc.path(doc.Leaf) }

func (doc *Document[M]) path(leaf string) []DocumentEntry[M] {
	places := make(map[string]int, len(doc.Entries))
	for i := range doc.Entries {
		places[doc.Entries[i].ID] = i
	}
	var path []DocumentEntry[M]
	for at, ok := places[leaf]; ok; at, ok = places[doc.Entries[at].Parent] {
		delete(places, doc.Entries[at].ID)
		path = append(path, doc.Entries[at])
	}
	slices.Reverse(path)
	return path
}

// Context returns what a model would be given at the leaf of a document: the latest
// compaction on the path, nil for none, the messages from the one that it keeps first on
// that are of users, assistants and tools, and the number of compactions on the path.
// Where the first kept entry is not on the path, there are no messages.
func (d *DocumentStore[M]) Context(doc *Document[M]) (*CompactionOf, []M, int) {
	latest, entries, epoch := contextOfPath(doc.Path())
	var messages []M
	for i := range entries {
		if d.inContext(&entries[i]) {
			messages = append(messages, entries[i].Message)
		}
	}
	return latest, messages, epoch
}

// inContext reports whether an entry is a message that a model is given.
func (d *DocumentStore[M]) inContext(e *DocumentEntry[M]) bool {
	if e.Type != DocumentMessage {
		return false
	}
	switch d.shape.Role(&e.Message) {
	case "user", "assistant", "tool_result", "toolResult", "compaction_summary":
		return true
	}
	return false
}

func contextOfPath[M any](path []DocumentEntry[M]) (latest *CompactionOf, kept []DocumentEntry[M], epoch int) {
	for i := range path {
		if path[i].Type == DocumentCompaction && path[i].Compaction != nil {
			latest = path[i].Compaction
			epoch++
		}
	}
	if latest == nil {
		return nil, path, 0
	}
	for i := range path {
		if path[i].ID == latest.FirstKept {
			return latest, path[i:], epoch
		}
	}
	return latest, nil, epoch
}

// CheckTarget returns an error for an entry of a document at which no branch may begin:
// one that wraps [ErrNotFound] where it is not there, else a [query.UnansweredError] where
// it is the result of a tool call, or leaves a call in its context without a result.
func (d *DocumentStore[M]) CheckTarget(doc *Document[M], id string) error {
	path := doc.path(id)
	if len(path) == 0 {
		return fmt.Errorf("entry %q: %w", id, ErrNotFound)
	}
	target := &path[len(path)-1]
	if target.Type == DocumentMessage {
		call, role := d.shape.ToolResult(&target.Message), d.shape.Role(&target.Message)
		if call != "" || role == "tool_result" || role == "toolResult" {
			return &query.UnansweredError{Entry: id, CallID: call, ToolResult: true}
		}
	}
	_, entries, _ := contextOfPath(path)
	var open []string
	for i := range entries {
		if !d.inContext(&entries[i]) {
			continue
		}
		m := &entries[i].Message
		open = append(open, d.shape.ToolCalls(m)...)
		if result := d.shape.ToolResult(m); result != "" {
			open = slices.DeleteFunc(open, func(call string) bool { return call == result })
		}
	}
	if len(open) > 0 {
		return &query.UnansweredError{Entry: id, CallID: slices.Min(open)}
	}
	return nil
}

// CheckTree looks for faults in the tree of a document. A document with any is not saved.
func (doc *Document[M]) CheckTree() *TreeReport {
	entries := make([]TreeEntry, len(doc.Entries))
	for i := range doc.Entries {
		entries[i] = TreeEntry{doc.Entries[i].ID, doc.Entries[i].Parent}
	}
	return CheckTree(entries, doc.Leaf)
}

// documentTime is a time as a line of a document has it: to the nanosecond where that
// says more.
func documentTime(t time.Time) string {
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return t.UTC().Format(time.RFC3339Nano)
	}
	return jsonl.FormatTime(t.UnixMilli())
}
