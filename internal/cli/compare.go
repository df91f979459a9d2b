package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// comparedGrids are the grids and the tables of noise levels, by name.
var comparedGrids = append(slices.Clone(api.GridNames), api.Tables...)

// guidance are the fields that say how samples are guided.
var guidance = connect.Fields(new(api.Guided))

var compareSpec = command.Spec{
	Use:   "compare",
	Short: "Measure solvers, grids and schedules side by side",
	Long: `Compare samples with every solver on every grid of every schedule at every number of
evaluations, from the same latents, and prints a row for each:

  ODE ERROR  100 × the rms distance per pixel to the converged solution of the same path
             (60 steps of Heun's method on EDM's grid) from the same latents. Schedules
             with several subspaces have paths of their own: compare their Fréchet
             distances instead.
  FRECHET    with --dataset: the Fréchet distance of the samples to its images, on the
             leading principal components of their pixels; mean and half the range over
             the seeds. Every row draws the same latents.

A solver is NAME or NAME:FIELD=VALUE:…, with the fields of the request Sample. What a
solver cannot do, such as too few evaluations, is said in its row.

The figures are those of Client.compare in the Python package, which does the work: it
must be installed (ANISOFLIGHT_PYTHON names the interpreter).`,
	Example: `  anisoflight compare --model digits --solvers heun:second_point=endpoint,ipndm,ab --nfe 5,9 \
    --grids schedule,edm
  anisoflight compare --model digits --solvers ab:order=2 --nfe 5 --schedules own,fast \
    --dataset digits --out table.csv`,
	Options: slices.Concat([]command.Option{
		{Name: "model", Required: true, Usage: "`name` of the model", Names: connect.Models},
		{
			Name:    "solvers",
			Usage:   "`list` of " + strings.Join(api.Solvers, " "),
			Default: "heun,ab,ipndm,dpmpp2m", OneOf: api.Solvers, List: true,
		},
		{Name: "nfe", Kind: command.Text, Default: "5,9", Usage: "`list` of evaluations of the network"},
		{
			Name: "grids", Default: "schedule",
			Usage: "`list` of " + strings.Join(comparedGrids, ", "),
			OneOf: comparedGrids, List: true,
		},
		{
			Name:    "schedules",
			Usage:   "`list` of schedules: names, edm, own (the model's own)",
			Default: "own", OneOf: []string{"own", "edm"}, Names: connect.Schedules, List: true,
		},
		{Name: "probes", Kind: command.Whole, Default: "256", Usage: "`number` of latents of the ODE error"},
		{
			Name:  "dataset",
			Usage: "`name` of the data set of the Fréchet distance; without one it is left out",
			Names: connect.Datasets,
		},
		{
			Name: "components", Kind: command.Whole, Default: "40",
			Usage: "`number` of principal components of the Fréchet distance",
		},
		{Name: "samples", Kind: command.Whole, Default: "2000", Usage: "`number` of images per seed of the Fréchet distance"},
		{Name: "seeds", Kind: command.Whole, Default: "3", Usage: "`number` of repetitions of the Fréchet distance"},
		{Name: "out", Usage: "`file` for the table as CSV"},
	}, guidance, connect.FolderOptions),
	JSON: true,
	Run:  runCompare,
}

// comparePlan is what python -m anisoflight.compare reads from its standard input.
type comparePlan struct {
	Location   string   `json:"location"`
	Model      string   `json:"model"`
	Solvers    []choice `json:"solvers"`
	NFE        []int    `json:"nfe"`
	Grids      []choice `json:"grids"`
	Schedules  []choice `json:"schedules"`
	Probes     int64    `json:"probes"`
	Dataset    string   `json:"dataset,omitempty"`
	Components int64    `json:"components"`
	Samples    int64    `json:"samples"`
	Seeds      int64    `json:"seeds"`
	Out        string   `json:"out,omitempty"`
	JSON       bool     `json:"json"`
	// Guided are the fields of Sample that say how every row is guided
	Guided map[string]any `json:"guided,omitempty"`
}

