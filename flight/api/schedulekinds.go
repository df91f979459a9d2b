package api

// GeodesicSchedule is the schedule of least energy of a model on a data set.
type GeodesicSchedule struct {
	NewSchedule
	Model   string  `json:"model"`       // name of the model whose residual is the metric; required
	Dataset string  `json:"dataset"`     // name of the data set to measure it on; required
	T       float64 `json:"T,omitempty"` // end of time, a variance; default the end of the model's own schedule
	G0      float64 `json:"g0"`          // variance at t = 0; default 1e-9
	Knots   int     `json:"knots"`       // knots of the path; default 32
	C       float64 `json:"c"`           // of the weight ġ²/(g(c+g)); default 1
	Points  int     `json:"points"`      // noise levels measured; default 160
	Samples int     `json:"samples"`     // images per noise level; default 24
	Seed    uint64  `json:"seed"`        // of the noise; default 0
	Bands
	PerClass bool `json:"per_class"` // each class has its own paths
	// keep the network's errors by DCT frequency, for the solver local: of isotropic noise, with basis none
	Statistics bool `json:"statistics"`
}

// Kind implements ScheduleKind.
func (r *GeodesicSchedule) Kind() string { return "geodesic" }

// SetDefaults implements Request.
func (r *GeodesicSchedule) SetDefaults() {
	*r = GeodesicSchedule{G0: 1e-9, Knots: 32, C: 1, Points: 160, Samples: 24, Bands: noBands}
}

// Validate implements Request.
func (r *GeodesicSchedule) Validate() error {
	return first(need("model", r.Model), need("dataset", r.Dataset), r.Bands.check(),
		checkEnds(r.T, r.G0),
		checkKnots(r.Knots), positive("c", r.C), atLeast("points", r.Points, 4), atMost("points", r.Points, 1<<16),
		atLeast("samples", r.Samples, 1), atMost("samples", r.Samples, 1<<24), checkMeasured(r.Points, r.Samples))
}

// GaussianSchedule holds the noise levels, of each subspace its own, that bring a solver of nfe evaluations closest to
// the data's own Gaussian; no model is asked. Sampling with that solver, that nfe and grid "schedule" passes through
// them.
type GaussianSchedule struct {
	NewSchedule
	Dataset string `json:"dataset"` // name of the data set whose Gaussian is measured; required
	// name of a model whose units and noise levels rule; default the data's own units, EDM's levels
	Model  string  `json:"model,omitempty"`
	Solver string  `json:"solver,omitempty" oneof:"solvers"` // name of the solver to sample with; required
	NFE    int     `json:"nfe"`                              // at most so many evaluations of the network; required
	T      float64 `json:"T,omitempty"`                      // end of time, a variance; default 6400
	G0     float64 `json:"g0"`                               // variance at t = 0; default 1e-9
	Bands
	// keep the data's own law, which sampling then starts from: JSON such as {"covariance":"dct"}; default from noise
	// alone
	Start *Start `json:"start,omitempty"`
}

// Kind implements ScheduleKind.
func (r *GaussianSchedule) Kind() string { return "gaussian" }

// SetDefaults implements Request.
func (r *GaussianSchedule) SetDefaults() { *r = GaussianSchedule{G0: 1e-9, Bands: noBands} }

// Validate implements Request.
func (r *GaussianSchedule) Validate() error {
	if r.Basis != "" && r.Basis != "none" && r.Basis != "dct" {
		return Errorf(BadRequest, "basis must be none or dct, where the data's Gaussian is diagonal, got %q", r.Basis)
	}
	return first(r.Bands.check(), need("dataset", r.Dataset), checkSampler(r.Solver, r.NFE), r.Start.check("start"),
		checkEnds(r.T, r.G0))
}

// FitSchedule is another schedule, which carries statistics of a denoiser, with the coefficients of the solver fitted:
// those of local, moved by least squares to where each step of nfe evaluations ends on converged trajectories of a
// model.
type FitSchedule struct {
	NewSchedule
	Model    string      `json:"model"`              // name of the model whose trajectories are followed; required
	Schedule ScheduleRef `json:"schedule"`           // a schedule with statistics that all classes share; required
	NFE      int         `json:"nfe"`                // number of evaluations of the network; required
	Order    int         `json:"order"`              // of the solver local, where the fit begins, 1 to 3; default 2
	Grid     Grid        `json:"grid" oneof:"grids"` // of the nodes; default polynomial
	// one set of coefficients for all frequencies, from DPM-Solver++ instead of local
	Isotropic bool `json:"isotropic"`
	// the last steps look back on less; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// trajectories to fit to, as many to choose the ridge, and as many to judge; default 256
	Samples int    `json:"samples"`
	Seed    uint64 `json:"seed"` // of the trajectories; default 0
}

