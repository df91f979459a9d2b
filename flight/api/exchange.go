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
// metadata carries d_logg and d_theta: the gradients of the mean loss over all rows with respect to the knots' ln g
// and to θ, by label, subspace and knot.
type ScheduleGradient struct {
	Schedule ScheduleRef `json:"schedule"`                          // name of the schedule; required
	Model    string      `json:"model"`                             // name of the model; required
	Mode     string      `json:"mode" oneof:"modes" default:"auto"` // of the estimator
	C        float64     `json:"c" default:"1" above:"0"`           // of the weight ġ²/(g(c+g))
}

// OfferNetwork offers a network that the client keeps. The server asks, and the client answers: it searches the
// sampler that the network should have for few evaluations, or learns or measures a schedule for it.
//
// Rows out: one batch is one question, image int64 (the sample's image among those of the client), label int32, noise
// uint64 (the seed of its latent, or of its ε), t float64, g and omega fixed_size_list<float64>[J]. Its metadata says
// in "ask" what is asked: terms, residuals, images, labels or follow. Rows in: values float64, all numbers of the
// answer in the order asked for, in one batch or several. A reply that says "stored" is the end.
type OfferNetwork struct {
	// name of the new schedule; required but for few
	Name    string `json:"name"`
	Replace bool   `json:"replace"`                                             // replace a schedule of that name
	Kind    string `json:"kind" oneof:"few learned geodesic" default:"learned"` // what is made
	Shape   []int  `json:"shape"`                                               // [H, W, C] of an image; required
	// of the client, to choose from; default the sum of counts
	Images int   `json:"images"`
	Counts []int `json:"counts"` // images of each class, which follow each other; default no classes
	// ends of the noise levels that the network was trained on; default 0.002
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"` // default 80
	// of kind few an OfferedFew, of kind geodesic an OfferedGeodesic, else the training configuration, as of CreateRun,
	// of which package train says what applies: every other field
	Config jsontext.Value `json:",embed"`
}

// OfferedFew says what kind few of OfferNetwork searches. With images samples are compared with them; without, with
// the network's own converged samples from the same latents.
type OfferedFew struct {
	NFE int `json:"nfe" min:"1" max:"32"` // at most so many evaluations of the network; required
	// list of solvers to try, one at least besides local and fitted; default ipndm, dpmpp2m, unipc, local, fitted
	Solvers []string `json:"solvers,omitempty" oneof:"solvers"`
	// with images, of each try, and as many held back
	Samples int `json:"samples" default:"512" min:"64" max:"65536"`
	// evaluations, at most; default 4000 without images, or the least that will do, else as many as the samples need
	Budget int `json:"budget,omitempty" min:"0"`
	// evaluations of one row that one of a sample takes, in which the budget counts: 2 if it is guided
	Each int `json:"each" default:"1" min:"1" max:"64"`
	// levels and coefficients are learned through the network, too, and the default budget suffices for that; without
	// images they are as soon as a budget does
	Learn bool   `json:"learn"`
	Seed  uint64 `json:"seed"` // of the samples; default 0
	// conditions that samples are drawn under; default none
	Labels int `json:"labels,omitempty" min:"0" max:"16777216"`
	// each image has a label, which is asked for
	Labelled bool `json:"labelled"`
	// numbers that samples are compared by; default those of the kind few of MakeSchedule
	Features int `json:"features,omitempty" min:"0" max:"2048"`
	// noise levels at evenly spaced times of the network's own, falling: plain samplers are tried on them too
	Times []float64 `json:"times,omitempty"`
}

// Validate implements Request.
func (r *OfferedFew) Validate() error {
	for i, s := range r.Times {
		if !(s > 0) || s > 1e6 || i > 0 && s >= r.Times[i-1] {
			return Errorf(BadRequest, "times must be noise levels that fall, up to 1e6, got %g at %d", s, i)
		}
	}
	few := FewSchedule{Solvers: r.Solvers, Guided: Guided{Guidance: 1}}
	err := few.Validate()
	r.Solvers = few.Solvers
	return err
}

// Reduction says what of trajectories comes back.
type Reduction struct {
	// Kind is samples: [n, H·W·C] of each; features: [n, F] of each; states: the client keeps the states that each
	// Every-th stage leaves, in memory, and answers with one number of no meaning; error: [n], the sum of squares by
	// which each sample misses what it keeps At the rows from First on, or of its values if At is −1, in the features if
	// there are any; gram: by half and part, sums of products of columns; products: of the columns x_0 … x_n, D_0 …
	// D_{n−1} of all n stages; column: the client keeps the samples, or their features, as column Column and forgets later
	// ones, and answers with sums over all rows and values of products of what it keeps At the rows from First on with
	// itself, and of the samples with that and with all columns up to their own.
	Kind string `json:"kind"`
	// Of is the number of the states that are kept, or compared with. Those of other numbers stay.
	Of     int `json:"of,omitzero"`
	Every  int `json:"every,omitempty"`
	At     int `json:"at,omitzero"`
	First  int `json:"first,omitempty"`
	Column int `json:"column,omitzero"`
	// of gram: the columns are x_0, D_0 − x_0, D_1 − D_0, D_1 − x_1, D_2 − D_1, …, y − x_0 of the state x_0 before the
	// last stage, its evaluation D_0, earlier ones with their states, Terms columns before the last in all, and y that is
	// kept At. Sums [2, parts, Terms + 1, Terms + 1] are of the rows below Split and of the others.
	Terms int `json:"terms,omitempty"`
	Split int `json:"split,omitempty"`
	// parts as of the plan; absent: all values are one part
	Coordinates *PlanCoordinates `json:"coordinates,omitempty"`
}

// OfferedGeodesic says what kind geodesic of OfferNetwork measures.
type OfferedGeodesic struct {
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
func (r *OfferedGeodesic) Validate() error {
	return cmp.Or(r.Bands.check(), checkEnds(r.T, r.G0), checkMeasured(r.Points, r.Samples))
}

// mostValues bounds the values of an image that only the client sees.
const mostValues = 1 << 30

// SetDefaults sets what tags cannot say.
func (r *OfferNetwork) SetDefaults() { r.Config = jsontext.Value("{}") }

// Validate implements Request.
func (r *OfferNetwork) Validate() error {
	if r.Kind != "few" {
		if err := CheckName("name", r.Name); err != nil {
			return err
		}
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
func (r OfferNetwork) MarshalJSON() ([]byte, error) {
	type plain OfferNetwork // without this method
	return embedding(plain(r))
}
