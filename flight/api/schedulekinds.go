package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// GeodesicSchedule is the best schedule of a model on a data set, for a solver of an order.
type GeodesicSchedule struct {
	NewSchedule
	// name of the model whose residual is the metric; required
	Model   string `json:"model"`
	Dataset string `json:"dataset"` // name of the data set to measure it on; required
	// end of time, a variance; default the end of the model's own schedule, else as the data need
	T float64 `json:"T,omitempty"`
	// in place of T: at most so many evaluations of Heun's method, for which T is chosen on the data's own Gaussian
	NFE int `json:"nfe,omitempty" given:"3" max:"1000"`
	// of that method; give the one that samples will be drawn with, as each has its own T; default endpoint
	SecondPoint string `json:"second_point,omitempty" oneof:"endpoint midpoint"`

	G0    float64 `json:"g0" default:"1e-9"`                     // variance at t = 0
	Knots int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
	// order of the solver that the path is for; 1 gives the least energy, as the paper's loss has it
	Order int `json:"order" default:"2" min:"1" max:"16"`
	// of the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C       float64 `json:"c,omitempty" above:"0"`
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
	switch {
	case r.T != 0 && r.NFE != 0:
		return Errorf(BadRequest, "T and nfe must not both be given").WithHint("Give one of them: nfe chooses T.")
	case r.SecondPoint != "" && r.NFE == 0:
		return Errorf(BadRequest, "second_point must be left out without nfe, got %s", r.SecondPoint)
	}
	return cmp.Or(r.Bands.check(), checkEnds(r.T, r.G0), checkMeasured(r.Points, r.Samples))
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
	// keep the data's own law, which sampling then starts from: JSON such as {"per_class":false}; default from noise alone
	Start *StartSettings `json:"start,omitempty"`
}

// Kind implements ScheduleKind.
func (r *GaussianSchedule) Kind() string { return "gaussian" }

// Validate implements Request.
func (r *GaussianSchedule) Validate() error {
	if r.Basis != "" && r.Basis != "none" && r.Basis != "dct" {
		return Errorf(BadRequest, "basis must be none or dct, where the data's Gaussian is diagonal, got %q", r.Basis)
	}
	return cmp.Or(r.Bands.check(), checkEnds(r.T, r.G0))
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

// MakeSchedule makes a schedule and stores it. It is decoded from the JSON of its kind with the kind's name as "kind".
type MakeSchedule struct{ Of ScheduleKind }

// ScheduleKind is a request for a schedule of one kind: a *GeodesicSchedule, *GaussianSchedule, *StartSchedule,
// *FitSchedule, *FewSchedule or *FormulaSchedule.
type ScheduleKind interface {
	Request
	// Kind returns the kind's name.
	Kind() string
	// Target returns where the schedule is stored.
	Target() NewSchedule
}

// ScheduleKinds returns an empty request of each kind.
func ScheduleKinds() []ScheduleKind {
	return []ScheduleKind{
		new(GeodesicSchedule), new(GaussianSchedule), new(StartSchedule), new(FitSchedule), new(FewSchedule),
		&FormulaSchedule{Formula: "edm"}, &FormulaSchedule{Formula: "log-linear"}, &FormulaSchedule{Formula: "cosine"},
	}
}

// Validate implements Request.
func (r *MakeSchedule) Validate() error {
	return Validate(r.Of)
}

// decodeStrictly decodes the kind that "kind" names.
func (r *MakeSchedule) decodeStrictly(at place, v rawValue) error {
	var name string
	kind, object := take(v, "kind")
	if kind == nil {
		return Errorf(BadRequest, "%s is missing", at.field("kind"))
	}
	if err := decodeJSON(kind, at.field("kind"), &name); err != nil {
		return err
	}
	var names []string
	for _, kind := range ScheduleKinds() {
		names = append(names, kind.Kind())
		if kind.Kind() == name {
			SetDefaults(kind)
			r.Of = kind
			return decodeJSON(object, at, kind)
		}
	}
	return oneOf("kind", name, names...)
}

// FewSchedule is the schedule, with its start and its solver, that samples a model best in few evaluations: among
// solvers, noise levels to start from and noise levels to pass through, as far as they were tried. Each try is measured
// on the model, the best of them on samples that it was not found by, beside the best of the isotropic samplers that
// start from noise alone; that one is kept unless the gain is certain. Sampling along it needs no other setting than
// nfe.
type FewSchedule struct {
	NewSchedule
	Model   string `json:"model"`                // name of the model to sample; required
	Dataset string `json:"dataset"`              // name of the data set that samples are compared with; required
	NFE     int    `json:"nfe" min:"1" max:"32"` // at most so many evaluations of the network; required
	// list of solvers to try, one at least besides local and fitted; default ipndm, dpmpp2m, unipc, local, fitted
	Solvers []string `json:"solvers,omitempty" oneof:"solvers"`
	Samples int      `json:"samples" default:"512" min:"64" max:"65536"` // of each try, and as many held back
	// with minutes, levels and coefficients are learned through the network, too
	Budget string `json:"budget" default:"seconds" oneof:"seconds minutes"`
	Seed   uint64 `json:"seed"` // of the samples; default 0
	Guided        // the samples that are drawn
}

// FewSolvers are tried where a request names none.
var FewSolvers = []string{"ipndm", "dpmpp2m", "unipc", "local", "fitted"}

// Kind implements ScheduleKind.
func (r *FewSchedule) Kind() string { return "few" }

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
	if r.Budget == "minutes" && !slices.Contains(r.Solvers, solver.FittedName) {
		return ErrLearnWithoutFit()
	}
	return r.Guided.check()
}

