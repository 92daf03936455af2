package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"pidb/jsonl"
	"pidb/query"
	"pidb/repo"
)

// The shapes of --json. What is not known is absent; times are RFC 3339 in UTC with
// milliseconds; a line is a number, or "N.K" for an entry recovered from a damaged line.

// emit prints one object on a line.
func (a *app) emit(v any) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	a.out.printf("%s\n", text)
	return a.out.err
}

// emitRaw prints v, an object with a member or more, as emit does, with more members
// whose texts may be long. No copy of these is made.
func (a *app) emitRaw(v any, add func(w *memberWriter) error) error {
	text, err := encode(v)
	if err != nil {
		return err
	}
	a.out.printf("%s", text[:len(text)-1])
	if err := add(&memberWriter{a.out}); err != nil {
		return err
	}
	a.out.printf("}\n")
	return a.out.err
}

// memberWriter prints JSON in parts.
type memberWriter struct{ out *output }

// print prints JSON as it is.
func (w *memberWriter) print(text string) { w.out.printf("%s", text) }

// text prints a string, which is UTF-8.
func (w *memberWriter) text(text []byte) error {
	w.print(`"`)
	for len(text) > 0 && w.out.err == nil {
		n := min(len(text), textPiece)
		for n < len(text) && n > textPiece-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		encoded, err := encode(string(text[:n]))
		if err != nil {
			return err
		}
		w.out.printf("%s", encoded[1:len(encoded)-1])
		text = text[n:]
	}
	w.print(`"`)
	return nil
}

// encode returns v as JSON that is safe to print.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return escapeHarmful(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escapeHarmful escapes in JSON what could drive a terminal or turn the order of text
// round. Such characters stand in strings only.
func escapeHarmful(text []byte) []byte {
	if !bytes.ContainsFunc(text, isHarmful) {
		return text
	}
	out := make([]byte, 0, len(text)+64)
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case !isHarmful(r):
			out = append(out, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = appendEscape(appendEscape(out, high), low)
		default:
			out = appendEscape(out, r)
		}
		text = text[n:]
	}
	return out
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

// isHarmful reports whether a character beyond the ASCII controls, which JSON escapes by
// itself, must not reach a terminal. It is what [query.Printable] replaces.
func isHarmful(r rune) bool {
	if r < 0x7f || r >= 0xa0 && r < 0x600 || r >= 0x2100 && r < 0xfe00 || r >= 0x10000 && r < 0xe0000 || r == utf8.RuneError {
		return false
	}
	s := string(r)
	return query.Printable(s) != s
}

// stamp is a time in JSON; nil is absent.
func stamp(t time.Time) *string {
	// RFC 3339 has years of four digits.
	if year := t.UTC().Year(); t.IsZero() || year < 0 || year > 9999 {
		return nil
	}
	s := jsonl.FormatTime(t.UnixMilli())
	return &s
}

// lineJSON is a line in JSON; nil is absent.
func lineJSON(n query.LineNumber) json.RawMessage {
	switch {
	case n == query.LineNumber{}:
		return nil
	case n.Part > 0:
		return json.RawMessage(strconv.Quote(lineText(n)))
	}
	return strconv.AppendInt(nil, n.Line, 10)
}

func linesJSON(entries []query.Entry) []json.RawMessage {
	lines := make([]json.RawMessage, len(entries))
	for i := range entries {
		lines[i] = lineJSON(entries[i].Line)
	}
	return lines
}

// importJSON is what import prints.
type importJSON struct {
	Files     int           `json:"files"`
	Imported  int           `json:"imported"`
	Updated   int           `json:"updated"`
	Unchanged int           `json:"unchanged"`
	Missing   int           `json:"missing"`
	Rejected  int           `json:"rejected"`
	Sessions  int           `json:"sessions"`
	Entries   int64         `json:"entries"`
	Bytes     int64         `json:"bytes"`
	Seconds   float64       `json:"seconds"`
	Problems  []problemJSON `json:"problems"`
}

type problemJSON struct {
	Path    string           `json:"path,omitempty"`
	Line    int64            `json:"line,omitempty"`
	Problem repo.ProblemCode `json:"problem"`
	Detail  string           `json:"detail,omitempty"`
}

