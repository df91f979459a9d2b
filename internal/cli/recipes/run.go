package recipes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/recipe"
)

// runner does the stages of recipes, one after the other.
type runner struct {
	command.Env
	root    func() *cobra.Command // of the whole command line
	place   recipe.Place
	done    map[string]bool // command lines that need not be looked at again
	server  connect.Connection
	measure bool // there are features to take distances with
}

// run does the stages of the recipes, all on one server.
func run(ctx context.Context, e command.Env, root func() *cobra.Command, recipes []*recipe.Recipe) error {
	ctx = connect.Patiently(ctx, func(held *catalog.Held) {
		fmt.Fprintf(e.Err, "%s works on the folder %s; waiting for it\n", holder(held), held.Dir)
	})
	return connect.WithServer(ctx, e, func(c connect.Connection) error {
		k := &runner{
			Env: e, root: root, server: c, place: place(e, c.Location), done: map[string]bool{},
			measure: measures(e),
		}
		return k.run(connect.WithConnection(ctx, c), recipes)
	})
}

// run does what is left of the recipes, the tables last.
func (k *runner) run(ctx context.Context, recipes []*recipe.Recipe) error {
	for _, tables := range []bool{false, true} {
		for _, r := range recipes {
			stages := r.Stages(k.place)
			for i, s := range stages {
				if (s.Kind == recipe.KindTable) != tables || s.Measures() && !k.measure {
					continue
				}
				if err := k.stage(ctx, r, s, fmt.Sprintf("%s, stage %d of %d, %s", r.File, i+1, len(stages), s.Kind)); err != nil {
					return err
				}
			}
		}
	}
	if !k.measure {
		k.sayHowToMeasure(recipes)
	}
	return nil
}

