package api

import (
	"encoding/json"
)

// Denoise evaluates a model on the caller's own noisy images.
//
// Rows in: x fixed_shape_tensor float32, label int32, and either sigma float64 or g fixed_size_list<float64>[J], the
// noise variance of each subspace of the basis. Rows out, in the order received and the layout of x: denoised, flow,
// raw fixed_shape_tensor float32.
type Denoise struct {
	Model string `json:"model"`           // name of the model; required
	Basis string `json:"basis,omitempty"` // subspaces that g is given for; default the model's own
	K     int    `json:"k,omitempty"`     // of dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`  // of dct: nested bands instead of k, such as [1,2,4]
}

// SetDefaults implements Request.
func (r *Denoise) SetDefaults() { *r = Denoise{} }

// Validate implements Request.
func (r *Denoise) Validate() error {
	return first(need("model", r.Model), atLeast("k", r.K, 0), checkCuts(r.Basis, r.K, r.Cuts))
}

// Modes lists the estimators of the schedule's gradient.
var Modes = []string{"auto", "full", "backprop", "explicit"}

// ScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule.
//
// Rows in: image, noise, probe fixed_shape_tensor float32, t float64, label int32. Rows out: loss float64, A, B
// fixed_size_list<float64>[J], so that the loss's differential is Σ_j A_j dg_j(t) + B_j dġ_j(t). The last message's
// metadata carries d_logg and d_theta: the gradients of the mean loss over all rows with respect to the knots' ln g and
// to θ, as [label][subspace][knot].
type ScheduleGradient struct {
	Schedule ScheduleRef `json:"schedule"`           // name of the schedule; required
	Model    string      `json:"model"`              // name of the model; required
	Mode     string      `json:"mode" oneof:"modes"` // of the estimator; default auto
	C        float64     `json:"c"`                  // of the weight ġ²/(g(c+g)); default 1
}

// SetDefaults implements Request.
func (r *ScheduleGradient) SetDefaults() { *r = ScheduleGradient{Mode: "auto", C: 1} }

// Validate implements Request.
func (r *ScheduleGradient) Validate() error {
	return first(positive("c", r.C), need("schedule", r.Schedule.Name), need("model", r.Model))
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
	Name    string `json:"name"`                          // name of the new schedule; required
	Replace bool   `json:"replace"`                       // replace a schedule of that name
	Kind    string `json:"kind" oneof:"learned geodesic"` // what is made; default learned
	Shape   []int  `json:"shape"`                         // [H, W, C] of an image; required
	Images  int    `json:"images"`                        // of the client, to choose from; default the sum of counts
	Counts  []int  `json:"counts"`                        // images of each class; default no classes
	// ends of the noise levels that the network was trained on; default 0.002
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"` // default 80
	// the training configuration, as of CreateRun, of which package train says what applies; of kind geodesic a
	// RemoteGeodesic
	Config json.RawMessage `json:"-"`
}

// RemoteGeodesic says what kind geodesic of RemoteSchedule measures.
type RemoteGeodesic struct {
	T       float64 `json:"T,omitempty"` // end of time, a variance; default sigma_max²
	G0      float64 `json:"g0"`          // variance at t = 0; default 1e-9
	Knots   int     `json:"knots"`       // of each path; default 32
	C       float64 `json:"c"`           // of the weight ġ²/(g(c+g)); default 1
	Points  int     `json:"points"`      // noise levels; default 160
	Samples int     `json:"samples"`     // images per noise level; default 24
	Batch   int     `json:"batch"`       // samples a question; default 128
	Seed    uint64  `json:"seed"`        // of images and noise; default 0
	Bands
	PerClass bool `json:"per_class"` // each class has its own paths
}

// SetDefaults sets the defaults.
func (r *RemoteGeodesic) SetDefaults() {
	*r = RemoteGeodesic{G0: 1e-9, Knots: 32, C: 1, Points: 160, Samples: 24, Batch: 128, Bands: noBands}
}

// Validate returns the first field that cannot be used.
func (r *RemoteGeodesic) Validate() error {
	return first(r.Bands.check(), checkEnds(r.T, r.G0), checkKnots(r.Knots), positive("c", r.C),
		atLeast("points", r.Points, 4), atMost("points", r.Points, 1<<16), atLeast("samples", r.Samples, 1),
		atMost("samples", r.Samples, 1<<24), checkMeasured(r.Points, r.Samples), atLeast("batch", r.Batch, 1),
		atMost("batch", r.Batch, 1<<16))
}

// mostValues bounds the values of an image that only the client sees.
const mostValues = 1 << 30

// SetDefaults implements Request.
func (r *RemoteSchedule) SetDefaults() {
	*r = RemoteSchedule{Kind: "learned", Config: json.RawMessage("{}")}
}

// decodeStrictly takes every field that is not its own as one of the configuration.
func (r *RemoteSchedule) decodeStrictly(at place, v rawValue) error {
	type plain RemoteSchedule // without this method
	return decodeWithRest(at, v, (*plain)(r), &r.Config)
}

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
	fields := map[string]json.RawMessage{}
	if len(r.Config) > 0 {
		if err := json.Unmarshal(r.Config, &fields); err != nil {
			return nil, err
		}
	}
	type plain RemoteSchedule // without this method
	text, err := json.Marshal(plain(r))
	if err != nil {
		return nil, err
	}
	own := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, err
	}
	for name, value := range own {
		if string(value) != "null" {
			fields[name] = value
		}
	}
	return json.Marshal(fields)
}
