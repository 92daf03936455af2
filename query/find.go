package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrAmbiguous is wrapped by [AmbiguousError].
var ErrAmbiguous = errors.New("ambiguous")

// AmbiguousError is returned for a name that several sessions answer to.
type AmbiguousError struct {
	Spec       string
	Candidates []Session // newest activity first; at most MaxCandidates
	More       bool      // there are others
}

// MaxCandidates is how many sessions an [AmbiguousError] names.
const MaxCandidates = 20

func (e *AmbiguousError) Error() string {
	more := ""
	if e.More {
		more = " or more"
	}
	return fmt.Sprintf("%q is ambiguous: %d%s sessions", e.Spec, len(e.Candidates), more)
}

// Unwrap returns [ErrAmbiguous].
func (e *AmbiguousError) Unwrap() error { return ErrAmbiguous }

// Find returns the session that spec names. It is, in this order:
//
//   - #KEY: the session with that key, an old version too
//   - last: the one with the newest activity
//   - an id. Of several with that id the only live one is meant; where none is live,
//     the only one whose source is missing; where there is none either, the only old version
//   - the path of a source, absolute and clean; its newest version
//   - the beginning of one id
//
// Returns [ErrNotFound], or an [AmbiguousError] with those among which it cannot choose.
func (rx *Rx) Find(ctx context.Context, spec string) (Session, error) {
	session, err := rx.find(ctx, spec)
	if err != nil {
		return Session{}, fmt.Errorf("find session %q: %w", spec, err)
	}
	return session, nil
}

func (rx *Rx) find(ctx context.Context, spec string) (Session, error) {
	if digits, ok := strings.CutPrefix(spec, "#"); ok {
		if key, err := strconv.ParseInt(digits, 10, 64); err == nil {
			list, _, err := rx.sessions(ctx, 1, `s.key = ?`, key)
			if err != nil || len(list) > 0 {
				return first(list), err
			}
		}
	}
	if spec == "last" {
		for _, state := range []State{Live, Missing} {
			list, _, err := rx.sessions(ctx, 1, `s.state = ? AND s.bytes > 0`, state)
			if err != nil || len(list) > 0 {
				return first(list), err
			}
		}
	}
	if spec == "" {
		return Session{}, ErrNotFound
	}
	if found, err := rx.choose(ctx, spec, spec); err != nil || found != nil {
		return deref(found), err
	}
	list, _, err := rx.sessions(ctx, 1, `s.source = (SELECT key FROM source WHERE path = ?)
		AND s.version = (SELECT max(version) FROM session WHERE source = s.source)`, spec)
	if err != nil || len(list) > 0 {
		return first(list), err
	}
	return rx.findPrefix(ctx, spec)
}

// findPrefix returns the session whose id begins with prefix. A wildcard of LIKE means
// nothing here.
func (rx *Rx) findPrefix(ctx context.Context, prefix string) (Session, error) {
	where, args := `s.id >= ?`, []any{prefix}
	if end := successor(prefix); end != "" {
		where, args = `s.id >= ? AND s.id < ?`, []any{prefix, end}
	}
	var ids []string
	err := rx.tx.SelectContext(ctx, &ids, `SELECT DISTINCT s.id FROM session s WHERE `+where+` ORDER BY s.id LIMIT 2`, args...)
	if err != nil {
		return Session{}, err
	}
	switch len(ids) {
	case 0:
		return Session{}, ErrNotFound
	case 1:
		found, err := rx.choose(ctx, prefix, ids[0])
		if err == nil && found == nil {
			err = ErrNotFound
		}
		return deref(found), err
	}
	list, more, err := rx.sessions(ctx, MaxCandidates, where, args...)
	if err != nil {
		return Session{}, err
	}
	return Session{}, &AmbiguousError{Spec: prefix, Candidates: list, More: more}
}

