package redact

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"io"
	"slices"
	"strconv"

	"pidb/jsonl"
)

// A Redactor finds secrets and remembers them, so that each has one mask. It is not safe
// for concurrent use.
type Redactor struct {
	searcher
	known   known
	secrets map[string]*secret

	// Lines in which no rule finds anything, as hashes that nobody can foresee.
	clean map[uint64]struct{}
	seed  maphash.Seed

	// What one line needs, kept for the next.
	doc       jsonl.Doc
	plain     map[string]bool // names of members in which nothing is found
	tells     map[string]bool // names of members: whether a rule may look for them
	noRule    bool            // no rule finds anything in the line
	ruled     bool            // a rule has found something in the line
	unescaped []byte
	runs      []run
	member    []byte
	found     []finding
}

// A secret is a text that was found.
type secret struct {
	text string
	rule *rule
	mask string
}

// New returns a Redactor with the rules of this package.
func New() (*Redactor, error) {
	set, err := allRules()
	if err != nil {
		return nil, err
	}
	return &Redactor{
		searcher: newSearcher(set),
		secrets:  map[string]*secret{}, plain: map[string]bool{}, tells: map[string]bool{},
		clean: map[uint64]struct{}{}, seed: maphash.MakeSeed(),
	}, nil
}

// secretOf returns what is known of the secret that was found.
func (r *Redactor) secretOf(f *finding) *secret {
	s, ok := r.secrets[f.secret]
	if !ok {
		s = &secret{f.secret, f.rule, "[redacted:" + f.rule.id + ":" + strconv.Itoa(len(r.secrets)+1) + "]"}
		r.secrets[f.secret] = s
		r.known.add(s)
		clear(r.plain)
	}
	return s
}

// Learn returns a writer that finds secrets in what it is given and writes nothing. A
// later Writer masks a secret that was learned, if it is long and has a digit, also where
// no rule finds it.
func (r *Redactor) Learn() *Writer { return &Writer{r: r} }

// Writer returns a writer that writes to w what it is given, with secrets masked. A line
// is written when it is complete; Close writes the last one. Its memory follows the
// longest line.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// A Writer masks the secrets in lines.
type Writer struct {
	r    *Redactor
	w    io.Writer // nil: nowhere
	rest []byte    // of a line that is not complete
	out  []byte
	uses map[*secret]int
	err  error
}

// keepRest is what a Writer keeps of the memory of a long line, in bytes.
const keepRest = 4 << 20

// Write takes bytes of lines. Its errors are those of the writer below.
func (w *Writer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && w.err == nil {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			w.rest = append(w.rest, b...)
			break
		}
		line := b[:end]
		if len(w.rest) > 0 {
			w.rest = append(w.rest, line...)
			line = w.rest
		}
		w.line(line)
		b = b[end:]
		if w.rest = w.rest[:0]; cap(w.rest) > keepRest {
			w.rest = nil
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// Close writes the last line, where it has no line feed. It does not close the writer below.
func (w *Writer) Close() error {
	if len(w.rest) > 0 && w.err == nil {
		w.line(w.rest)
		w.rest = nil
	}
	return w.err
}

// line masks a line, which may have its line feed.
func (w *Writer) line(line []byte) {
	text := bytes.TrimSuffix(line, []byte("\n"))
	found := w.r.findLine(text)
	if w.w == nil {
		for i := range found {
			w.r.secretOf(&found[i])
		}
		return
	}
	if len(found) == 0 {
		_, w.err = w.w.Write(line)
		return
	}
	w.out = w.out[:0]
	at := 0
	for i := range found {
		f := &found[i]
		s := w.r.secretOf(f)
		if w.uses == nil {
			w.uses = map[*secret]int{}
		}
		w.uses[s]++
		w.out = append(append(w.out, line[at:f.start]...), s.mask...)
		at = f.end
	}
	w.out = append(w.out, line[at:]...)
	_, w.err = w.w.Write(w.out)
	if cap(w.out) > keepRest {
		w.out = nil
	}
}

// A Report says what was masked.
type Report struct {
	Secrets int         // different ones
	Masks   int         // places
	Rules   []RuleCount // of what was found, most places first
	uses    map[*secret]int
}

// A RuleCount is what one rule has found.
type RuleCount struct {
	Rule    string
	Secrets int
	Masks   int
}

// Report returns what the writer has masked so far.
func (w *Writer) Report() Report {
	var report Report
	report.add(w.uses)
	return report
}

// Add adds what another writer of the same Redactor has masked.
func (r *Report) Add(other Report) { r.add(other.uses) }

func (r *Report) add(uses map[*secret]int) {
	if r.uses == nil {
		r.uses = map[*secret]int{}
	}
	for s, n := range uses {
		r.uses[s] += n
	}
	rules := map[string]*RuleCount{}
	r.Secrets, r.Masks, r.Rules = len(r.uses), 0, nil
	for s, n := range r.uses {
		c := rules[s.rule.id]
		if c == nil {
			c = &RuleCount{Rule: s.rule.id}
			rules[s.rule.id] = c
		}
		c.Secrets++
		c.Masks += n
		r.Masks += n
	}
	for _, c := range rules {
		r.Rules = append(r.Rules, *c)
	}
	slices.SortFunc(r.Rules, func(a, b RuleCount) int {
		return cmp.Or(b.Masks-a.Masks, cmp.Compare(a.Rule, b.Rule))
	})
}