// sessionJSON is a line of ls.
type sessionJSON struct {
	Session       query.Key       `json:"session"`
	ID            string          `json:"id"`
	Path          string          `json:"path,omitempty"`
	CWD           string          `json:"cwd,omitempty"`
	Name          string          `json:"name,omitempty"`
	ParentSession string          `json:"parentSession,omitempty"`
	Created       *string         `json:"created,omitempty"`
	Modified      *string         `json:"modified,omitempty"`
	Messages      int64           `json:"messages"`
	Entries       int64           `json:"entries"`
	FirstMessage  string          `json:"firstMessage,omitempty"`
	Leaf          string          `json:"leaf,omitempty"`
	LeafLine      json.RawMessage `json:"leafLine,omitempty"`
	Tips          int64           `json:"tips"`
	Bytes         int64           `json:"bytes"`
	Model         string          `json:"model,omitempty"`
	Tokens        int64           `json:"tokens"`
	Cost          float64         `json:"cost"`
	Problems      int64           `json:"problems"`
	State         query.State     `json:"state"`
}

func newSessionJSON(s *query.Session) sessionJSON {
	return sessionJSON{
		Session: s.Key, ID: s.ID, Path: s.Path, CWD: s.CWD, Name: s.Name, ParentSession: s.ParentSession,
		Created: stamp(s.Created), Modified: stamp(s.Modified), Messages: s.Messages, Entries: s.Entries, FirstMessage: s.FirstMessage,
		Leaf: s.LeafID, LeafLine: lineJSON(s.LeafLine), Tips: s.Tips, Bytes: s.Bytes, Model: s.Model,
		Tokens: s.Tokens, Cost: s.Cost, Problems: s.Problems, State: s.State,
	}
}

// hitJSON is a line of search.
type hitJSON struct {
	Session   query.Key       `json:"session"`
	ID        string          `json:"id"`
	Path      string          `json:"path,omitempty"`
	Entry     string          `json:"entry,omitempty"`
	Line      json.RawMessage `json:"line"`
	Role      string          `json:"role,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Timestamp *string         `json:"timestamp,omitempty"`
	Snippet   string          `json:"snippet"`
	Score     float64         `json:"score"`
	Name      string          `json:"name,omitempty"`
	CWD       string          `json:"cwd,omitempty"`
	Copies    int             `json:"copies"`
}

// entryJSON is a line of entries.
type entryJSON struct {
	Line       json.RawMessage `json:"line"`
	Entry      *string         `json:"entry,omitempty"`
	Parent     *string         `json:"parent,omitempty"`
	ParentLine json.RawMessage `json:"parentLine,omitempty"`
	Type       string          `json:"type"`
	Role       string          `json:"role,omitempty"`
	Timestamp  *string         `json:"timestamp,omitempty"`
	Recovered  bool            `json:"recovered"`
	// Behind these, with --raw: "raw", or "rawBase64".
}

func newEntryJSON(e *query.Entry) entryJSON {
	return entryJSON{
		Line: lineJSON(e.Line), Entry: idJSON(e), Parent: parentJSON(e), ParentLine: lineJSON(e.ParentLine),
		Type: e.Word(), Role: e.Role, Timestamp: stamp(e.Timestamp), Recovered: e.Recovered,
	}
}

// raw prints the bytes of a line.
func (w *memberWriter) raw(line []byte) error {
	if utf8.Valid(line) {
		w.print(`,"raw":`)
		return w.text(line)
	}
	w.print(`,"rawBase64":"`)
	encoder := base64.NewEncoder(base64.StdEncoding, w.out)
	if _, err := encoder.Write(line); err != nil {
		return err
	}
	if err := encoder.Close(); err != nil {
		return err
	}
	w.print(`"`)
	return nil
}

func idJSON(e *query.Entry) *string {
	if !e.HasID {
		return nil
	}
	return &e.ID
}

func parentJSON(e *query.Entry) *string {
	if e.ParentID == "" && e.Parent == 0 {
		return nil
	}
	return &e.ParentID
}

// nodeJSON is a line of tree.
type nodeJSON struct {
	Line       json.RawMessage `json:"line"`
	Entry      *string         `json:"entry,omitempty"`
	Parent     *string         `json:"parent,omitempty"`
	ParentLine json.RawMessage `json:"parentLine,omitempty"`
	Depth      int             `json:"depth"`
	Type       string          `json:"type"`
	Role       string          `json:"role,omitempty"`
	Timestamp  *string         `json:"timestamp,omitempty"`
	Label      string          `json:"label,omitempty"`
	Tip        bool            `json:"tip"`
	Text       string          `json:"text,omitempty"`
}

// contextJSON is what context prints.
type contextJSON struct {
	Session       query.Key         `json:"session"`
	ID            string            `json:"id"`
	Leaf          string            `json:"leaf,omitempty"`
	Model         *modelJSON        `json:"model,omitempty"`
	ThinkingLevel string            `json:"thinkingLevel"`
	Branch        []json.RawMessage `json:"branch"`
	Entries       []json.RawMessage `json:"entries"`
	Messages      []json.RawMessage `json:"messages"`
}

