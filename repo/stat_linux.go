package repo

import (
	"os"
	"syscall"
)

func ctimeNS(sys *syscall.Stat_t) int64 { return sys.Ctim.Nano() }

// openQuietly opens a file for reading and, where the system lets, leaves the time of
// its last access as it is.
func openQuietly(path string) (*os.File, error) {
	if file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOATIME, 0); err == nil {
		return file, nil
	}
	return os.Open(path)
}