// choice is one of a list: what it is called in the table, and what Client.compare takes for it.
type choice struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func runCompare(ctx context.Context, e command.Env) error {
	plan, err := newComparePlan(e)
	if err != nil {
		return command.Usagef(e.Cmd, "%w", err)
	}
	if plan.Out != "" {
		if err := command.CheckOut(plan.Out); err != nil {
			return err
		}
	}
	cmd, err := command.Python(ctx, e, "anisoflight.compare")
	if err != nil {
		return err
	}
	return connect.WithServer(ctx, e, func(c connect.Connection) error {
		plan.Location = c.Location
		text, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		cmd.Stdin, cmd.Env = bytes.NewReader(text), connect.Environment(e)
		return command.Wait(ctx, cmd)
	})
}

// newComparePlan reads the lists.
func newComparePlan(e command.Env) (comparePlan, error) {
	p := comparePlan{
		Model: e.Text("model"), Dataset: e.Text("dataset"), Out: e.Text("out"), JSON: e.JSON,
		Probes: e.Whole("probes"), Components: e.Whole("components"), Samples: e.Whole("samples"), Seeds: e.Whole("seeds"),
		Guided: e.Request(guidance),
	}
	for name, least := range map[string]int64{"probes": 1, "samples": 2, "seeds": 1, "components": 1} {
		if e.Whole(name) < least {
			return p, fmt.Errorf("--%s must be at least %d, got %d", name, least, e.Whole(name))
		}
	}
	for _, name := range []string{"nfe", "grids", "schedules", "solvers"} {
		if len(command.Words(e.Text(name))) == 0 {
			return p, fmt.Errorf("--%s must be a list of at least one, got %q", name, e.Text(name))
		}
	}
	for _, word := range command.Words(e.Text("nfe")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return p, fmt.Errorf("--nfe must be a list of numbers such as 5,9, got %q", word)
		}
		p.NFE = append(p.NFE, n)
	}
	for _, word := range command.Words(e.Text("grids")) {
		grid, err := parseGrid(word)
		if err != nil {
			return p, err
		}
		p.Grids = append(p.Grids, grid)
	}
	for _, word := range command.Words(e.Text("schedules")) {
		c := choice{Name: word}
		if word != "own" {
			c.Value = word
		}
		p.Schedules = append(p.Schedules, c)
	}
	for _, word := range command.Words(e.Text("solvers")) {
		solver, err := parseSolver(word)
		if err != nil {
			return p, err
		}
		p.Solvers = append(p.Solvers, solver)
	}
	return p, nil
}

// parseGrid reads the name of a grid or of a table.
func parseGrid(word string) (choice, error) {
	if wrong := suggest.OneOf(word, comparedGrids); wrong != "" {
		return choice{}, fmt.Errorf("--grids %s", wrong)
	}
	if slices.Contains(api.Tables, word) {
		return choice{word, map[string]any{api.GridTable: word}}, nil
	}
	return choice{word, word}, nil
}

// parseSolver reads NAME:FIELD=VALUE:…; a value that is JSON, such as a number, is taken as that.
func parseSolver(word string) (choice, error) {
	name, rest, more := strings.Cut(word, ":")
	options := map[string]any{"solver": name}
	if wrong := suggest.OneOf(name, api.Solvers); wrong != "" {
		return choice{}, fmt.Errorf("--solvers %s", wrong)
	}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ":")
		field, value, ok := strings.Cut(part, "=")
		if !ok || field == "" {
			return choice{}, fmt.Errorf("--solvers must be NAME:FIELD=VALUE:… such as ab:order=2, got %q", word)
		}
		v, err := command.Object.Parse(value)
		if err != nil {
			return choice{}, fmt.Errorf("--solvers: %s of %s: %w", field, name, err)
		}
		options[field] = v
	}
	return choice{word, options}, nil
}
