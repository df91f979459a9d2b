package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/compare"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/train/data/pixels"
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
solver cannot do, such as too few evaluations, is told in its row.`,
	example: `  anisoflight compare --model digits --solvers heun:second_point=endpoint,ipndm,ab --nfe 5,9 --grids schedule,edm
  anisoflight compare --model digits --solvers ab:order=2 --nfe 5 --schedules own,fast --dataset digits --out table.csv`,
	options: []option{
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
		dataOption, deviceOption,
	},
	json: true,
	run:  runCompare,
}

func runCompare(ctx context.Context, e env) error {
	plan, err := comparePlan(e)
	if err != nil {
		return usagef(e.cmd, "%w", err)
	}
	var rows []compare.Row
	layout := "HWC"
	err = withEngine(ctx, e, func(eng *engine.Engine) error {
		if name := e.text("dataset"); name != "" {
			if plan.Reference, layout, err = readReference(ctx, eng, name, int(e.whole("components"))); err != nil {
				return err
			}
		}
		p := newProgress(e.err, e.log, "comparing")
		defer p.close()
		bad := func(err error) bool { return isCode(err, api.BadRequest) }
		return compare.Run(ctx, plan, drawFrom(eng, compare.Options{"model": e.text("model"), "layout": layout}), bad, func(r compare.Row) {
			rows = append(rows, r)
			p.set(int64(len(rows)), int64(plan.Cells()), fmt.Sprintf("%s, %s, %s, NFE %d", r.Schedule, r.Grid, r.Solver, r.NFE))
		})
	})
	if err != nil {
		return err
	}
	if path := e.text("out"); path != "" {
		if err := writeFile(path, func(w io.Writer) error { return compareCSV(w, rows) }); err != nil {
			return err
		}
	}
	if e.json {
		return printJSON(e.out, compareJSON(rows))
	}
	return compareTable(e.out, rows)
}

// comparePlan reads the lists.
func comparePlan(e env) (compare.Plan, error) {
	p := compare.Plan{Probes: int(e.whole("probes")), Samples: int(e.whole("samples")), Seeds: int(e.whole("seeds"))}
	for name, least := range map[string]int64{"probes": 1, "samples": 2, "seeds": 1, "components": 1} {
		if e.whole(name) < least {
			return p, fmt.Errorf("--%s must be at least %d, not %d", name, least, e.whole(name))
		}
	}
	for _, word := range words(e.text("nfe")) {
		n, err := strconv.Atoi(word)
		if err != nil {
			return p, fmt.Errorf("--nfe must be a list of numbers such as 5,9, not %q", word)
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
		choice := compare.Choice{Name: word}
		if word != "own" {
			choice.Options = compare.Options{"schedule": word}
		}
		p.Schedules = append(p.Schedules, choice)
	}
	for _, word := range words(e.text("solvers")) {
		solver, err := parseSolver(word)
		if err != nil {
			return p, err
		}
		p.Solvers = append(p.Solvers, solver)
	}
	for name, n := range map[string]int{"nfe": len(p.NFE), "grids": len(p.Grids), "schedules": len(p.Schedules), "solvers": len(p.Solvers)} {
		if n == 0 {
			return p, fmt.Errorf("--%s is empty", name)
		}
	}
	return p, nil
}

// parseGrid reads the name of a grid or of a table.
func parseGrid(word string) (compare.Choice, error) {
	switch {
	case slices.Contains(api.GridNames, word):
		return compare.Choice{Name: word, Options: compare.Options{"grid": word}}, nil
	case slices.Contains(api.Tables, word):
		return compare.Choice{Name: word, Options: compare.Options{"grid": map[string]any{api.GridTable: word}}}, nil
	}
	return compare.Choice{}, fmt.Errorf("no grid is called %q; there are %s %s", word, strings.Join(api.GridNames, " "), strings.Join(api.Tables, " "))
}

// parseSolver reads NAME:FIELD=VALUE:…; a value that is JSON, such as a number, is taken as that.
func parseSolver(word string) (compare.Choice, error) {
	name, rest, more := strings.Cut(word, ":")
	choice := compare.Choice{Name: word, Options: compare.Options{"solver": name}}
	if !slices.Contains(api.Solvers, name) {
		return choice, fmt.Errorf("no solver is called %q; there are %s", name, strings.Join(api.Solvers, " "))
	}
	for more {
		var part string
		part, rest, more = strings.Cut(rest, ":")
		field, value, ok := strings.Cut(part, "=")
		if !ok || field == "" {
			return choice, fmt.Errorf("a solver is NAME:FIELD=VALUE:… such as ab:order=2, not %q", word)
		}
		v, err := object.parse(value)
		if err != nil {
			return choice, fmt.Errorf("%s of solver %s: %w", field, name, err)
		}
		choice.Options[field] = v
	}
	return choice, nil
}

func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// drawFrom samples in float32 with the given options, and those of every call.
func drawFrom(eng *engine.Engine, base compare.Options) compare.Draw {
	return func(ctx context.Context, n int, seed uint64, o compare.Options) (compare.Images, int, error) {
		fields := compare.Options{"n": n, "seed": seed, "dtype": "float32"}
		maps.Copy(fields, base)
		maps.Copy(fields, o)
		var got compare.Images
		evaluations := 0
		err := stream(ctx, eng, "Sample", fields, func(s api.Schema, ev api.Event) error {
			if ev.Batch == nil {
				return nil
			}
			got.N += ev.Batch.Rows
			got.Values = append(got.Values, api.ColumnOf[float32](s, *ev.Batch, "sample")...)
			for _, v := range api.ColumnOf[int32](s, *ev.Batch, "nfe") {
				evaluations = max(evaluations, int(v))
			}
			return nil
		})
		got.D = len(got.Values) / max(1, got.N)
		return got, evaluations, err
	}
}

// readReference reads a data set as what Fréchet distances are taken to, and its
// layout: a sample's values must come in the same order.
func readReference(ctx context.Context, eng *engine.Engine, name string, components int) (_ *compare.Reference, layout string, err error) {
	var got compare.Images
	err = stream(ctx, eng, "Dataset", map[string]any{"dataset": name}, func(s api.Schema, ev api.Event) error {
		if ev.Batch == nil {
			return nil
		}
		got.N += ev.Batch.Rows
		column := s.Columns[s.Index("image")]
		layout = strings.Join(column.DimNames, "")
		if column.Type == api.Uint8 {
			for _, v := range api.ColumnOf[uint8](s, *ev.Batch, "image") {
				got.Values = append(got.Values, pixels.FromUint8(v))
			}
			return nil
		}
		got.Values = append(got.Values, api.ColumnOf[float32](s, *ev.Batch, "image")...)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	got.D = len(got.Values) / max(1, got.N)
	reference, err := compare.NewReference(got, components)
	return reference, layout, err
}