// ErrLearnWithoutFit is the error of a search that is to learn and not to fit, which learning begins with.
func ErrLearnWithoutFit() error {
	return Errorf(BadRequest, "solvers must name fitted with budget minutes, which learns on from it")
}

// Summarize sets Summary from the rest.
func (f *Few) Summarize() {
	describe := func(q FewTry) string {
		return fmt.Sprintf("%s from sigma %.4g (%s start, %s)", q.Solver, q.SigmaMax, q.Start, q.Levels)
	}
	chosen, plain, best := describe(f.Chosen), describe(f.Against), describe(f.Tries[0])
	measure, held := "Fréchet distance", "samples"
	if f.Paired {
		measure, held = "squared error", "latents"
	}
	ratio := fmt.Sprintf("%.3g ± %.1g times the %s", f.Ratio, f.RatioStderr, measure)
	f.Summary = fmt.Sprintf("%s, %d evaluations: ", chosen, f.Chosen.NFE)
	switch {
	case f.Stopped && f.Chosen.Held == nil:
		f.Summary += "the best when the search was stopped, and not judged"
	case chosen != plain:
		f.Summary += fmt.Sprintf("better than %s, the best plain sampler from noise alone, with %s on %d %s held back",
			plain, ratio, f.Samples, held)
	case best != plain:
		f.Summary += fmt.Sprintf("no try is surely better than this plain sampler from noise alone; the best, %s, has %s "+
			"on %d %s held back", best, ratio, f.Samples, held)
	case len(f.Tries) == 1:
		f.Summary += "the only try"
	default:
		next := f.Tries[1]
		f.Summary += fmt.Sprintf("no try did better than this plain sampler from noise alone; on the %s of the choice "+
			"the next, %s, has %.2f times its %s", held, describe(next), next.mean()/f.Chosen.mean(), measure)
	}
}

