package api

// BenchSchedule runs every solver on every schedule at every number of evaluations on a data set's own Gaussian, where
// the sampler's output is known in closed form: no model, no samples, no noise.
//
// Rows out, in the order of schedules, solvers, nfe, label, subspace: schedule, solver int32 (positions in the
// request's lists), nfe int32 (evaluations spent, at most those asked for), steps, label (−1: the whole data set),
// subspace (−1: the whole image), dims int32, variance (share of the data's), w2_squared = spread + shift, noise
// float64, relative to the data's total variance.
type BenchSchedule struct {
	Dataset   string        `json:"dataset"`
	Model     string        `json:"model,omitempty"` // through whose normalization the data are seen; default their own
	Schedules []ScheduleRef `json:"schedules"`       // default: edm
	Solvers   []string      `json:"solvers"`         // default: heun
	NFE       []int         `json:"nfe"`             // at most so many evaluations each, as in Sample
	Grid      Grid          `json:"grid"`            // default schedule
	// Basis, none (default) or dct with K or Cuts, tells by which subspaces a schedule of one is seen.
	Basis string `json:"basis"`
	K     int    `json:"k,omitempty"`
	Cuts  []int  `json:"cuts,omitempty"`
	// PerClass measures every schedule on each class's own Gaussian; a schedule per class always is.
	PerClass bool `json:"per_class"`
	// Start is that of Sample: standard, or matched for schedules that carry a start; default: matched where they do.
	Start string `json:"start,omitempty"`
}

// MaxBench bounds the combinations of one bench.
const MaxBench = 1 << 16

// SetDefaults implements Request.
func (r *BenchSchedule) SetDefaults() {
	*r = BenchSchedule{
		Schedules: []ScheduleRef{{Name: "edm", T: DefaultT}}, Solvers: []string{"heun"},
		Grid: Grid{Kind: GridSchedule}, Basis: "none", K: unset,
	}
}

// Validate implements Request.
func (r *BenchSchedule) Validate() error {
	var err error
	if taken("k", &r.K, &err); err != nil {
		return err
	}
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
	if r.Start != "" {
		if err := oneOf("start", r.Start, StartStandard, StartMatched); err != nil {
			return err
		}
	}
	for _, s := range r.Solvers {
		if err := oneOf("solvers", s, Solvers...); err != nil {
			return err
		}
	}
	for _, n := range r.NFE {
		if err := first(atLeast("nfe", n, 1), atMost("nfe", n, 2*MaxSteps)); err != nil {
			return err
		}
	}
	return first(need("dataset", r.Dataset), oneOf("basis", r.Basis, "none", "dct"))
}
