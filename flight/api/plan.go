package api

// MaxPlan bounds the numbers of a plan in one reply: evaluations times subspaces, of all its classes.
const MaxPlan = 1 << 14

// PlanSampler asks for the numbers of a sampler instead of its samples. Every Sample request is one, too: its fields
// that do not shape the sampler have no effect. The reply is a [Plan].
//
// A plan depends on the noise levels that the network was trained on. They are those of the model; without one, those
// between SigmaMin and SigmaMax, of a network outside the server; without these, those of the model that the schedule
// was made for. A sampler that depends on the class needs Label, or Labels for one plan of several classes.
type PlanSampler struct {
	Sample
	Label *int32 `json:"label,omitempty"` // class of the plan, −1 for none

	SigmaMin float64 `json:"sigma_min,omitempty"` // lowest noise level of the network, in place of a model
	SigmaMax float64 `json:"sigma_max,omitempty"` // highest noise level of the network, in place of a model
}

// Validate implements Request.
func (r *PlanSampler) Validate() error {
	if r.Model == "" && !r.Schedule.Given() {
		return Errorf(BadRequest, "model and schedule are both missing").WithHint("Give one of them.")
	}
	switch lo, hi := r.SigmaMin, r.SigmaMax; {
	case r.Label != nil && r.Labels != nil:
		return Errorf(BadRequest, "label and labels must not both be given").WithHint("Give one of them.")
	case lo == 0 && hi == 0:
	case r.Model != "":
		return Errorf(BadRequest, "sigma_min and sigma_max must be left out with a model, which has its own")
	case !(0 < lo && lo < hi && hi <= 1e6):
		return Errorf(BadRequest, "sigma_min and sigma_max must be positive and increase, up to 1e6, got %g and %g", lo, hi)
	}
	return r.Sample.Validate()
}

// PlanFormat and a version begin every plan.
const (
	PlanFormat         = "anisoflight-plan"
	PlanVersion        = 1
	PlanClassesVersion = 2 // with Classes
)

// The quantities that a plan's history may hold.
const (
	PredictsFlow     = "flow"     // E = flow(x, g), about −ε
	PredictsDenoised = "denoised" // E = D = x + Σ_j √g_j P_j flow
)

// Plan is a sampler as numbers: x = Σ_j Init_j P_j ξ for a unit normal ξ, unless Start says otherwise, and then for
// every stage
//
//	x ← x + Σ_j Noise_j P_j ξ′              with Noise, ξ′ a fresh unit normal
//	E_0 = flow or denoised image of x at G  evaluate, E_0 pushed in front of the history
//	x ← Σ_j P_j (Alpha_j x + Σ_i Beta_ji E_i)
type Plan struct {
	Format   string `json:"format"`
	Version  int    `json:"version"`
	Schedule string `json:"schedule"`
	Model    string `json:"model,omitempty"` // whose noise levels the plan keeps to
	Label    int32  `json:"label"`
	Family   Family `json:"family"` // its basis has the P_j
	Solver   string `json:"solver"`
	Steps    int    `json:"steps"`
	NFE      int    `json:"nfe"` // evaluations of the network: len(Stages)
	Predicts string `json:"predicts"`
	History  int    `json:"history"` // how many evaluations to keep
	// Start describes the law that sampling starts from, x = μ + (Σ + Σ_j Init_j² P_j)^½ ξ; absent for noise alone
	Start *StartInfo `json:"start,omitempty"`
	// States is true where the history holds, behind each evaluation, the x that it was made at: E_0, its x, E_1, …
	States bool `json:"states,omitempty"`
	PlanNumbers
	// Classes has the numbers by class in their place, in a plan of several classes.
	Classes []PlanClass `json:"classes,omitempty"`
	// Notes are sentences on defaults that shape the plan, and on what gives poor samples.
	Notes []string `json:"notes,omitempty"`
}

// PlanNumbers is what may differ by class in a plan.
type PlanNumbers struct {
	T    []float64 `json:"t,omitempty"`    // [Steps + 1] times between the steps, the start first
	Init []float64 `json:"init,omitempty"` // [J]
	// Coordinates are those in which the stages combine, in place of the family's subspaces: their Alpha and Beta have an
	// entry for each of them. Init and G are by subspace all the same.
	Coordinates *PlanCoordinates `json:"coordinates,omitempty"`
	Stages      []PlanStage      `json:"stages,omitempty"`
}

// PlanClass is the part of a plan that some classes share.
type PlanClass struct {
	Labels []int32 `json:"labels"`
	PlanNumbers
}

// PlanCoordinates are the frequencies (u, v) of the orthonormal DCT-II of images and, at each of them, axes k of the
// channels, the last index fastest.
type PlanCoordinates struct {
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
	// [H·W·C·C], axis k of frequency (u, v) in the channels; absent: the channels are the axes
	Axes []float64 `json:"axes,omitempty"`
}

// PlanStage is one evaluation of the network and the combination that follows it.
type PlanStage struct {
	G     []float64   `json:"g"`               // [J] noise variances of the evaluation
	Time  float64     `json:"t"`               // schedule time of the evaluation
	Alpha []float64   `json:"alpha"`           // [J]
	Beta  [][]float64 `json:"beta"`            // [J][up to History], the newest first
	Step  int         `json:"step"`            // the step, from 0, that this stage ends; −1 for an inner stage
	Noise []float64   `json:"noise,omitempty"` // [J], or absent for none
}

// Family says how a schedule is shared over classes, and what splits the image space.
type Family struct {
	PerClass bool   `json:"per_class"`
	Basis    string `json:"basis"`
	K        int    `json:"k,omitempty"`
	Cuts     []int  `json:"cuts,omitempty"`
}
