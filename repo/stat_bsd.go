//go:build darwin || freebsd || netbsd

package repo

import "syscall"

func ctimeNS(sys *syscall.Stat_t) int64 { return sys.Ctimespec.Nano() }