// Few reports what was tried for a schedule of kind few, and what the choice gains on samples that it has not seen.
type Few struct {
	Model   string `json:"model"`
	Samples int    `json:"samples"` // of each try, and as many held back
	// Paired is true of a search without images: distances are squared errors, and Samples are the latents held back.
	Paired bool `json:"paired,omitempty"`
	// Stopped is true of a search that was ended early: Chosen is the first of the tries, and Ratio is 1 unless it was
	// judged.
	Stopped bool `json:"stopped,omitempty"`
	// Chosen is the first of the tries if it is better than Against by two standard errors, on samples held back; else it
	// is Against.
	Chosen  FewTry   `json:"chosen"`
	Against FewTry   `json:"against"` // the best of the isotropic samplers from noise alone
	Tries   []FewTry `json:"tries"`   // all, the best first; those dropped early are last
	// Ratio is the distance of the first of the tries over that of Against, the geometric means of all features on samples
	// held back, with its jackknife error. It is 1 where the two are one.
	Ratio       float64 `json:"ratio"`
	RatioStderr float64 `json:"ratio_stderr"`
	Summary     string  `json:"summary"` // how the choice compares with the best plain sampler, in a sentence
	// Seconds is how long each part of the search took; of an imported file those of the server that searched.
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// FewTry is a sampler that was tried.
type FewTry struct {
	Solver   string  `json:"solver"`
	NFE      int     `json:"nfe"`
	SigmaMax float64 `json:"sigma_max"`
	Start    string  `json:"start"` // standard or matched
	// Levels are polynomial (also polynomial 3): EDM's rule to σ = 0.002; gaussian: chosen for the solver; trajectories:
	// chosen for the network's own; learned, with the coefficients; log-snr; or times: even in the network's own.
	Levels string `json:"levels"`
	// W2 is the distance to the data's own Gaussian, of matched starts.
	W2 float64 `json:"w2_squared,omitempty"`
	// Samples is the number that the distances are of: fewer than the request's where the try was dropped early.
	Samples int `json:"samples"`
	FewDistances
	// Held are the same distances on samples held back, of the chosen and of the one that it is against.
	Held *FewDistances `json:"held,omitempty"`
	// ODEError is the root mean square difference to the converged samples from the same start, of the chosen.
	ODEError float64 `json:"ode_error,omitempty"`
}

// FewDistances are squared Fréchet distances to the data set over the variance of its features: frequencies are the low
// frequencies of the DCT, edges mean absolute differences of neighbouring pixels, responses those of random filters in
// three layers. Tries are ranked by their geometric mean.
type FewDistances struct {
	Frequencies float64 `json:"frequencies,omitzero"`
	Edges       float64 `json:"edges,omitzero"`
	Responses   float64 `json:"responses,omitzero"`
	// Distance is in their place the one by features of the caller's, or, without images, the squared error beside the
	// network's own converged samples, a geometric mean over latents, over the mean square of the samples.
	Distance float64 `json:"distance,omitzero"`
}

func (d FewDistances) mean() float64 {
	if d.Distance != 0 {
		return d.Distance
	}
	return math.Cbrt(d.Frequencies * d.Edges * d.Responses)
}

// Where sampling starts, by the names of Sample's start.
const (
	StartStandard = "standard" // from noise alone, x = Σ_j √g_j P_j ξ
	StartMatched  = "matched"  // from the law that the schedule carries, x = μ + (Σ + Σ_j g_j P_j)^½ ξ
)

// StartSettings say how the law of a data set is estimated for a start: its mean, and the channels' covariance at each
// frequency of the DCT.
type StartSettings struct {
	PerClass *bool `json:"per_class,omitempty"` // a law for each class that has images; default true
}

// StartSchedule is another schedule with a start: sampling along it starts from the normal law that has the mean and
// the covariance of a data set, at the schedule's end or at lower noise levels.
type StartSchedule struct {
	NewSchedule
	StartSettings
	Dataset string `json:"dataset"`         // name of the data set whose mean and covariance are measured; required
	Model   string `json:"model,omitempty"` // name of a model that sees the data in its own units
	// whose paths are kept: a name, a model's for its own, or JSON such as {"edm":{"T":400}}; default edm
	Schedule ScheduleRef `json:"schedule"`
	// start at this lower noise level; default the schedule's end
	SigmaMax float64 `json:"sigma_max,omitempty" above:"0"`
}

// Kind implements ScheduleKind.
func (r *StartSchedule) Kind() string { return "start" }

// SetDefaults sets what tags cannot say.
func (r *StartSchedule) SetDefaults() {
	r.Schedule = ScheduleRef{Name: "edm", T: DefaultT}
}

// StartInfo describes a schedule's start.
type StartInfo struct {
	Covariance string  `json:"covariance"` // what is kept of the data's covariance: dct
	PerClass   bool    `json:"per_class"`
	Labels     []int32 `json:"labels,omitempty"` // classes with laws of their own
	Shrinkage  float64 `json:"shrinkage,omitempty"`
	Images     int64   `json:"images"`   // that it was estimated from
	Variance   float64 `json:"variance"` // tr Σ of all images
	Hash       string  `json:"hash"`     // SHA-256 of its file
}

// StatisticsInfo describes the statistics of a denoiser that a schedule carries for the solver local: its mean squared
// errors by noise level, DCT frequency and axis of the channels.
type StatisticsInfo struct {
	Points   int     `json:"points"` // noise levels
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Labels   []int32 `json:"labels,omitempty"` // classes with statistics of their own
	Hash     string  `json:"hash"`             // SHA-256 of their file
}
