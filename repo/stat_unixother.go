//go:build unix && !linux && !darwin && !freebsd && !netbsd

package repo

import "syscall"

func ctimeNS(*syscall.Stat_t) int64 { return 0 }