// ShortID returns the beginning of a session's id, of eight characters or more, that
// [Rx.Find] resolves to the session, and false where not even the whole id does.
func (rx *Rx) ShortID(ctx context.Context, s *Session) (string, bool, error) {
	var row struct {
		Same   int64   `db:"same"`
		Before *string `db:"before"`
		After  *string `db:"after"`
	}
	err := rx.tx.GetContext(ctx, &row, `
		SELECT (SELECT count(*) FROM session WHERE id = ?1) AS same,
			(SELECT max(id) FROM session WHERE id < ?1) AS before, (SELECT min(id) FROM session WHERE id > ?1) AS after`, s.ID)
	if err != nil {
		return "", false, err
	}
	if row.Same > 1 {
		// Copies and old versions: one of them is meant by the id.
		found, err := rx.choose(ctx, s.ID, s.ID)
		if errors.Is(err, ErrAmbiguous) || err == nil && (found == nil || found.Key != s.Key) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
	}
	n := 1 + max(commonPrefix(s.ID, deref(row.Before)), commonPrefix(s.ID, deref(row.After)), 7)
	for n < len(s.ID) && !utf8.RuneStart(s.ID[n]) {
		n++
	}
	return s.ID[:min(n, len(s.ID))], true, nil
}

// commonPrefix returns the number of bytes that two strings begin with alike.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// choose returns the session with an id, nil where there is none. The plus keeps SQLite
// at the index of ids: it takes the one of states for as good.
func (rx *Rx) choose(ctx context.Context, spec, id string) (*Session, error) {
	for _, state := range []State{Live, Missing, Superseded} {
		list, more, err := rx.sessions(ctx, MaxCandidates, `s.id = ? AND +s.state = ?`, id, state)
		switch {
		case err != nil:
			return nil, err
		case len(list) == 1:
			return &list[0], nil
		case len(list) > 1:
			return nil, &AmbiguousError{Spec: spec, Candidates: list, More: more}
		}
	}
	return nil, nil
}

// sessions returns at most limit sessions for which a condition holds, newest activity
// first, and whether there are more.
func (rx *Rx) sessions(ctx context.Context, limit int, where string, args ...any) (list []Session, more bool, err error) {
	err = each(ctx, rx, func(row *sessionRow) error {
		list = append(list, row.session())
		return nil
	}, `SELECT `+sessionColumns+` FROM `+sessionTables+` WHERE `+where+` ORDER BY s.modified_ms DESC, s.key DESC LIMIT ?`,
		append(slices.Clip(args), limit+1)...)
	if err == nil && len(list) > limit {
		list, more = list[:limit], true
	}
	return list, more, err
}

// first returns the first session of a list, or none.
func first(list []Session) Session {
	if len(list) == 0 {
		return Session{}
	}
	return list[0]
}

// Session returns the session with a key. Returns [ErrNotFound] where there is none.
func (rx *Rx) Session(ctx context.Context, key Key) (Session, error) {
	list, _, err := rx.sessions(ctx, 1, `s.key = ?`, key)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session #%d: %w", key, err)
	}
	return list[0], nil
}

// FindEntry returns the row of a session that spec names: :N is physical line N, :N.K
// the K-th object recovered from it, anything else the id of an entry, of which the
// last line is meant. Returns [ErrNotFound].
func (rx *Rx) FindEntry(ctx context.Context, session Key, spec string) (Ref, error) {
	ref, err := rx.findEntry(ctx, session, spec)
	if err != nil {
		return 0, fmt.Errorf("find entry %q in session #%d: %w", spec, session, err)
	}
	return ref, nil
}

func (rx *Rx) findEntry(ctx context.Context, session Key, spec string) (Ref, error) {
	if line, ok := parseLineNumber(spec); ok {
		e, err := rx.entryAt(ctx, session, line)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return e.Ref, err
		}
	}
	first, end := session.refRange()
	row, err := rx.entryRow(ctx, sqlEntryByID, spec, first, end)
	if err != nil {
		return 0, err
	}
	return row.Ref, nil
}

// parseLineNumber reads :N and :N.K.
func parseLineNumber(spec string) (LineNumber, bool) {
	spec, ok := strings.CutPrefix(spec, ":")
	if !ok {
		return LineNumber{}, false
	}
	line, part, parts := strings.Cut(spec, ".")
	var n LineNumber
	var err error
	if n.Line, err = strconv.ParseInt(line, 10, 64); err != nil || n.Line < 1 || n.Line > MaxRows {
		return LineNumber{}, false
	}
	if parts {
		if n.Part, err = strconv.ParseInt(part, 10, 64); err != nil || n.Part < 1 || n.Part > MaxRows {
			return LineNumber{}, false
		}
	}
	return n, true
}
