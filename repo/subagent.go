package repo

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"pidb/query"
)

// subagentRow is a row of the subagent table without its session.
type subagentRow struct {
	Job            string  `db:"job"`
	Task           string  `db:"task"`
	Model          string  `db:"model"`
	Status         string  `db:"status"`
	Result         string  `db:"result"`
	Error          string  `db:"error"`
	Thinking       string  `db:"thinking"`
	Async          bool    `db:"async"`
	StartedMS      *int64  `db:"started_ms"`
	FinishedMS     *int64  `db:"finished_ms"`
	Usage          *string `db:"usage"`
	Cost           float64 `db:"cost"`
	ContextPercent *int    `db:"context_percent"`
	Messages       []byte  `db:"messages"`
}

const subagentColumns = `job, task, model, status, result, error, thinking, async, started_ms, finished_ms, usage, cost, context_percent, messages`

// Subagent is a conversation that a session started beside its own, with its outcome. It
// is kept with the session, not in its lines: no export holds it, no fork has it.
type Subagent struct {
	Job            string // names it within the session
	Task           string
	Model          string
	Status         string // in words of the program
	Result         string
	Error          string
	Thinking       string // level
	Async          bool
	Started        time.Time       // zero: unknown; to the millisecond
	Finished       time.Time       // zero: not finished; to the millisecond
	Usage          json.RawMessage // nil: unknown
	Cost           float64         // US dollars
	ContextPercent *int            // how full its context was at the end; nil: unknown
	Messages       []json.RawMessage
}

// SaveSubagent keeps a subagent with the session, in place of one with the same Job. The
// bytes of its messages and usage come back as they are. Errors wrap [ErrNotFound] where
// the session is gone, [ErrInvalidID] for an empty Job, and [ErrInvalidEntry] for a
// message or usage that is no JSON.
func (s *Session) SaveSubagent(ctx context.Context, agent *Subagent) error {
	if err := s.saveSubagent(ctx, agent); err != nil {
		return fmt.Errorf("save subagent %q of session #%d: %w", agent.Job, s.key, err)
	}
	return nil
}

func (s *Session) saveSubagent(ctx context.Context, agent *Subagent) error {
	if agent.Job == "" {
		return fmt.Errorf("%w: the job is empty", ErrInvalidID)
	}
	if math.IsNaN(agent.Cost) || math.IsInf(agent.Cost, 0) {
		return fmt.Errorf("%w: the cost is no number", ErrInvalidEntry)
	}
	messages := []byte{'['}
	for i, message := range agent.Messages {
		if !json.Valid(message) || !utf8.Valid(message) {
			return fmt.Errorf("%w: message %d is no JSON", ErrInvalidEntry, i+1)
		}
		if i > 0 {
			messages = append(messages, ',')
		}
		messages = append(messages, message...)
	}
	messages = append(messages, ']')
	var usage *string
	if agent.Usage != nil {
		if !json.Valid(agent.Usage) {
			return fmt.Errorf("%w: usage is no JSON", ErrInvalidEntry)
		}
		usage = new(string(agent.Usage))
	}
	return s.archive.Update(ctx, func(tx *Tx) error {
		if _, err := tx.sessionState(ctx, s.key); err != nil {
			return err
		}
		_, err := tx.exec(ctx, `
			INSERT OR REPLACE INTO subagent (session, `+subagentColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			s.key, agent.Job, agent.Task, agent.Model, agent.Status, agent.Result, agent.Error, agent.Thinking, agent.Async,
			milliOrNull(agent.Started), milliOrNull(agent.Finished), usage, agent.Cost, agent.ContextPercent, messages)
		return err
	})
}

// Subagent returns the subagent of the session with a job, or [ErrNotFound].
func (s *Session) Subagent(ctx context.Context, job string) (*Subagent, error) {
	list, err := s.subagents(ctx, `SELECT `+subagentColumns+` FROM subagent WHERE session = ? AND job = ?`, s.key, job)
	if err == nil && len(list) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read subagent %q of session #%d: %w", job, s.key, err)
	}
	return &list[0], nil
}

// Subagents returns the subagents of the session, those that finished last first, those
// that did not at the end; none is no error.
func (s *Session) Subagents(ctx context.Context) ([]Subagent, error) {
	list, err := s.subagents(ctx, `SELECT `+subagentColumns+` FROM subagent WHERE session = ? ORDER BY finished_ms DESC NULLS LAST, job`, s.key)
	if err != nil {
		return nil, fmt.Errorf("read subagents of session #%d: %w", s.key, err)
	}
	return list, nil
}

// RemoveSubagents takes all subagents from the session. Having none is no error.
func (s *Session) RemoveSubagents(ctx context.Context) error {
	err := s.archive.Update(ctx, func(tx *Tx) error {
		_, err := tx.exec(ctx, `DELETE FROM subagent WHERE session = ?`, s.key)
		return err
	})
	if err != nil {
		return fmt.Errorf("remove subagents of session #%d: %w", s.key, err)
	}
	return nil
}

func (s *Session) subagents(ctx context.Context, statement string, args ...any) ([]Subagent, error) {
	var list []Subagent
	err := s.archive.view(ctx, func(rx *reading) error {
		var rows []subagentRow
		if err := rx.tx.SelectContext(ctx, &rows, statement, args...); err != nil {
			return err
		}
		for i := range rows {
			agent, err := rows[i].subagent(s.key)
			if err != nil {
				return err
			}
			list = append(list, agent)
		}
		return nil
	})
	return list, err
}

func (row *subagentRow) subagent(session query.Key) (Subagent, error) {
	agent := Subagent{
		Job: row.Job, Task: row.Task, Model: row.Model, Status: row.Status, Result: row.Result, Error: row.Error,
		Thinking: row.Thinking, Async: row.Async, Started: timeOf(row.StartedMS), Finished: timeOf(row.FinishedMS),
		Cost: row.Cost, ContextPercent: row.ContextPercent,
	}
	if row.Usage != nil {
		agent.Usage = json.RawMessage(*row.Usage)
	}
	if err := json.Unmarshal(row.Messages, &agent.Messages); err != nil {
		return agent, fmt.Errorf("%w: subagent %q of session #%d: %w", ErrDamaged, row.Job, session, err)
	}
	return agent, nil
}

// milliOrNull is a time as a column holds it.
func milliOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

// timeOf is the time that a column holds, zero for NULL.
func timeOf(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms).UTC()
}
