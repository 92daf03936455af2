package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/google/uuid"

	"pidb/jsonl"
	"pidb/query"
)

// Save keeps a document: its entries, leaf, title and metadata are those of its session
// from then on, and what was saved before and is not in it is gone. Updated is set to the
// time of the save when that has succeeded, and ids of entries to those of their messages;
// a failure changes nothing. A beginning that is as [DocumentStore.Load] would give it now
// is not written again, and what other programs wrote into the session stays then. Where it
// has changed, all lines are written anew, and those of other programs are gone.
//
// Errors wrap [ErrInvalidID], [ErrInvalidTree], [ErrInvalidEntry], [ErrExists] where the
// id is that of another session, and [ErrNotNative] where a file has taken the session
// over.
func (d *DocumentStore[M]) Save(ctx context.Context, doc *Document[M]) error {
	saved := *doc
	saved.Entries = slices.Clone(doc.Entries)
	for i := range saved.Entries {
		if e := &saved.Entries[i]; e.ID == "" && e.Type == DocumentMessage {
			e.ID = d.shape.ID(&e.Message)
		}
	}
	var err error
	if saved.Updated, err = d.save(ctx, &saved); err != nil {
		return fmt.Errorf("save document %q: %w", doc.ID, err)
	}
	*doc = saved
	return nil
}

func (d *DocumentStore[M]) save(ctx context.Context, doc *Document[M]) (time.Time, error) {
	if err := CheckSessionID(doc.ID); err != nil {
		return time.Time{}, err
	}
	if err := doc.CheckTree().Err(); err != nil {
		return time.Time{}, err
	}
	lines := make([][]byte, len(doc.Entries))
	for i := range doc.Entries {
		var err error
		if lines[i], err = documentLine(&doc.Entries[i]); err != nil {
			return time.Time{}, fmt.Errorf("entry %q: %w", doc.Entries[i].ID, err)
		}
		// What could not be loaded is not saved: a number that JavaScript rounds beyond its type, a time after the year 9999.
		if _, err := decodeDocumentEntry[M](doc.Entries[i].Type, doc.Entries[i].ID, lines[i]); err != nil {
			return time.Time{}, err
		}
	}
	var now time.Time
	err := d.archive.Update(ctx, func(tx *Tx) error {
		now = tx.now.Truncate(time.Millisecond)
		return d.store(ctx, tx, doc, lines)
	})
	return now, err
}

