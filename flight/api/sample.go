package api

import (
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// DefaultBatchBytes is the approximate size of one reply batch.
const DefaultBatchBytes = 2 << 20

// Solvers lists the solvers of the register of schedule/solver, sorted.
var Solvers = slices.Sorted(slices.Values(solver.Names()))

// Sample asks for images. For DoAction and DoGet, give n or labels. In an exchange the caller sends latents and labels,
// and both are absent. Sample i depends only on the model, the request and seed + i modulo 2⁶⁴.
//
// Rows out: index int64, seed uint64, label int32 (−1: none), step int32 (−1: final; else the step of a preview), nfe
// int32 (evaluations for this sample so far), sample tensor.
type Sample struct {
	Model string `json:"model"` // name of the model; required
	// number of images; a conditional model draws the label of image i from seed + i
	N *int `json:"n,omitempty" min:"1"`
	// in place of n: the label of each image, −1 for none
	Labels []int32 `json:"labels,omitempty"`
	Seed   uint64  `json:"seed"` // image i is made from seed + i; default 0
	Part

	Steps int `json:"steps,omitempty" given:"1" max:"100000"` // number of solver steps
	// in place of steps: largest number of network evaluations; heun uses an odd number with
	// second_point endpoint or grid edm
	NFE    int    `json:"nfe,omitempty" given:"1" max:"200000"`
	Solver string `json:"solver,omitempty" oneof:"solvers"` // name of the solver; default heun
	// order, for solvers with several; default {orders};
	// below 13 evaluations 2 for dpmpp3m, dpmpp3m_taylor, unipc
	Order   int    `json:"order,omitempty" given:"1"`
	Variant string `json:"variant" oneof:"bh1 bh2" default:"bh2"` // variant of unipc
	// for heun: second evaluation at the midpoint in t, or at the endpoint, of the step
	SecondPoint string `json:"second_point" oneof:"midpoint endpoint" default:"midpoint"`
	// times of the steps: schedule, edm, polynomial, logsnr, or JSON such as {"sigma":[80,5,0]}; default schedule
	Grid Grid `json:"grid" oneof:"grids"`
	// return the denoised image of the last evaluation
	DenoiseToZero bool `json:"denoise_to_zero"`
	// for dpmpp and unipc: lower the order in the last steps
	LowerOrderFinal *bool `json:"lower_order_final,omitempty" default:"true"`
	// first step of {warming solvers}: euler, or heun, which costs no further evaluation
	Warmup string `json:"warmup" oneof:"euler heun" default:"euler"`

	// EDM's stochastic churn, for {churning solvers}; default 0: none
	SChurn float64 `json:"S_churn,omitempty"`
	SMin   float64 `json:"S_min,omitempty"`               // lowest noise level with churn; default 0
	SMax   float64 `json:"S_max,omitempty"`               // highest noise level with churn; default no bound
	SNoise float64 `json:"S_noise" default:"1" above:"0"` // standard deviation of the noise that churn adds

	Guided

	// a schedule's name, edm, or JSON such as {"edm":{"T":400}}; default the model's own
	Schedule ScheduleRef `json:"schedule,omitzero"`
	// law to start from: standard is noise, matched the law that the schedule carries; default matched if the schedule
	// carries one, otherwise standard
	Start string `json:"start,omitempty" oneof:"standard matched"`

	// a plan's name, or its JSON, in place of a solver on a schedule
	Plan PlanRef `json:"plan,omitzero"`
	// take a plan that was made for other weights than the model's
	OtherWeights bool `json:"other_weights,omitempty"`
	Output
}

// Output is the form of the samples.
type Output struct {
	Every int `json:"every" min:"0"` // send the denoised estimate every N steps; default 0: never
	// type of the values; default uint8, or float32 for models with their own units
	DType  string `json:"dtype,omitempty" oneof:"uint8 float32"`
	Layout string `json:"layout" oneof:"HWC CHW" default:"HWC"` // order of the axes
	// approximate size of a reply batch in bytes; default 2 MiB
	BatchBytes int `json:"batch_bytes" default:"2097152" min:"1" max:"67108864"`
}

// Part makes a request a part of a larger one, for clients that read from several servers.
type Part struct {
	Offset  int    `json:"offset,omitempty" min:"0"` // index of the first row; default 0
	Weights string `json:"weights,omitempty"`        // hash that the model's weights must have; default any
}

// SetDefaults sets what tags cannot say.
func (r *Sample) SetDefaults() {
	r.Grid = Grid{Kind: GridSchedule}
}

// Guided selects the denoiser D₀ + guidance (D₁ − D₀). D₁ is the model's. D₀ is that of the same model without a label,
// or of the model guide.
type Guided struct {
	// scale s in D₀ + s (D₁ − D₀): D₁ is the model's, D₀ the guide's; default 1: none
	Guidance float64 `json:"guidance" default:"1" min:"0" max:"1000"`
	// noise levels with guidance, above the first and up to the second, such as [0.2,3]; default all
	GuidanceInterval []float64 `json:"guidance_interval,omitempty"`
	// another model for D₀, which is given the labels; default the model without a label
	Guide string `json:"guide,omitempty"`
}

func (g *Guided) check() error {
	at := g.GuidanceInterval
	if at != nil && (len(at) != 2 || !(0 <= at[0]) || !(at[0] < at[1])) {
		return Errorf(BadRequest, "guidance_interval must be two noise levels, the lower one first, got %v", at)
	}
	return nil
}

// DefaultSolver is used if the request names no solver.
const DefaultSolver = "heun"

// Validate implements Request. CheckRows and CheckExchange check n and labels.
func (r *Sample) Validate() error {
	switch {
	case r.Plan.Given():
		if field := r.besidePlan(); field != "" {
			return Errorf(BadRequest, "%s must be left out with plan, which has the whole sampler", field)
		}
		return r.Guided.check()
	case r.OtherWeights:
		return Errorf(BadRequest, "other_weights must be left out without plan")
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

// besidePlan returns the first field of a sampler that is given, or "".
func (r *Sample) besidePlan() string {
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"schedule", r.Schedule.Given()},
		{"solver", r.Solver != ""},
		{"steps", r.Steps != 0},
		{"nfe", r.NFE != 0},
		{"grid", r.Grid.Kind != GridSchedule},
		{"order", r.Order != 0},
		{"start", r.Start != ""},
		{"second_point", r.SecondPoint != solver.Midpoint},
		{"variant", r.Variant != "bh2"},
		{"warmup", r.Warmup != solver.WarmupEuler},
		{"denoise_to_zero", r.DenoiseToZero},
		{"lower_order_final", r.LowerOrderFinal != nil && !*r.LowerOrderFinal},
		{"S_churn", r.SChurn != 0},
		{"S_min", r.SMin != 0},
		{"S_max", r.SMax != 0},
		{"S_noise", r.SNoise != 1},
	} {
		if f.given {
			return f.name
		}
	}
	return ""
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

// Grid is the times of a sampler's steps. Its JSON is a name, or one of
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

// Explicit reports whether the grid is a list of times, which takes neither steps nor nfe.
func (g Grid) Explicit() bool { return g.Kind == GridTimes || g.Kind == GridSigmas }

// levelRule has the parameters of GridEDM and GridPolynomial.
type levelRule struct {
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Rho      float64 `json:"rho"`
}

// decodeStrictly takes a name, or an object with one name and its parameters.
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

// checkFalling checks that there are at least two numbers ≥ 0, each less than the one before.
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
