package main

import (
	"runtime"
	"runtime/debug"

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
			v := versionJSON{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					if setting.Key == "vcs.revision" {
						v.Revision = setting.Value
					}
				}
			}
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

// buildVersion returns the version of the module that the command was built from.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
