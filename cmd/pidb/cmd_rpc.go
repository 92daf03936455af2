package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// rpcProtocol is the version of what rpc understands: it grows with what a program that
// knows an older one would take amiss.
const rpcProtocol = 1

func (a *app) rpcCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rpc",
		Short: "serve programs in any language: JSON-RPC on standard input and output",
		Long: `Read JSON-RPC 2.0 requests from standard input, one a line, and write responses to standard
output, one a line, until the input ends. Batches, notifications and any order of ids are
understood; requests are carried out in the order of their lines, but that a wait lets the
next ones pass. Notes go to standard error.

Methods: pidb.version, create, open, list, search, stats, entries, tree, context, export,
append, branch, targets, fork, extract, label, name, delete, wait, and $/cancelRequest. docs/rpc.md
tells of each with an example. Results have the objects that --json prints; an error has
the name of what went wrong in data, such as {"name":"ErrNotFound"}.

Several such processes may serve one archive at once.`,
		Example: `  echo '{"jsonrpc":"2.0","id":1,"method":"pidb.version"}' | pidb rpc
  printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"list","params":{"limit":3}}' | pidb rpc`,
		Args:              arguments(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			archive, err := a.open(ctx)
			if err != nil {
				return err
			}
			if file, ok := a.stdin.(*os.File); ok && a.term.in {
				a.note("reading requests from %s, one a line; ctrl-d ends", file.Name())
			}
			err = newRPCServer(a, archive).serve(ctx)
			if err != nil && !errors.Is(err, ctx.Err()) {
				err = fmt.Errorf("serve: %w", err)
			}
			return err
		},
	}
}
