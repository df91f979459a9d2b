package api

import (
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Limits of what a request may ask for. They bound what is held in memory, not how long the work may take.
const (
	// MaxSteps bounds the solver steps of one sample: its plan lies in memory.
	MaxSteps = 100_000
	// DefaultBatchBytes is the size of one reply batch.
	DefaultBatchBytes = 2 << 20
)

// Solvers lists the solvers: those of the register of schedule/solver, sorted.
var Solvers = slices.Sorted(slices.Values(solver.Names()))

// Sample asks for images: by DoAction and DoGet n or labels say how many; in an exchange the caller sends latents and
// labels and both are absent. Sample i of a request depends on the model, the request and seed + i modulo 2⁶⁴ alone.
//
// Rows out: index int64, seed uint64, label int32 (−1 none), step int32 (−1 for final rows, else the step of a
// preview), nfe int32 (evaluations spent on that sample so far), sample fixed_shape_tensor.
type Sample struct {
	Model string `json:"model"` // name of the model; required
	// number of images; a conditional model draws their labels from seed + i
	N *int `json:"n,omitempty" min:"1"`
	// in place of n: one image per label, −1 for none
	Labels []int32 `json:"labels,omitempty"`
	Seed   uint64  `json:"seed"` // image i is made from seed + i alone; default 0
	Part

	Steps int `json:"steps,omitempty" given:"1" max:"100000"` // solver steps
	// in place of steps: at most so many evaluations of the network, by the most steps that fit; 9 of heun needs the
	// second point endpoint
	NFE int `json:"nfe,omitempty" given:"1" max:"200000"`
	// name of the solver; default the schedule's own, else heun
	Solver string `json:"solver,omitempty" oneof:"solvers"`
	// of the solvers that have several; default {orders}, of unipc and dpmpp3m 2 below 13 evaluations
	Order   int    `json:"order,omitempty" given:"1"`
	Variant string `json:"variant" oneof:"bh1 bh2" default:"bh2"` // of unipc
	// of heun, where the midpoint is in t
	SecondPoint string `json:"second_point" oneof:"midpoint endpoint" default:"midpoint"`
	Grid        Grid   `json:"grid" oneof:"grids"` // where the steps lie; default schedule
	// end with the denoised image of the last evaluation
	DenoiseToZero bool `json:"denoise_to_zero"`
	// of dpmpp, unipc and local: lower the order towards the end
	LowerOrderFinal *bool `json:"lower_order_final,omitempty" default:"true"`
	// of local: correct each step by the evaluation after it, at no cost
	Corrector bool `json:"corrector"`
	// first step of {warming solvers}, at no further evaluation
	Warmup string `json:"warmup" oneof:"euler heun" default:"euler"`

	SChurn float64 `json:"S_churn,omitempty"`             // of {churning solvers}: EDM's stochastic churn; default 0: none
	SMin   float64 `json:"S_min,omitempty"`               // churn from this noise level on; default 0
	SMax   float64 `json:"S_max,omitempty"`               // churn up to this noise level; default no bound
	SNoise float64 `json:"S_noise" default:"1" above:"0"` // standard deviation of the noise that churn adds

	Guided

	// a schedule's name, edm, or JSON such as {"edm":{"T":400}}; default the model's own
	Schedule ScheduleRef `json:"schedule,omitzero"`
	// law that sampling begins from, noise alone or the one that the schedule carries; default matched where it carries
	// one
	Start string `json:"start,omitempty" oneof:"standard matched"`
	Output
}

// Output says in which form samples come.
type Output struct {
	Every int `json:"every" min:"0"` // previews, the denoised estimate, each so many steps; default 0: none
	// type of the values; default uint8, and float32, all there is, for a model whose data have units of their own
	DType  string `json:"dtype,omitempty" oneof:"uint8 float32"`
	Layout string `json:"layout" oneof:"HWC CHW" default:"HWC"` // order of the axes
	// about so many bytes a reply batch; default 2 MiB
	BatchBytes int `json:"batch_bytes" default:"2097152" min:"1" max:"67108864"`
}

// Part says which part of a larger request this one is, for clients that read from several servers.
type Part struct {
	Offset  int    `json:"offset,omitempty" min:"0"` // index of the first row; default 0
	Weights string `json:"weights,omitempty"`        // hash that the model's weights must have; default any
}

// SetDefaults sets what tags cannot say.
func (r *Sample) SetDefaults() {
	r.Grid = Grid{Kind: GridSchedule}
}

// Guided says which denoiser is followed: D₀ + guidance (D₁ − D₀), where D₁ is the model's and D₀ the same model's
// without a label, or that of the model guide.
type Guided struct {
	// s in D₀ + s (D₁ − D₀), D₀ without a label or of the guide; default 1: none
	Guidance float64 `json:"guidance" default:"1" min:"0" max:"1000"`
	// noise levels that are guided, above the first, up to the second: JSON such as [0.2,3]; default all
	GuidanceInterval []float64 `json:"guidance_interval,omitempty"`
	// another model, for D₀, which sees the labels, too; default the model without a label
	Guide string `json:"guide,omitempty"`
}

func (g *Guided) check() error {
	at := g.GuidanceInterval
	if at != nil && (len(at) != 2 || !(0 <= at[0]) || !(at[0] < at[1])) {
		return Errorf(BadRequest, "guidance_interval must be two noise levels, the lower one first, got %v", at)
	}
	return nil
}

// DefaultSolver samples where neither the request nor the schedule names a solver.
const DefaultSolver = "heun"

// Validate implements Request. Whether n or labels are given depends on the way in: see CheckRows.
func (r *Sample) Validate() error {
	switch {
	case r.Order > 4:
		return Errorf(BadRequest, "order must lie in 1 … 4, got %d", r.Order)
	case r.Grid.Explicit() && (r.Steps != 0 || r.NFE != 0):
		return Errorf(BadRequest, "steps and nfe must be left out with an explicit grid, which holds every time")
	case r.Steps != 0 && r.NFE != 0:
		return Errorf(BadRequest, "steps and nfe must not both be given").WithHint("Give one of them.")
	case !r.Grid.Explicit() && r.Steps == 0 && r.NFE == 0:
		return Errorf(BadRequest, "steps and nfe are both missing").WithHint("Give one of them.")
	}
	return r.Guided.check()
}

// CheckRows checks n and labels of a request that is not an exchange and returns the number of samples.
func (r *Sample) CheckRows() (int, error) {
	switch {
	case r.N != nil && r.Labels != nil:
		return 0, Errorf(BadRequest, "n and labels must not both be given").WithHint("Give one of them.")
	case r.N != nil:
		return *r.N, nil
	case r.Labels == nil:
		return 0, Errorf(BadRequest, "n and labels are both missing").WithHint("Give one of them.")
	case len(r.Labels) == 0:
		return 0, Errorf(BadRequest, "labels must not be empty")
	}
	return len(r.Labels), nil
}

// CheckExchange checks that the rows sent, not the request, say how many samples there are.
func (r *Sample) CheckExchange() error {
	if r.N != nil || r.Labels != nil {
		return Errorf(BadRequest, "n and labels must be left out of an exchange, where the rows sent decide")
	}
	return nil
}

// MaxPlan bounds the numbers of a plan in one reply: evaluations times subspaces or parts, of all its classes.
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

// PlanFormat and PlanVersion begin every plan.
const (
	PlanFormat  = "anisoflight-plan"
	PlanVersion = 1
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
	// Provenance reports how the schedule was made, where that is known: a schedule.Provenance.
	Provenance any `json:"provenance,omitempty"`
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
	// Tails have, for each step k = 1 … Steps − 1, what begins there in place of the stages from step k on, with a history
	// of its own: those of its leading stages that differ from Stages. Absent if the solver keeps nothing between steps.
	Tails [][]PlanTail `json:"tails,omitempty"`
}

// PlanTail is the combination of a stage in a sampler that begins at a later step.
type PlanTail struct {
	Alpha []float64   `json:"alpha"`
	Beta  [][]float64 `json:"beta"`
}

// PlanClass is the part of a plan that some classes share.
type PlanClass struct {
	Labels []int32 `json:"labels"`
	PlanNumbers
}

// PlanCoordinates are bands b of the frequencies (u, v) of the orthonormal DCT-II of images and, in each, axes k of the
// channels, the last index fastest. Bands of equal width in ln ρ, ρ = √((u/H)² + (v/W)²), follow from their number by a
// formula (method.md).
type PlanCoordinates struct {
	Height   int `json:"height"`
	Width    int `json:"width"`
	Channels int `json:"channels"`
	// number N of the formula; absent: each frequency is a band of its own, u slow
	Bands int `json:"bands,omitempty"`
	// [B·C·C] of B bands, axis k of band b in the channels; absent: the channels are the axes
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

// The named grids of Sample.
const (
	GridSchedule   = "schedule"   // uniform in the schedule's t
	GridEDM        = "edm"        // EDM's σ rule, mapped to times by the geometric mean of the g_j, then t = 0
	GridPolynomial = "polynomial" // EDM's σ rule with n + 1 levels for n steps, the last of which ends at σ_min
	GridLogSNR     = "logsnr"     // uniform in ln σ
	GridTimes      = "t"          // an explicit list of times
	GridSigmas     = "sigma"      // an explicit list of σ
	GridTable      = "table"      // a published list of σ, interpolated to the number of steps
)

// GridNames lists the grids that need no more than their name.
var GridNames = []string{GridSchedule, GridEDM, GridPolynomial, GridLogSNR}

// Grid says at which times a sampler evaluates the network. Its JSON is a name, or one of
//
//	{"edm":{"sigma_min":0.002,"sigma_max":80,"rho":7}}   {"polynomial":{...}}   {"t":[...]}
//	{"sigma":[...]}   {"table":"ays-sd15"}
//
// An explicit list runs from noise to data and holds every time including the last.
type Grid struct {
	Kind     string
	SigmaMin float64   // of GridEDM and GridPolynomial; default 0.002
	SigmaMax float64   // of GridEDM and GridPolynomial; default 80
	Rho      float64   // of GridEDM and GridPolynomial; default 7
	T        []float64 // of GridTimes
	Sigma    []float64 // of GridSigmas
	Table    string    // of GridTable: one of Tables
}

// Tables lists the tables by the names of the contract: Align Your Steps for Stable Diffusion 1.5, XL and Video.
var Tables = solver.Tables()

// Explicit reports whether the grid is a list, which needs neither steps nor nfe.
func (g Grid) Explicit() bool { return g.Kind == GridTimes || g.Kind == GridSigmas }

// levelRule is what GridEDM and GridPolynomial take.
type levelRule struct {
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Rho      float64 `json:"rho"`
}

// decodeStrictly takes a name, or an object with one name and what it says.
func (g *Grid) decodeStrictly(at place, v rawValue) error {
	rule := levelRule{0.002, 80, 7} // EDM's
	if v.Kind() == '"' {
		var name string
		if err := decodeJSON(v, at, &name); err != nil {
			return err
		}
		*g = Grid{Kind: name}
		if name == GridEDM || name == GridPolynomial {
			g.SigmaMin, g.SigmaMax, g.Rho = rule.SigmaMin, rule.SigmaMax, rule.Rho
		}
		return oneOf(at.String(), name, GridNames...)
	}
	form := struct {
		EDM        *levelRule `json:"edm"`
		Polynomial *levelRule `json:"polynomial"`
		T          []float64  `json:"t"`
		Sigma      []float64  `json:"sigma"`
		Table      string     `json:"table"`
	}{EDM: &rule, Polynomial: &rule}
	var given []string
	for name, value := range fieldsIn(v) {
		if value.Kind() != 'n' {
			given = append(given, name)
		}
	}
	if len(given) != 1 || len(fieldsIn(v)) != 1 {
		return wrongJSON(at,
			`a name, {"edm":{...}}, {"polynomial":{...}}, {"t":[...]}, {"sigma":[...]} or {"table":"..."}`, v)
	}
	if err := decodeJSON(v, at, &form); err != nil {
		return err
	}
	*g = Grid{Kind: given[0], T: form.T, Table: form.Table}
	at = at.field(g.Kind)
	switch g.Kind {
	case GridEDM, GridPolynomial:
		g.SigmaMin, g.SigmaMax, g.Rho = rule.SigmaMin, rule.SigmaMax, rule.Rho
		if !(0 < rule.SigmaMin && rule.SigmaMin < rule.SigmaMax && rule.Rho > 0) {
			return Errorf(BadRequest, "%s needs 0 < sigma_min < sigma_max and rho > 0, not sigma_min %g, sigma_max %g, rho %g",
				at, rule.SigmaMin, rule.SigmaMax, rule.Rho)
		}
		return nil
	case GridTimes:
		return checkFalling(at, g.T)
	case GridTable:
		return oneOf(at.String(), g.Table, Tables...)
	}
	g.Sigma = form.Sigma
	return checkFalling(at, g.Sigma)
}

// checkFalling wants at least two numbers ≥ 0, each less than the one before.
func checkFalling(at place, x []float64) error {
	if len(x) < 2 {
		return Errorf(BadRequest, "%s must hold at least two numbers, where to start and where to end, not %d",
			at, len(x))
	}
	for i, v := range x {
		switch {
		case v < 0:
			return Errorf(BadRequest, "%s must not be negative; entry %d is %g", at, i, v)
		case i > 0 && v >= x[i-1]:
			return Errorf(BadRequest, "%s must fall strictly from noise to data; entry %d is %g after %g",
				at, i, v, x[i-1])
		}
	}
	return nil
}

// MarshalJSON writes the form that decodes to g.
func (g Grid) MarshalJSON() ([]byte, error) {
	switch g.Kind {
	case "":
		return json.Marshal(GridSchedule)
	case GridEDM, GridPolynomial:
		return json.Marshal(map[string]any{g.Kind: levelRule{g.SigmaMin, g.SigmaMax, g.Rho}})
	case GridTimes:
		return json.Marshal(map[string]any{GridTimes: g.T})
	case GridTable:
		return json.Marshal(map[string]any{GridTable: g.Table})
	case GridSigmas:
		return json.Marshal(map[string]any{GridSigmas: g.Sigma})
	}
	return json.Marshal(g.Kind)
}
