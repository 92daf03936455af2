package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"github.com/fatih/color"
	"golang.org/x/term"
)

// terminal is what is known of where the command reads and prints.
type terminal struct {
	in, out, err bool // they are terminals
	width        int  // of out in columns; 0: not known
	color        bool
	stdout       io.Writer // as given
	getenv       func(string) string
}

func newTerminal(stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) terminal {
	t := terminal{in: isTerminal(stdin), out: isTerminal(stdout), err: isTerminal(stderr), stdout: stdout, getenv: getenv}
	if file, ok := stdout.(*os.File); ok && t.out {
		t.width, _, _ = term.GetSize(int(file.Fd()))
	}
	if t.width <= 0 {
		t.width, _ = strconv.Atoi(getenv("COLUMNS"))
	}
	t.width = max(t.width, 0)
	return t
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// columns returns the width to print to.
func (t *terminal) columns() int {
	if t.width == 0 {
		return 80
	}
	return max(t.width, 40)
}

// style is a way to print text.
type style []color.Attribute

var (
	styleUser      = style{color.FgGreen, color.Bold}
	styleAssistant = style{color.FgCyan, color.Bold}
	styleTool      = style{color.FgYellow}
	styleSystem    = style{color.FgMagenta}
	styleError     = style{color.FgRed, color.Bold}
	styleMatch     = style{color.FgRed, color.Bold}
	styleLabel     = style{color.FgYellow, color.Bold}
	styleTitle     = style{color.Bold}
	styleDim       = style{color.Faint}
	styleLeaf      = style{color.FgGreen, color.Bold}
	stylePlain     = style(nil)
)

// paint returns text in a style where colours are wanted.
func (a *app) paint(s style, text string) string {
	if !a.term.color || len(s) == 0 || text == "" {
		return text
	}
	c := color.New(s...)
	c.EnableColor()
	return c.Sprint(text)
}

// page calls print and shows what it prints in a pager, where standard output is a
// terminal. The archive is not being read while someone looks at the pager.
func (a *app) page(print func() error) error {
	pager := a.pager()
	if pager == nil {
		return print()
	}
	var text bytes.Buffer
	terminal := a.out.w
	a.out.w = bufio.NewWriter(&text)
	err := print()
	a.out.flush()
	a.out.w = terminal
	if err != nil || text.Len() == 0 {
		return err
	}
	// An interrupt is for the pager.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	pager.Stdin = bytes.NewReader(text.Bytes())
	if err := pager.Start(); err != nil {
		a.out.printf("%s", text.Bytes())
		return nil
	}
	_ = pager.Wait() // its exit code says nothing
	return nil
}

// pager returns the command of the pager, nil for none.
func (a *app) pager() *exec.Cmd {
	file, ok := a.term.stdout.(*os.File)
	if !ok || !a.term.out || a.json {
		return nil
	}
	command := a.getenv("PAGER")
	if command == "" {
		if _, err := exec.LookPath("less"); err != nil {
			return nil
		}
		command = "less"
	}
	cmd := exec.Command("sh", "-c", command)
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	cmd.Env = os.Environ()
	if a.getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	return cmd
}
