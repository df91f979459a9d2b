package api

// GeodesicSchedule is the schedule of least energy of a model on a data set.
type GeodesicSchedule struct {
	NewSchedule
	// name of the model whose residual is the metric; required
	Model   string `json:"model"`
	Dataset string `json:"dataset"` // name of the data set to measure it on; required
	// end of time, a variance; default the end of the model's own schedule
	T       float64 `json:"T,omitempty"`
	G0      float64 `json:"g0" default:"1e-9"`                           // variance at t = 0
	Knots   int     `json:"knots" default:"32" min:"2" max:"4096"`       // knots of the path
	C       float64 `json:"c" default:"1" above:"0"`                     // of the weight ġ²/(g(c+g))
	Points  int     `json:"points" default:"160" min:"4" max:"65536"`    // noise levels measured
	Samples int     `json:"samples" default:"24" min:"1" max:"16777216"` // images per noise level
	Seed    uint64  `json:"seed"`                                        // of the noise; default 0
	Bands
	PerClass bool `json:"per_class"` // each class has its own paths
	// keep the network's errors by DCT frequency, for the solver local: of isotropic noise, with basis none
	Statistics bool `json:"statistics"`
}

// Kind implements ScheduleKind.
func (r *GeodesicSchedule) Kind() string { return "geodesic" }

// Validate implements Request.
func (r *GeodesicSchedule) Validate() error {
	return first(r.Bands.check(), checkEnds(r.T, r.G0), checkMeasured(r.Points, r.Samples))
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
	NFE    int     `json:"nfe" min:"1" max:"200000"`         // at most so many evaluations of the network; required
	T      float64 `json:"T,omitempty"`                      // end of time, a variance; default 6400
	G0     float64 `json:"g0" default:"1e-9"`                // variance at t = 0
	Bands
	// keep the data's own law, which sampling then starts from: JSON such as {"covariance":"dct"}; default from noise
	// alone
	Start *Start `json:"start,omitempty"`
}

// Kind implements ScheduleKind.
func (r *GaussianSchedule) Kind() string { return "gaussian" }

// Validate implements Request.
func (r *GaussianSchedule) Validate() error {
	if r.Basis != "" && r.Basis != "none" && r.Basis != "dct" {
		return Errorf(BadRequest, "basis must be none or dct, where the data's Gaussian is diagonal, got %q", r.Basis)
	}
	return first(r.Bands.check(), r.Start.check("start"), checkEnds(r.T, r.G0))
}

// FitSchedule is another schedule, which carries statistics of a denoiser, with the coefficients of the solver fitted:
// those of local, moved by least squares to where each step of nfe evaluations ends on converged trajectories of a
// model.
type FitSchedule struct {
	NewSchedule
	// name of the model whose trajectories are followed; required
	Model string `json:"model"`
	// a schedule with statistics that all classes share; required
	Schedule ScheduleRef `json:"schedule"`
	NFE      int         `json:"nfe" min:"1" max:"64"`              // number of evaluations of the network; required
	Order    int         `json:"order" default:"2" min:"1" max:"3"` // of the solver local, where the fit begins, 1 to 3
	Grid     Grid        `json:"grid" oneof:"grids"`                // of the nodes; default polynomial
	// one set of coefficients for all frequencies, from DPM-Solver++ instead of local
	Isotropic bool `json:"isotropic"`
	// the last steps look back on less; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// trajectories to fit to, as many to choose the ridge, and as many to judge
	Samples int    `json:"samples" default:"256" min:"8" max:"65536"`
	Seed    uint64 `json:"seed"` // of the trajectories; default 0
}

// Kind implements ScheduleKind.
func (r *FitSchedule) Kind() string { return "fit" }

// SetDefaults sets what tags cannot say.
func (r *FitSchedule) SetDefaults() {
	r.Grid = Grid{Kind: GridPolynomial, SigmaMin: 0.002, SigmaMax: 80, Rho: 7}
}

// Validate implements Request.
func (r *FitSchedule) Validate() error {
	if r.Grid.Explicit() {
		return Errorf(BadRequest, "grid must be a named one, got an explicit list")
	}
	return nil
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
	C      float64   `json:"c" default:"1" above:"0"`               // of the trajectory loss's weight
	T      float64   `json:"T,omitempty"`                           // end of time, a variance; default 6400
	G0     float64   `json:"g0" default:"1e-9"`                     // variance at t = 0
	Knots  int       `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
}

// Kind implements ScheduleKind.
func (r *WeightSchedule) Kind() string { return "weight" }

// Validate implements Request. What the numbers must be the schedule itself says.
func (r *WeightSchedule) Validate() error {
	return first(within("sigma", len(r.Sigma), 1, mostWeights), checkEnds(r.T, r.G0))
}

// mostWeights bounds the noise levels of a weight.
const mostWeights = 1 << 16

// FormulaSchedule is isotropic and shared by all classes: edm, log-linear or cosine.
type FormulaSchedule struct {
	NewSchedule
	Formula string  `json:"-"`                                     // travels as the kind
	T       float64 `json:"T,omitempty"`                           // end of time, a variance; default 6400
	G0      float64 `json:"g0" default:"1e-9"`                     // variance at t = 0
	Knots   int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
}

// Kind implements ScheduleKind.
func (r *FormulaSchedule) Kind() string { return r.Formula }

// Validate implements Request.
func (r *FormulaSchedule) Validate() error { return checkEnds(r.T, r.G0) }

// Bands says which basis splits the image space, and into what.
type Bands struct {
	Basis string `json:"basis" default:"none"`  // none, or a basis: each subspace has its own path
	K     int    `json:"k,omitempty" given:"1"` // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`        // of dct: nested bands instead of k, such as [1,2,4]
}

// check completes and checks the bands. An empty name is none.
func (b *Bands) check() error {
	if b.Basis == "" {
		b.Basis = "none"
	}
	if b.Basis == "none" && b.K != 0 {
		return Errorf(BadRequest, "k must be left out for basis none")
	}
	return checkCuts(b.Basis, b.K, b.Cuts)
}
