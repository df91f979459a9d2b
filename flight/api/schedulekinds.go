package api

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// GeodesicSchedule asks for the schedule of least energy of a model on a data set, for a solver of an order.
type GeodesicSchedule struct {
	NewSchedule
	// name of the model whose residual is measured; required
	Model   string `json:"model"`
	Dataset string `json:"dataset"` // name of the data set to measure it on; required
	// noise variance at the end; default that of the model's own schedule, otherwise as the data need
	T float64 `json:"T,omitempty"`
	// in place of T: number of evaluations of Heun's method for which T is chosen, on the data's Gaussian
	NFE int `json:"nfe,omitempty" given:"3" max:"1000"`
	// with nfe: second point of Heun's method; choose the one that you sample with; default endpoint
	SecondPoint string `json:"second_point,omitempty" oneof:"endpoint midpoint"`

	G0    float64 `json:"g0" default:"1e-9"`                     // noise variance at t = 0
	Knots int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
	// order of the solver that the path is for; 1 gives the least energy
	Order int `json:"order" default:"2" min:"1" max:"16"`
	// constant c in the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C       float64 `json:"c,omitempty" above:"0"`
	Points  int     `json:"points" default:"160" min:"4" max:"65536"`    // number of noise levels
	Samples int     `json:"samples" default:"24" min:"1" max:"16777216"` // images per noise level
	Seed    uint64  `json:"seed"`                                        // seed of the noise; default 0
	Bands
	PerClass bool `json:"per_class"` // one set of paths for each class
	// also measure the statistics for the solver local; needs basis none
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

// FitSchedule asks for another schedule, which carries statistics of a denoiser, with coefficients for the solver
// fitted: those of local, moved by least squares so that each step follows converged trajectories of a model.
type FitSchedule struct {
	NewSchedule
	// name of the model whose trajectories are fitted; required
	Model string `json:"model"`
	// schedule with statistics that all classes share; required
	Schedule ScheduleRef `json:"schedule"`
	NFE      int         `json:"nfe" min:"1" max:"64"`              // number of network evaluations; required
	Order    int         `json:"order" default:"2" min:"1" max:"3"` // order of the solver local, which the fit begins with
	Grid     Grid        `json:"grid" oneof:"grids"`                // times of the steps; default polynomial
	// fit the same coefficients for all frequencies, beginning with DPM-Solver++
	Isotropic bool `json:"isotropic"`
	// lower the order in the last steps; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// number of trajectories for the fit; the choice of the ridge and the final measurement use the same number each
	Samples int    `json:"samples" default:"256" min:"8" max:"65536"`
	Seed    uint64 `json:"seed"` // seed of the trajectories; default 0
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

// Fit reports the gain of fitted coefficients: root mean square distances to the converged samples from the same
// latents, which neither the fit nor the choice of its ridge used.
type Fit struct {
	NFE     int     `json:"nfe"`
	Samples int     `json:"samples"`
	Local   float64 `json:"local"`  // of the initial coefficients, of local or DPM-Solver++
	Fitted  float64 `json:"fitted"` // of the fitted coefficients
}

// FormulaSchedule asks for an isotropic schedule that all classes share: edm, log-linear or cosine.
type FormulaSchedule struct {
	NewSchedule
	Formula string  `json:"-"`                                     // sent as the kind
	T       float64 `json:"T,omitempty"`                           // noise variance at the end; default 6400
	G0      float64 `json:"g0" default:"1e-9"`                     // noise variance at t = 0
	Knots   int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
}

// Kind implements ScheduleKind.
func (r *FormulaSchedule) Kind() string { return r.Formula }

// Validate implements Request.
func (r *FormulaSchedule) Validate() error { return checkEnds(r.T, r.G0) }

// Bands is a basis and its sizes.
type Bands struct {
	Basis string `json:"basis" default:"none"`  // basis whose subspaces each have a path; none for a single path
	K     int    `json:"k,omitempty" given:"1"` // for dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`        // for dct: nested bands in place of k, such as [1,2,4]
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

// MakeSchedule makes a schedule and stores it. Its JSON is that of its kind with the field "kind" added.
type MakeSchedule struct{ Of ScheduleKind }

// ScheduleKind is a request for a schedule of one kind: a *GeodesicSchedule, *StartSchedule, *FitSchedule,
// *FewSchedule or *FormulaSchedule.
type ScheduleKind interface {
	Request
	// Kind returns the kind's name.
	Kind() string
	// Target returns the fields that all kinds have: where the schedule is stored.
	Target() NewSchedule
}

// ScheduleKinds returns an empty request of each kind.
func ScheduleKinds() []ScheduleKind {
	return []ScheduleKind{
		new(GeodesicSchedule), new(StartSchedule), new(FitSchedule), new(FewSchedule),
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
	if instead, ok := goneKinds[name]; ok {
		return Errorf(BadRequest, "The kind %s is gone since 0.1", name).WithHint("%s", instead)
	}
	return oneOf("kind", name, names...)
}

// FewSchedule asks for the schedule, start and solver that sample a model best in few evaluations. The search measures
// candidates on the model: solvers, noise levels to start from, and noise levels of the steps. The best candidate and
// the best isotropic sampler from noise are then compared on samples held back. The latter is kept unless the former is
// better by a standard error. Sampling along the schedule needs nfe alone.
type FewSchedule struct {
	NewSchedule
	Model   string `json:"model"`                // name of the model to sample; required
	Dataset string `json:"dataset"`              // name of the data set that samples are compared with; required
	NFE     int    `json:"nfe" min:"1" max:"32"` // largest number of network evaluations; required
	// list of solvers to try, at least one other than local and fitted; default ipndm, dpmpp2m, unipc, local, fitted
	Solvers []string `json:"solvers,omitempty" oneof:"solvers"`
	// samples of each candidate; the same number is held back for the final comparison
	Samples int `json:"samples" default:"1024" min:"64" max:"65536"`
	// length of the search; with minutes, levels and coefficients are also learned through the network
	Budget string `json:"budget" default:"seconds" oneof:"seconds minutes"`
	Seed   uint64 `json:"seed"` // seed of the samples; default 0
	Guided
}

// FewSolvers are the default solvers of kind few.
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

// ErrLearnWithoutFit is the error of a search that shall learn without the solver fitted, which learning begins with.
func ErrLearnWithoutFit() error {
	return Errorf(BadRequest, "solvers must name fitted with budget minutes, which learns on from it")
}

// Summarize sets Summary from the other fields.
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
		f.Summary += fmt.Sprintf("no try is clearly better than this plain sampler from noise alone; the best, %s, has %s "+
			"on %d %s held back", best, ratio, f.Samples, held)
	case len(f.Tries) == 1:
		f.Summary += "the only try"
	default:
		next := f.Tries[1]
		f.Summary += fmt.Sprintf("no try did better than this plain sampler from noise alone; on the %s of the choice "+
			"the next, %s, has %.2f times its %s", held, describe(next), next.mean()/f.Chosen.mean(), measure)
	}
}

// Few reports the search of a schedule of kind few.
type Few struct {
	Model   string `json:"model"`
	Samples int    `json:"samples"` // of each candidate, and held back
	// Paired is true if the search had no images. Distances are then squared errors, and Samples the latents held back.
	Paired bool `json:"paired,omitempty"`
	// Stopped is true if the search was ended early. Chosen is then Tries[0], and Ratio is 1 unless it was measured.
	Stopped bool `json:"stopped,omitempty"`
	// Chosen is Tries[0] if it is better than Against by a standard error on samples held back, otherwise Against.
	Chosen  FewTry   `json:"chosen"`
	Against FewTry   `json:"against"` // the best isotropic sampler from noise
	Tries   []FewTry `json:"tries"`   // all candidates, the best first; those dropped early are last
	// Ratio is the distance of Tries[0] over that of Against, means over features as they rank, on samples held back, with
	// its jackknife error. It is 1 if the two are the same.
	Ratio       float64 `json:"ratio"`
	RatioStderr float64 `json:"ratio_stderr"`
	Summary     string  `json:"summary"` // compares the choice with Against, in a sentence
	// Seconds is the duration of each part of the search, on the server that made it.
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// FewTry is a candidate of the search.
type FewTry struct {
	Solver   string  `json:"solver"`
	NFE      int     `json:"nfe"`
	SigmaMax float64 `json:"sigma_max"`
	Start    string  `json:"start"` // standard or matched
	// Levels is the rule of the noise levels: polynomial, EDM's rule to σ = 0.002 with ρ = 7, or polynomial 3 with ρ = 3;
	// gaussian, chosen for the solver; trajectories, chosen for the network's trajectories; learned, with the
	// coefficients; log-snr; or times, evenly spaced in the network's time.
	Levels string `json:"levels"`
	// Samples is the number of samples measured, fewer than the request's if the candidate was dropped early.
	Samples int `json:"samples"`
	FewDistances
	// Held are the distances on samples held back, of Chosen and Against.
	Held *FewDistances `json:"held,omitempty"`
	// ODEError is the root mean square difference to the converged samples from the same start, of Chosen.
	ODEError float64 `json:"ode_error,omitempty"`
}

// FewDistances are squared Fréchet distances to the data set, less those of as many of its images, over the variance of
// its features: the low frequencies of the DCT, mean absolute differences of neighbouring pixels, and responses of
// random filters in three layers. Candidates are ranked by the geometric mean of the first and of that of the other
// two.
type FewDistances struct {
	Frequencies float64 `json:"frequencies,omitzero"`
	Edges       float64 `json:"edges,omitzero"`
	Responses   float64 `json:"responses,omitzero"`
	// Distance replaces them if the caller has features of its own, or no images. Without images it is the squared
	// difference to the network's converged samples, a geometric mean over latents, over the mean square of the samples.
	Distance float64 `json:"distance,omitzero"`
}

func (d FewDistances) mean() float64 {
	if d.Distance != 0 {
		return d.Distance
	}
	return math.Sqrt(d.Frequencies * math.Sqrt(d.Edges*d.Responses))
}

// The values of Sample's start.
const (
	StartStandard = "standard" // noise, x = Σ_j √g_j P_j ξ
	StartMatched  = "matched"  // the law that the schedule carries, x = μ + (Σ + Σ_j g_j P_j)^½ ξ
)

// StartSettings has the options of estimating a start: the mean of a data set, and the channels' covariance at each
// frequency of the DCT.
type StartSettings struct {
	PerClass *bool `json:"per_class,omitempty"` // one law for each class that has images; default true
}

// StartSchedule asks for another schedule with a start: sampling along it starts from the normal law with the mean and
// covariance of a data set, at the schedule's end or at a lower noise level.
type StartSchedule struct {
	NewSchedule
	StartSettings
	Dataset string `json:"dataset"`         // name of the data set that the law is measured on; required
	Model   string `json:"model,omitempty"` // name of a model whose normalization is applied to the data
	// a schedule's or model's name, or JSON such as {"edm":{"T":400}}, whose paths are kept; default edm
	Schedule ScheduleRef `json:"schedule"`
	// noise level to start at; default the schedule's end
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
	Covariance string  `json:"covariance"` // always dct
	PerClass   bool    `json:"per_class"`
	Labels     []int32 `json:"labels,omitempty"` // classes with their own law
	Shrinkage  float64 `json:"shrinkage,omitempty"`
	Images     int64   `json:"images"`   // number of images measured
	Variance   float64 `json:"variance"` // tr Σ over all images
	Hash       string  `json:"hash"`     // SHA-256 of its file
}

// StatisticsInfo describes the statistics of a denoiser that a schedule carries for the solver local: mean squared
// errors by noise level, DCT frequency and axis of the channels.
type StatisticsInfo struct {
	Points   int     `json:"points"` // number of noise levels
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Labels   []int32 `json:"labels,omitempty"` // classes with their own statistics
	Hash     string  `json:"hash"`             // SHA-256 of their file
}
