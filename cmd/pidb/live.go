package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

// live is a session to be written to.
type live struct {
	archive *repo.Archive
	session *repo.Session
	info    query.Session
}

// openLive opens the archive, takes in what changed, and returns the session that SESSION names.
func (a *app) openLive(ctx context.Context, spec string) (*live, error) {
	archive, err := a.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.sync(ctx, archive, withoutIndex); err != nil {
		return nil, err
	}
	l := &live{archive: archive}
	err = archive.View(ctx, func(rx *query.Rx) (err error) {
		l.info, err = findSession(ctx, rx, spec)
		return err
	})
	if err != nil {
		return nil, err
	}
	l.session, err = archive.Session(ctx, l.info.Key)
	return l, err
}

// entry returns the entry that ENTRY names.
func (l *live) entry(ctx context.Context, spec string) (query.Entry, error) {
	var e query.Entry
	if spec == "" {
		return e, usagef("ENTRY is empty")
	}
	err := l.archive.View(ctx, func(rx *query.Rx) error {
		ref, err := findLeaf(ctx, rx, &l.info, spec)
		if err == nil {
			e, err = rx.Entry(ctx, ref)
		}
		return err
	})
	return e, err
}

// branchID returns the id of an entry that can become the leaf: a branch names it by its
// id, for which the last line with it stands.
func (l *live) branchID(ctx context.Context, spec string) (string, error) {
	e, err := l.entry(ctx, spec)
	if err != nil {
		return "", err
	}
	if e.ID == "" {
		return "", errors.New("an entry whose id is empty cannot be a leaf")
	}
	err = l.archive.View(ctx, func(rx *query.Rx) error {
		last, err := rx.EntryByID(ctx, l.info.Key, e.ID)
		if err == nil && last.Ref != e.Ref {
			err = fmt.Errorf("line %v shares its id with line %v, and only the last line of an id can be a leaf: extract or fork from it", e.Line, last.Line)
		}
		return err
	})
	return e.ID, err
}

// append appends entries, and says how to go on where the session belongs to a file.
func (l *live) append(ctx context.Context, entries ...repo.NewEntry) ([]string, error) {
	ids, err := l.session.Append(ctx, entries...)
	return ids, l.explain(err)
}

// refused is the error of a command, of which what says what it does, for a session that it
// may not write to.
func (l *live) refused(what string, err error) error {
	if errors.Is(err, repo.ErrNotNative) {
		return l.explain(fmt.Errorf("%s session %s: %w: fork it", what, quotedKey(l.info.Key), repo.ErrNotNative))
	}
	return err
}

func (l *live) explain(err error) error {
	if errors.Is(err, repo.ErrNotNative) {
		return withHint(err, "pidb fork "+quotedKey(l.info.Key)+" makes a session that can be written to")
	}
	return err
}

// emitEntry prints the id of an entry that was appended.
func (a *app) emitEntry(l *live, id string) error {
	if a.json {
		return a.emit(appendedJSON{l.info.Key, id})
	}
	if !a.quiet {
		a.out.printf("%s\n", flat(id))
	}
	return nil
}

// emitSession prints the id of a session that was made.
func (a *app) emitSession(ctx context.Context, s *repo.Session) error {
	if !a.json {
		a.out.printf("%s\n", s.ID())
		return nil
	}
	info, err := s.Info(ctx)
	if err != nil {
		return err
	}
	return a.emit(madeJSON{info.Key, info.ID, info.CWD, info.ParentSession, info.Entries})
}

const madeShape = `{"session":KEY,"id":,"cwd":,"parentSession":,"entries":}`

// filled makes a flag that was given an empty value an error of usage.
func filled(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if flag := cmd.Flag(name); flag.Changed && flag.Value.String() == "" {
			return usagef("--%s needs %s; it is empty", name, valueText(flag.Usage))
		}
	}
	return nil
}
