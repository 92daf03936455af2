//go:build !unix

package repo

import "io/fs"

func statOf(info fs.FileInfo) stat {
	return stat{Size: info.Size(), MtimeNS: info.ModTime().UnixNano()}
}

func idOf(fs.FileInfo) fileID { return fileID{} }

func isLoop(error) bool { return false }
