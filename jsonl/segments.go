package jsonl

// A SegmentKind says what a piece of text is.
type SegmentKind uint8

// The kinds of a segment.
const (
	SegUser SegmentKind = iota
	SegAssistant
	SegThinking
	SegSystem        // the content and the sections of a system message
	SegToolName      // of a call
	SegToolArguments // of a call
	SegToolOutput
	SegCommand       // that the user ran
	SegCommandOutput // of such a command
	SegSummary       // of a compaction or a branch
	SegCustom        // by an extension, or in a role that pi does not know
	SegLabel
	SegName  // of the session
	SegError // that ended an assistant message
)

// A Segment is a piece of text that a person can read in an entry.
type Segment struct {
	Kind SegmentKind
	Tool string // the name of the tool, for its name, arguments and output
	Text []byte // valid UTF-8
}

// AppendSegments appends all that a person can read in the entry, in its order; a text that is empty is none. Images,
// signatures and the data of custom entries are not read, nor is what has another type than it should have. The
// texts are in the buffer returned, which begins with buf.
func (o Object) AppendSegments(dst []Segment, buf []byte) ([]Segment, []byte) {
	s := segments{dst, buf}
	switch o.Type() {
	case "message":
		s.message(o)
	case "custom_message":
		s.content(SegCustom, "", o.Value.Get("content"))
	case "compaction", "branch_summary":
		s.text(SegSummary, "", o.Value.Get("summary"))
	case "label":
		if l, ok := o.Label(); ok {
			s.text(SegLabel, "", l.Value)
		}
	case "session_info":
		s.text(SegName, "", o.Value.Get("name"))
	}
	return s.list, s.buf
}

type segments struct {
	list []Segment
	buf  []byte
}

// add makes a segment of what the buffer holds from start on.
func (s *segments) add(kind SegmentKind, tool string, start int) {
	if end := len(s.buf); end > start {
		s.list = append(s.list, Segment{kind, tool, s.buf[start:end:end]})
	}
}

func (s *segments) text(kind SegmentKind, tool string, v Value) {
	start := len(s.buf)
	s.buf, _ = v.AppendText(s.buf)
	s.add(kind, tool, start)
}

func (s *segments) message(o Object) {
	m := o.Message()
	content := m.Get("content")
	switch o.Role() {
	case "":
	case "user":
		s.content(SegUser, "", content)
	case "assistant":
		s.content(SegAssistant, "", content)
		s.text(SegError, "", m.Get("errorMessage"))
	case "system":
		s.content(SegSystem, "", content)
		for _, v := range m.Get("sections").Members() {
			s.text(SegSystem, "", v)
		}
	case "toolResult":
		s.content(SegToolOutput, toolName(m.Get("toolName")), content)
	case "bashExecution":
		s.text(SegCommand, "", m.Get("command"))
		s.text(SegCommandOutput, "", m.Get("output"))
	case "branchSummary", "compactionSummary":
		s.text(SegSummary, "", m.Get("summary"))
	default:
		s.content(SegCustom, "", content)
	}
}

// content reads a text or the blocks of a message.
func (s *segments) content(kind SegmentKind, tool string, content Value) {
	if content.is(KindString) {
		s.text(kind, tool, content)
		return
	}
	for block := range content.Elements() {
		typ := block.Get("type")
		switch {
		case typ.IsString("text"):
			s.text(kind, tool, block.Get("text"))
		case kind != SegAssistant:
		case typ.IsString("thinking"):
			s.text(SegThinking, "", block.Get("thinking"))
		case typ.IsString("toolCall"):
			name := block.Get("name")
			called := toolName(name)
			s.text(SegToolName, called, name)
			start := len(s.buf)
			s.buf = block.Get("arguments").appendScalars(s.buf)
			s.add(SegToolArguments, called, start)
		}
	}
}

// appendScalars appends the names, strings and numbers in v in their order: a space behind a name, line feeds between
// the others.
func (v Value) appendScalars(dst []byte) []byte {
	if !v.Exists() {
		return dst
	}
	d := v.d
	start := len(dst)
	for i, end := v.i, d.after(v.i); i < end; i++ {
		e := Value{d, i}
		switch e.Kind() {
		case KindString:
			dst, _ = e.AppendText(dst)
		case KindNumber:
			dst = append(dst, e.Raw()...)
		default:
			continue
		}
		if d.isName(i) {
			dst = append(dst, ' ')
		} else {
			dst = append(dst, '\n')
		}
	}
	if n := len(dst); n > start {
		dst = dst[:n-1]
	}
	return dst
}

// isName reports whether the node at i is the name of a member: only a colon can follow one.
func (d *Doc) isName(i uint32) bool {
	p := int(d.nodes[i].end)
	for p < len(d.b) && isSpace(d.b[p]) {
		p++
	}
	return p < len(d.b) && d.b[p] == ':'
}

// toolName returns the text of v, without an allocation for the tools of pi.
func toolName(v Value) string {
	if !v.is(KindString) {
		return ""
	}
	switch string(v.Raw()) {
	case `"read"`:
		return "read"
	case `"bash"`:
		return "bash"
	case `"edit"`:
		return "edit"
	case `"write"`:
		return "write"
	case `"grep"`:
		return "grep"
	case `"find"`:
		return "find"
	case `"ls"`:
		return "ls"
	}
	return textOf(v)
}

// ListText appends the text that pi's listing takes from a user or assistant message: the content, or its text blocks
// joined by spaces. Other entries have none. It is not ok where pi fails: the message is missing or null, its content
// is neither text nor an array, or a block is null.
func (o Object) ListText(dst []byte) (text []byte, ok bool) {
	if o.Type() != "message" {
		return dst, true
	}
	m := o.Message()
	if k := m.Kind(); k == KindAbsent || k == KindNull {
		return dst, false
	}
	role, content := o.Role(), m.Get("content")
	if role != "user" && role != "assistant" || !content.Exists() {
		return dst, true
	}
	if content.is(KindString) {
		return content.AppendText(dst)
	}
	if !content.is(KindArray) {
		return dst, false
	}
	start, first := len(dst), true
	for block := range content.Elements() {
		if block.is(KindNull) {
			return dst[:start], false
		}
		if !block.Get("type").IsString("text") {
			continue
		}
		if !first {
			dst = append(dst, ' ')
		}
		first = false
		if t := block.Get("text"); t.Exists() && !t.is(KindNull) {
			dst = t.appendString(dst)
		}
	}
	return dst, true
}
