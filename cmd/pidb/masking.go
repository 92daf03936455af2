package main

import (
	"fmt"
	"io"

	"pidb/repo/redact"
)

// masking is what --redact does to an export. Without a redactor it does nothing.
type masking struct {
	redactor *redact.Redactor
	report   redact.Report
}

func newMasking(on bool) (*masking, error) {
	if !on {
		return &masking{}, nil
	}
	redactor, err := redact.New()
	return &masking{redactor: redactor}, err
}

// around returns a write that masks what the given one writes, which is called once more
// before, so that a secret is masked also before the place that shows it to be one.
func (m *masking) around(write func(io.Writer) error) (func(io.Writer) error, error) {
	if m.redactor == nil {
		return write, nil
	}
	learn := m.redactor.Learn()
	if err := write(learn); err != nil {
		return nil, err
	}
	if err := learn.Close(); err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		out := m.redactor.Writer(w)
		if err := write(out); err != nil {
			return err
		}
		err := out.Close()
		m.report = out.Report()
		return err
	}, nil
}

func (m *masking) reportJSON() redactJSON {
	if m.redactor == nil {
		return redactJSON{}
	}
	j := &redactedJSON{m.report.Secrets, m.report.Masks, []redactedRuleJSON{}}
	for _, c := range m.report.Rules {
		j.Rules = append(j.Rules, redactedRuleJSON(c))
	}
	return redactJSON{j}
}

// sayMasked reports on standard error what was masked.
func (a *app) sayMasked(j redactJSON) error {
	switch {
	case j.Redacted == nil:
		return nil
	case a.json:
		text, err := encode(j)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stderr, "%s\n", text)
		return err
	case j.Redacted.Secrets == 0:
		a.note("nothing found to mask")
	default:
		a.note("masked %s in %s", count(j.Redacted.Secrets, "secret", "secrets"), count(j.Redacted.Masks, "place", "places"))
		for _, c := range j.Redacted.Rules {
			a.note("%s: %s in %s", c.Rule, count(c.Secrets, "secret", "secrets"), count(c.Masks, "place", "places"))
		}
	}
	a.note("hint: no rule finds all; read what you share")
	return nil
}
