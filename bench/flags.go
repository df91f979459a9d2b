package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// report has the results of a benchmark. With --json its exported fields are printed, else its table.
type report interface {
	table(w *tabwriter.Writer)
}

// runReport lets a command run measure and print its report; a nil report prints nothing.
func runReport(cmd *cobra.Command, measure func(ctx context.Context) (report, error)) *cobra.Command {
	cmd.Args = cobra.NoArgs
	cmd.Flags().SortFlags = false
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, err := measure(cmd.Context())
		if err != nil || r == nil {
			return err
		}
		if *asJSON {
			e := json.NewEncoder(cmd.OutOrStdout())
			e.SetIndent("", "  ")
			return e.Encode(r)
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 8, 2, ' ', 0)
		r.table(t)
		return t.Flush()
	}
	return cmd
}

// progress returns a function that shows on a terminal how many of the measurements are done.
func progress(cmd *cobra.Command) func(done, total int) {
	f, ok := cmd.ErrOrStderr().(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func(int, int) {}
	}
	return func(done, total int) {
		fmt.Fprintf(f, "\r%d of %d", done, total)
		if done == total {
			fmt.Fprintln(f)
		}
	}
}

// positiveFlag defines a flag for a positive number.
func positiveFlag(f *pflag.FlagSet, n *int, name string, def int, usage string) {
	*n = def
	f.Var((*positiveInt)(n), name, usage)
}

// positiveInt is the value of a flag; 0 means that none was given.
type positiveInt int

func (p *positiveInt) String() string {
	if *p == 0 {
		return ""
	}
	return strconv.Itoa(int(*p))
}

func (p *positiveInt) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return errors.New("must be a positive whole number")
	}
	*p = positiveInt(n)
	return nil
}

func (*positiveInt) Type() string { return "integer" }
