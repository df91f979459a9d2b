package api

// Denoise evaluates a model on the caller's own noisy images.
//
// Rows in: x tensor float32, label int32, and sigma float64, or g fixed_size_list<float64>[J], the noise variance of
// each subspace. Rows out, in the order and layout of x: denoised, flow, raw tensor float32.
type Denoise struct {
	Model string `json:"model"`               // name of the model; required
	Basis string `json:"basis,omitempty"`     // basis of the subspaces of g; default the model's own
	K     int    `json:"k,omitempty" min:"0"` // for dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`      // for dct: nested bands in place of k, such as [1,2,4]
}

// Validate implements Request.
func (r *Denoise) Validate() error {
	return checkCuts(r.Basis, r.K, r.Cuts)
}

// Modes lists the modes of the estimator of the schedule's gradient.
var Modes = []string{"auto", "full", "backprop", "explicit"}

// ScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule.
//
// Rows in: image, noise, probe tensor float32, t float64, label int32. Rows out: loss float64, A, B
// fixed_size_list<float64>[J], with d loss = Σ_j A_j dg_j(t) + B_j dġ_j(t). The last metadata has d_logg and d_theta,
// the gradients of the mean loss with respect to the knots' ln g and to θ, by label, subspace and knot.
type ScheduleGradient struct {
	Schedule ScheduleRef `json:"schedule"`                          // name of the schedule; required
	Model    string      `json:"model"`                             // name of the model; required
	Mode     string      `json:"mode" oneof:"modes" default:"auto"` // mode of the estimator
	C        float64     `json:"c" default:"1" above:"0"`           // constant c in the weight ġ²/(g(c+g))
}

// OfferNetwork offers a network that the client keeps, and finds a sampler for few evaluations. The server asks
// questions about the network, and the client answers them; see docs/wire.md, Networks elsewhere. If the client has
// images, the server asks for all of them first and compares samples with them, otherwise with the network's converged
// samples from the same latents.
//
// Progress has evaluations, the most that the search will make. The last reply has the event found, and plan,
// the [Plan] with its law and its report as info. The server stores nothing.
//
// Rows in: values float64, the numbers of an answer, in one batch or several. Rows out, one batch per question: image
// int64, label int32, noise uint64 (a seed), g float64, the noise variance.
type OfferNetwork struct {
	Search
	Shape  []int `json:"shape"`                                   // [H, W, C] of an image; required
	Images int   `json:"images,omitempty" min:"0" max:"67108864"` // number of the client's images; default none
	// lowest noise level that the network was trained on; default 0.002
	SigmaMin float64 `json:"sigma_min,omitempty"`
	// highest noise level that the network was trained on, at which samplers begin; default 80
	SigmaMax float64 `json:"sigma_max,omitempty"`
	// with images: number of samples of each candidate, and of samples held back
	Samples int `json:"samples" default:"512" min:"64" max:"65536"`
	// evaluations of one row that the budget counts for one evaluation of a sample: 2 with guidance
	Each int `json:"each" default:"1" min:"1" max:"64"`
	// number of conditions that samples are drawn under; default none
	Labels int `json:"labels,omitempty" min:"0" max:"16777216"`
	// each image has a label, which the server asks for
	Labelled bool `json:"labelled"`
	// number of the client's features that samples are compared by; default those of MakePlan
	Features int `json:"features,omitempty" min:"0" max:"2048"`
	// noise levels at evenly spaced times of the network, falling; isotropic samplers are also tried on them
	Times []float64 `json:"times,omitempty"`
	// noise levels that the network knows, falling, at least 40: samplers are plain, or fitted without images, and use no
	// others; default all from sigma_min to sigma_max
	Levels []float64 `json:"levels,omitempty"`
}

// mostValues is the largest number of values of a client's image.
const mostValues = 1 << 30

// Validate implements Request.
func (r *OfferNetwork) Validate() error {
	if len(r.Shape) != 3 {
		return Errorf(BadRequest, "shape must be [H, W, C] of an image, got %d sizes", len(r.Shape))
	}
	values := 1
	for _, n := range r.Shape {
		if n < 1 || n > mostValues/values {
			return Errorf(BadRequest, "shape must hold positive sizes of at most %d values in all, got %v", mostValues, r.Shape)
		}
		values *= n
	}
	lo, hi := r.SigmaMin, r.SigmaMax
	if lo < 0 || hi < 0 || lo != lo || hi != hi || hi != 0 && hi*hi > 1e12 || lo != 0 && hi != 0 && lo >= hi {
		return Errorf(BadRequest, "sigma_min and sigma_max must be positive and increase, up to 1e6, got %g and %g", lo, hi)
	}
	for name, levels := range map[string][]float64{"times": r.Times, "levels": r.Levels} {
		for i, s := range levels {
			if !(s > 0) || s > 1e6 || i > 0 && s >= levels[i-1] {
				return Errorf(BadRequest, "%s must be noise levels that fall, up to 1e6, got %g at %d", name, s, i)
			}
		}
	}
	return r.Search.check()
}

// Reduction is what a client returns of trajectories of B rows. A client keeps states by their number of, and columns
// by their number column. Errors and columns are of features, if the request has any. The kinds are
//
//	samples   [B, H, W, C]
//	features  [B, F] of the samples
//	states    one number without meaning. The client keeps the states of all rows after each every-th stage as number of,
//	          in place of those that it had there. Error, column and gram refer to that number, and From of a question.
//	error     [B] sums of squares: samples minus the kept state At of the rows from First on, or minus 0 if At is −1
//	column    [k + 3] sums over all values of products: of y, the kept state At of the rows from First on, with itself,
//	          and of the samples with y and with columns 0 … k. The client keeps the samples as column k = Column, and
//	          drops later columns.
//	gram      [2, parts, k + 1, k + 1] sums over values of products of k = Terms columns and y: x_0, D_0 − x_0,
//	          D_1 − D_0, D_1 − x_1, D_2 − D_1, …, y − x_0, of the state and evaluation of the last stage, then of
//	          earlier ones, and y as in column. The first are over the rows below Split, the second over the others.
//	products  [2n + 1, 2n + 1] sums over all values of products of x_0 … x_n, D_0 … D_{n−1} of n stages
type Reduction struct {
	Kind       string `json:"kind"`
	StatesID   int    `json:"of,omitzero"`
	Every      int    `json:"every,omitempty"`
	StateIndex int    `json:"at,omitzero"`
	FirstRow   int    `json:"first,omitempty"`
	Column     int    `json:"column,omitzero"`
	Terms      int    `json:"terms,omitempty"`
	Split      int    `json:"split,omitempty"`
	// of gram: the parts are bands and axes, as in a plan; absent: all values are one part
	Coordinates *PlanCoordinates `json:"coordinates,omitempty"`
}
