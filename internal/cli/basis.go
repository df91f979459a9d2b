package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

var basisGroup = command.Group{
	Use:   "basis",
	Short: "Make, list and delete bases of image space",
	Example: `  anisoflight basis make --name digits-pca --kind pca_per_class --dataset digits
  anisoflight basis list
  anisoflight basis delete --name digits-pca`,
	Specs: []command.Spec{
		basisMakeSpec, basisListSpec, basisDeleteSpec,
	},
}

func isMade(d basis.Definition) bool { return d.Made }

// basisKinds describes the kinds of bases that can be made.
func basisKinds() string {
	var b strings.Builder
	for _, d := range basis.Definitions(isMade) {
		fmt.Fprintf(&b, "%-14s %s\n", d.Name, d.Usage)
	}
	return b.String()
}

var basisMakeSpec = connect.MakeCommand(command.Spec{
	Use:   "make",
	Short: "Make a basis from a data set",
	Long: `Make stores a basis, which splits image space into a first subspace and the rest. The
kinds are

` + basisKinds() + `
Principal components are those of planes, the mean over the channels of images in
[−1, 1], about their mean. For a basis per class, --clusters lists classes that share
components. The reply has the share of the variance in the first subspace.`,
	Example: `  anisoflight basis make --name digits-pca --kind pca --dataset digits
  anisoflight basis make --name pairs --kind pca_per_class --dataset digits --k 8 --clusters '[[3,8],[4,9]]'`,
}, "MakeBasis", new(api.MakeBasis), "measuring",
	command.Option{Name: "kind", OneOf: basis.Names(isMade)})

var basisListSpec = connect.ListSpec("stored bases", "basis", (*client.Client).ListBases, "NAME\tPIXELS\tK\tPER CLASS",
	func(b api.BasisInfo) string {
		return fmt.Sprintf("%s\t%d×%d\t%d\t%s", b.Name, b.Height, b.Width, b.K, command.YesNo(b.PerClass))
	})

var basisDeleteSpec = command.Spec{
	Use:     "delete",
	Short:   "Delete a stored basis; schedules, runs and models keep their copies",
	Example: "  anisoflight basis delete --name digits-pca",
	Options: slices.Concat([]command.Option{{Name: "name", Required: true, Usage: "`name` of the basis"}},
		connect.FolderOptions),
	Run: func(ctx context.Context, e command.Env) error {
		return connect.WithServer(ctx, e, func(c *client.Client) error { return c.DeleteBasis(ctx, e.Text("name")) })
	},
}
