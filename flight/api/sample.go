package api

import (
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Limits of what a request may ask for. They bound what is held in memory, not how long the work may take.
const (
	// MaxSteps bounds the solver steps of one sample: its plan lies in memory.
	MaxSteps = 100_000
	// DefaultBatchBytes is the size of one reply batch; MaxBatchBytes bounds what a request may choose.
	DefaultBatchBytes = 2 << 20
	MaxBatchBytes     = 64 << 20
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
	N *int `json:"n,omitempty"`
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
	// take the first step without the network, by the limit of its answer for large noise
	AFS bool `json:"afs"`
	// of dpmpp, unipc and local: lower the order towards the end; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// of local: correct each step by the evaluation after it, at no cost
	Corrector bool `json:"corrector"`
	// first step of {warming solvers}, at no further evaluation
	Warmup string `json:"warmup" oneof:"euler heun" default:"euler"`

	SChurn float64 `json:"S_churn,omitempty"`   // of {churning solvers}: EDM's stochastic churn; default 0: none
	SMin   float64 `json:"S_min,omitempty"`     // churn from this noise level on; default 0
	SMax   float64 `json:"S_max,omitempty"`     // churn up to this noise level; default no bound
	SNoise float64 `json:"S_noise" default:"1"` // standard deviation of the noise that churn adds

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
	final := true
	r.LowerOrderFinal, r.Grid = &final, Grid{Kind: GridSchedule}
}

// Guided says which denoiser is followed: D₀ + guidance (D₁ − D₀), where D₁ is the model's and D₀ the same model's
// without a label, or that of the model guide.
type Guided struct {
	// s in D₀ + s (D₁ − D₀), D₀ without a label or of the guide; default 1: none
	Guidance float64 `json:"guidance" default:"1"`
	// noise levels that are guided, above the first, up to the second: JSON such as [0.2,3]; default all
	GuidanceInterval []float64 `json:"guidance_interval,omitempty"`
	// another model, for D₀, which sees the labels, too; default the model without a label
	Guide string `json:"guide,omitempty"`
}

func (g *Guided) check() error {
	switch at := g.GuidanceInterval; {
	case !(g.Guidance >= 0 && g.Guidance <= 1000):
		return Errorf(BadRequest, "guidance must lie in 0 … 1000, got %g", g.Guidance).
			WithHint("1 is none, 0 the denoiser without a label.")
	case at != nil && (len(at) != 2 || !(0 <= at[0]) || !(at[0] < at[1])):
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
	case !(r.SNoise > 0):
		return Errorf(BadRequest, "S_noise must be positive, got %g", r.SNoise).
			WithHint("EDM's is 1.003 to 1.007; leave it out for 1.")
	}
	return r.Guided.check()
}

// CheckRows checks n and labels of a request that is not an exchange and returns the number of samples.
func (r *Sample) CheckRows() (int, error) {
	switch {
	case r.N != nil && r.Labels != nil:
		return 0, Errorf(BadRequest, "n and labels must not both be given").WithHint("Give one of them.")
	case r.N != nil:
		return *r.N, atLeast("n", *r.N, 1)
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
