package query

import (
	"context"
	"errors"
	"slices"

	"pidb/jsonl"
)

func (s *search) runRegexp(ctx context.Context, expr string, anyCase bool, fields []field) error {
	if expr == "" {
		return nil
	}
	p, err := regexpPattern(expr, anyCase)
	if err != nil {
		return err
	}
	return s.runPattern(ctx, p, fields)
}

// runPattern looks at the entries whose text matches a pattern.
func (s *search) runPattern(ctx context.Context, p *pattern, fields []field) error {
	s.find, s.terms = p.find, 1
	// A regular expression may match where there is nothing to mark.
	s.wants = func([]bool) bool { return true }
	if err := s.filter(ctx, fields); err != nil {
		return err
	}
	behind, err := s.behind(ctx)
	if err != nil {
		return err
	}
	s.result.Scanned = len(p.needs) == 0
	if s.result.Scanned || len(behind) > 0 {
		where := s.sessionFilter()
		var keys []Key
		if err := s.rx.tx.SelectContext(ctx, &keys, `
			SELECT s.key FROM session s WHERE TRUE`+where.and()+` ORDER BY s.modified_ms DESC, s.key DESC`, where.args...); err != nil {
			return err
		}
		for _, key := range keys {
			if !s.result.Scanned && !behind[key] {
				continue
			}
			if full, err := s.scan(ctx, p, key); full || err != nil {
				return err
			}
		}
	}
	if s.result.Scanned {
		return nil
	}
	q := s.indexQuery()
	q.Needs, q.Recent = p.needs, true
	accept := q.Accept
	q.Accept = func(session int64) bool { return !behind[Key(session)] && (accept == nil || accept(session)) }
	found, err := s.index.Candidates(ctx, q)
	if err != nil {
		return err
	}
	for {
		c, ok, err := found.Next(ctx)
		if err != nil || !ok {
			return err
		}
		row, err := s.row(ctx, MakeRef(Key(c.Session), c.Seq))
		if err != nil {
			return err
		}
		if row == nil || s.skips(row) {
			continue
		}
		matches, err := s.matches(ctx, p, row)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		if full, err := s.add(ctx, row, 0); full || err != nil {
			return err
		}
	}
}

// skips reports whether an entry cannot be a hit any more: a copy of it was one, or its
// session has hits enough.
func (s *search) skips(row *hitRow) bool {
	if s.opts.PerSession > 0 && s.perSession[row.Ref.Session()] >= s.opts.PerSession {
		return true
	}
	return row.ID != nil && row.Digest != nil && s.seen[entryKey{*row.ID, deref(row.MS), *row.Digest}]
}

// matches reports whether the text of an entry matches a pattern, and counts it.
func (s *search) matches(ctx context.Context, p *pattern, row *hitRow) (bool, error) {
	segments, err := s.text.read(ctx, s.rx, row, p.canMatch)
	if errors.Is(err, ErrDamaged) {
		s.result.Damaged++
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(segments) > 0 && s.isFilteredOut() {
		return false, nil
	}
	for i := range segments {
		if s.looksAt(row, &segments[i]) && p.match(segments[i].Text) {
			s.result.Counts[row.Ref.Session()]++
			return true, nil
		}
	}
	return false, nil
}

// isFilteredOut reports whether the entry that was read last is left out by what the
// index has as tags and a row does not say.
func (s *search) isFilteredOut() bool {
	f := &s.filters
	if !f.errors && len(f.notTags) == 0 {
		return false
	}
	entry := jsonl.NewObject(s.text.doc.Root())
	failed := IsError(entry)
	if f.errors && !failed {
		return true
	}
	for tag := range Tags(entry.Type(), entry.Role(), failed) {
		if slices.Contains(f.notTags, tag) {
			return true
		}
	}
	return slices.ContainsFunc(s.text.segments, func(segment jsonl.Segment) bool {
		return segment.Tool != "" && slices.Contains(f.notTags, ToolTag(segment.Tool))
	})
}

// scan reads the text of a session's entries and adds those that match, later lines
// first.
func (s *search) scan(ctx context.Context, p *pattern, session Key) (full bool, err error) {
	where := s.entryFilter()
	where.add(`TRUE`+s.tagFilter().and(), s.tagFilter().args...)
	first, end := session.refRange()
	var found []*hitRow
	// Lines are read in file order: neighbours are in one chunk.
	rows, err := s.rx.tx.QueryContext(ctx, `
		SELECT `+hitColumns+`
		FROM entry e CROSS JOIN session s
		WHERE e.ref >= ? AND e.ref < ? AND s.key = ? AND e.kind = 'entry' AND e.type IS NOT 'custom'`+where.and()+`
		ORDER BY e.ref`, slices.Concat([]any{first, end, session}, where.args)...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		row := new(hitRow)
		if err := row.scan(rows); err != nil {
			return false, err
		}
		matches, err := s.matches(ctx, p, row)
		if err != nil {
			return false, err
		}
		if matches {
			found = append(found, row)
		}
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	for _, row := range slices.Backward(found) {
		if full, err := s.add(ctx, row, 0); full || err != nil {
			return full, err
		}
	}
	return false, nil
}
