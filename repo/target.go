package repo

import (
	"context"
	"fmt"

	"pidb/query"
)

// BranchIfAnswered is [Session.Branch] where that leaves no tool call without its result,
// by the rule of [query.Rx.CheckTarget]. Otherwise nothing is moved, and the error wraps
// [ErrUnanswered] and is a [query.UnansweredError], which names the call.
// [Session.BranchTargets] lists the entries that it takes.
func (s *Session) BranchIfAnswered(ctx context.Context, id string) error {
	return s.branch(ctx, id, func(tx *Tx, leaf query.Ref) error { return tx.CheckTarget(ctx, leaf) })
}

// CheckBranch returns the error that [Session.BranchIfAnswered] would return for an entry,
// and moves nothing.
func (s *Session) CheckBranch(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	err := s.archive.View(ctx, func(rx *query.Rx) error {
		e, err := rx.EntryByID(ctx, s.key, id)
		if err != nil {
			return err
		}
		return rx.CheckTarget(ctx, e.Ref)
	})
	if err != nil {
		return fmt.Errorf("branch session #%d: %w", s.key, err)
	}
	return nil
}

// BranchTargets returns the entries that [Session.BranchIfAnswered] takes, in the order of
// the file.
func (s *Session) BranchTargets(ctx context.Context) ([]query.Entry, error) {
	var targets []query.Entry
	err := s.archive.View(ctx, func(rx *query.Rx) (err error) {
		targets, err = rx.Targets(ctx, s.key)
		return err
	})
	return targets, err
}
