package api

// Denoise evaluates a model on the caller's own noisy images.
//
// Rows in: x fixed_shape_tensor float32, label int32, and either sigma float64 or g fixed_size_list<float64>[J], the
// noise variance of each subspace of the basis. Rows out, in the order received and the layout of x: denoised, flow,
// raw fixed_shape_tensor float32.
type Denoise struct {
	Model string `json:"model"`
	Basis string `json:"basis,omitempty"` // default: the model's own
	K     int    `json:"k,omitempty"`     // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`  // of dct: nested bands, instead of k
}

// SetDefaults implements Request.
func (r *Denoise) SetDefaults() { *r = Denoise{} }

// Validate implements Request.
func (r *Denoise) Validate() error {
	return first(need("model", r.Model), atLeast("k", r.K, 0), checkCuts(r.Basis, r.K, r.Cuts))
}

// Modes lists the estimators of the schedule's gradient.
var Modes = []string{"auto", "full", "backprop", "explicit", "finite-difference"}

// ScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule.
//
// Rows in: image, noise, probe fixed_shape_tensor float32, t float64, label int32. Rows out: loss float64, A, B
// fixed_size_list<float64>[J], so that the loss's differential is Σ_j A_j dg_j(t) + B_j dġ_j(t). The last message's
// metadata carries d_logg and d_theta: the gradients of the mean loss over all rows with respect to the knots' ln g and
// to θ, as [label][subspace][knot].
type ScheduleGradient struct {
	Schedule ScheduleRef `json:"schedule"`
	Model    string      `json:"model"`
	Mode     string      `json:"mode"` // default auto
	C        float64     `json:"c"`    // default 1
}

// SetDefaults implements Request.
func (r *ScheduleGradient) SetDefaults() { *r = ScheduleGradient{Mode: "auto", C: 1} }

// Validate implements Request.
func (r *ScheduleGradient) Validate() error {
	return first(positive("c", r.C), need("schedule", r.Schedule.Name), need("model", r.Model),
		oneOf("mode", r.Mode, Modes...))
}
