package main

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func versionCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "version",
		Short:             "say which pidb this is",
		Long:              "Say which pidb this is, and what it was built with.",
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := thisVersion()
			if a.json {
				return a.emit(v)
			}
			a.out.printf("pidb %s %s %s\n", v.Version, v.Go, v.Platform)
			return nil
		},
	}
	jsonHelp(cmd, `{"version":,"revision":,"go":,"platform":}`, "one object")
	return cmd
}

// thisVersion says which pidb this is.
func thisVersion() versionJSON {
	v := versionJSON{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = setting.Value
			}
		}
	}
	return v
}

func completionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	var plain bool
	cmd := &cobra.Command{
		Use:   "completion SHELL",
		Short: "print a script that completes commands in a shell",
		Long: `Print a script for bash, zsh, fish or powershell that completes commands, flags and
sessions. It is code for the shell, and --json changes nothing here.

  bash        pidb completion bash > ~/.local/share/bash-completion/completions/pidb
  zsh         pidb completion zsh > DIR/_pidb, with a DIR of $fpath
  fish        pidb completion fish > ~/.config/fish/completions/pidb.fish
  powershell  pidb completion powershell | Out-String | Invoke-Expression`,
		Example:   `  source <(pidb completion bash)`,
		Args:      arguments(cobra.ExactArgs(1)),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, !plain)
			case "zsh":
				if plain {
					return root.GenZshCompletionNoDesc(a.out)
				}
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, !plain)
			case "powershell":
				if plain {
					return root.GenPowerShellCompletion(a.out)
				}
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return usagef("completion is for %s, not for %q", strings.Join(shells, ", "), args[0])
		},
	}
	cmd.Flags().BoolVar(&plain, "no-descriptions", false, "complete without descriptions")
	return cmd
}

// buildVersion returns the version of the module that the command was built from.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
