package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

func newBasis() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "basis",
		Short: "Make, list and delete bases of image space",
		Example: `  anisoflight basis make --name digits-pca --kind pca_per_class --dataset digits
  anisoflight basis list
  anisoflight basis delete --name digits-pca`,
		Args: commandNamed,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range []spec{basisMakeSpec, basisListSpec, basisDeleteSpec} {
		cmd.AddCommand(s.command())
	}
	return cmd
}

// basisRequest are the fields of MakeBasis.
var basisRequest = []option{
	{name: "name", needed: true, usage: "`name` of the new basis"},
	{name: "kind", needed: true, usage: strings.Join(basis.Names(madeBasis), ", ")},
	{name: "dataset", needed: true, usage: "`name` of the data set to make it of"},
	{name: "k", kind: whole, usage: "dimensions of the first subspace per channel (default a quarter of the pixels)"},
	{name: "clusters", kind: object, usage: "of pca_per_class: classes that share components, `JSON` such as [[0,6,8],[1,7]]"},
	{name: "replace", kind: toggle, usage: "replace a basis of that name"},
}

func madeBasis(d basis.Definition) bool { return d.Made }

// basisKinds lists the kinds that can be made.
func basisKinds() string {
	var b strings.Builder
	for _, d := range basis.Definitions(madeBasis) {
		fmt.Fprintf(&b, "%-14s %s\n", d.Name, d.Usage)
	}
	return b.String()
}

var basisMakeSpec = spec{
	use:   "make",
	short: "Make a basis from a data set",
	long: `Make takes the leading principal components of a data set's images for the first
subspace and leaves the rest to the second.

` + basisKinds() + `
Of a basis per class, --clusters lists classes that share components.
The planes are the mean over the channels of images in [−1, 1], about the mean of the
images that the components are taken of. The table says how much of their variance
lies in the first subspace.`,
	example: `  anisoflight basis make --name digits-pca --kind pca --dataset digits
  anisoflight basis make --name pairs --kind pca_per_class --dataset digits --k 8 --clusters '[[3,8],[4,9]]'`,
	options: slices.Concat(basisRequest, folderOptions),
	json:    true,
	run: func(ctx context.Context, e env) error {
		var reply api.BasisInfo
		if err := perform(ctx, e, "MakeBasis", e.request(basisRequest), "measuring", &reply); err != nil {
			return err
		}
		if e.json {
			return printJSON(e.out, reply)
		}
		fmt.Fprintf(e.out, "%s: %d×%d pixels, %d dimensions of %d in the first subspace\n", reply.Name, reply.Height, reply.Width, reply.K, reply.Height*reply.Width)
		if reply.Spans == nil {
			return nil
		}
		t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "CLASSES\tIMAGES\tVARIANCE IN THE FIRST")
		for _, s := range reply.Spans {
			classes := "all"
			if reply.PerClass {
				classes = strings.Trim(fmt.Sprint(s.Labels), "[]")
			}
			fmt.Fprintf(t, "%s\t%d\t%.1f %%\n", classes, s.Images, 100*s.Share)
		}
		return t.Flush()
	},
}

var basisListSpec = spec{
	use:     "list",
	short:   "List the stored bases",
	example: "  anisoflight basis list --data data",
	options: folderOptions,
	json:    true,
	run: func(ctx context.Context, e env) error {
		bases, err := list(ctx, e, (*client.Client).ListBases)
		if err != nil {
			return err
		}
		if e.json {
			return printJSON(e.out, bases)
		}
		t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "NAME\tPIXELS\tK\tPER CLASS")
		for _, b := range bases {
			fmt.Fprintf(t, "%s\t%d×%d\t%d\t%s\n", b.Name, b.Height, b.Width, b.K, yesNo(b.PerClass))
		}
		return t.Flush()
	},
}

var basisDeleteSpec = spec{
	use:     "delete",
	short:   "Delete a stored basis; schedules, runs and models keep their copies",
	example: "  anisoflight basis delete --name digits-pca",
	options: slices.Concat([]option{{name: "name", needed: true, usage: "`name` of the basis"}}, folderOptions),
	run: func(ctx context.Context, e env) error {
		return withServer(ctx, e, func(c connection) error { return c.DeleteBasis(ctx, e.text("name")) })
	},
}