type modelJSON struct {
	Provider string `json:"provider"`
	ModelID  string `json:"modelId"`
}

// shownJSON is a line of show.
type shownJSON struct {
	Line      json.RawMessage `json:"line"`
	Entry     *string         `json:"entry,omitempty"`
	Type      string          `json:"type"`
	Role      string          `json:"role,omitempty"`
	Timestamp *string         `json:"timestamp,omitempty"`
	Label     string          `json:"label,omitempty"`
	// Behind these: "blocks", a list of blockJSON.
}

type blockJSON struct {
	Kind string `json:"kind"`
	Tool string `json:"tool,omitempty"`
	// Behind these: "text".
}

// blocks prints what a person can read in an entry.
func (w *memberWriter) blocks(segments []jsonl.Segment) error {
	w.print(`,"blocks":[`)
	for i, segment := range segments {
		if i > 0 {
			w.print(",")
		}
		begun, err := encode(blockJSON{segmentNames[segment.Kind], segment.Tool})
		if err != nil {
			return err
		}
		w.out.printf("%s", begun[:len(begun)-1])
		w.print(`,"text":`)
		if err := w.text(segment.Text); err != nil {
			return err
		}
		w.print("}")
	}
	w.print("]")
	return nil
}

// segmentNames are the kinds of the blocks.
var segmentNames = map[jsonl.SegmentKind]string{
	jsonl.SegUser: "user", jsonl.SegAssistant: "assistant", jsonl.SegThinking: "thinking", jsonl.SegSystem: "system",
	jsonl.SegToolName: "toolName", jsonl.SegToolArguments: "toolArguments", jsonl.SegToolOutput: "toolOutput",
	jsonl.SegCommand: "command", jsonl.SegCommandOutput: "commandOutput", jsonl.SegSummary: "summary", jsonl.SegCustom: "custom",
	jsonl.SegLabel: "label", jsonl.SegName: "name", jsonl.SegError: "error",
}

// statJSON is a line of stats.
type statJSON struct {
	Key        string    `json:"key"`
	Session    query.Key `json:"session,omitempty"`
	Sessions   int64     `json:"sessions"`
	Entries    int64     `json:"entries"`
	Input      int64     `json:"input"`
	Output     int64     `json:"output"`
	CacheRead  int64     `json:"cacheRead"`
	CacheWrite int64     `json:"cacheWrite"`
	Tokens     int64     `json:"tokens"`
	Cost       float64   `json:"cost"`
}

// verifyJSON is what verify prints.
type verifyJSON struct {
	Sessions   int          `json:"sessions"`
	OK         int          `json:"ok"`
	Changed    int          `json:"changed"`
	Missing    int          `json:"missing"`
	Unreadable int          `json:"unreadable"`
	Failed     []failedJSON `json:"failed"`
}

type failedJSON struct {
	Session query.Key `json:"session"`
	Path    string    `json:"path,omitempty"`
	Line    int64     `json:"line,omitempty"`
	Error   string    `json:"error,omitempty"`
}

// exportJSON is what export prints with -o.
type exportJSON struct {
	Session query.Key `json:"session"`
	Path    string    `json:"path"`
	Bytes   int64     `json:"bytes"`
	redactJSON
}

// exportAllJSON is what export --all prints.
type exportAllJSON struct {
	Sessions int          `json:"sessions"`
	Present  int          `json:"present"`
	Bytes    int64        `json:"bytes"`
	Failed   []failedJSON `json:"failed"`
	redactJSON
}

// redactJSON is what export says of --redact.
type redactJSON struct {
	Redacted *redactedJSON `json:"redacted,omitempty"`
}

type redactedJSON struct {
	Secrets int                `json:"secrets"`
	Masks   int                `json:"masks"`
	Rules   []redactedRuleJSON `json:"rules"`
}

type redactedRuleJSON struct {
	Rule    string `json:"rule"`
	Secrets int    `json:"secrets"`
	Masks   int    `json:"masks"`
}

// restoreJSON is what restore prints.
type restoreJSON struct {
	Session query.Key `json:"session"`
	ID      string    `json:"id"`
	Path    string    `json:"path"`
	Command string    `json:"command"`
}

// deletedJSON is a line of rm.
type deletedJSON struct {
	Session query.Key `json:"session"`
	ID      string    `json:"id"`
	Path    string    `json:"path,omitempty"`
	Deleted bool      `json:"deleted"`
}

