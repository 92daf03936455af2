package repo

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"pidb/query"
)

// TreeReport says what is wrong with a tree of entries. Each list is in the order of the
// entries.
type TreeReport struct {
	Duplicates  []string      // ids that several entries have
	Orphans     []OrphanEntry // entries whose parent is not there
	UnknownLeaf string        // the leaf, where no entry is it
	Cycles      [][]string    // ids of entries that are each the parent of the next, the last of the first
}

// OrphanEntry is an entry whose parent is not there.
type OrphanEntry struct{ ID, Parent string }

// OK reports whether nothing is wrong.
func (r *TreeReport) OK() bool {
	return len(r.Duplicates) == 0 && len(r.Orphans) == 0 && r.UnknownLeaf == "" && len(r.Cycles) == 0
}

// Err returns nil where nothing is wrong, else an error that wraps [ErrInvalidTree] and
// names the first fault of each kind.
func (r *TreeReport) Err() error {
	if r.OK() {
		return nil
	}
	var faults []string
	if len(r.Duplicates) > 0 {
		faults = append(faults, fmt.Sprintf("several entries have the id %q", r.Duplicates[0]))
	}
	if len(r.Orphans) > 0 {
		faults = append(faults, fmt.Sprintf("the parent %q of entry %q is not there", r.Orphans[0].Parent, r.Orphans[0].ID))
	}
	if r.UnknownLeaf != "" {
		faults = append(faults, fmt.Sprintf("the leaf %q is not there", r.UnknownLeaf))
	}
	if len(r.Cycles) > 0 {
		faults = append(faults, fmt.Sprintf("entry %q is its own ancestor", r.Cycles[0][0]))
	}
	return fmt.Errorf("%w: %s", ErrInvalidTree, strings.Join(faults, "; "))
}

// TreeEntry is what the shape of a tree is made of.
type TreeEntry struct {
	ID     string
	Parent string // empty: a root
}

// CheckTree looks for faults in the tree that entries make. A parent is the nearest
// earlier entry with its id, else the first later one. An empty leaf is none.
func CheckTree(entries []TreeEntry, leaf string) *TreeReport {
	r := &TreeReport{}
	places := make(map[string][]int, len(entries))
	for i, e := range entries {
		if places[e.ID] = append(places[e.ID], i); len(places[e.ID]) == 2 {
			r.Duplicates = append(r.Duplicates, e.ID)
		}
	}
	parents := make([]int, len(entries))
	for i, e := range entries {
		parents[i] = -1
		if e.Parent == "" {
			continue
		}
		at := places[e.Parent]
		if len(at) == 0 {
			r.Orphans = append(r.Orphans, OrphanEntry(e))
			continue
		}
		n, _ := slices.BinarySearch(at, i)
		parents[i] = at[max(n-1, 0)]
	}
	if leaf != "" && places[leaf] == nil {
		r.UnknownLeaf = leaf
	}
	r.Cycles = cycles(entries, parents)
	return r
}

// cycles returns the cycles of parents, each from its earliest entry on.
func cycles(entries []TreeEntry, parents []int) [][]string {
	var found [][]string
	walk := make([]int, len(entries)) // the walk that came by first, from 1
	for i := range entries {
		at := i
		for at >= 0 && walk[at] == 0 {
			walk[at] = i + 1
			at = parents[at]
		}
		if at < 0 || walk[at] != i+1 {
			continue
		}
		ring := []int{at}
		for next := parents[at]; next != at; next = parents[next] {
			ring = append(ring, next)
		}
		slices.Reverse(ring)
		first := slices.Index(ring, slices.Min(ring))
		ring = slices.Concat(ring[first:], ring[:first])
		ids := make([]string, len(ring))
		for n, place := range ring {
			ids[n] = entries[place].ID
		}
		found = append(found, ids)
	}
	return found
}

// CheckTree looks for faults in the tree of the session: what an import took in as it was.
// A session with faults is shown and exported as any other; see [query.Rx.Tree].
func (s *Session) CheckTree(ctx context.Context) (*TreeReport, error) {
	var entries []TreeEntry
	leaf := ""
	err := s.archive.View(ctx, func(rx *query.Rx) error {
		for e, err := range rx.Entries(ctx, s.key, nil) {
			if err != nil {
				return err
			}
			if e.Kind == query.KindEntry {
				entries = append(entries, TreeEntry{e.ID, e.ParentID})
			}
		}
		info, err := rx.Session(ctx, s.key)
		if err == nil && info.Leaf != 0 && info.LeafLine == (query.LineNumber{}) {
			leaf = fmt.Sprintf(":%d", info.Leaf.Seq()+1)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("check the tree of session #%d: %w", s.key, err)
	}
	return CheckTree(entries, leaf), nil
}
