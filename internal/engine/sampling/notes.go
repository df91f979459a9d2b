package sampling

import (
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// notes returns sentences on what a sampler takes in place of what was asked for or might be expected, and on what
// gives poor samples. p is the plan of a row of s; m is nil if no model is known.
func notes(
	asked api.Sample, set solver.Settings, s catalog.Schedule, row int, m *catalog.Model, p *solver.Plan,
) []string {
	var out []string
	if asked.NFE > set.NFE {
		cure := fmt.Sprintf("ask for %d, or give steps", set.NFE)
		other := set
		other.Steps, other.NFE, other.SecondPoint = 0, asked.NFE, solver.Endpoint
		if other, err := other.Resolve(); err == nil && other.NFE == asked.NFE {
			cure = fmt.Sprintf("second_point endpoint takes %d", asked.NFE)
		}
		out = append(out, fmt.Sprintf("nfe %d: whole steps of %s take %d evaluations; %s", asked.NFE, set.Solver,
			set.NFE, cure))
	}
	if asked.Order == 0 && set.LowersOrder() {
		out = append(out, fmt.Sprintf("order is 2 by default with solver %s below 13 evaluations, where order 3 can do "+
			"worse on real networks; give order 3 to take it", set.Solver))
	}
	if m != nil && m.Shape.Range.Known() {
		if _, known := m.Shape.Range.Ends(); cutByDefault(s, p, known) {
			out = append(out, fmt.Sprintf("sampling begins at noise level 80 by default, and the network knows levels up to "+
				"%.6g; schedule {\"edm\":{\"T\":%.9g}} begins there", known, known*known))
		}
	}
	if ref := asked.Schedule; m != nil && ref.Name == "edm" && ref.T == api.DefaultT && s.T() < api.DefaultT {
		out = append(out, fmt.Sprintf("schedule edm begins at noise level %.6g, the highest that the network knows, in "+
			"place of 80", math.Sqrt(s.T())))
	}
	if note := jump(set, s, row, p); note != "" {
		out = append(out, note)
	}
	return out
}

// cutByDefault reports whether a plan begins below the highest level that a network knows because EDM's schedule ends
// at 80 by default.
func cutByDefault(s catalog.Schedule, p *solver.Plan, known float64) bool {
	const tolerance = 1e-6
	edm := s.Name == "edm" && math.Abs(s.T()-api.DefaultT) <= tolerance*api.DefaultT
	return edm && known > schedule.DefaultSigmaMax*(1+tolerance) && p.T[0] >= s.T()*(1-tolerance)
}

// A step that begins above jumpsAbove, the deviation that EDM takes data to have, is judged: below it every grid jumps.
const (
	mostJump   = 5
	jumpsAbove = 0.5
	smallT     = 400 // σ = 20
)

// jump returns a sentence on the first step of a plan that is more than mostJump times lower in noise level than the
// one before, and more than EDM's rule with as many noise levels would go from there, so that EDM's own grid never is.
// The last step is not judged: every sampler goes from where it is to the image. Neither is what was chosen by its
// caller or for its solver: a list, a table, a schedule whose nodes were made for few steps.
func jump(set solver.Settings, s catalog.Schedule, row int, p *solver.Plan) string {
	switch set.Grid.Kind {
	case solver.GridT, solver.GridSigma, solver.GridTable:
		return ""
	}
	if made := s.Provenance(); made != nil {
		switch made.Kind {
		case "gaussian", "steps", "few", "fit":
			return ""
		}
	}
	const rho = 7
	root := func(sigma float64) float64 { return math.Pow(sigma, 1/float64(rho)) }
	n := len(p.T) - 1
	if n < 2 {
		return ""
	}
	width := (root(schedule.DefaultSigmaMax) - root(schedule.DefaultSigmaMin)) / float64(n-1)
	for i := range n - 1 {
		from, to := s.Sigma(row, p.T[i]), s.Sigma(row, p.T[i+1])
		rest := root(from) - width
		if from < jumpsAbove || rest <= 0 || from <= mostJump*to || from/to <= math.Pow(root(from)/rest, rho)*1.01 {
			continue
		}
		cure := "take more evaluations, or a schedule of kind few"
		if s.T() > smallT {
			cure = fmt.Sprintf("take a schedule of smaller T, such as %d, more evaluations, or a schedule of kind few", smallT)
		}
		return fmt.Sprintf("step %d of %d goes from noise level %.3g to %.3g at once, %.3g times lower; samples may suffer "+
			"from more than %d; %s", i+1, n, from, to, from/to, mostJump, cure)
	}
	return ""
}
