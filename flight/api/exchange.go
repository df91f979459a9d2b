package api

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
)

// Denoise evaluates a model on the caller's own noisy images.
//
// Rows in: x fixed_shape_tensor float32, label int32, and either sigma float64 or g fixed_size_list<float64>[J], the
// noise variance of each subspace of the basis. Rows out, in the order received and the layout of x: denoised, flow,
// raw fixed_shape_tensor float32.
type Denoise struct {
	Model string `json:"model"`               // name of the model; required
	Basis string `json:"basis,omitempty"`     // subspaces that g is given for; default the model's own
	K     int    `json:"k,omitempty" min:"0"` // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`      // of dct: nested bands instead of k, such as [1,2,4]
}

// Validate implements Request.
func (r *Denoise) Validate() error {
	return checkCuts(r.Basis, r.K, r.Cuts)
}

// Modes lists the estimators of the schedule's gradient.
var Modes = []string{"auto", "full", "backprop", "explicit"}

// ScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule.
//
// Rows in: image, noise, probe fixed_shape_tensor float32, t float64, label int32. Rows out: loss float64, A, B
// fixed_size_list<float64>[J], so that the loss's differential is Σ_j A_j dg_j(t) + B_j dġ_j(t). The last message's
// metadata carries d_logg and d_theta: the gradients of the mean loss over all rows with respect to the knots' ln g and
// to θ, by label, subspace and knot.
type ScheduleGradient struct {
	Schedule ScheduleRef `json:"schedule"`                          // name of the schedule; required
	Model    string      `json:"model"`                             // name of the model; required
	Mode     string      `json:"mode" oneof:"modes" default:"auto"` // of the estimator
	C        float64     `json:"c" default:"1" above:"0"`           // of the weight ġ²/(g(c+g))
}

// RemoteSchedule measures or learns a schedule for a network that the client keeps. The server asks, and the client
// answers with the terms of the loss and of its derivative at samples of its own images.
//
// Rows out: one batch is one question, image int64 (the sample's image among those of the client, where classes follow
// each other), label int32, noise uint64 (the seed of its ε), t float64, g and omega fixed_size_list<float64>[J]. Rows
// in: its answer, as many rows in the same order, residual fixed_size_list<float64>[J] and of kind learned the terms of
// the estimator: explicit, or backprop, or explicit, implicit1, implicit2, implicit3. A reply without rows that says
// "stored" is the end.
type RemoteSchedule struct {
	Name    string `json:"name"`                                            // name of the new schedule; required
	Replace bool   `json:"replace"`                                         // replace a schedule of that name
	Kind    string `json:"kind" oneof:"learned geodesic" default:"learned"` // what is made
	Shape   []int  `json:"shape"`                                           // [H, W, C] of an image; required
	// of the client, to choose from; default the sum of counts
	Images int   `json:"images"`
	Counts []int `json:"counts"` // images of each class; default no classes
	// ends of the noise levels that the network was trained on; default 0.002
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"` // default 80
	// the training configuration, as of CreateRun, of which package train says what applies; of kind geodesic a
	// RemoteGeodesic: every other field
	Config jsontext.Value `json:",embed"`
}

// RemoteGeodesic says what kind geodesic of RemoteSchedule measures.
type RemoteGeodesic struct {
	T       float64 `json:"T,omitempty"`                                 // end of time, a variance; default sigma_max²
	G0      float64 `json:"g0" default:"1e-9"`                           // variance at t = 0
	Knots   int     `json:"knots" default:"32" min:"2" max:"4096"`       // of each path
	Order   int     `json:"order" default:"2" min:"1" max:"16"`          // of the solver; 1 gives the least energy
	C       float64 `json:"c" default:"1" above:"0"`                     // of the weight ġ²/(g(c+g))
	Points  int     `json:"points" default:"160" min:"4" max:"65536"`    // noise levels
	Samples int     `json:"samples" default:"24" min:"1" max:"16777216"` // images per noise level
	Batch   int     `json:"batch" default:"128" min:"1" max:"65536"`     // samples a question
	Seed    uint64  `json:"seed"`                                        // of images and noise; default 0
	Bands
	PerClass bool `json:"per_class"` // each class has its own paths
}

// Validate returns the first field that cannot be used.
func (r *RemoteGeodesic) Validate() error {
	return cmp.Or(r.Bands.check(), checkEnds(r.T, r.G0), checkMeasured(r.Points, r.Samples))
}

// mostValues bounds the values of an image that only the client sees.
const mostValues = 1 << 30

// SetDefaults sets what tags cannot say.
func (r *RemoteSchedule) SetDefaults() { r.Config = jsontext.Value("{}") }

// Validate implements Request.
func (r *RemoteSchedule) Validate() error {
	if err := CheckName("name", r.Name); err != nil {
		return err
	}
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
	return nil
}

// MarshalJSON writes the configuration's fields beside the others, as they travel.
func (r RemoteSchedule) MarshalJSON() ([]byte, error) {
	type plain RemoteSchedule // without this method
	return embedding(plain(r))
}