// stage does what is left of one stage, unless another recipe has had it.
func (k *runner) stage(ctx context.Context, r *recipe.Recipe, s recipe.Stage, heading string) error {
	if k.done[s.String()] {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	release, err := k.lease(ctx, r, s, heading)
	if err != nil {
		return err
	}
	defer release()
	args, err := k.left(ctx, r, s)
	if err != nil {
		return err
	}
	if args == nil {
		fmt.Fprintf(k.Err, "%s: %s is there\n", heading, s.Makes)
	} else {
		fmt.Fprintf(k.Err, "%s: %s\n", heading, recipe.Stage{Program: s.Program, Args: args})
		if err := k.do(ctx, s, args); err != nil {
			return fmt.Errorf("%s: %w", heading, err)
		}
	}
	k.done[s.String()] = true
	return k.check(ctx, r, s)
}

// sayHowToMeasure prints the commands that are left where no features are named.
func (k *runner) sayHowToMeasure(recipes []*recipe.Recipe) {
	fmt.Fprintf(k.Out, "The models are there. To measure them, serve the folder, and name a network of features:\n  %s\n",
		serveCommand(k.place))
	said := map[string]bool{}
	for _, r := range recipes {
		for _, s := range r.Stages(place(k.Env, defaultServer)) {
			if line := s.String(); s.Measures() && !said[line] {
				fmt.Fprintf(k.Out, "  %s\n", line)
				said[line] = true
			}
		}
	}
}

// left returns the arguments of the command that does what is left of a stage; none if
// nothing is.
func (k *runner) left(ctx context.Context, r *recipe.Recipe, s recipe.Stage) ([]string, error) {
	switch {
	case s.Settings != nil:
		return k.leftOfRun(ctx, s)
	case s.Kind == recipe.KindData && command.Exists(filepath.Join(k.place.Data, "datasets", s.Makes)),
		s.Kind == recipe.KindNetwork && command.Exists(k.modelFolder(s.Makes)),
		s.Kind == recipe.KindReference && command.Exists(s.Makes):
		return nil, nil
	case s.Kind == recipe.KindBasis:
		var reply struct {
			Bases []api.BasisInfo `json:"bases"`
		}
		if err := connect.Act(ctx, k.server, "ListBases", nil, nil, &reply); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(reply.Bases, func(b api.BasisInfo) bool { return b.Name == s.Makes }) {
			return nil, nil
		}
	case s.Kind == recipe.KindData && r.Dataset.Generate != "":
		return s.Args, r.Generate(k.place)
	case s.Needs != "" && !command.Exists(s.Needs):
		return nil, fmt.Errorf("%s is missing, with which %s begins: it is to be had from %s. What follows then is\n%s",
			s.Needs, r.File, s.From, s)
	}
	return s.Args, nil
}

// leftOfRun looks at how far a run is.
func (k *runner) leftOfRun(ctx context.Context, s recipe.Stage) ([]string, error) {
	var run api.RunInfo
	err := connect.Act(ctx, k.server, "GetRun", map[string]any{"run": s.Makes}, nil, &run)
	saved := command.Exists(k.modelFolder(s.Makes))
	switch {
	case command.IsCode(err, api.RunNotFound) && saved: // somebody has tidied up
		return nil, nil
	case command.IsCode(err, api.RunNotFound):
		return s.Args, nil
	case err != nil:
		return nil, err
	}
	if err := s.CheckRun(run.Config); err != nil {
		return nil, err
	}
	if err := k.follow(ctx, &run); err != nil {
		return nil, err
	}
	saved = command.Exists(k.modelFolder(s.Makes)) // whoever it was may have saved it meanwhile
	switch {
	case run.State == "done" && saved:
		return nil, nil
	case run.State == "failed" || run.State == "cancelled":
		return nil, fmt.Errorf("the run %s is %s %s; delete the folder %s to begin it anew", s.Makes, run.State, run.Error,
			filepath.Join(k.place.Data, "runs", s.Makes))
	}
	return []string{"train", "--data", k.place.Data, "--name", s.Makes, "--resume"}, nil
}

// do runs a stage's command line: of this program within this process, of Python's in its own.
func (k *runner) do(ctx context.Context, s recipe.Stage, args []string) error {
	if s.Program == k.place.Anisoflight {
		root := k.root()
		root.SetArgs(append(args, "--log-level", k.Text("log_level"), "--log-format", k.Text("log_format")))
		root.SetOut(k.Out)
		root.SetErr(k.Err)
		return root.ExecuteContext(ctx)
	}
	if s.Kind == recipe.KindData {
		args = append(slices.Clone(args), "--server", k.place.Server) // that of the folder
	}
	cmd := exec.CommandContext(ctx, s.Program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = k.Out, k.Err, connect.Environment(k.Env)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%s %s: %w", cmd.Path, args[1], err)
	}
	return nil
}

// check holds what a stage has made, or was there, to the recipe.
func (k *runner) check(ctx context.Context, r *recipe.Recipe, s recipe.Stage) error {
	switch {
	case s.Kind == recipe.KindNetwork:
		text, err := os.ReadFile(filepath.Join(k.modelFolder(s.Makes), "config.json"))
		if err != nil {
			return err
		}
		return r.CheckModel(text)
	case s.Kind == recipe.KindData:
		var reply struct {
			Datasets []api.DatasetInfo `json:"datasets"`
		}
		if err := connect.Act(ctx, k.server, "ListDatasets", nil, nil, &reply); err != nil {
			return err
		}
		for _, d := range reply.Datasets {
			if d.Name == s.Makes {
				return r.CheckDataset(d.Rows, d.Shape, d.Classes)
			}
		}
		return fmt.Errorf("data set %s cannot be read", s.Makes)
	}
	return nil
}

func (k *runner) modelFolder(name string) string { return filepath.Join(k.place.Data, "models", name) }

// python is the program that has the Python package.
func python(e command.Env) string {
	const own = ".venv/bin/python"
	switch p := e.Text("python"); {
	case p != "":
		return p
	case command.Exists(own):
		return own
	}
	return "python3"
}
