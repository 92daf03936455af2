package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitPartly      = 3 // some files were not imported, or some sessions not saved
	exitNotFound    = 4 // not found or ambiguous
	exitInterrupted = 130
)

// exitHelp is what the help of the command says about them.
const exitHelp = `Exit codes:
  0    done; also a list or a search without a row
  1    failed
  2    wrong usage, or a bad regular expression
  3    partly done: some of the named files were not imported, or not all sessions saved
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

// arguments makes wrong arguments of a command an error of usage that shows the right
// ones: those that its Use lists.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		need, optional := operands(cmd.Use)
		switch most := len(need) + len(optional); {
		case len(args) < len(need):
			err = fmt.Errorf("%s needs %s", cmd.Name(), operandText(need[len(args):]))
		case len(args) > most && most == 0:
			err = fmt.Errorf("%s takes no argument; %q is too many", cmd.Name(), args[0])
		case len(args) > most:
			err = fmt.Errorf("%s takes %s; %q is too many", cmd.Name(), operandText(slices.Concat(need, optional)), args[most])
		default:
			err = fmt.Errorf("%s: %w", cmd.Name(), err)
		}
		return &commandError{err: err, code: exitUsage, hint: "usage: " + cmd.UseLine()}
	}
}

// operands returns what the Use of a command asks for behind its name, and what in
// brackets it takes too, without flags.
func operands(use string) (need, optional []string) {
	inFlag := false
	for _, word := range strings.Fields(use)[1:] {
		name := strings.Trim(word, "[]")
		switch {
		case strings.HasPrefix(word, "[-"):
			inFlag = true
		case inFlag:
		case strings.HasPrefix(word, "["):
			optional = append(optional, name)
		default:
			need = append(need, name)
		}
		if strings.HasSuffix(word, "]") {
			inFlag = false
		}
	}
	return need, optional
}

// operandText names operands in a sentence.
func operandText(names []string) string {
	if len(names) > 1 {
		last := len(names) - 1
		return strings.Join(names[:last], ", ") + " and " + names[last]
	}
	name, many := strings.CutSuffix(names[0], "…")
	switch {
	case !many:
		return "one " + name
	case strings.ContainsRune("AEIO", rune(name[0])):
		return "an " + name
	}
	return "a " + name
}

// flagError says what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if own, ok := errors.AsType[*commandError](err); ok {
		err = own // of a value that reads itself, without what the parser says around it
	} else if named, ok := errors.AsType[namedFlagError](err); ok {
		name := named.GetSpecifiedName()
		dashed, flag := "--"+name, cmd.Flag(name)
		if named.GetSpecifiedShortnames() != "" {
			dashed, flag = "-"+name, cmd.Flags().ShorthandLookup(name)
		}
		if flag == nil {
			return &commandError{err: fmt.Errorf("unknown flag: %s", dashed), code: exitUsage, hint: fmt.Sprintf("%s --help lists the flags", cmd.CommandPath())}
		}
		err = fmt.Errorf("%s needs %s", dashed, valueText(flag.Usage))
	} else if flag, value, ok := valueOf(err, cmd.Flag("help")); ok {
		if flag.NoOptDefVal != "" {
			err = fmt.Errorf("--%s takes no value; it got %q", flag.Name, value)
		} else {
			err = fmt.Errorf("--%s takes %s, not %q", flag.Name, valueText(flag.Usage), value)
		}
	}
	return &commandError{err: err, code: exitUsage, hint: fmt.Sprintf("%s --help shows how to call it", cmd.CommandPath())}
}

// valueText names the value of a flag, which its usage has between backquotes.
func valueText(usage string) string {
	_, name, _ := strings.Cut(usage, "`")
	name, _, _ = strings.Cut(name, "`")
	return operandText([]string{cmp.Or(name, "value") + "…"})
}

// valueOf returns from an error of the parser of flags the flag, whose type is that of
// any other one, and the value that it does not take.
func valueOf[F any](err error, _ F) (flag F, value string, ok bool) {
	wrong, ok := err.(interface {
		GetFlag() F
		GetValue() string
	})
	if ok {
		flag, value = wrong.GetFlag(), wrong.GetValue()
	}
	return flag, value, ok
}

// namedFlagError is an error of the parser of flags: one that is not known, or that
// lacks its value.
type namedFlagError interface {
	error
	GetSpecifiedName() string
	GetSpecifiedShortnames() string
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
		return "pidb doctor says what is damaged, pidb verify which sessions are whole; pidb doctor --salvage NEW brings them out"
	}
	return ""
}

// isBrokenPipe reports whether an error says that nobody reads the output any more.
func isBrokenPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
