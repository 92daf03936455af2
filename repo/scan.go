package repo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stat is what tells an unchanged file without a read.
type stat struct {
	Size    int64 `db:"size"`
	MtimeNS int64 `db:"mtime_ns"`
	CtimeNS int64 `db:"ctime_ns"`
	Inode   int64 `db:"inode"`
}

// fileID names a file whatever path leads to it.
type fileID struct{ device, inode uint64 }

// found is a file that may be a session.
type found struct {
	path  string
	root  string
	stat  stat
	named bool // by itself, not by a folder above it
}

// scan is the outcome of looking for session files.
type scan struct {
	files    []found
	roots    []string // folders that were read completely, so that a file not found there is gone
	gone     []string // named paths that do not exist
	problems []Problem

	aliases []found // links to files that were found by another path

	seen  map[fileID]bool
	links []found // symbolic links, looked at last
}

// isSessionName reports whether a file is taken for a session by its name: x.jsonl, and
// names that programs give to set it aside, such as x.jsonl.bak-1 or x.jsonl.reset.<time>.
func isSessionName(name string) bool {
	base, rest, ok := strings.Cut(name, ".jsonl")
	return ok && base != "" && (rest == "" || rest[0] == '.') && !strings.HasSuffix(rest, ".lock") && !strings.HasSuffix(rest, ".tmp")
}

// findFiles looks for session files at the given paths: files as they are, folders with
// all below them. A symbolic link is followed where it leads to something not seen yet.
// A folder that does not exist is in gone.
func findFiles(ctx context.Context, paths []string) (*scan, error) {
	s := &scan{seen: map[fileID]bool{}}
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.gone = append(s.gone, path)
		case err != nil:
			s.problem(path, err)
		case info.IsDir():
			if s.first(info) {
				s.roots = append(s.roots, path)
				if err := s.folder(ctx, path, path); err != nil {
					return nil, err
				}
			}
		case !info.Mode().IsRegular():
			s.problems = append(s.problems, Problem{Path: path, Code: CodeUnreadable, Detail: "not a regular file"})
		default:
			s.first(info)
			s.files = append(s.files, found{path: path, root: filepath.Dir(path), stat: statOf(info), named: true})
		}
	}
	return s, s.follow(ctx)
}

// first reports whether a file is met for the first time.
func (s *scan) first(info fs.FileInfo) bool {
	id := idOf(info)
	if id == (fileID{}) {
		return true
	}
	if s.seen[id] {
		return false
	}
	s.seen[id] = true
	return true
}

func (s *scan) problem(path string, err error) {
	s.problems = append(s.problems, Problem{Path: path, Code: CodeUnreadable, Detail: reason(err)})
	// What could not be looked at may still be there.
	s.incomplete(path)
}

// incomplete takes back that the folders above a path were read completely.
func (s *scan) incomplete(path string) {
	kept := s.roots[:0]
	for _, root := range s.roots {
		if !within(root, path) {
			kept = append(kept, root)
		}
	}
	s.roots = kept
}

func (s *scan) folder(ctx context.Context, path, root string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		s.problem(path, err)
	}
	for _, entry := range entries {
		child := filepath.Join(path, entry.Name())
		mode := entry.Type()
		if mode&fs.ModeSymlink != 0 {
			s.links = append(s.links, found{path: child, root: root})
			continue
		}
		if !mode.IsDir() && !(mode.IsRegular() && isSessionName(entry.Name())) {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.problem(child, err)
			continue
		}
		if !mode.IsDir() {
			s.first(info)
			s.files = append(s.files, found{path: child, root: root, stat: statOf(info)})
		} else if s.first(info) {
			if err := s.folder(ctx, child, root); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow looks behind the symbolic links, which may lead to further ones.
func (s *scan) follow(ctx context.Context) error {
	for len(s.links) > 0 {
		link := s.links[0]
		s.links = s.links[1:]
		info, err := os.Stat(link.path)
		if err != nil {
			// A broken link leads nowhere, and a link to itself neither.
			if !errors.Is(err, fs.ErrNotExist) && !isLoop(err) {
				s.problem(link.path, err)
			}
			continue
		}
		switch {
		case info.IsDir():
			if s.first(info) {
				if err := s.folder(ctx, link.path, link.root); err != nil {
					return err
				}
			}
		case info.Mode().IsRegular() && isSessionName(filepath.Base(link.path)):
			link.stat = statOf(info)
			if s.first(info) {
				s.files = append(s.files, link)
			} else {
				s.aliases = append(s.aliases, link)
			}
		}
	}
	return nil
}

// within reports whether path is folder or below it, by their names.
func within(folder, path string) bool {
	if !strings.HasPrefix(path, folder) {
		return false
	}
	rest := path[len(folder):]
	return rest == "" || rest[0] == filepath.Separator || strings.HasSuffix(folder, string(filepath.Separator))
}

// reason returns an error of the file system without the path that it repeats.
func reason(err error) string {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err.Error()
	}
	return err.Error()
}
