package api

// GeodesicSchedule is the schedule of least energy of a model on a data set.
type GeodesicSchedule struct {
	NewSchedule
	Model    string  `json:"model"`
	Dataset  string  `json:"dataset"`
	T        float64 `json:"T,omitempty"` // default: the end of the model's own schedule
	G0       float64 `json:"g0"`          // default 1e-9
	Knots    int     `json:"knots"`       // default 32
	C        float64 `json:"c"`           // default 1
	Points   int     `json:"points"`      // noise levels; default 160
	Samples  int     `json:"samples"`     // images per noise level; default 24
	Seed     uint64  `json:"seed"`
	Basis    string  `json:"basis"`          // default none; with another each subspace has its own path
	K        int     `json:"k,omitempty"`    // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts     []int   `json:"cuts,omitempty"` // of dct: nested bands, instead of k
	PerClass bool    `json:"per_class"`      // each class has its own paths
	// Statistics asks for those of the denoiser, which the solver local needs: of isotropic noise, with basis none
	Statistics bool `json:"statistics"`
}

// Kind implements ScheduleKind.
func (r *GeodesicSchedule) Kind() string { return "geodesic" }

// SetDefaults implements Request.
func (r *GeodesicSchedule) SetDefaults() {
	*r = GeodesicSchedule{G0: 1e-9, Knots: 32, C: 1, Points: 160, Samples: 24, Basis: "none", K: unset}
}

// Validate implements Request.
func (r *GeodesicSchedule) Validate() error {
	return first(need("model", r.Model), need("dataset", r.Dataset), checkBands(&r.Basis, &r.K, r.Cuts),
		checkEnds(r.T, r.G0),
		checkKnots(r.Knots), positive("c", r.C), atLeast("points", r.Points, 4), atMost("points", r.Points, 1<<16),
		atLeast("samples", r.Samples, 1), atMost("samples", r.Samples, 1<<24), checkMeasured(r.Points, r.Samples))
}

// GaussianSchedule holds the noise levels, of each subspace its own, that bring a solver of nfe evaluations closest to
// the data's own Gaussian; no model is asked. Sampling with that solver, that nfe and grid "schedule" passes through
// them.
type GaussianSchedule struct {
	NewSchedule
	Dataset string  `json:"dataset"`
	Model   string  `json:"model,omitempty"` // whose normalization and noise levels rule; default the data's, EDM's
	Solver  string  `json:"solver"`
	NFE     int     `json:"nfe"`             // at most so many evaluations, as in Sample
	T       float64 `json:"T,omitempty"`     // default 6400
	G0      float64 `json:"g0"`              // default 1e-9
	Basis   string  `json:"basis"`           // none (default) or dct: each subspace has its own path
	K       int     `json:"k,omitempty"`     // of dct: dimensions of P_1 per channel; default H·W/4
	Cuts    []int   `json:"cuts,omitempty"`  // of dct: nested bands, instead of k
	Start   *Start  `json:"start,omitempty"` // sampling starts from the data's own law; default: from noise alone
}

// Kind implements ScheduleKind.
func (r *GaussianSchedule) Kind() string { return "gaussian" }

// SetDefaults implements Request.
func (r *GaussianSchedule) SetDefaults() { *r = GaussianSchedule{G0: 1e-9, Basis: "none", K: unset} }

// Validate implements Request.
func (r *GaussianSchedule) Validate() error {
	if r.Basis != "" && r.Basis != "none" && r.Basis != "dct" {
		return Errorf(BadRequest, "basis must be none or dct, where the data's Gaussian is diagonal, got %q", r.Basis)
	}
	return first(checkBands(&r.Basis, &r.K, r.Cuts), need("dataset", r.Dataset), checkSampler(r.Solver, r.NFE),
		r.Start.check("start"), checkEnds(r.T, r.G0))
}

// FitSchedule is another schedule, which carries statistics of a denoiser, with the coefficients of the solver fitted:
// those of local, moved by least squares to where each step of nfe evaluations ends on converged trajectories of a
// model.
type FitSchedule struct {
	NewSchedule
	Model    string      `json:"model"`
	Schedule ScheduleRef `json:"schedule"` // with statistics shared by all classes
	NFE      int         `json:"nfe"`
	Order    int         `json:"order"` // of local, where the fit begins, and of what it looks back on; default 2
	Grid     Grid        `json:"grid"`  // of the nodes; default polynomial
	// Isotropic fits one set of coefficients to all directions of an image alike, starting from DPM-Solver++ instead of
	// local; by default every coordinate of the statistics has its own
	Isotropic bool `json:"isotropic"`
	// LowerOrderFinal is that of where the fit begins: whether the last steps look back on less; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// Samples is how many trajectories are fitted to, as many choose the ridge, and as many judge; default 256
	Samples int    `json:"samples"`
	Seed    uint64 `json:"seed"` // of the trajectories
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
	Sigma  []float64 `json:"sigma"`       // noise levels at which the weight is given, increasing
	Weight []float64 `json:"weight"`      // of the squared error of the score there; a power of σ in between
	C      float64   `json:"c"`           // default 1
	T      float64   `json:"T,omitempty"` // default 6400
	G0     float64   `json:"g0"`          // default 1e-9
	Knots  int       `json:"knots"`       // default 32
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
	T       float64 `json:"T,omitempty"` // default 6400
	G0      float64 `json:"g0"`          // default 1e-9
	Knots   int     `json:"knots"`       // default 32
}

// Kind implements ScheduleKind.
func (r *FormulaSchedule) Kind() string { return r.Formula }

// SetDefaults implements Request.
func (r *FormulaSchedule) SetDefaults() {
	*r = FormulaSchedule{Formula: r.Formula, G0: 1e-9, Knots: 32}
}

// Validate implements Request.
func (r *FormulaSchedule) Validate() error { return first(checkEnds(r.T, r.G0), checkKnots(r.Knots)) }

// checkBands checks a basis with its k or cuts. An empty name is none.
func checkBands(basis *string, k *int, cuts []int) error {
	var err error
	taken("k", k, &err)
	if *basis == "" {
		*basis = "none"
	}
	if *basis == "none" && *k != 0 {
		err = first(err, Errorf(BadRequest, "k must be left out for basis none"))
	}
	return first(err, checkCuts(*basis, *k, cuts))
}

func checkKnots(knots int) error {
	return first(atLeast("knots", knots, 2), atMost("knots", knots, 4096))
}

func checkSampler(solver string, nfe int) error {
	return first(need("solver", solver), oneOf("solver", solver, Solvers...), atLeast("nfe", nfe, 1),
		atMost("nfe", nfe, 2*MaxSteps))
}
