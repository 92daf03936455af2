//go:build unix

package repo

import (
	"errors"
	"io/fs"
	"syscall"
)

func statOf(info fs.FileInfo) stat {
	s := stat{Size: info.Size(), MtimeNS: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.CtimeNS, s.Inode = ctimeNS(sys), int64(sys.Ino)
	}
	return s
}

func idOf(info fs.FileInfo) fileID {
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(sys.Dev), uint64(sys.Ino)}
	}
	return fileID{}
}

// errNotFolder says that a path leads through what is no folder.
const errNotFolder = syscall.ENOTDIR

func isLoop(err error) bool { return errors.Is(err, syscall.ELOOP) }
