package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

var compareSpec = spec{
	use:   "compare",
	short: "Measure solvers, grids and schedules side by side",
	long: `Compare samples with every solver on every grid of every schedule at every number of
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
	example: `  anisoflight compare --model digits --solvers heun:second_point=endpoint,ipndm,ab --nfe 5,9 --grids schedule,edm
  anisoflight compare --model digits --solvers ab:order=2 --nfe 5 --schedules own,fast --dataset digits --out table.csv`,
	options: slices.Concat([]option{
		{name: "model", needed: true, usage: "`name` of the model"},
		{name: "solvers", def: "heun,ab,ipndm,dpmpp2m", usage: "`list` of " + strings.Join(api.Solvers, " ")},
		{name: "nfe", kind: text, def: "5,9", usage: "`list` of evaluations of the network"},
		{name: "grids", def: "schedule", usage: "`list` of " + strings.Join(append(slices.Clone(api.GridNames), api.Tables...), ", ")},
		{name: "schedules", def: "own", usage: "`list` of schedules: names, edm, own (the model's own)"},
		{name: "probes", kind: whole, def: "256", usage: "`number` of latents of the ODE error"},
		{name: "dataset", usage: "`name` of the data set of the Fréchet distance; without one it is left out"},
		{name: "components", kind: whole, def: "40", usage: "`number` of principal components of the Fréchet distance"},
		{name: "samples", kind: whole, def: "2000", usage: "`number` of images per seed of the Fréchet distance"},
		{name: "seeds", kind: whole, def: "3", usage: "`number` of repetitions of the Fréchet distance"},
		{name: "out", usage: "`file` for the table as CSV"},
	}, folderOptions),
	json: true,
	run:  runCompare,
}

// comparePlan is what python -m anisoflight.compare reads from its standard input.
type comparePlan struct {
	Location   string   `json:"location"`
	Token      string   `json:"token,omitempty"`
	TLSCA      string   `json:"tls_ca,omitempty"`
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
}

// choice is one of a list: what it is called in the table, and what Client.compare takes for it.
type choice struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

func runCompare(ctx context.Context, e env) error {
	plan, err := newComparePlan(e)
	if err != nil {
		return usagef(e.cmd, "%w", err)
	}
	cmd, err := pythonCommand(ctx, e, "anisoflight.compare")
	if err != nil {
		return err
	}
	return withServer(ctx, e, func(c connection) error {
		plan.Location = c.location
		text, err := json.Marshal(plan)
		if err != nil {
			return err
		}
		cmd.Stdin = bytes.NewReader(text)
		return wait(ctx, cmd)
	})
}

// newComparePlan reads the lists.
func newComparePlan(e env) (comparePlan, error) {
	p := comparePlan{
		Token: e.text("token"), TLSCA: e.text("tls_ca"), Model: e.text("model"), Dataset: e.text("dataset"), Out: e.text("out"), JSON: e.json,
		Probes: e.whole("probes"), Components: e.whole("components"), Samples: e.whole("samples"), Seeds: e.whole("seeds"),
	}
	if e.get("client_cert").given {
		return p, errors.New("compare cannot reach servers that ask for --client-cert: the Python package has no such setting")
	}
	for name, least := range map[string]int64{"probes": 1, "samples": 2, "seeds": 1, "components": 1} {
		if e.whole(name) < least {
			return p, fmt.Errorf("--%s must be at least %d, got %d", name, least, e.whole(name))
		}
	}
	for _, name := range []string{"nfe", "grids", "schedules", "solvers"} {
		if len(words(e.text(name))) == 0 {
			return p, fmt.Errorf("--%s must be a list of at least one, got %q", name, e.text(name))
		}
	}
	for _, word := range words(e.text("nfe")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return p, fmt.Errorf("--nfe must be a list of numbers such as 5,9, got %q", word)
		}
		p.NFE = append(p.NFE, n)
	}
	for _, word := range words(e.text("grids")) {
		grid, err := parseGrid(word)
		if err != nil {
			return p, err
		}
		p.Grids = append(p.Grids, grid)
	}
	for _, word := range words(e.text("schedules")) {
		c := choice{Name: word}
		if word != "own" {
			c.Value = word
		}
		p.Schedules = append(p.Schedules, c)
	}
	for _, word := range words(e.text("solvers")) {
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
	switch {
	case slices.Contains(api.GridNames, word):
		return choice{word, word}, nil
	case slices.Contains(api.Tables, word):
		return choice{word, map[string]any{api.GridTable: word}}, nil
	}
	return choice{}, fmt.Errorf("--grids must be of %s %s, got %q", strings.Join(api.GridNames, " "), strings.Join(api.Tables, " "), word)
}

// parseSolver reads NAME:FIELD=VALUE:…; a value that is JSON, such as a number, is taken as that.
func parseSolver(word string) (choice, error) {
	name, rest, more := strings.Cut(word, ":")
	options := map[string]any{"solver": name}
	if !slices.Contains(api.Solvers, name) {
		return choice{}, fmt.Errorf("--solvers must be of %s, got %q", strings.Join(api.Solvers, " "), name)
	}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ":")
		field, value, ok := strings.Cut(part, "=")
		if !ok || field == "" {
			return choice{}, fmt.Errorf("--solvers must be NAME:FIELD=VALUE:… such as ab:order=2, got %q", word)
		}
		v, err := object.parse(value)
		if err != nil {
			return choice{}, fmt.Errorf("--solvers: %s of %s: %w", field, name, err)
		}
		options[field] = v
	}
	return choice{word, options}, nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}
