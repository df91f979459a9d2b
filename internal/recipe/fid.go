package recipe

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Rows of the table beside the baselines and the method, all of Heun's method and of the same numbers of evaluations.
const (
	// VariantUniform is the network as it was on EDM's schedule, uniform in t: the grid of the method, nothing learned.
	VariantUniform = "uniform"
	// VariantEDM is the method on EDM's noise levels.
	VariantEDM = "edm"
	// VariantMidpoint is VariantEDM with the second point in the middle of the step instead of its end.
	VariantMidpoint = "midpoint"
)

// Variants lists them.
var Variants = []string{VariantUniform, VariantEDM, VariantMidpoint}

func (r *Recipe) checkFID() error {
	f := r.FID
	switch {
	case !slices.Contains(api.Solvers, f.Solver):
		return r.errorf("fid.solver", "there is no %q; choose one of %s", f.Solver, strings.Join(api.Solvers, " "))
	case len(f.NFE) == 0 || slices.Min(f.NFE) < 1:
		return r.errorf("fid.nfe", "%v; it lists numbers of evaluations of the network", f.NFE)
	case len(f.Seeds) == 0:
		return r.errorf("fid.seeds", "it is missing: blocks of seeds such as 0-49999")
	}
	for _, solver := range f.Baselines {
		if !slices.Contains(api.Solvers, solver) {
			return r.errorf("fid.baselines", "there is no solver %q; choose of %s", solver, strings.Join(api.Solvers, " "))
		}
	}
	for _, v := range f.Variants {
		if !slices.Contains(Variants, v) {
			return r.errorf("fid.variants", "there is no %q; choose of %s", v, strings.Join(Variants, " "))
		}
	}
	if _, err := f.samples(); err != nil {
		return r.errorf("fid.seeds", "%v; a block is written FROM-TO, such as 0-49999", err)
	}
	return nil
}

// samples counts the seeds of all blocks.
func (f FID) samples() (n int, err error) {
	for _, block := range f.Seeds {
		k, err := length(block)
		if err != nil {
			return 0, fmt.Errorf("%q: %w", block, err)
		}
		n += k
	}
	return n, nil
}

// length counts the seeds of a block FROM-TO.
func length(block string) (int, error) {
	from, to, ok := strings.Cut(block, "-")
	a, err1 := strconv.Atoi(from)
	b, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || !ok || b < a {
		return 0, errors.New("it is no range")
	}
	return b - a + 1, nil
}

// Measures reports whether the stage looks at samples; the others make a model.
func (s Stage) Measures() bool {
	return s.Kind == KindReference || s.Kind == KindFID || s.Kind == KindTable
}

// Reference is the file of the data set's statistics.
func (r *Recipe) reference(p Place) string { return filepath.Join(p.Data, "fid", r.Name+".npz") }

// Results is the file of the distances of all recipes of the data set.
func (r *Recipe) Results(p Place) string { return filepath.Join(p.Data, "fid", r.Name+".jsonl") }

// measures are the distances: of the network on the literature's grids, and of the method.
// A single-step solver goes to σ = 0 as EDM's does (grid edm). Multistep solvers end at
// σ_min (grid polynomial): an evaluation there, for a step to 0, would be one of their few.
func (r *Recipe) measures(p Place) []Stage {
	fid := func(command string, args ...string) Stage {
		args = append([]string{"-m", "anisoflight.fid", command, "--server", p.Server, "--features", p.Features}, args...)
		if p.Trust {
			args = append(args, "--trust")
		}
		return Stage{Program: p.Python, Args: args}
	}
	ref := fid("ref", "--dataset", r.Name, "--out", r.reference(p))
	ref.Kind, ref.Makes = KindReference, r.reference(p)
	stages := []Stage{ref}
	calc := func(model, method, solver string, more ...string) {
		s := fid("calc", append(more, "--model", model, "--solver", solver, "--nfe", list(r.FID.NFE), "--seeds",
			strings.Join(r.FID.Seeds, ","),
			"--ref", r.reference(p), "--benchmark", r.Name, "--method", method, "--out", r.Results(p))...)
		if r.FID.SecondPoint != "" && solver == "heun" && !slices.Contains(more, "--second-point") {
			s.Args = append(s.Args, "--second-point", r.FID.SecondPoint)
		}
		if slices.ContainsFunc(r.FID.Seeds, few) {
			s.Args = append(s.Args, "--allow-fewer")
		}
		s.Kind, s.Makes, s.Model = KindFID, method, model
		stages = append(stages, s)
	}
	network := strings.Replace(r.Network.Name, "edm", "EDM", 1)
	for _, solver := range r.FID.Baselines {
		method, grid := network, api.GridEDM
		if solver != "heun" {
			method += " " + solver
		}
		if solver != "heun" && solver != "euler" {
			grid = api.GridPolynomial
		}
		calc(r.NetworkModel(), method, solver, "--grid", grid)
	}
	if slices.Contains(r.FID.Variants, VariantUniform) {
		calc(r.NetworkModel(), network+", uniform in t", "heun", "--schedule", "edm", "--grid", api.GridSchedule)
	}
	calc(r.Model(), r.Method(), r.FID.Solver)
	if slices.Contains(r.FID.Variants, VariantEDM) {
		calc(r.Model(), r.Method()+", EDM's grid", "heun", "--grid", api.GridEDM)
	}
	if slices.Contains(r.FID.Variants, VariantMidpoint) {
		calc(r.Model(), r.Method()+", EDM's grid, midpoint", "heun", "--grid", api.GridEDM, "--second-point", "midpoint")
	}
	return append(stages, Stage{
		Kind: KindTable, Program: p.Python,
		Args: []string{"-m", "anisoflight.fid.table", r.Results(p)},
	})
}

// few reports whether a block is too small for a distance to be compared with published ones.
func few(block string) bool {
	n, err := length(block)
	return err == nil && n < 50000
}

func list(n []int) string {
	var words []string
	for _, x := range n {
		words = append(words, strconv.Itoa(x))
	}
	return strings.Join(words, ",")
}
