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
	{name: "kind", needed: true, usage: strings.Join(api.BasisKinds, ", ")},
	{name: "dataset", needed: true, usage: "`name` of the data set to make it of"},
	{name: "k", kind: whole, usage: "dimensions of the first subspace per channel (default a quarter of the pixels)"},
	{name: "clusters", kind: object, usage: "of pca_per_class: classes that share components, `JSON` such as [[0,6,8],[1,7]]"},
	{name: "replace", kind: toggle, usage: "replace a basis of that name"},
}

var basisMakeSpec = spec{
	use:   "make",
	short: "Make a basis from a data set",
	long: `Make takes the leading principal components of a data set's images for the first
subspace and leaves the rest to the second.

pca            components of all images
pca_per_class  of each class's own images, for its own samples; --clusters lists
               classes that share theirs
haar           means of 2×2 pixels, or of larger blocks where k says so

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
