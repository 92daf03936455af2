//go:build !unix

package repo

const openNoWait = 0
