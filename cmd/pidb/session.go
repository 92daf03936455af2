package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pidb/query"
)

// findSession returns the session that SESSION names. A path may be relative, and comes
// before the beginning of an id.
func findSession(ctx context.Context, rx *query.Rx, spec string) (query.Session, error) {
	found, err := rx.Find(ctx, spec)
	if err != nil && !errors.Is(err, query.ErrNotFound) && !errors.Is(err, query.ErrAmbiguous) {
		return found, err
	}
	byPrefix := err == nil && found.ID != spec && found.Path != spec && strings.HasPrefix(found.ID, spec) && spec != "last"
	if ambiguous, ok := errors.AsType[*query.AmbiguousError](err); ok && len(ambiguous.Candidates) > 0 {
		byPrefix = ambiguous.Candidates[0].ID != spec
	}
	if spec != "" && (byPrefix || errors.Is(err, query.ErrNotFound)) {
		path, pathErr := filepath.Abs(spec)
		if pathErr == nil {
			if source, sourceErr := rx.Find(ctx, path); sourceErr == nil {
				return source, nil
			}
		}
		if _, statErr := os.Stat(spec); statErr == nil && err != nil && errors.Is(err, query.ErrNotFound) {
			return found, withHint(sessionNotFound(spec), "the file is not in the archive: pidb import "+shellQuote(spec))
		}
	}
	if errors.Is(err, query.ErrNotFound) {
		all, _, listErr := rx.List(ctx, &query.ListOptions{Limit: 1, Archived: true})
		if listErr == nil && len(all) == 0 {
			return found, withHint(sessionNotFound(spec), "the archive is empty: --root DIR takes in what is in a folder, pidb import PATH what is anywhere")
		}
		return found, withHint(sessionNotFound(spec), "pidb ls --archived --limit 0 lists all sessions")
	}
	return found, err
}

func sessionNotFound(spec string) error { return fmt.Errorf("session %q: %w", spec, query.ErrNotFound) }

// findLeaf returns the entry that --leaf names, the leaf of the session where it is
// empty, 0 where there is none.
func findLeaf(ctx context.Context, rx *query.Rx, s *query.Session, spec string) (query.Ref, error) {
	if spec == "" {
		return s.Leaf, nil
	}
	ref, err := findEntry(ctx, rx, s, spec)
	if err != nil {
		return 0, err
	}
	e, err := rx.Entry(ctx, ref)
	if err == nil && e.Kind != query.KindEntry {
		err = fmt.Errorf("line %s is no entry: %w", lineText(e.Line), query.ErrNotFound)
	}
	return ref, err
}

// findEntry returns the line that ENTRY names.
func findEntry(ctx context.Context, rx *query.Rx, s *query.Session, spec string) (query.Ref, error) {
	ref, err := rx.FindEntry(ctx, s.Key, spec)
	if errors.Is(err, query.ErrNotFound) {
		return 0, withHint(fmt.Errorf("entry %q of session %s: %w", spec, quotedKey(s.Key), query.ErrNotFound), fmt.Sprintf("pidb entries %s lists them", quotedKey(s.Key)))
	}
	return ref, err
}

// sessionName returns what names a session on the command line in few characters: the
// beginning of its id where that is unique, else its key.
func sessionName(ctx context.Context, rx *query.Rx, s *query.Session) (string, error) {
	if shellQuote(s.ID) == s.ID && !strings.HasPrefix(s.ID, "-") && s.ID != "last" && flat(s.ID) == s.ID {
		if short, ok, err := rx.ShortID(ctx, s); ok || err != nil {
			return short, err
		}
	}
	return quotedKey(s.Key), nil
}

// quotedKey returns #KEY as a shell takes it, for which a # begins a comment.
func quotedKey(key query.Key) string { return fmt.Sprintf("'#%d'", key) }

// title returns what a session is about: its name, else its first message.
func title(s *query.Session) string {
	if s.Name != "" {
		return s.Name
	}
	return s.FirstMessage
}

// wholeTitle is how much there is of a title where it is not cut to a terminal, in
// columns: a first message may be a book.
const wholeTitle = 2000

// titleIn returns the title of a session on one line, safe to print: so many columns of
// it on a terminal, else all.
func (a *app) titleIn(s *query.Session, columns int) string {
	if !a.term.out {
		columns = wholeTitle
	}
	return head(title(s), columns)
}

// completeSession offers session ids to the shell, and #KEY where an id does not say
// which session is meant. The shell takes no candidate that does not begin as the word does.
func (a *app) completeSession(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	path, _, err := a.dbPath()
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if _, err := os.Stat(path); err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	archive, err := a.open(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	names := []string{"last\tthe newest session"}
	err = archive.View(cmd.Context(), func(rx *query.Rx) error {
		const offered = 200
		list, _, err := rx.List(cmd.Context(), &query.ListOptions{Limit: offered})
		for i := range list {
			s := &list[i]
			_, unique, err := rx.ShortID(cmd.Context(), s)
			if err != nil {
				return err
			}
			name := s.ID
			if !unique || flat(name) != name {
				name = fmt.Sprintf("#%d", s.Key)
			}
			if strings.HasPrefix(name, prefix) {
				names = append(names, name+"\t"+head(title(s), 50))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	// The shell completes paths of files where no id fits.
	return names, cobra.ShellCompDirectiveDefault
}

// where returns the place of a session for an error.
func where(s *query.Session) string {
	if s.Path != "" {
		return s.Path
	}
	return "in no file"
}
