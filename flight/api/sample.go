package api

// Limits of what a request may ask for. They bound what is held in memory, not how long the work may take.
const (
	// MaxSteps bounds the solver steps of one sample: its plan lies in memory.
	MaxSteps = 100_000
	// DefaultBatchBytes is the size of one reply batch; MaxBatchBytes bounds what a request may choose.
	DefaultBatchBytes = 2 << 20
	MaxBatchBytes     = 64 << 20
)

// Solvers lists the solvers by the names of the contract.
var Solvers = []string{
	"heun", "euler", "ab", "ipndm", "ipndm_v", "dpmpp2m", "dpmpp3m", "dpmpp3m_taylor", "unipc",
	"deis", "local", "fitted",
}

// Sample asks for images: by DoAction and DoGet n or labels say how many; in an exchange the caller sends latents and
// labels and both are absent. Sample i of a request depends on the model, the request and seed + i modulo 2⁶⁴ alone.
//
// Rows out: index int64, seed uint64, label int32 (−1 none), step int32 (−1 for final rows, else the step of a
// preview), nfe int32 (evaluations spent on that sample so far), sample fixed_shape_tensor.
type Sample struct {
	Model string `json:"model"`
	// number of samples; labels of a conditional model are then drawn from seed + i
	N      *int    `json:"n,omitempty"`
	Labels []int32 `json:"labels,omitempty"` // one sample per label; −1 = none
	Seed   uint64  `json:"seed"`

	Offset  int    `json:"offset,omitempty"`  // index of the first row, of a request that is part of a larger one
	Weights string `json:"weights,omitempty"` // hash that the model's weights must have; default: any

	Steps  int    `json:"steps,omitempty"` // solver steps; this or nfe
	NFE    int    `json:"nfe,omitempty"`   // at most so many evaluations; the most steps that fit
	Solver string `json:"solver"`          // default: the one that the schedule was made for, else heun
	// default by solver: ab 3, ipndm 4, deis 3, local 2, unipc and dpmpp3m 3, and 2 below 13 evaluations
	Order         int    `json:"order,omitempty"`
	Variant       string `json:"variant"`      // of unipc: bh1 or bh2 (default)
	SecondPoint   string `json:"second_point"` // of heun: midpoint (default) or endpoint
	Grid          Grid   `json:"grid"`         // default schedule
	DenoiseToZero bool   `json:"denoise_to_zero"`
	// take the first step with the analytic flow of the far end
	AFS             bool  `json:"afs"`
	LowerOrderFinal *bool `json:"lower_order_final,omitempty"` // default true; acts on dpmpp*, unipc and local
	Corrector       bool  `json:"corrector"`                   // of local: correct each step by the evaluation after it

	Warmup string `json:"warmup"` // first step of multistep solvers: euler (default) or heun, at no cost

	// EDM's stochastic churn, of euler and heun: how much, between which noise levels, and the added noise's deviation.
	SChurn float64 `json:"S_churn,omitempty"` // default 0: none
	SMin   float64 `json:"S_min,omitempty"`   // default 0
	SMax   float64 `json:"S_max,omitempty"`   // default: no bound
	SNoise float64 `json:"S_noise"`           // default 1

	Guided

	Schedule ScheduleRef `json:"schedule,omitzero"` // default: the model's own
	// standard, from noise alone, or matched, from the law that the schedule carries; default: matched where it does
	Start string `json:"start,omitempty"`

	Every int `json:"every"` // previews each `every` steps; 0 none
	// uint8 (default), or float32 (default, and all there is, of a model whose data have units of their own: in these)
	DType      string `json:"dtype"`
	Layout     string `json:"layout"`      // HWC (default) or CHW
	BatchBytes int    `json:"batch_bytes"` // about this many bytes a batch; default 2 MiB
}

// SetDefaults implements Request.
func (r *Sample) SetDefaults() {
	final := true
	*r = Sample{
		Variant: "bh2", SecondPoint: "midpoint", Grid: Grid{Kind: GridSchedule},
		LowerOrderFinal: &final, Layout: "HWC", BatchBytes: DefaultBatchBytes, Warmup: "euler", SNoise: 1,
		Guided: Guided{Guidance: 1},
		Steps:  unset, NFE: unset, Order: unset,
	}
}

// Guided says which denoiser is followed: D₀ + guidance (D₁ − D₀), where D₁ is the model's and D₀ the same model's
// without a label, or that of the model guide.
type Guided struct {
	Guidance         float64   `json:"guidance"`                    // default 1: none
	GuidanceInterval []float64 `json:"guidance_interval,omitempty"` // [σ, σ]: guided above the first, up to the second
	Guide            string    `json:"guide,omitempty"`             // another model, which sees the labels, too
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
	if r.Solver != "" {
		if err := oneOf("solver", r.Solver, Solvers...); err != nil {
			return err
		}
	}
	if r.DType != "" {
		if err := oneOf("dtype", r.DType, "uint8", "float32"); err != nil {
			return err
		}
	}
	if r.Start != "" {
		if err := oneOf("start", r.Start, StartStandard, StartMatched); err != nil {
			return err
		}
	}
	return first(
		need("model", r.Model),
		oneOf("variant", r.Variant, "bh1", "bh2"),
		oneOf("second_point", r.SecondPoint, "midpoint", "endpoint"),
		oneOf("warmup", r.Warmup, "euler", "heun"),
		oneOf("layout", r.Layout, "HWC", "CHW"),
		atLeast("every", r.Every, 0),
		atLeast("offset", r.Offset, 0),
	)
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
