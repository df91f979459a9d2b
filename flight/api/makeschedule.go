package api

// MakeSchedule makes a schedule and stores it: from a model and a data set (geodesic), from a data set and a solver
// (gaussian), from a model, a schedule and a solver (steps), or from a formula (edm, log-linear, cosine).
//
// A schedule of steps goes along the paths of another, in times of its own: those at which a solver of nfe evaluations
// takes its uniform steps are chosen by dynamic programming on the errors of single steps along trajectories of a model.
//
// A gaussian schedule holds the noise levels, of each subspace its own, that bring a solver of nfe evaluations closest to
// the data's own Gaussian; no model is asked. Sampling with that solver, that nfe and grid "schedule" passes through them.
type MakeSchedule struct {
	Name     string      `json:"name"`
	Kind     string      `json:"kind"`
	Model    string      `json:"model"`   // of geodesic and steps
	Dataset  string      `json:"dataset"` // of geodesic and gaussian
	T        float64     `json:"T"`       // default 6400, or the end of the model's own schedule
	G0       float64     `json:"g0"`      // default 1e-9
	Knots    int         `json:"knots"`   // default 32; a gaussian schedule has one at each noise level
	C        float64     `json:"c"`       // default 1
	Points   int         `json:"points"`  // of geodesic: noise levels; default 160
	Samples  int         `json:"samples"` // of geodesic: images per noise level; of steps: trajectories; default 24
	Seed     uint64      `json:"seed"`
	Basis    string      `json:"basis"`             // none (default), dct, of geodesic any: each subspace has its own path
	K        int         `json:"k"`                 // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts     []int       `json:"cuts"`              // of dct: nested bands, instead of k
	PerClass bool        `json:"per_class"`         // of geodesic: each class has its own paths
	Solver   string      `json:"solver"`            // of gaussian and steps
	NFE      int         `json:"nfe"`               // of gaussian and steps: at most so many evaluations, as in Sample
	Refine   *Refine     `json:"refine,omitempty"`  // of gaussian: move the noise levels to where the solver errs less on a model
	Schedule ScheduleRef `json:"schedule,omitzero"` // of steps: whose paths are kept; default the model's own
	Replace  bool        `json:"replace"`
}

// SetDefaults implements Request.
func (r *MakeSchedule) SetDefaults() {
	*r = MakeSchedule{G0: 1e-9, Knots: 32, C: 1, Points: 160, Samples: 24, K: unset}
}

// Validate implements Request.
func (r *MakeSchedule) Validate() error {
	if err := first(CheckName("name", r.Name), need("kind", r.Kind), r.checkKind()); err != nil {
		return err
	}
	if r.T != 0 {
		if err := checkT("T", r.T); err != nil {
			return err
		}
	}
	if !(r.G0 > 0) || r.T != 0 && r.G0 >= r.T {
		return Errorf(BadRequest, "Field \"g0\" must lie between 0 and T, not %g", r.G0)
	}
	return first(positive("c", r.C), atLeast("knots", r.Knots, 2), atMost("knots", r.Knots, 4096),
		atLeast("points", r.Points, 4), atMost("points", r.Points, 1<<16),
		atLeast("samples", r.Samples, 1), atMost("samples", r.Samples, 1<<24),
		checkMeasured(r.Points, r.Samples))
}

// checkKind checks what the kinds of schedules do not have in common.
func (r *MakeSchedule) checkKind() error {
	var err error
	taken("k", &r.K, &err)
	if err != nil {
		return err
	}
	if r.Kind == "gaussian" && !r.Schedule.Given() {
		return first(r.checkGaussian(), r.Refine.check())
	}
	if r.Kind == "steps" {
		return r.checkSteps()
	}
	if r.Schedule.Given() {
		return Errorf(BadRequest, "Field \"schedule\" belongs to schedules of kind steps")
	}
	if r.Refine != nil {
		return Errorf(BadRequest, "Field \"refine\" belongs to gaussian schedules")
	}
	if r.Solver != "" || r.NFE != 0 {
		return Errorf(BadRequest, "Fields \"solver\" and \"nfe\" belong to schedules of kind gaussian or steps")
	}
	if r.Kind == "geodesic" {
		if r.Basis == "" {
			r.Basis = "none"
		}
		if r.Basis == "none" && r.K != 0 {
			return Errorf(BadRequest, "Basis none has no k").WithHint("Leave out k.")
		}
		return first(need("model", r.Model), need("dataset", r.Dataset), checkCuts(r.Basis, r.K, r.Cuts))
	}
	if r.Basis != "" || r.K != 0 || r.Cuts != nil || r.PerClass {
		return Errorf(BadRequest, "Fields \"basis\", \"k\", \"cuts\" and \"per_class\" belong to geodesic and gaussian schedules")
	}
	if err := oneOf("kind", r.Kind, "geodesic", "gaussian", "steps", "edm", "log-linear", "cosine"); err != nil {
		return err
	}
	if r.Model != "" || r.Dataset != "" {
		return Errorf(BadRequest, "A schedule of kind %q needs no model and no dataset", r.Kind)
	}
	return nil
}

func (r *MakeSchedule) checkGaussian() error {
	if r.Basis == "" {
		r.Basis = "none"
	}
	switch {
	case r.PerClass:
		return Errorf(BadRequest, "Field \"per_class\" belongs to geodesic schedules")
	case r.Model != "":
		return Errorf(BadRequest, "A gaussian schedule is made of the data alone").WithHint("Leave out model; refine may name one.")
	case r.Basis != "none" && r.Basis != "dct":
		return Errorf(BadRequest, "Nodes are chosen where the data's Gaussian is diagonal, in the bases none and dct, not %q", r.Basis).
			WithHint("Bench schedules on other bases with BenchSchedule and the full covariance.")
	case r.Basis == "none" && r.K != 0:
		return Errorf(BadRequest, "Basis none has no k").WithHint("Leave out k.")
	}
	return first(need("dataset", r.Dataset), need("solver", r.Solver), oneOf("solver", r.Solver, Solvers...),
		checkCuts(r.Basis, r.K, r.Cuts), atLeast("nfe", r.NFE, 1), atMost("nfe", r.NFE, 2*MaxSteps))
}

func (r *MakeSchedule) checkSteps() error {
	if r.Dataset != "" || r.Basis != "" || r.K != 0 || r.Cuts != nil || r.PerClass || r.T != 0 || r.Refine != nil {
		return Errorf(BadRequest, "A schedule of kind steps takes model, schedule, solver, nfe, samples and seed alone").
			WithHint("Its basis and its end are those of the schedule.")
	}
	return first(need("model", r.Model), need("solver", r.Solver), oneOf("solver", r.Solver, Solvers...),
		atLeast("nfe", r.NFE, 1), atMost("nfe", r.NFE, 2*MaxSteps), atMost("samples", r.Samples, 4096))
}
