package cli

import (
	"context"
	"os"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/internal/recipe"
)

// recipeSpec is a function, because the command runs other commands.
func recipeSpec() spec {
	return spec{
		use:   "recipe",
		args:  "FILE...",
		short: "Do everything from a data set to a table, as a recipe says",
		long: `Recipe does the stages of the recipes in configs/cifar10 and its neighbours, one by one:
the data set and the network's checkpoint are converted, a basis is made where the
recipe has one, the isotropic and the anisotropic schedule are learned, and with
--features the distances of samples to the data set are taken and laid out. Each stage
is a command that can be typed; --dry-run prints them, with what they will cost, and
does nothing.

What is there already is kept: after an interrupt the same command goes on where it
was, and recipes share what they have in common.

--twin does the scaled-down twins of the recipes: the same stages, on images that are
generated in the format of the real ones, with networks that train in a moment.`,
		example: `  anisoflight recipe configs/cifar10/dct.yaml --dry-run
  anisoflight recipe configs/cifar10/dct.yaml --data data --features inception.pt
  anisoflight recipe configs/*/*ct.yaml --twin --data runs/twins`,
		options: slices.Concat([]option{
			{name: "dry_run", kind: toggle, usage: "print the settings, the costs and the commands, and do nothing"},
			{name: "twin", kind: toggle, usage: "do the scaled-down twins"},
			{name: "features", usage: "`network` of the distances, as python -m anisoflight.fid takes it; none leaves them out (default: none; of a twin: pixels)"},
			{name: "trust", kind: toggle, usage: "load features from a pickle, which executes code that it holds"},
			{name: "python", usage: "`program` that has the Python package (default .venv/bin/python where there is one, else python3)"},
			{name: "flops_per_second", kind: number, usage: "`number` to estimate times with (default: what this machine's device does in a matrix product)"},
			{name: "memory", kind: number, usage: "`GiB` of the device to estimate for (default: what this machine's device has)"},
			{name: "max_upload_bytes", kind: whole, def: strconv.FormatInt(1<<40, 10), usage: "`bytes` that the data set may have"},
		}, folderOptions),
		json:   true,
		stores: true,
		run:    runRecipe,
	}
}

func runRecipe(ctx context.Context, e env) error {
	read := recipe.Load
	if e.toggle("twin") {
		read = recipe.Twin
	}
	var recipes []*recipe.Recipe
	for _, file := range e.args {
		r, err := read(file)
		if err != nil {
			return err
		}
		recipes = append(recipes, r)
	}
	if e.toggle("dry_run") {
		return printPlans(ctx, e, recipes)
	}
	return cook(ctx, e, recipes)
}

// place says where the stages of the recipes find and leave things.
func place(e env, server string) recipe.Place {
	features := e.text("features")
	switch {
	case features == "" && e.toggle("twin"):
		features = "pixels" // which needs no file
	case features == "" || features == "none":
		features = "FEATURES" // to be named by whoever types the command
	}
	return recipe.Place{Anisoflight: os.Args[0], Python: e.python(), Data: e.text("data"), Server: server, Features: features, Trust: e.toggle("trust")}
}

// measures tells whether there are features to take distances with.
func (e env) measures() bool {
	if features := e.text("features"); features != "" {
		return features != "none"
	}
	return e.toggle("twin")
}

// serveCommand is that of the server which stages typed by hand ask.
func serveCommand(p recipe.Place) string {
	return recipe.Stage{Program: p.Anisoflight, Args: []string{"serve", "--data", p.Data}}.String()
}

// defaultServer is where serve listens by default.
const defaultServer = "grpc://127.0.0.1:8815"
