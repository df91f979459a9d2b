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

	Steps int `json:"steps,omitempty"` // solver steps
	// in place of steps: at most so many evaluations of the network, by the most steps that fit; 9 of heun needs the
	// second point endpoint
	NFE int `json:"nfe,omitempty"`
	// name of the solver; default the schedule's own, else heun
	Solver string `json:"solver,omitempty" oneof:"solvers"`
	// of the solvers that have several; default ab 3, ipndm 4, deis 3, local 2, unipc and dpmpp3m 3, and 2 below 13
	// evaluations
	Order   int    `json:"order,omitempty"`
	Variant string `json:"variant" oneof:"bh1 bh2"` // of unipc; default bh2
	// of heun, where the midpoint is in t; default midpoint
	SecondPoint string `json:"second_point" oneof:"midpoint endpoint"`
	Grid        Grid   `json:"grid" oneof:"grids"` // where the steps lie; default schedule
	// end with the denoised image of the last evaluation
	DenoiseToZero bool `json:"denoise_to_zero"`
	// take the first step without the network, by the limit of its answer for large noise
	AFS bool `json:"afs"`
	// of dpmpp, unipc and local: lower the order towards the end; default true
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"`
	// of local: correct each step by the evaluation after it, at no cost
	Corrector bool `json:"corrector"`
	// first step of ab, ipndm, dpmpp and deis, at no further evaluation; default euler
	Warmup string `json:"warmup" oneof:"euler heun"`

	SChurn float64 `json:"S_churn,omitempty"` // of euler and heun: EDM's stochastic churn; default 0: none
	SMin   float64 `json:"S_min,omitempty"`   // churn from this noise level on; default 0
	SMax   float64 `json:"S_max,omitempty"`   // churn up to this noise level; default no bound
	SNoise float64 `json:"S_noise"`           // standard deviation of the noise that churn adds; default 1

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
	Every int `json:"every"` // previews, the denoised estimate, each so many steps; default 0: none
	// type of the values; default uint8, and float32, all there is, for a model whose data have units of their own
	DType      string `json:"dtype,omitempty" oneof:"uint8 float32"`
	Layout     string `json:"layout" oneof:"HWC CHW"` // order of the axes; default HWC
	BatchBytes int    `json:"batch_bytes"`            // about so many bytes a reply batch; default 2 MiB
}

// Part says which part of a larger request this one is, for clients that read from several servers.
type Part struct {
	Offset  int    `json:"offset,omitempty"`  // index of the first row; default 0
	Weights string `json:"weights,omitempty"` // hash that the model's weights must have; default any
}

// SetDefaults implements Request.
func (r *Sample) SetDefaults() {
	final := true
	*r = Sample{
		Variant: "bh2", SecondPoint: "midpoint", Grid: Grid{Kind: GridSchedule},
		LowerOrderFinal: &final, Warmup: "euler", SNoise: 1,
		Guided: Guided{Guidance: 1}, Output: Output{Layout: "HWC", BatchBytes: DefaultBatchBytes},
		Steps: unset, NFE: unset, Order: unset,
	}
}

// Guided says which denoiser is followed: D₀ + guidance (D₁ − D₀), where D₁ is the model's and D₀ the same model's
// without a label, or that of the model guide.
type Guided struct {
	Guidance float64 `json:"guidance"` // s in D₀ + s (D₁ − D₀), D₀ without a label or of the guide; default 1: none
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
	var err error
	taken("steps", &r.Steps, &err)
	taken("nfe", &r.NFE, &err)
	taken("order", &r.Order, &err)
	if err != nil {
		return err
	}
	switch {
	case r.Steps > MaxSteps:
		return Errorf(TooLarge, "steps must be at most %d, got %d", MaxSteps, r.Steps)
	case r.NFE > 2*MaxSteps:
		return Errorf(TooLarge, "nfe must be at most %d, got %d", 2*MaxSteps, r.NFE)
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
	case r.BatchBytes < 1:
		return Errorf(BadRequest, "batch_bytes must be at least 1, got %d", r.BatchBytes)
	case r.BatchBytes > MaxBatchBytes:
		return Errorf(TooLarge, "batch_bytes must be at most %d, got %d", MaxBatchBytes, r.BatchBytes)
	}
	if err := r.Guided.check(); err != nil {
		return err
	}
	return first(need("model", r.Model), atLeast("every", r.Every, 0), atLeast("offset", r.Offset, 0))
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
