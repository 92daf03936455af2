package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// Grouping says what a row of [Rx.Stats] stands for.
type Grouping string

const (
	ByDay     Grouping = "day"   // of the entry
	ByModel   Grouping = "model" // provider/model of the usage
	ByCWD     Grouping = "cwd"   // of the session
	BySession Grouping = "session"
)

// StatsOptions choose what [Rx.Stats] counts and how.
type StatsOptions struct {
	By       Grouping       // empty: one row for all
	Location *time.Location // in which days begin and end; nil means UTC
	Since    time.Time      // entries from here on; zero: all
	Until    time.Time      // entries before; zero: all
}

// Stat is what the entries of one group used.
type Stat struct {
	Key        string // day as 2006-01-02, model, folder or session id; empty: unknown
	Session    Key    // of a row by session
	Sessions   int64  // sessions that the counted entries are in; by cwd and session also those without usage
	Entries    int64  // entries counted: those that carry usage
	Input      int64  // tokens
	Output     int64
	CacheRead  int64
	CacheWrite int64
	Total      int64
	Cost       float64 // US dollars
}

// statRow is a row of sqlStats.
type statRow struct {
	Session    Key     `db:"session"`
	ID         string  `db:"id"`
	CWD        *string `db:"cwd"`
	Provider   *string `db:"provider"`
	Model      *string `db:"model"`
	Quarter    *int64  `db:"quarter"`
	Entries    int64   `db:"entries"`
	Input      int64   `db:"input"`
	Output     int64   `db:"output"`
	CacheRead  int64   `db:"cache_read"`
	CacheWrite int64   `db:"cache_write"`
	Total      int64   `db:"total"`
	Cost       float64 `db:"cost"`
}

// quarterMS is a quarter of an hour: days of all zones begin and end on one.
const quarterMS = 15 * 60 * 1000

// Usage of every entry, each counted once in a family of forks: entries with one id, time
// and digest are one, which counts for the oldest session that has it, a version that
// was superseded only where no other has it. Summed by session, model and quarter of an hour.
const sqlStats = `
	WITH seen AS (
		SELECT u.*, s.key AS session, s.id, s.cwd, e.ms, row_number() OVER (
			PARTITION BY e.id, e.ms, e.digest
			ORDER BY s.state = 'superseded', s.created_ms IS NULL, s.created_ms, u.ref) AS place
		FROM usage u CROSS JOIN entry e ON e.ref = u.ref CROSS JOIN session s ON s.key = e.ref >> 26
		WHERE (?1 IS NULL OR e.ms >= ?1) AND (?2 IS NULL OR e.ms < ?2)
	)
	SELECT session, id, cwd, provider, model, CASE WHEN ms < 0 THEN (ms - 899999) / 900000 ELSE ms / 900000 END AS quarter,
		count(*) AS entries, sum(input) AS input, sum(output) AS output, sum(cache_read) AS cache_read,
		sum(cache_write) AS cache_write, sum(total) AS total, sum(cost) AS cost
	FROM seen WHERE place = 1
	GROUP BY session, provider, model, quarter`

// Sessions with their last activity in a span of time, old versions left out.
const sqlStatsSessions = `
	SELECT key, id, cwd FROM session
	WHERE state <> 'superseded' AND bytes > 0 AND (?1 IS NULL OR modified_ms >= ?1) AND (?2 IS NULL OR modified_ms < ?2)`

// Stats returns tokens and cost of all sessions of the archive, those included whose
// source is gone or was rewritten. What several sessions share, forks for example, is
// counted once. Days come oldest first, other rows by cost, the dearest first.
func (rx *Rx) Stats(ctx context.Context, opts *StatsOptions) ([]Stat, error) {
	if opts == nil {
		opts = &StatsOptions{}
	}
	stats, err := rx.stats(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("read usage: %w", err)
	}
	return stats, nil
}

// statKey tells the rows of a result apart.
type statKey struct {
	text    string
	session Key
}

// tally adds up one row of a result.
type tally struct {
	Stat
	sessions map[Key]struct{}
}

func (rx *Rx) stats(ctx context.Context, opts *StatsOptions) ([]Stat, error) {
	since, until := millis(opts.Since), millis(opts.Until)
	groups := map[statKey]*tally{}
	group := func(key statKey, session Key) *tally {
		t, ok := groups[key]
		if !ok {
			t = &tally{Stat{Key: key.text, Session: key.session}, map[Key]struct{}{}}
			groups[key] = t
		}
		t.sessions[session] = struct{}{}
		return t
	}
	err := each(ctx, rx, func(row *statRow) error {
		t := group(opts.key(row), row.Session)
		t.Entries += row.Entries
		t.Input += row.Input
		t.Output += row.Output
		t.CacheRead += row.CacheRead
		t.CacheWrite += row.CacheWrite
		t.Total += row.Total
		t.Cost += row.Cost
		return nil
	}, sqlStats, since, until)
	if err != nil {
		return nil, err
	}
	if opts.By != ByDay && opts.By != ByModel {
		err := each(ctx, rx, func(row *struct {
			Key Key     `db:"key"`
			ID  string  `db:"id"`
			CWD *string `db:"cwd"`
		},
		) error {
			group(opts.key(&statRow{Session: row.Key, ID: row.ID, CWD: row.CWD}), row.Key)
			return nil
		}, sqlStatsSessions, since, until)
		if err != nil {
			return nil, err
		}
	}
	stats := make([]Stat, 0, len(groups))
	for _, t := range groups {
		t.Sessions = int64(len(t.sessions))
		stats = append(stats, t.Stat)
	}
	slices.SortFunc(stats, func(a, b Stat) int {
		if opts.By == ByDay {
			return cmp.Compare(a.Key, b.Key)
		}
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Total, a.Total), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Session, b.Session))
	})
	return stats, nil
}

// key returns the group that a row belongs to.
func (opts *StatsOptions) key(row *statRow) statKey {
	switch opts.By {
	case ByDay:
		if row.Quarter == nil {
			return statKey{}
		}
		location := opts.Location
		if location == nil {
			location = time.UTC
		}
		return statKey{text: time.UnixMilli(*row.Quarter * quarterMS).In(location).Format(time.DateOnly)}
	case ByModel:
		switch {
		case row.Provider == nil:
			return statKey{text: deref(row.Model)}
		case row.Model == nil:
			return statKey{text: *row.Provider}
		}
		return statKey{text: *row.Provider + "/" + *row.Model}
	case ByCWD:
		return statKey{text: deref(row.CWD)}
	case BySession:
		return statKey{row.ID, row.Session}
	}
	return statKey{}
}

// millis returns a time in Unix milliseconds, nil for the zero time.
func millis(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ms := t.UnixMilli()
	return &ms
}
