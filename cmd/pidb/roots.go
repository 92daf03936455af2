package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// sessionRoots returns the folders to look for sessions in, absolute and clean.
func (a *app) sessionRoots() ([]string, error) {
	roots := a.roots
	if len(roots) == 0 {
		if _, named, err := a.dbPath(); named || err != nil {
			return nil, err
		}
		if root := a.piSessions(); root != "" {
			roots = []string{root}
		}
	}
	absolute := make([]string, len(roots))
	for i, root := range roots {
		path, err := filepath.Abs(root)
		if err != nil {
			return nil, err
		}
		absolute[i] = path
	}
	return absolute, nil
}

// noteAbsent says which of the folders that --root names do not exist.
func (a *app) noteAbsent(roots []string) {
	if len(a.roots) == 0 {
		return // pi makes its folder when it needs it
	}
	for _, root := range absent(roots) {
		a.note("no such folder: %s", root)
	}
}

// absent returns those of some paths that do not exist.
func absent(paths []string) []string {
	var list []string
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			list = append(list, path)
		}
	}
	return list
}

// piSessions returns the folder where pi keeps its sessions, "" where there is no home.
func (a *app) piSessions() string {
	if dir := a.getenv("PI_CODING_AGENT_SESSION_DIR"); dir != "" {
		return a.piPath(dir)
	}
	agent := a.piPath(a.getenv("PI_CODING_AGENT_DIR"))
	if agent == "" {
		if a.home == "" {
			return ""
		}
		agent = filepath.Join(a.home, ".pi", "agent")
	}
	// As in pi, the settings of the project in the working directory come first.
	for _, settings := range []string{filepath.Join(".pi", "settings.json"), filepath.Join(agent, "settings.json")} {
		if dir, ok := sessionDir(settings); ok {
			if dir == "" {
				break
			}
			return a.piPath(dir)
		}
	}
	return filepath.Join(agent, "sessions")
}

// sessionDir returns the sessionDir of a settings file of pi, and false where it has none
// or cannot be read, which pi passes over too.
func sessionDir(path string) (string, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	var settings map[string]json.RawMessage
	if json.Unmarshal([]byte(strings.TrimPrefix(string(text), "\ufeff")), &settings) != nil {
		return "", false
	}
	var dir *string
	if json.Unmarshal(settings["sessionDir"], &dir) != nil || dir == nil {
		return "", false
	}
	return *dir, true
}

// piPath reads a path as pi's normalizePath does: ~ is the home, a file URL its path.
func (a *app) piPath(path string) string {
	switch {
	case path == "~":
		return a.home
	case strings.HasPrefix(path, "~/"):
		return filepath.Join(a.home, path[2:])
	case strings.HasPrefix(path, "file://"):
		if u, err := url.Parse(path); err == nil {
			return filepath.FromSlash(u.Path)
		}
	}
	return path
}

// displayPath returns a path as it is shown: the home as ~, and safe to print.
func (a *app) displayPath(path string) string {
	if a.home != "" && a.home != "/" {
		if rest, ok := strings.CutPrefix(path, a.home); ok && (rest == "" || rest[0] == filepath.Separator) {
			path = "~" + rest
		}
	}
	return flat(path)
}
