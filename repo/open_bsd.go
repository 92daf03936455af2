//go:build unix && !linux

package repo

import "syscall"

const openNoWait = syscall.O_NONBLOCK
