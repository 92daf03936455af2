package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	if os.Getenv("PIDB_TEST_COMMAND") != "" {
		main()
	}
	testscript.Main(m, map[string]func(){"pidb": main})
}

// TestScripts runs the scripts of testdata/script. They find the sample sessions in
// $SAMPLES, live in UTC, and have a home of their own with nothing in it.
func TestScripts(t *testing.T) {
	samples, err := filepath.Abs(filepath.Join("..", "..", "testdata", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           filepath.Join("testdata", "script"),
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			for name, value := range map[string]string{
				"HOME": home, "TZ": "UTC", "SAMPLES": samples, "TERM": "xterm", "LANG": "C.UTF-8", "XDG_DATA_HOME": "", "PIDB_DB": "",
				"PI_CODING_AGENT_SESSION_DIR": "", "PI_CODING_AGENT_DIR": "", "NO_COLOR": "", "PAGER": "", "COLUMNS": "",
			} {
				env.Setenv(name, value)
			}
			return os.Mkdir(home, 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// code N COMMAND… runs a command that must end with code N.
			"code": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: code N COMMAND…")
				}
				err := ts.Exec(args[1], args[2:]...)
				got := "0"
				if err != nil {
					got = strings.TrimPrefix(err.Error(), "exit status ")
				}
				if got != args[0] {
					ts.Fatalf("ended with %s, want %s", got, args[0])
				}
			},
			// append TO FROM appends a file to another.
			"append": func(ts *testscript.TestScript, _ bool, args []string) {
				file, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY, 0)
				ts.Check(err)
				_, err = file.WriteString(ts.ReadFile(args[1]))
				ts.Check(err)
				ts.Check(file.Close())
			},
			// halve FILE cuts a file to half its size.
			"halve": func(ts *testscript.TestScript, _ bool, args []string) {
				path := ts.MkAbs(args[0])
				info, err := os.Stat(path)
				ts.Check(err)
				ts.Check(os.Truncate(path, info.Size()/2))
			},
			// harmless FILE… fails where a file has a character that could drive a terminal.
			"harmless": func(ts *testscript.TestScript, _ bool, args []string) {
				for _, name := range args {
					for n, line := range strings.Split(ts.ReadFile(name), "\n") {
						for _, r := range strings.ReplaceAll(line, "\t", "") {
							if r < ' ' || isHarmful(r) {
								ts.Fatalf("%s:%d: %q has %U", name, n+1, line, r)
							}
						}
					}
				}
			},
			// narrow FILE fails where a line is wider than 80 columns.
			"narrow": func(ts *testscript.TestScript, _ bool, args []string) {
				for n, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
					if cut(line, 80) != line {
						ts.Fatalf("%s:%d is wider than 80 columns: %s", args[0], n+1, line)
					}
				}
			},
			// unescape TO FROM makes a file with raw control characters and with keys, so that
			// scripts hold none.
			"unescape": func(ts *testscript.TestScript, _ bool, args []string) {
				text := ts.ReadFile(args[1])
				replacer := strings.NewReplacer("{ESC}", "\x1b", "{BEL}", "\a", "{CSI}", "\u009b", "{RLO}", "\u202e", "{LRI}", "\u2066", "{BOM}", "\ufeff", "{FF}", "\xff", "{DEL}", "\x7f", "{TAG}", "\U000e0041",
					"{PAT}", "gh"+"p_"+"q8Zr2LxVb7TnWc4Kd9HyPf3Gs6JmXv5RtQ0e", "{KEY}", "Zr2LxVb7TnWc4Kd9"+"HyPf3Gs6JmXv5Rt8")
				ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o700))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(replacer.Replace(text)), 0o600))
			},
		},
	})
}
