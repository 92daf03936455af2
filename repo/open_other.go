//go:build !linux

package repo

import "os"

// openQuietly opens a file for reading.
func openQuietly(path string) (*os.File, error) { return os.Open(path) }
