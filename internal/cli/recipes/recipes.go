package recipes

import (
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/recipe"
)

// Spec returns the command, which runs others: root makes the whole command line anew.
func Spec(root func() *cobra.Command) command.Spec {
	return command.Spec{
		Use:   "recipe",
		Args:  "FILE...",
		Short: "Do everything from a data set to a table, as a recipe says",
		Long: `Recipe does the stages of the recipes in configs/cifar10 and its neighbours, one by one:
the data set and the network's checkpoint are converted, a basis is made where the
recipe has one, the isotropic and the anisotropic schedule are learned, and with
--features the distances of samples to the data set are taken and laid out. Each stage
is a command that can be typed; --dry-run prints them, with what they will cost, and
does nothing.

What is there already is kept: after an interrupt the same command goes on where it
was, and recipes share what they have in common.

--twin does the scaled-down twins of the recipes: the same stages, on images that are
generated in the format of the real ones, with networks that train in a moment.`,
		Example: `  anisoflight recipe configs/cifar10/dct.yaml --dry-run
  anisoflight recipe configs/cifar10/dct.yaml --data data --features inception.pt
  anisoflight recipe configs/*/*ct.yaml --twin --data runs/twins`,
		Options: slices.Concat([]command.Option{
			{Name: "dry_run", Kind: command.Toggle, Usage: "print the settings, the costs and the commands, and do nothing"},
			{Name: "twin", Kind: command.Toggle, Usage: "do the scaled-down twins"},
			{
				Name:      "features",
				Usage:     "`network` of the distances, as python -m anisoflight.fid takes it; none leaves them out",
				Otherwise: "none; of a twin: pixels",
			},
			{Name: "trust", Kind: command.Toggle, Usage: "load features from a pickle, which executes code that it holds"},
			{
				Name:  "python",
				Usage: "`program` that has the Python package", Otherwise: ".venv/bin/python where there is one, else python3",
			},
			{
				Name: "flops_per_second", Kind: command.Number,
				Usage: "`number` to estimate times with", Otherwise: "what this machine's device does in a matrix product",
			},
			{
				Name: "memory", Kind: command.Number,
				Usage: "`GiB` of the device to estimate for", Otherwise: "what this machine's device has",
			},
			{
				Name: "max_upload_bytes", Kind: command.Whole, Default: strconv.FormatInt(1<<40, 10),
				Usage: "`bytes` that the data set may have",
			},
		}, connect.FolderOptions, []command.Option{connect.DevicesOption}),
		JSON:   true,
		Stores: true,
		Run:    func(ctx context.Context, e command.Env) error { return runRecipe(ctx, e, root) },
	}
}

func runRecipe(ctx context.Context, e command.Env, root func() *cobra.Command) error {
	read := recipe.Load
	if e.Toggle("twin") {
		read = recipe.Twin
	}
	var recipes []*recipe.Recipe
	for _, file := range e.Args {
		r, err := read(file)
		if err != nil {
			return err
		}
		recipes = append(recipes, r)
	}
	if e.Toggle("dry_run") {
		return printPlans(ctx, e, recipes)
	}
	return run(ctx, e, root, recipes)
}

// place says where the stages of the recipes find and leave things.
func place(e command.Env, server string) recipe.Place {
	features := e.Text("features")
	switch {
	case features == "" && e.Toggle("twin"):
		features = "pixels" // which needs no file
	case features == "" || features == "none":
		features = "FEATURES" // to be named by whoever types the command
	}
	return recipe.Place{
		Anisoflight: os.Args[0], Python: python(e), Data: e.Text("data"), Server: server,
		Features: features, Trust: e.Toggle("trust"),
	}
}

// measures reports whether there are features to take distances with.
func measures(e command.Env) bool {
	if features := e.Text("features"); features != "" {
		return features != "none"
	}
	return e.Toggle("twin")
}

// serveCommand is that of the server which stages typed by hand ask.
func serveCommand(p recipe.Place) string {
	return recipe.Stage{Program: p.Anisoflight, Args: []string{"serve", "--data", p.Data}}.String()
}

// defaultServer is where serve listens by default.
const defaultServer = "grpc://127.0.0.1:8815"