// Kind implements ScheduleKind.
func (r *FitSchedule) Kind() string { return "fit" }

// SetDefaults implements Request.
func (r *FitSchedule) SetDefaults() {
	*r = FitSchedule{
		Order: 2, Samples: 256, Grid: Grid{Kind: GridPolynomial, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
	}
}

// Validate implements Request.
func (r *FitSchedule) Validate() error {
	if r.Grid.Explicit() {
		return Errorf(BadRequest, "grid must be a named one, got an explicit list")
	}
	return first(need("model", r.Model), need("schedule", r.Schedule.Name), atLeast("nfe", r.NFE, 1),
		atMost("nfe", r.NFE, 64), atLeast("order", r.Order, 1), atMost("order", r.Order, 3),
		atLeast("samples", r.Samples, 8), atMost("samples", r.Samples, 1<<16))
}

// Fit reports what fitted coefficients have gained: root mean square distances to the converged samples from the same
// latents, on latents that neither the fit nor the choice of its ridge has seen.
type Fit struct {
	NFE     int     `json:"nfe"`
	Samples int     `json:"samples"`
	Local   float64 `json:"local"`  // error of where the fit began on the same nodes: local, isotropic DPM-Solver++
	Fitted  float64 `json:"fitted"` // and of the fitted coefficients
}

// WeightSchedule is the isotropic schedule, shared by all classes, along which the trajectory loss is score matching
// with a weight: ġ ∝ (c + g) w(g), the paper's Lemma A.2.
type WeightSchedule struct {
	NewSchedule
	// noise levels at which the weight is given, increasing, such as [0.002,0.5,80]; required
	Sigma []float64 `json:"sigma"`
	// of the squared error of the score there, such as [1,4,0.1]; a power of σ in between; required
	Weight []float64 `json:"weight"`
	C      float64   `json:"c"`           // of the trajectory loss's weight; default 1
	T      float64   `json:"T,omitempty"` // end of time, a variance; default 6400
	G0     float64   `json:"g0"`          // variance at t = 0; default 1e-9
	Knots  int       `json:"knots"`       // knots of the path; default 32
}

// Kind implements ScheduleKind.
func (r *WeightSchedule) Kind() string { return "weight" }

// SetDefaults implements Request.
func (r *WeightSchedule) SetDefaults() { *r = WeightSchedule{C: 1, G0: 1e-9, Knots: 32} }

// Validate implements Request. What the numbers must be the schedule itself says.
func (r *WeightSchedule) Validate() error {
	return first(atLeast("sigma", len(r.Sigma), 1), atMost("sigma", len(r.Sigma), mostWeights), positive("c", r.C),
		checkEnds(r.T, r.G0), checkKnots(r.Knots))
}

// mostWeights bounds the noise levels of a weight.
const mostWeights = 1 << 16

// FormulaSchedule is isotropic and shared by all classes: edm, log-linear or cosine.
type FormulaSchedule struct {
	NewSchedule
	Formula string  `json:"-"`           // travels as the kind
	T       float64 `json:"T,omitempty"` // end of time, a variance; default 6400
	G0      float64 `json:"g0"`          // variance at t = 0; default 1e-9
	Knots   int     `json:"knots"`       // knots of the path; default 32
}

// Kind implements ScheduleKind.
func (r *FormulaSchedule) Kind() string { return r.Formula }

// SetDefaults implements Request.
func (r *FormulaSchedule) SetDefaults() {
	*r = FormulaSchedule{Formula: r.Formula, G0: 1e-9, Knots: 32}
}

// Validate implements Request.
func (r *FormulaSchedule) Validate() error { return first(checkEnds(r.T, r.G0), checkKnots(r.Knots)) }

// Bands says which basis splits the image space, and into what.
type Bands struct {
	Basis string `json:"basis"`          // none, or a basis: each subspace has its own path; default none
	K     int    `json:"k,omitempty"`    // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"` // of dct: nested bands instead of k, such as [1,2,4]
}

// noBands are the default.
var noBands = Bands{Basis: "none", K: unset}

// check completes and checks the bands. An empty name is none.
func (b *Bands) check() error {
	var err error
	taken("k", &b.K, &err)
	if b.Basis == "" {
		b.Basis = "none"
	}
	if b.Basis == "none" && b.K != 0 {
		err = first(err, Errorf(BadRequest, "k must be left out for basis none"))
	}
	return first(err, checkCuts(b.Basis, b.K, b.Cuts))
}

func checkKnots(knots int) error {
	return first(atLeast("knots", knots, 2), atMost("knots", knots, 4096))
}

func checkSampler(solver string, nfe int) error {
	return first(need("solver", solver), atLeast("nfe", nfe, 1),
		atMost("nfe", nfe, 2*MaxSteps))
}