// store writes a document whose entries have these lines.
func (d *DocumentStore[M]) store(ctx context.Context, tx *Tx, doc *Document[M], lines [][]byte) error {
	var key query.Key
	var leaf *query.Ref // nil: where the entry with the id of doc.Leaf is
	row, err := d.find(ctx, &tx.reading, doc.ID)
	switch {
	case errors.Is(err, ErrNotFound):
		b := &birth{header: header{id: doc.ID, cwd: d.folder}, lines: values(lines)}
		if key, err = tx.bear(ctx, b); err != nil {
			return err
		}
		if _, err := tx.exec(ctx, `INSERT INTO document (session, store, created_ms, updated_ms, save) VALUES (?, ?, ?, 0, 0)`,
			key, d.folder, doc.Created.UnixMilli()); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		key = row.Session
		if leaf, err = d.rewrite(ctx, tx, key, lines, doc.Leaf); err != nil {
			return err
		}
	}
	if err := tx.retitle(ctx, key, doc.Title, doc.TitleSource, doc.Leaf); err != nil {
		return err
	}
	if leaf == nil {
		ref, err := tx.entryRef(ctx, key, doc.Leaf)
		if err != nil {
			return err
		}
		leaf = &ref
	}
	if _, err := tx.exec(ctx, `UPDATE session SET leaf = ?1, leaf_moved = 1 WHERE key = ?2 AND leaf IS NOT ?1`, refOrNull(*leaf), key); err != nil {
		return err
	}
	if err := tx.replaceMetadata(ctx, key, doc.Metadata); err != nil {
		return err
	}
	if err := tx.fixMetadata(ctx, key, d.fixed); err != nil {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE document SET updated_ms = ?, save = (SELECT max(save) + 1 FROM document) WHERE session = ?`, tx.now.UnixMilli(), key)
	return err
}

// values yields the elements of a list without an error.
func values[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// documentLine returns the line of an entry in normal form.
func documentLine[M any](e *DocumentEntry[M]) ([]byte, error) {
	if e.ID == "" {
		return nil, fmt.Errorf("%w: it has no id", ErrInvalidEntry)
	}
	typ := string(e.Type)
	var before, after jsonl.Members
	switch e.Type {
	case DocumentMessage:
		after = jsonl.Members{{Key: "message", Value: e.Message}}
	case DocumentCompaction:
		if e.Compaction == nil {
			return nil, fmt.Errorf("%w: it has no compaction", ErrInvalidEntry)
		}
		c := *e.Compaction
		after = jsonl.Members{
			{Key: "summary", Value: c.Summary},
			{Key: "firstKeptEntryId", Value: c.FirstKept},
			{Key: "tokensBefore", Value: c.TokensBefore},
			{Key: "details", Value: jsonl.Members{
				{Key: "readFiles", Value: slices.Concat([]string{}, c.ReadFiles)},
				{Key: "modifiedFiles", Value: slices.Concat([]string{}, c.ModifiedFiles)},
			}},
		}
	case DocumentConfig:
		if e.Config == nil {
			return nil, fmt.Errorf("%w: it has no config", ErrInvalidEntry)
		}
		typ = "custom"
		data := jsonl.Members{{Key: "model", Value: e.Config.Model}, {Key: "thinking", Value: e.Config.Thinking}}
		before = jsonl.Members{{Key: "customType", Value: string(DocumentConfig)}, {Key: "data", Value: data}}
	case DocumentLabel:
		typ = "custom"
		before = jsonl.Members{{Key: "customType", Value: string(DocumentLabel)}, {Key: "data", Value: e.Label}}
	default:
		return nil, fmt.Errorf("%w: unknown type %q", ErrInvalidEntry, e.Type)
	}
	var parent any
	if e.Parent != "" {
		parent = e.Parent
	}
	list := slices.Concat(jsonl.Members{{Key: "type", Value: typ}}, before,
		jsonl.Members{{Key: "id", Value: e.ID}, {Key: "parentId", Value: parent}, {Key: "timestamp", Value: documentTime(e.Time)}}, after)
	value, err := plain(list)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	text, err := jsonl.Append(nil, value)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	var parsed jsonl.Doc
	if err := parsed.Parse(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidEntry, err)
	}
	if err := checkEntry(parsed.Root()); err != nil {
		return nil, err
	}
	return parsed.Root().AppendNormal(nil), nil
}

// documentType returns what an entry of a session is in a document, empty for nothing.
func documentType(e *query.Entry) DocumentEntryType {
	switch {
	case e.Kind != query.KindEntry:
	case e.Type == "message", e.Type == "compaction":
		return DocumentEntryType(e.Type)
	case e.Type == "custom" && (e.Value == string(DocumentConfig) || e.Value == string(DocumentLabel)):
		return DocumentEntryType(e.Value)
	}
	return ""
}

// rewrite makes lines those of the entries of a document that was saved before. What it
// begins with already stays. It returns the leaf of the session where that stands for the
// one of the document and stays.
func (d *DocumentStore[M]) rewrite(ctx context.Context, tx *Tx, key query.Key, lines [][]byte, leaf string) (*query.Ref, error) {
	state, err := tx.sessionState(ctx, key)
	if err != nil {
		return nil, err
	}
	if !state.Native {
		return nil, ErrNotNative
	}
	kept, err := d.entries(ctx, &tx.reading, key)
	if err != nil {
		return nil, err
	}
	if len(kept.list) > len(lines) {
		return nil, tx.replaceLines(ctx, state, lines)
	}
	for i := range kept.list {
		if bytes.Equal(kept.lines[i], lines[i]) {
			continue
		}
		// Another program may have written it, or what it stands under.
		line, err := documentLine(&kept.list[i])
		if err != nil || !bytes.Equal(line, lines[i]) {
			return nil, tx.replaceLines(ctx, state, lines)
		}
	}
	ids := make([]string, len(lines)-len(kept.list))
	for i, line := range lines[len(kept.list):] {
		if ids[i], err = lineID(line); err != nil {
			return nil, err
		}
		if _, taken := kept.parents[ids[i]]; taken { // by an entry that the document has not
			return nil, tx.replaceLines(ctx, state, lines)
		}
	}
	s, err := tx.Session(ctx, key)
	if err != nil {
		return nil, err
	}
	var stays *query.Ref
	if kept.stands(s.LeafID) == leaf {
		stays = &s.Leaf
	}
	if len(ids) == 0 {
		return stays, nil
	}
	a, err := newAppending(ctx, tx, state, 0)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		line := lines[len(kept.list)+i]
		if err := a.take(ctx, line, id); err != nil {
			return nil, err
		}
	}
	return stays, a.flush(ctx)
}

// lineID returns the id of an entry.
func lineID(line []byte) (string, error) {
	var doc jsonl.Doc
	if err := doc.Parse(line); err != nil {
		return "", err
	}
	id, _ := doc.Root().Get("id").Key()
	return id, nil
}

// replaceLines makes lines all that a session has behind its header.
func (tx *Tx) replaceLines(ctx context.Context, state *sessionState, lines [][]byte) error {
	first, err := tx.Raw(ctx, query.MakeRef(state.Key, 0))
	if err != nil {
		return err
	}
	l, err := tx.archive.liveLoader()
	if err != nil {
		return err
	}
	w := newWriter()
	into := *l
	into.send = func(p *part) error {
		_, err := w.store(ctx, tx, p)
		return err
	}
	text := slices.Concat(bytes.Join(append([][]byte{first}, lines...), []byte("\n")), []byte("\n"))
	j := &job{session: state, name: state.ID, open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }}
	if err := into.loadWhole(ctx, j, actReplace); err != nil {
		return err
	}
	_, err = tx.exec(ctx, `UPDATE session SET source = NULL, state = 'live' WHERE key = ?`, state.Key)
	return err
}

// retitle gives a session a title, where it has another one, by an entry under the leaf
// of its document.
func (tx *Tx) retitle(ctx context.Context, key query.Key, title string, source NameSource, leaf string) error {
	title = cleanName(title)
	name, err := tx.Name(ctx, key)
	if err != nil {
		return err
	}
	had, err := tx.nameSource(ctx, key)
	if err != nil {
		return err
	}
	if source != NameManual {
		source = NameAutomatic
	}
	if name == title && (title == "" || had == source) {
		return nil
	}
	state, err := tx.sessionState(ctx, key)
	if err != nil {
		return err
	}
	under, err := tx.entryRef(ctx, key, leaf)
	if err != nil {
		return err
	}
	a, err := newAppending(ctx, tx, state, under)
	if err != nil {
		return err
	}
	// An entry of the document may get any other id later.
	e := sessionName(title, source == NameAutomatic).WithID(uuid.NewString())
	if _, err := a.add(ctx, &e); err != nil {
		return err
	}
	return a.flush(ctx)
}

// entryRef returns the last entry with an id, 0 for an empty one.
func (tx *Tx) entryRef(ctx context.Context, session query.Key, id string) (query.Ref, error) {
	if id == "" {
		return 0, nil
	}
	e, err := tx.EntryByID(ctx, session, id)
	return e.Ref, err
}

// documentSummary reads what a listing of documents shows.
func documentSummary(ctx context.Context, rx *reading, row *documentRow) (DocumentSummary, query.Session, error) {
	s, err := rx.Session(ctx, row.Session)
	if err != nil {
		return DocumentSummary{}, s, err
	}
	summary := DocumentSummary{ID: s.ID, Created: timeOf(&row.CreatedMS), Updated: timeOf(&row.UpdatedMS), Title: s.Name}
	if s.Name != "" {
		if summary.TitleSource, err = rx.nameSource(ctx, row.Session); err != nil {
			return summary, s, err
		}
	}
	metadata, err := rx.metadata(ctx, row.Session)
	if err != nil || len(metadata) == 0 {
		return summary, s, err
	}
	summary.Metadata = make(map[string]any, len(metadata))
	for name, text := range metadata {
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			return summary, s, fmt.Errorf("%w: metadata %q: %w", ErrDamaged, name, err)
		}
		summary.Metadata[name] = value
	}
	return summary, s, nil
}

// read reads a document. Entries of its session that a document has no place for, or that
// are no messages of type M, those of another program, are left out: what stands under
// them stands under what they are under.
func (d *DocumentStore[M]) read(ctx context.Context, rx *reading, row *documentRow) (*Document[M], error) {
	summary, s, err := documentSummary(ctx, rx, row)
	if err != nil {
		return nil, err
	}
	kept, err := d.entries(ctx, rx, row.Session)
	if err != nil {
		return nil, err
	}
	return &Document[M]{
		ID: summary.ID, Created: summary.Created, Updated: summary.Updated, Title: summary.Title, TitleSource: summary.TitleSource,
		Metadata: summary.Metadata, Leaf: kept.stands(s.LeafID), Entries: kept.list,
	}, nil
}

// documentEntries are the entries of a session that a document has.
type documentEntries[M any] struct {
	list    []DocumentEntry[M]
	lines   [][]byte          // of each, as it is kept
	has     map[string]bool   // by id
	parents map[string]string // of all entries of the session
}

// stands returns the id of the nearest entry of the document from one of the session
// towards the root, empty for none.
func (k *documentEntries[M]) stands(id string) string {
	for range len(k.parents) + 1 {
		if id == "" || k.has[id] {
			return id
		}
		id = k.parents[id]
	}
	return ""
}

// entries reads the entries of a document.
func (d *DocumentStore[M]) entries(ctx context.Context, rx *reading, session query.Key) (*documentEntries[M], error) {
	kept := &documentEntries[M]{has: map[string]bool{}, parents: map[string]string{}}
	for e, err := range rx.Entries(ctx, session, nil) {
		if err != nil {
			return nil, err
		}
		if e.Kind != query.KindEntry {
			continue
		}
		kept.parents[e.ID] = e.ParentID
		typ := documentType(&e)
		if typ == "" {
			continue
		}
		text, err := rx.Raw(ctx, e.Ref)
		if err != nil {
			return nil, err
		}
		entry, err := decodeDocumentEntry[M](typ, e.ID, text)
		if err != nil {
			continue
		}
		entry.Parent = e.ParentID
		kept.list, kept.lines, kept.has[e.ID] = append(kept.list, entry), append(kept.lines, text), true
	}
	// A parent may come after its child.
	for i := range kept.list {
		kept.list[i].Parent = kept.stands(kept.list[i].Parent)
	}
	return kept, nil
}

// documentJSON is a line of a document.
type documentJSON[M any] struct {
	Timestamp    time.Time       `json:"timestamp"`
	Message      M               `json:"message"`
	Summary      string          `json:"summary"`
	FirstKept    string          `json:"firstKeptEntryId"`
	TokensBefore int64           `json:"tokensBefore"`
	Data         json.RawMessage `json:"data"`
	Details      struct {
		ReadFiles     []string `json:"readFiles"`
		ModifiedFiles []string `json:"modifiedFiles"`
	} `json:"details"`
}

func decodeDocumentEntry[M any](typ DocumentEntryType, id string, text []byte) (DocumentEntry[M], error) {
	entry := DocumentEntry[M]{ID: id, Type: typ}
	var line documentJSON[M]
	err := json.Unmarshal(text, &line)
	entry.Time, entry.Message = line.Timestamp, line.Message
	if err == nil {
		switch typ {
		case DocumentCompaction:
			entry.Compaction = &CompactionOf{line.Summary, line.FirstKept, line.TokensBefore, line.Details.ReadFiles, line.Details.ModifiedFiles}
		case DocumentConfig:
			entry.Config = &ConfigOf{}
			err = json.Unmarshal(line.Data, entry.Config)
		case DocumentLabel:
			err = json.Unmarshal(line.Data, &entry.Label)
		}
	}
	if err != nil {
		return entry, fmt.Errorf("%w: entry %q: %w", ErrInvalidEntry, id, err)
	}
	return entry, nil
}
