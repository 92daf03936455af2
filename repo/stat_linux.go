package repo

import "syscall"

func ctimeNS(sys *syscall.Stat_t) int64 { return sys.Ctim.Nano() }
