package api

// BenchSchedule runs every solver on every schedule at every number of evaluations on a data set's own Gaussian, where
// the sampler's output is known in closed form: no model, no samples, no noise.
//
// Rows out, in the order of schedules, solvers, nfe, label, subspace: schedule, solver int32 (positions in the
// request's lists), nfe int32 (evaluations spent, at most those asked for), steps, label (−1: the whole data set),
// subspace (−1: the whole image), dims int32, variance (share of the data's), w2_squared = spread + shift, noise
// float64, relative to the data's total variance.
type BenchSchedule struct {
	// name of the data set whose Gaussian is sampled; required
	Dataset string `json:"dataset"`
	// name of a model that sees the data in its own units
	Model     string        `json:"model,omitempty"`
	Schedules []ScheduleRef `json:"schedules"`                              // list of schedules; default edm
	Solvers   []string      `json:"solvers" oneof:"solvers" default:"heun"` // list of solvers
	// list of evaluations, such as 5,9,17; required
	NFE  []int `json:"nfe"`
	Grid Grid  `json:"grid" oneof:"grids"` // where the steps lie; default schedule
	// subspaces that isotropic schedules are seen by
	Basis string `json:"basis" oneof:"none dct" default:"none"`
	K     int    `json:"k,omitempty" given:"1"` // of dct: dimensions of the low frequencies per channel, a square
	Cuts  []int  `json:"cuts,omitempty"`        // of dct: nested bands instead of k, such as [1,2,4]
	// measure each schedule on each class's own Gaussian, as those per class always are
	PerClass bool `json:"per_class"`
	// law that sampling begins from; default matched for schedules that carry one
	Start string `json:"start,omitempty" oneof:"standard matched"`
}

// MaxBench bounds the combinations of one bench.
const MaxBench = 1 << 16

// SetDefaults sets what tags cannot say.
func (r *BenchSchedule) SetDefaults() {
	r.Schedules = []ScheduleRef{{Name: "edm", T: DefaultT}}
	r.Grid = Grid{Kind: GridSchedule}
}

// Validate implements Request.
func (r *BenchSchedule) Validate() error {
	switch {
	case len(r.Schedules) == 0 || len(r.Solvers) == 0:
		return Errorf(BadRequest, "schedules and solvers must not be empty")
	case len(r.NFE) == 0:
		return Errorf(BadRequest, "nfe is missing").WithHint("Give the numbers of evaluations, such as [5,9,17].")
	case len(r.Schedules)*len(r.Solvers)*len(r.NFE) > MaxBench:
		return Errorf(TooLarge, "schedules × solvers × nfe must be at most %d combinations, got %d", MaxBench,
			len(r.Schedules)*len(r.Solvers)*len(r.NFE))
	case r.Grid.Explicit():
		return Errorf(BadRequest, "grid must be one that any number of evaluations can take, got an explicit list").
			WithHint("Use the grids schedule, edm, polynomial or logsnr, or put the list in a schedule.")
	case r.Basis == "none" && (r.K != 0 || r.Cuts != nil):
		return Errorf(BadRequest, "k and cuts must be left out for basis none")
	case r.K != 0 && r.Cuts != nil:
		return Errorf(BadRequest, "k and cuts must not both be given").WithHint("Give one of them.")
	}
	for _, n := range r.NFE {
		if err := within("nfe", n, 1, 2*MaxSteps); err != nil {
			return err
		}
	}
	return nil
}
