package main

import (
	"errors"
	"fmt"
	"syscall"

	"pidb/query"
	"pidb/repo"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3 // some files were not imported
	exitNotFound    = 4 // not found or ambiguous
	exitInterrupted = 130
)

// exitHelp is what the help of the command says about them.
const exitHelp = `Exit codes:
  0    done; also a list or a search without a row
  1    failed
  2    wrong usage, or a bad regular expression
  3    partly done: some of the named files were not imported
  4    a session or an entry was not found, or its name is ambiguous
  130  interrupted; what was finished is kept`

// commandError is an error that brings its exit code, or a hint, along.
type commandError struct {
	err  error // nil: everything has been said
	code int   // 0: that of err
	hint string
}

func (e *commandError) Error() string {
	if e.err == nil {
		return "exit"
	}
	return e.err.Error()
}

func (e *commandError) Unwrap() error { return e.err }

// usagef is an error of someone who called the command in a wrong way.
func usagef(format string, args ...any) error {
	return &commandError{err: fmt.Errorf(format, args...), code: exitUsage}
}

// withHint adds a hint to an error.
func withHint(err error, hint string) error {
	return &commandError{err: err, hint: hint}
}

// exitWith ends the command with a code when all has been said.
func exitWith(code int) error { return &commandError{code: code} }

// exitCode returns the code that says what an error means.
func exitCode(err error) int {
	for e := err; ; {
		c, ok := errors.AsType[*commandError](e)
		if !ok {
			break
		}
		if c.code != 0 || c.err == nil {
			return c.code
		}
		e = c.err
	}
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, query.ErrBadPattern), errors.Is(err, query.ErrBadCursor):
		return exitUsage
	case errors.Is(err, query.ErrNotFound), errors.Is(err, query.ErrAmbiguous):
		return exitNotFound
	}
	return exitFailed
}

// hintFor returns the hint for an error, "" where none helps.
func hintFor(err error) string {
	if c, ok := errors.AsType[*commandError](err); ok && c.hint != "" {
		return c.hint
	}
	switch {
	case errors.Is(err, repo.ErrNewer):
		return "a newer pidb has written the archive: update pidb"
	case errors.Is(err, repo.ErrForeign):
		return "the file is no archive of pidb: name another one with --db"
	case errors.Is(err, repo.ErrBusy):
		return "another process holds the archive: try again, or find it with lsof"
	case errors.Is(err, repo.ErrReadOnly):
		return "pidb needs to write to the archive and its folder, also to read it"
	case errors.Is(err, repo.ErrDamaged):
		return "pidb doctor says what is damaged; pidb verify says which sessions are whole"
	}
	return ""
}

// isBrokenPipe reports whether an error says that nobody reads the output any more.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
