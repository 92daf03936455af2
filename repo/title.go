package repo

import (
	"context"
	"errors"
	"fmt"

	"pidb/jsonl"
	"pidb/query"
)

// NameSource says where the name of a session comes from.
type NameSource string

const (
	// NameNone: the session has no name.
	NameNone NameSource = ""
	// NameManual is a name that a person chose: one that pi's users give too.
	NameManual NameSource = "manual"
	// NameAutomatic is a name that a program made up.
	NameAutomatic NameSource = "auto"
)

// SetNameOptions are the choices of [Session.SetName].
type SetNameOptions struct {
	// Source is [NameManual], the default, or [NameAutomatic].
	Source NameSource
	// IfNone names the session only where it has no name yet, as a first message does.
	IfNone bool
	// MaxRunes is the length from which on a name is cut, … included; 0 means none is.
	MaxRunes int
}

// SetName names the session, as [SessionName] does, if the name that it has does not
// stand above: one that a person chose is replaced by another such one only. An empty
// name of a program changes nothing; one of a person takes the name away. Reports whether
// the session has the name now because of this call.
//
// The source of a name stands in its entry, and so in exports and forks. A name whose
// entry does not tell is [NameManual]: pi writes such. Errors are those of
// [Session.Append].
func (s *Session) SetName(ctx context.Context, name string, opts *SetNameOptions) (bool, error) {
	if opts == nil {
		opts = &SetNameOptions{}
	}
	automatic := opts.Source == NameAutomatic
	if e := SessionName(name); e.err != nil {
		return false, fmt.Errorf("name session #%d: %w", s.key, e.err) // a cut would hide it
	}
	e := sessionName(cutRunes(cleanName(name), opts.MaxRunes), automatic)
	if automatic && cleanName(name) == "" {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	named, leaf := false, s.leaf
	err := s.archive.Update(ctx, func(tx *Tx) error {
		ctx := context.WithoutCancel(ctx)
		state, err := tx.sessionState(ctx, s.key)
		if err != nil {
			return err
		}
		if !state.Native {
			return fmt.Errorf("%w: fork it", ErrNotNative)
		}
		source, err := tx.nameSource(ctx, s.key)
		if err != nil || opts.IfNone && source != NameNone || automatic && source == NameManual {
			return err
		}
		a, err := newAppending(ctx, tx, state, leaf)
		if err != nil {
			return err
		}
		if _, err := a.add(ctx, &e); err != nil {
			return err
		}
		if err := a.flush(ctx); err != nil {
			return err
		}
		named, leaf = true, a.leaf
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("name session #%d: %w", s.key, err)
	}
	s.leaf = leaf
	return named, nil
}

// NameSource returns where the session's name comes from.
func (s *Session) NameSource(ctx context.Context) (NameSource, error) {
	source := NameNone
	err := s.archive.view(ctx, func(rx *reading) (err error) {
		source, err = rx.nameSource(ctx, s.key)
		return err
	})
	if err != nil {
		return NameNone, fmt.Errorf("read the name of session #%d: %w", s.key, err)
	}
	return source, nil
}

func (rx *reading) nameSource(ctx context.Context, session query.Key) (NameSource, error) {
	var last struct {
		Ref  query.Ref `db:"ref"`
		Name string    `db:"value"`
	}
	err := rx.tx.GetContext(ctx, &last, `
		SELECT ref, value FROM entry INDEXED BY entry_type
		WHERE type = 'session_info' AND type <> 'message' AND ref >= ? AND ref < ? AND value IS NOT NULL
		ORDER BY ref DESC LIMIT 1`, query.MakeRef(session, 0), query.MakeRef(session+1, 0))
	if err = noRow(err); errors.Is(err, ErrNotFound) || err == nil && last.Name == "" {
		return NameNone, nil
	}
	if err != nil {
		return NameNone, err
	}
	text, err := rx.Raw(ctx, last.Ref)
	if err != nil {
		return NameNone, err
	}
	var doc jsonl.Doc
	if err := doc.Parse(text); err != nil {
		return NameNone, fmt.Errorf("%w: entry %d of session #%d: %w", ErrDamaged, last.Ref.Seq(), session, err)
	}
	if doc.Root().Get("source").IsString(string(NameAutomatic)) {
		return NameAutomatic, nil
	}
	return NameManual, nil
}

// sessionName is [SessionName] with its source.
func sessionName(name string, automatic bool) NewEntry {
	e := SessionName(name)
	if automatic {
		e.after = append(e.after, jsonl.Member{Key: "source", Value: string(NameAutomatic)})
	}
	return e
}

// cutRunes shortens a name to n runes, the last one of which says so; 0 leaves it whole.
func cutRunes(name string, n int) string {
	runes := []rune(name)
	if n <= 0 || len(runes) <= n {
		return name
	}
	return jsonl.TrimSpace(string(runes[:n-1])) + "…"
}
