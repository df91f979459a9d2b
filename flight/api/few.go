package api

import (
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// FewSchedule is the schedule, with its start and its solver, that samples a model best in few evaluations: among
// solvers, noise levels to start from and noise levels to pass through, as far as they were tried. Each try is measured
// on the model, the best of them on samples that the choice has not seen, beside the best of the isotropic samplers
// that start from noise alone. Sampling along it needs no other setting than nfe.
type FewSchedule struct {
	NewSchedule
	Model   string `json:"model"`                // name of the model to sample; required
	Dataset string `json:"dataset"`              // name of the data set that samples are compared with; required
	NFE     int    `json:"nfe" min:"1" max:"32"` // at most so many evaluations of the network; required
	// list of solvers to try, one at least besides local and fitted; default ipndm, dpmpp2m, unipc, local, fitted
	Solvers []string `json:"solvers,omitempty" oneof:"solvers"`
	Samples int      `json:"samples" default:"1024" min:"64" max:"65536"` // of each try, and as many held back
	Seed    uint64   `json:"seed"`                                        // of the samples; default 0
	// what is kept of the data's covariance: JSON such as {"covariance":"full"}; default dct, per class
	Start  *Start `json:"start,omitempty"`
	Guided        // the samples that are drawn
}

// FewSolvers are tried where a request names none.
var FewSolvers = []string{"ipndm", "dpmpp2m", "unipc", "local", "fitted"}

// Kind implements ScheduleKind.
func (r *FewSchedule) Kind() string { return "few" }

// SetDefaults sets what tags cannot say.
func (r *FewSchedule) SetDefaults() {
	r.Guided = Guided{Guidance: 1}
}

// Validate implements Request.
func (r *FewSchedule) Validate() error {
	if r.Solvers == nil {
		r.Solvers = slices.Clone(FewSolvers)
	}
	if len(r.Solvers) == 0 || len(r.Solvers) > len(Solvers) {
		return Errorf(BadRequest, "solvers must name 1 to %d solvers, got %d", len(Solvers), len(r.Solvers))
	}
	if !slices.ContainsFunc(r.Solvers, func(s string) bool { return s != solver.LocalName && s != solver.FittedName }) {
		return Errorf(BadRequest, "solvers must name one besides local and fitted, which they are compared with, got %v",
			r.Solvers)
	}
	return first(r.Start.check("start"), r.Guided.check())
}

// Few reports what was tried for a schedule of kind few, and what the choice gains on samples that it has not seen.
type Few struct {
	Model   string   `json:"model"`
	Samples int      `json:"samples"` // of each try, and as many held back
	Chosen  FewTry   `json:"chosen"`
	Against FewTry   `json:"against"` // the best of the isotropic samplers from noise alone
	Tries   []FewTry `json:"tries"`   // all, the best first; those dropped early are last
}

// FewTry is a sampler that was tried. Distances are squared Fréchet distances to the data set over the variance of its
// features: frequencies are the low frequencies of the DCT, edges mean absolute differences of neighbouring pixels.
type FewTry struct {
	Solver   string  `json:"solver"`
	NFE      int     `json:"nfe"`
	SigmaMax float64 `json:"sigma_max"`
	Start    string  `json:"start"`  // standard or matched
	Levels   string  `json:"levels"` // polynomial: EDM's rule to σ = 0.002; gaussian: chosen for the solver
	// W2 is the distance to the data's own Gaussian, of matched starts.
	W2 float64 `json:"w2_squared,omitempty"`
	// Samples is the number that the distances are of: fewer than the request's where the try was dropped early.
	Samples     int     `json:"samples"`
	Frequencies float64 `json:"frequencies"`
	Edges       float64 `json:"edges"`
	// Held are the same distances on samples held back, of the chosen and of the one that it is against.
	Held *FewHeld `json:"held,omitempty"`
	// ODEError is the root mean square difference to the converged samples from the same start, of the chosen.
	ODEError float64 `json:"ode_error,omitempty"`
}

// FewHeld are distances on samples held back.
type FewHeld struct {
	Frequencies float64 `json:"frequencies"`
	Edges       float64 `json:"edges"`
}
