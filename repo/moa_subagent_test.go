package repo_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pidb/repo"
)

var subagentTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func subagents(t *testing.T, s *repo.Session) []repo.Subagent {
	t.Helper()
	list, err := s.Subagents(t.Context())
	ok(t, err)
	return list
}

func TestMoa_SubagentStore_Save(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	agent := repo.Subagent{Job: "1", Status: "running", ContextPercent: new(0)}
	ok(t, s.SaveSubagent(t.Context(), &agent))
	agent.Status, agent.Finished, agent.ContextPercent = "done", subagentTime, nil
	ok(t, s.SaveSubagent(t.Context(), &agent))
	agent.Messages = []json.RawMessage{}
	same(t, "saved twice", []repo.Subagent{agent}, subagents(t, s))
	for _, bad := range []struct {
		agent repo.Subagent
		want  error
	}{
		{repo.Subagent{}, repo.ErrInvalidID},
		{repo.Subagent{Job: "x", Messages: []json.RawMessage{[]byte("{")}}, repo.ErrInvalidEntry},
		{repo.Subagent{Job: "x", Usage: json.RawMessage("x")}, repo.ErrInvalidEntry},
	} {
		if err := s.SaveSubagent(t.Context(), &bad.agent); !errors.Is(err, bad.want) {
			t.Errorf("%v, want %v", err, bad.want)
		}
	}
	_, err := s.Delete(t.Context())
	ok(t, err)
	if err := s.SaveSubagent(t.Context(), &agent); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of a session that is gone: %v", err)
	}
	same(t, "after the session was deleted", []repo.Subagent(nil), subagents(t, s))
}

func TestMoa_SubagentStore_Load(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	want := repo.Subagent{
		Job: "../job 1", Task: "look", Model: "m", Status: "done", Result: "r", Error: "e", Thinking: "low", Async: true,
		Started: subagentTime, Finished: subagentTime.Add(time.Minute), Usage: json.RawMessage(`{"input":12345678901234567890}`),
		Cost: 0.25, ContextPercent: new(0), Messages: []json.RawMessage{[]byte(`{"role":"user","n":1e2}`), []byte(`null`)},
	}
	ok(t, s.SaveSubagent(t.Context(), &want))
	got, err := s.Subagent(t.Context(), want.Job)
	ok(t, err)
	same(t, "loaded", &want, got)
	if _, err := s.Subagent(t.Context(), "none"); !errors.Is(err, repo.ErrNotFound) {
		t.Errorf("of no job: %v", err)
	}
}

func TestMoa_SubagentStore_List(t *testing.T) {
	a := open(t, nil)
	s := create(t, a, nil)
	same(t, "of none", []repo.Subagent(nil), subagents(t, s))
	for job, finished := range map[string]time.Time{"first": subagentTime, "last": subagentTime.Add(time.Hour), "running": {}} {
		ok(t, s.SaveSubagent(t.Context(), &repo.Subagent{Job: job, Finished: finished}))
	}
	var jobs []string
	for _, agent := range subagents(t, s) {
		jobs = append(jobs, agent.Job)
	}
	same(t, "order", []string{"last", "first", "running"}, jobs)
}

func TestMoa_SubagentStore_Remove(t *testing.T) {
	a := open(t, nil)
	s, other := create(t, a, nil), create(t, a, nil)
	for _, of := range []*repo.Session{s, other} {
		ok(t, of.SaveSubagent(t.Context(), &repo.Subagent{Job: "1"}))
	}
	ok(t, s.RemoveSubagents(t.Context()))
	ok(t, s.RemoveSubagents(t.Context()))
	if len(subagents(t, s)) != 0 || len(subagents(t, other)) != 1 {
		t.Errorf("%v, %v", subagents(t, s), subagents(t, other))
	}
}
