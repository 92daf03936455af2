package repo

import (
	"encoding/binary"
	"math"

	"github.com/cespare/xxhash/v2"

	"pidb/jsonl"
	"pidb/query"
)

// describe fills the columns that name what an entry points to or carries.
func (b *builder) describe(r *row, o jsonl.Object) {
	switch o.Type() {
	case "label":
		if label, ok := o.Label(); ok {
			r.target = b.word(label.TargetID)
			if !label.Cleared {
				r.value = &label.Text
			}
		}
	case "session_info":
		if name, ok := o.SessionInfo(); ok {
			r.value = &name
		}
	case "context_edit":
		if edit, ok := o.ContextEdit(); ok {
			r.target = &edit.TargetID
		}
	case "compaction":
		if compaction, ok := o.Compaction(); ok {
			r.target = &compaction.FirstKeptEntryID
		}
	case "branch_summary":
		r.target = b.text(o.Value.Get("fromId"))
	case "custom", "custom_message":
		r.value = b.text(o.Value.Get("customType"))
	case "message":
		if r.role != nil && *r.role == "toolResult" {
			r.value = b.text(o.Value.Get("message").Get("toolName"))
		}
	}
	b.digest(r, o)
}

// digest hashes what makes two entries the same in different sessions.
func (b *builder) digest(r *row, o jsonl.Object) {
	var hash xxhash.Digest
	hash.Reset()
	var number [8]byte
	write := func(s string) {
		binary.LittleEndian.PutUint64(number[:], uint64(len(s)))
		hash.Write(number[:])
		hash.WriteString(s)
	}
	write(*r.id)
	if r.ms != nil {
		binary.LittleEndian.PutUint64(number[:], uint64(*r.ms))
		hash.Write(number[:])
	}
	for _, word := range []*string{r.typ, r.role, r.target, r.value} {
		if word != nil {
			write(*word)
		} else {
			write("")
		}
	}
	b.segments, b.decoded = o.AppendSegments(b.segments[:0], b.decoded[:0])
	for i := range b.segments {
		binary.LittleEndian.PutUint64(number[:], uint64(len(b.segments[i].Text)))
		hash.Write(number[:])
		hash.Write(b.segments[i].Text)
	}
	if usage, modelName, provider, ok := o.Usage(); ok {
		r.usage = &usage
		r.usedBy = model{b.word(provider), b.word(modelName)}
		for _, n := range []int64{usage.Input, usage.Output, usage.CacheRead, usage.CacheWrite, usage.Total, int64(math.Float64bits(usage.Cost))} {
			binary.LittleEndian.PutUint64(number[:], uint64(n))
			hash.Write(number[:])
		}
	}
	sum := int64(hash.Sum64())
	r.digest = &sum
}

// summarise adds an entry to what the session row holds, by the rules of pi's
// buildSessionInfo.
func (b *builder) summarise(r *row, o jsonl.Object) {
	s := &b.sum
	s.entries++
	if r.depth != none {
		s.model = r.setting.model.String()
	} else if m := (model{r.usedBy.provider, r.usedBy.name}); m.name != nil {
		s.model = m.String()
	}
	if r.usage != nil {
		s.tokens += r.usage.Total
		s.cost += r.usage.Cost
	}
	if r.typ == nil {
		return
	}
	switch *r.typ {
	case "session_info":
		switch {
		case r.value == nil: // says nothing
		case *r.value == "":
			s.name = nil
		default:
			s.name = r.value
		}
	case "message":
		s.messages++
		if at, ok := o.ActivityTime(); ok && at <= maxTime {
			ms := int64(max(at, 0))
			if s.activity == nil || ms > *s.activity {
				s.activity = &ms
			}
		}
		if s.firstMessage == nil && r.role != nil && *r.role == "user" {
			if text, ok := o.ListText(b.decoded[:0]); ok && len(text) > 0 {
				first := query.CutFirstMessage(text)
				s.firstMessage = &first
			}
		}
	}
}
