package repo

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Exposed returns what of the archive others on this machine can get at, as paths: files
// that they can read or write, and the folder where they can put another file in place of
// one. It returns none on a system without such modes.
func (a *Archive) Exposed() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	var out []string
	for _, path := range []string{a.path, a.IndexPath()} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(path + suffix); err == nil && info.Mode().Perm()&0o077 != 0 {
				out = append(out, path+suffix)
			}
		}
	}
	folder := filepath.Dir(a.path)
	// In a folder such as /tmp, where each may remove their own files alone, nobody replaces one.
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		out = append(out, folder)
	}
	return out
}
