//go:build !unix

package repo

import (
	"errors"
	"io/fs"
)

func statOf(info fs.FileInfo) stat {
	return stat{Size: info.Size(), MtimeNS: info.ModTime().UnixNano()}
}

func idOf(fs.FileInfo) fileID { return fileID{} }

// errNotFolder says that a path leads through what is no folder: nothing says so here.
var errNotFolder = errors.New("not a folder")

func isLoop(error) bool { return false }
