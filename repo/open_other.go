//go:build !linux

package repo

// quiet and unquiet are flags for opening a file to read, the second ones to be tried
// where the first are refused.
const quiet, unquiet = openNoWait, openNoWait
