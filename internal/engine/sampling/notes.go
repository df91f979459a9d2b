package sampling

import (
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// notes returns sentences on how a sampler differs from what was asked for or is usual. p is a plan on s; m is nil if
// no model is known.
func notes(req api.Sample, set solver.Settings, s catalog.Schedule, m *catalog.Model, p *solver.Plan) []string {
	var out []string
	if req.NFE > set.NFE {
		cure := fmt.Sprintf("ask for %d, or give steps", set.NFE)
		other := set
		other.Steps, other.NFE, other.SecondPoint = 0, req.NFE, solver.Endpoint
		if other, err := other.Resolve(); err == nil && other.NFE == req.NFE {
			cure = fmt.Sprintf("second_point endpoint takes %d", req.NFE)
		}
		out = append(out, fmt.Sprintf("nfe %d: whole steps of %s take %d evaluations; %s", req.NFE, set.Solver,
			set.NFE, cure))
	}
	if req.Order == 0 && set.LowersOrder() {
		out = append(out, fmt.Sprintf("order is 2 by default with solver %s below 13 evaluations, where order 3 can do "+
			"worse on real networks; give order 3 to take it", set.Solver))
	}
	if m != nil && m.Shape.Range.Known() {
		if _, highest := m.Shape.Range.Ends(); cutByDefault(s, p, highest) {
			out = append(out, fmt.Sprintf("sampling begins at noise level 80 by default, and the network knows levels up to "+
				"%.6g; schedule {\"edm\":{\"T\":%.9g}} begins there", highest, highest*highest))
		}
	}
	if m != nil && len(m.Unseen) > 0 {
		out = append(out, fmt.Sprintf("%d classes of the model had no images in training, such as label %d; they are not "+
			"drawn for samples without labels", len(m.Unseen), m.Unseen[0]))
	}
	if ref := req.Schedule; m != nil && ref.Name == "edm" && ref.T == api.DefaultT && s.T() < api.DefaultT {
		out = append(out, fmt.Sprintf("schedule edm begins at noise level %.6g, the highest that the network knows, in "+
			"place of 80", math.Sqrt(s.T())))
	}
	return out
}

// cutByDefault reports whether a plan begins below the network's highest level only because EDM's schedule ends at 80
// by default.
func cutByDefault(s catalog.Schedule, p *solver.Plan, highest float64) bool {
	const tolerance = 1e-6
	edm := s.Name == "edm" && math.Abs(s.T()-api.DefaultT) <= tolerance*api.DefaultT
	return edm && highest > schedule.DefaultSigmaMax*(1+tolerance) && p.T[0] >= s.T()*(1-tolerance)
}