// madeJSON is what new, fork and extract print.
type madeJSON struct {
	Session       query.Key `json:"session"`
	ID            string    `json:"id"`
	CWD           string    `json:"cwd,omitempty"`
	ParentSession string    `json:"parentSession,omitempty"`
	Entries       int64     `json:"entries"`
}

// appendedJSON is a line of append, and what label and name print.
type appendedJSON struct {
	Session query.Key `json:"session"`
	Entry   string    `json:"entry"`
}

// branchJSON is what branch prints.
type branchJSON struct {
	Session query.Key `json:"session"`
	Leaf    string    `json:"leaf,omitempty"`
}

// checkJSON is what doctor prints.
type checkJSON struct {
	Path     string        `json:"path"`
	Sessions int           `json:"sessions"`
	Entries  int64         `json:"entries"`
	Bytes    int64         `json:"bytes"`
	Stored   int64         `json:"stored"`
	Indexed  int           `json:"indexed"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Area   string `json:"area"`
	Detail string `json:"detail"`
}

// versionJSON is what version prints.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// backupJSON is what backup prints.
type backupJSON struct {
	Path     string  `json:"path"`
	Sessions int     `json:"sessions"`
	Lines    int64   `json:"lines"`
	Bytes    int64   `json:"bytes"`
	Size     int64   `json:"size"`
	Seconds  float64 `json:"seconds"`
}

// mergeJSON is what merge prints.
type mergeJSON struct {
	Path      string            `json:"path"`
	Sessions  int               `json:"sessions"`
	Imported  int               `json:"imported"`
	Updated   int               `json:"updated"`
	Unchanged int               `json:"unchanged"`
	Skipped   int               `json:"skipped"`
	Entries   int64             `json:"entries"`
	Bytes     int64             `json:"bytes"`
	Deletions int               `json:"deletions"`
	Seconds   float64           `json:"seconds"`
	Failed    []mergeFailedJSON `json:"failed"`
}

type mergeFailedJSON struct {
	Session query.Key `json:"session"`
	ID      string    `json:"id,omitempty"`
	Path    string    `json:"path,omitempty"`
	Detail  string    `json:"detail"`
}

// salvageJSON is what doctor --salvage prints.
type salvageJSON struct {
	Path     string              `json:"path"`
	Sessions int                 `json:"sessions"`
	Intact   int                 `json:"intact"`
	Partial  int                 `json:"partial"`
	Lost     int                 `json:"lost"`
	Bytes    int64               `json:"bytes"`
	Newer    int                 `json:"newerSchema,omitempty"`
	Seconds  float64             `json:"seconds"`
	Damaged  []salvageDamageJSON `json:"damaged"`
}

type salvageDamageJSON struct {
	Session query.Key  `json:"session"`
	ID      string     `json:"id,omitempty"`
	Path    string     `json:"path,omitempty"`
	Saved   query.Key  `json:"saved,omitempty"`
	Lost    []lostJSON `json:"lost"`
	Detail  string     `json:"detail,omitempty"`
}

type lostJSON struct {
	From      int64  `json:"from"`
	To        *int64 `json:"to,omitempty"`
	FirstLine int64  `json:"firstLine,omitempty"`
	LastLine  int64  `json:"lastLine,omitempty"`
}

// pruneJSON is what prune prints.
type pruneJSON struct {
	DryRun   bool         `json:"dryRun"`
	Removed  int          `json:"removed"`
	Kept     int          `json:"kept"`
	Bytes    int64        `json:"bytes"`
	Freed    int64        `json:"freed"`
	Sessions []prunedJSON `json:"sessions"`
}

type prunedJSON struct {
	Session    query.Key `json:"session"`
	ID         string    `json:"id"`
	Path       string    `json:"path,omitempty"`
	Version    int64     `json:"version"`
	State      string    `json:"state"`
	Modified   *string   `json:"modified,omitempty"`
	Bytes      int64     `json:"bytes"`
	LastCopies int       `json:"lastCopies"`
	Removed    bool      `json:"removed"`
}

// vacuumJSON is what vacuum prints.
type vacuumJSON struct {
	DryRun      bool    `json:"dryRun"`
	Before      int64   `json:"before"`
	After       int64   `json:"after"`
	IndexBefore int64   `json:"indexBefore"`
	IndexAfter  int64   `json:"indexAfter"`
	Orphans     int     `json:"orphans"`
	Seconds     float64 `json:"seconds"`
}

// seconds returns a duration as JSON has it.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }
