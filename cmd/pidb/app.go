package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"pidb/query"
	"pidb/repo"
)

// app is one run of the command: its surroundings and the flags that all commands have.
type app struct {
	getenv func(string) string
	stdin  io.Reader
	stderr io.Writer
	out    *output
	term   terminal
	now    time.Time
	home   string // empty: unknown

	db         string
	json       bool
	roots      []string
	noSync     bool
	color      string
	quiet      bool
	cpuProfile string
	memProfile string

	started bool // arguments were understood
	closers []func()

	lossNoted bool // it has been said that the search index was damaged
}

// memoryLimit is from how many bytes on memory that is no longer used is looked for
// eagerly: a line may have hundreds of megabytes.
const memoryLimit = 896 << 20

// run carries out a command line and returns its exit code.
func run(ctx context.Context, args []string, getenv func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal lets the command finish what it is at, the second one kills.
	context.AfterFunc(ctx, stop)
	// A broken pipe is an error of the write, not the death of the process.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	a := &app{getenv: getenv, stdin: stdin, stderr: stderr, now: time.Now(), home: getenv("HOME")}
	if a.home == "" {
		a.home, _ = os.UserHomeDir()
	}
	a.out = &output{w: bufio.NewWriterSize(stdout, 64<<10), failed: cancel}
	a.term = newTerminal(stdin, stdout, stderr, getenv)

	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	root := a.rootCommand()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	for _, end := range a.closers {
		end()
	}
	a.out.flush()
	return a.finish(ctx, root, err)
}

// finish says what went wrong and returns the exit code.
func (a *app) finish(ctx context.Context, root *cobra.Command, err error) int {
	if a.out.err != nil {
		if isBrokenPipe(a.out.err) {
			return exitDone
		}
		err = fmt.Errorf("write output: %w", a.out.err)
	} else if err != nil && ctx.Err() != nil {
		a.say("interrupted")
		return exitInterrupted
	}
	if err == nil {
		return exitDone
	}
	if !a.started {
		if _, ok := errors.AsType[*commandError](err); !ok {
			err = &commandError{err: err, code: exitUsage}
		}
	}
	code := exitCode(err)
	if c, ok := errors.AsType[*commandError](err); ok && c.err == nil {
		return code
	}
	a.say("%s", message(err))
	if ambiguous, ok := errors.AsType[*query.AmbiguousError](err); ok {
		a.sayCandidates(ambiguous)
	}
	if hint := hintFor(err); hint != "" {
		a.say("hint: %s", hint)
	} else if code == exitUsage && !a.started {
		a.say("hint: %s --help shows how to call it", root.Name())
	}
	return code
}

// message returns an error in the words of the command line.
func message(err error) string {
	text := err.Error()
	if ambiguous, ok := errors.AsType[*query.AmbiguousError](err); ok {
		text = ambiguous.Error()
	}
	if errors.Is(err, query.ErrBadPattern) {
		// The query is in front of the reader.
		if i := strings.LastIndex(text, query.ErrBadPattern.Error()); i > 0 {
			text = text[i:]
		}
	}
	return text
}

func (a *app) sayCandidates(err *query.AmbiguousError) {
	for i := range err.Candidates {
		s := &err.Candidates[i]
		a.say("  %s  %s  %s  %s", quotedKey(s.Key), s.State, s.ID, where(s))
	}
	if err.More {
		a.say("  …")
	}
	if len(err.Candidates) > 0 {
		a.say("hint: name one by its key, as in %s", quotedKey(err.Candidates[0].Key))
	}
}

// say prints one line on standard error, whatever it is made of.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, "pidb: %s\n", flat(fmt.Sprintf(format, args...)))
}

// note says something that is no error, unless -q asks for silence.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.say(format, args...)
	}
}

// rootCommand returns the command with all that belong to it.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "pidb",
		Short: "keeps the sessions of the coding agent pi in one archive",
		Long: `pidb keeps the sessions of the coding agent pi in one SQLite archive: every byte of
them, searchable, and with the branches and model contexts that pi would show.

Commands that read first take in what changed in the session folders: those of pi, or
those that --root names. Nothing needs to be set up:

  pidb search "retry backoff"     find it in all sessions
  pidb ls --here                  the sessions of this folder, newest activity first
  pidb show last                  read the newest one

SESSION is #KEY (quote it: '#12'), last, a session id or the unique beginning of one, or
the path of a session file, also of one that is gone. ENTRY is an entry id, :N for line N
of the file, or :N.K for the K-th entry recovered from a damaged line.

--since and --until take 2026-03-01 (local midnight), RFC 3339, or an age: 7d, 12h.

The archive is the file named by --db, else by PIDB_DB, else pidb/pidb.db in
$XDG_DATA_HOME or ~/.local/share. With --db only folders named by --root are looked at;
PIDB_DB says where the usual archive is. Sessions are where pi keeps them: in
PI_CODING_AGENT_SESSION_DIR, else sessionDir of pi's settings.json, else sessions in
PI_CODING_AGENT_DIR, else ~/.pi/agent/sessions.

` + exitHelp,
		Args:               cobra.ArbitraryArgs,
		SilenceErrors:      true,
		SilenceUsage:       true,
		DisableSuggestions: true, SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.start() },
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(root, args[0])
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.db, "db", "", "archive `FILE`")
	flags.BoolVar(&a.json, "json", false, "print JSON: one object a line for lists, else one object")
	flags.StringArrayVar(&a.roots, "root", nil, "take in what changed in `DIR` instead of pi's folder; may be repeated")
	flags.BoolVar(&a.noSync, "no-sync", false, "do not look for what changed in the session folders")
	flags.StringVar(&a.color, "color", "auto", "colour `WHEN`: auto, always or never")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "no notes and no progress")
	flags.StringVar(&a.cpuProfile, "cpuprofile", "", "write a CPU profile to `FILE`")
	flags.StringVar(&a.memProfile, "memprofile", "", "write a memory profile to `FILE`")
	must(flags.MarkHidden("cpuprofile"))
	must(flags.MarkHidden("memprofile"))
	must(root.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	must(root.MarkPersistentFlagDirname("root"))

	root.Version = buildVersion()
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(a.out)
	root.SetErr(a.out)
	root.SetHelpTemplate(root.HelpTemplate() + "{{if .HasParent}}\nExit codes: see pidb help\n{{end}}")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(root))
	cobra.EnableCommandSorting = false
	root.AddCommand(
		a.searchCommand(), a.lsCommand(), a.showCommand(), a.treeCommand(), a.contextCommand(), a.entriesCommand(), a.statsCommand(),
		a.importCommand(), a.exportCommand(), a.restoreCommand(), a.rmCommand(), a.verifyCommand(), a.doctorCommand(),
		a.backupCommand(), a.mergeCommand(), a.pruneCommand(), a.vacuumCommand(),
		a.newCommand(), a.appendCommand(), a.branchCommand(), a.forkCommand(), a.extractCommand(), a.labelCommand(), a.nameCommand(),
		a.rpcCommand(),
		completionCommand(a), versionCommand(a),
	)
	return root
}

func unknownCommand(root *cobra.Command, name string) error {
	err := &commandError{err: fmt.Errorf("unknown command %q", name), code: exitUsage, hint: "pidb help lists the commands"}
	if similar := root.SuggestionsFor(name); len(similar) > 0 {
		err.hint = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return err
}

// must stops a program that names a flag that it does not have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "explain a command",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				names = append(names, c.Name()+"\t"+c.Short)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, args[0])
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// start settles what the flags of all commands say.
func (a *app) start() error {
	switch a.color {
	case "auto":
		a.term.color = a.term.out && a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb"
	case "always":
		a.term.color = true
	case "never":
		a.term.color = false
	default:
		return usagef("--color is auto, always or never, not %q", a.color)
	}
	if slices.Contains(a.roots, "") {
		return usagef("--root needs a DIR; it got an empty one")
	}
	a.started = true
	if a.cpuProfile != "" {
		file, err := os.Create(a.cpuProfile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		a.closers = append(a.closers, func() { pprof.StopCPUProfile(); file.Close() })
	}
	if a.memProfile != "" {
		a.closers = append(a.closers, func() {
			file, err := os.Create(a.memProfile)
			if err != nil {
				a.say("write memory profile: %v", err)
				return
			}
			defer file.Close()
			runtime.GC()
			if err := pprof.WriteHeapProfile(file); err != nil {
				a.say("write memory profile: %v", err)
			}
		})
	}
	return nil
}

// dbPath returns the path of the archive, and whether it is another one than the usual.
func (a *app) dbPath() (path string, named bool, err error) {
	if a.db != "" {
		return a.db, true, nil
	}
	if path := a.getenv("PIDB_DB"); path != "" {
		return path, false, nil
	}
	if dir := a.getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pidb", "pidb.db"), false, nil
	}
	if a.home == "" {
		return "", false, withHint(errors.New("no place for the archive: HOME is not set"), "name a file with --db")
	}
	return filepath.Join(a.home, ".local", "share", "pidb", "pidb.db"), false, nil
}

// open opens the archive, which the end of the command closes.
func (a *app) open(ctx context.Context) (*repo.Archive, error) {
	path, named, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	archive, err := repo.Open(ctx, path, nil)
	if errors.Is(err, fs.ErrPermission) {
		return nil, withHint(err, "pidb needs to write to the archive and its folder, also to read it")
	}
	if err != nil {
		return nil, err
	}
	a.closers = append(a.closers, func() {
		if err := archive.Close(); err != nil {
			a.say("close archive: %v", err)
		}
	})
	a.warnExposed(archive, named)
	a.noteIndexLoss(archive)
	return archive, nil
}

// openExisting opens an archive that is there already.
func (a *app) openExisting(ctx context.Context) (*repo.Archive, error) {
	path, _, err := a.dbPath()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, &commandError{err: fmt.Errorf("no archive at %s", path), code: exitNotFound, hint: "name one with --db; pidb import makes a new one"}
	}
	return a.open(ctx)
}

// warnExposed says when others on this machine can get at the archive. Of a folder that
// someone named the mode is their choice, as long as nobody else can write there.
func (a *app) warnExposed(archive *repo.Archive, named bool) {
	exposed := archive.Exposed()
	if folder := filepath.Dir(archive.Path()); !named && !slices.Contains(exposed, folder) && runtime.GOOS != "windows" {
		if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o077 != 0 {
			exposed = append(exposed, folder)
		}
	}
	if len(exposed) > 0 {
		a.note("others on this machine can get at %s", a.displayPath(strings.Join(exposed, ", ")))
		a.note("hint: chmod go= keeps them out")
	}
}

// view opens the archive, takes in what changed, and calls f with what is there then. Where
// f needs the search index, it is called once more should that be damaged: it prints
// nothing before it has searched.
func (a *app) view(ctx context.Context, index indexing, f func(rx *query.Rx) error) error {
	archive, err := a.open(ctx)
	if err != nil {
		return err
	}
	if err := a.sync(ctx, archive, index); err != nil {
		return err
	}
	err = archive.View(ctx, f)
	if index == withIndex && exitCode(err) == exitFailed && ctx.Err() == nil && !errors.Is(err, repo.ErrBusy) {
		// The search index may be damaged: it is derived, and a new one answers.
		if err = a.repairIndex(ctx, archive, err); err == nil {
			err = archive.View(ctx, f)
		}
	}
	if err != nil || index == withoutIndex {
		return err
	}
	return a.renewIndex(ctx, archive)
}

// output is standard output. Its first error is kept and stops the command.
type output struct {
	w      *bufio.Writer
	err    error
	failed func()
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	o.check(err)
	return n, err
}

// printf prints. What goes wrong is kept.
func (o *output) printf(format string, args ...any) { _, _ = fmt.Fprintf(o, format, args...) }

func (o *output) flush() { o.check(o.w.Flush()) }

func (o *output) check(err error) {
	if err != nil && o.err == nil {
		o.err = err
		o.failed()
	}
}

// interruptible is a reader that gives up when a context ends, also while it waits.
type interruptible struct {
	ctx context.Context // of the one command that reads
	r   io.Reader
}

func (r interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	// The read may outlast this call, so it gets a buffer of its own.
	buffer := make([]byte, len(p))
	go func() {
		n, err := r.r.Read(buffer)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buffer[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
