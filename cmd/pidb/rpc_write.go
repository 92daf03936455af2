package main

import (
	"context"
	"encoding/json"
	"fmt"

	"pidb/query"
	"pidb/repo"
)

type createParams struct {
	CWD            string                     `json:"cwd"`
	ID             string                     `json:"id"`
	Parent         string                     `json:"parent"`
	Metadata       map[string]json.RawMessage `json:"metadata"`
	IdempotencyKey string                     `json:"idempotencyKey"`
}

// create makes a session, or finds the one that was made for the key.
func (s *rpcServer) create(ctx context.Context, p *createParams) (any, error) {
	opts := &repo.CreateOptions{ID: p.ID, ParentSession: p.Parent, Metadata: map[string]any{}}
	for name, value := range p.Metadata {
		opts.Metadata[name] = value
	}
	made, _, err := s.archive.CreateOnce(ctx, p.IdempotencyKey, p.CWD, opts)
	if err != nil {
		return nil, err
	}
	return s.keep(ctx, made)
}

type openParams struct {
	Session rpcSession `json:"session"`
}

// open moves the client's place in a session to where the session's leaf is.
func (s *rpcServer) open(ctx context.Context, p *openParams) (any, error) {
	if err := s.sync(ctx, withoutIndex); err != nil {
		return nil, err
	}
	l, err := s.live(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	if err := l.session.Refresh(ctx); err != nil {
		return nil, err
	}
	info, err := l.session.Info(ctx)
	if err != nil {
		return nil, err
	}
	return newSessionJSON(&info), nil
}

type appendParams struct {
	Session rpcSession        `json:"session"`
	Entries []json.RawMessage `json:"entries"`
	IfLeaf  *string           `json:"ifLeaf"`
}

// appendedListJSON is the result of append.
type appendedListJSON struct {
	Entries []appendedJSON `json:"entries"`
}

func (s *rpcServer) append(ctx context.Context, p *appendParams) (any, error) {
	if len(p.Entries) == 0 {
		return nil, usagef("entries is empty: nothing to append")
	}
	entries := make([]repo.NewEntry, len(p.Entries))
	for i, text := range p.Entries {
		var err error
		entries[i], err = newEntry(text)
		if err != nil {
			return nil, fmt.Errorf("%w: entry %d: %w", repo.ErrInvalidEntry, i+1, err)
		}
	}
	l, err := s.live(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	var ids []string
	if p.IfLeaf != nil {
		ids, err = l.appendIfLeaf(ctx, *p.IfLeaf, entries)
	} else {
		ids, err = l.append(ctx, entries...)
	}
	if err != nil {
		return nil, err
	}
	result := appendedListJSON{}
	for _, id := range ids {
		result.Entries = append(result.Entries, appendedJSON{l.info.Key, id})
	}
	return result, nil
}

type branchParams struct {
	Session  rpcSession `json:"session"`
	Entry    *string    `json:"entry"`
	Summary  *string    `json:"summary"`
	Answered bool       `json:"answered"`
}

// branch moves the leaf to an entry, or before the first where none is named.
func (s *rpcServer) branch(ctx context.Context, p *branchParams) (any, error) {
	l, err := s.live(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	id := ""
	if p.Entry != nil {
		if id, err = l.branchID(ctx, *p.Entry); err != nil {
			return nil, err
		}
	}
	if p.Answered {
		if err := l.session.CheckBranch(ctx, id); err != nil {
			return nil, err
		}
	}
	switch {
	case p.Summary != nil:
		ids, err := l.append(ctx, repo.BranchSummary(id, *p.Summary, nil))
		if err != nil {
			return nil, err
		}
		id = ids[0]
	case p.Answered:
		err = l.session.BranchIfAnswered(ctx, id)
	default:
		err = l.session.Branch(ctx, id)
	}
	return branchJSON{l.info.Key, id}, err
}

type forkParams struct {
	Session rpcSession `json:"session"`
	CWD     string     `json:"cwd"`
	ID      string     `json:"id"`
	UpTo    string     `json:"upTo"`
	Before  string     `json:"before"`
}

func (s *rpcServer) fork(ctx context.Context, p *forkParams) (any, error) {
	if p.UpTo != "" && p.Before != "" {
		return nil, usagef("upTo and before do not go together")
	}
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	opts := repo.ForkOptions{ID: p.ID, CWD: p.CWD}
	for spec, ref := range map[string]*query.Ref{p.UpTo: &opts.UpTo, p.Before: &opts.Before} {
		if spec == "" {
			continue
		}
		e, err := l.entry(ctx, spec)
		if err != nil {
			return nil, err
		}
		*ref = e.Ref
	}
	made, err := s.archive.Fork(ctx, l.info.Key, &opts)
	if err != nil {
		return nil, err
	}
	return s.keep(ctx, made)
}

type extractParams struct {
	Session rpcSession `json:"session"`
	Leaf    string     `json:"leaf"`
	ID      string     `json:"id"`
}

func (s *rpcServer) extract(ctx context.Context, p *extractParams) (any, error) {
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	leaf := l.session.Leaf()
	if p.Leaf != "" {
		e, err := l.entry(ctx, p.Leaf)
		if err != nil {
			return nil, err
		}
		leaf = e.Ref
	}
	if leaf == 0 {
		return nil, fmt.Errorf("session %s has no leaf: %w", quotedKey(l.info.Key), query.ErrNotFound)
	}
	made, err := s.archive.Extract(ctx, leaf, &repo.ExtractOptions{ID: p.ID})
	if err != nil {
		return nil, err
	}
	return s.keep(ctx, made)
}

type labelParams struct {
	Session rpcSession `json:"session"`
	Entry   string     `json:"entry"`
	Text    string     `json:"text"`
}

func (s *rpcServer) label(ctx context.Context, p *labelParams) (any, error) {
	l, err := s.live(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	e, err := l.entry(ctx, p.Entry)
	if err != nil {
		return nil, err
	}
	label := repo.ClearLabel(e.ID)
	if p.Text != "" {
		label = repo.Label(e.ID, p.Text)
	}
	ids, err := l.append(ctx, label)
	if err != nil {
		return nil, err
	}
	return appendedJSON{l.info.Key, ids[0]}, nil
}

type nameParams struct {
	Session rpcSession `json:"session"`
	Name    *string    `json:"name"`
}

func (s *rpcServer) name(ctx context.Context, p *nameParams) (any, error) {
	l, err := s.live(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	if p.Name == nil {
		return nil, usagef("name is needed; empty it takes the name away")
	}
	ids, err := l.append(ctx, repo.SessionName(*p.Name))
	if err != nil {
		return nil, err
	}
	return appendedJSON{l.info.Key, ids[0]}, nil
}

type deleteParams struct {
	Session rpcSession `json:"session"`
}

func (s *rpcServer) delete(ctx context.Context, p *deleteParams) (any, error) {
	l, err := s.place(ctx, p.Session)
	if err != nil {
		return nil, err
	}
	deleted, err := l.session.Delete(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.handles, l.info.Key)
	s.mu.Unlock()
	return deletedJSON{l.info.Key, l.info.ID, l.info.Path, deleted}, nil
}
