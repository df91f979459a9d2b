package api

import "cmp"

// GeodesicSchedule asks for the schedule of least energy of a model on a data set, for a solver of an order.
type GeodesicSchedule struct {
	NewSchedule
	// name of the model whose residual is measured; required
	Model   string `json:"model"`
	Dataset string `json:"dataset"` // name of the data set to measure it on; required
	// noise variance at the end; default that of the model's own schedule, otherwise as the data need
	T float64 `json:"T,omitempty"`
	// in place of T: number of evaluations of Heun's method for which T is chosen, on the data's Gaussian
	NFE int `json:"nfe,omitempty" given:"3" max:"1000"`
	// with nfe: second point of Heun's method; choose the one that you sample with; default endpoint
	SecondPoint string `json:"second_point,omitempty" oneof:"endpoint midpoint"`

	G0    float64 `json:"g0" default:"1e-9"`                     // noise variance at t = 0
	Knots int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
	// order of the solver that the path is for; 1 gives the least energy
	Order int `json:"order" default:"2" min:"1" max:"16"`
	// constant c in the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C       float64 `json:"c,omitempty" above:"0"`
	Points  int     `json:"points" default:"160" min:"4" max:"65536"`    // number of noise levels
	Samples int     `json:"samples" default:"24" min:"1" max:"16777216"` // images per noise level
	Seed    uint64  `json:"seed"`                                        // seed of the noise; default 0
	Bands
	PerClass bool `json:"per_class"` // one set of paths for each class
}

// Kind implements ScheduleKind.
func (r *GeodesicSchedule) Kind() string { return "geodesic" }

// Validate implements Request.
func (r *GeodesicSchedule) Validate() error {
	switch {
	case r.T != 0 && r.NFE != 0:
		return Errorf(BadRequest, "T and nfe must not both be given").WithHint("Give one of them: nfe chooses T.")
	case r.SecondPoint != "" && r.NFE == 0:
		return Errorf(BadRequest, "second_point must be left out without nfe, got %s", r.SecondPoint)
	}
	return cmp.Or(r.Bands.check(), checkEnds(r.T, r.G0), checkMeasured(r.Points, r.Samples))
}

// FormulaSchedule asks for an isotropic schedule that all classes share: edm, log-linear or cosine.
type FormulaSchedule struct {
	NewSchedule
	Formula string  `json:"-"`                                     // sent as the kind
	T       float64 `json:"T,omitempty"`                           // noise variance at the end; default 6400
	G0      float64 `json:"g0" default:"1e-9"`                     // noise variance at t = 0
	Knots   int     `json:"knots" default:"32" min:"2" max:"4096"` // knots of the path
}

// Kind implements ScheduleKind.
func (r *FormulaSchedule) Kind() string { return r.Formula }

// Validate implements Request.
func (r *FormulaSchedule) Validate() error { return checkEnds(r.T, r.G0) }

// Bands is a basis and its sizes.
type Bands struct {
	Basis string `json:"basis" default:"none"`  // basis whose subspaces each have a path; none for a single path
	K     int    `json:"k,omitempty" given:"1"` // for dct and haar: dimensions of P_1 per channel; default H·W/4
	Cuts  []int  `json:"cuts,omitempty"`        // for dct: nested bands in place of k, such as [1,2,4]
}

// check completes and checks the bands. An empty name is none.
func (b *Bands) check() error {
	if b.Basis == "" {
		b.Basis = "none"
	}
	if b.Basis == "none" && b.K != 0 {
		return Errorf(BadRequest, "k must be left out for basis none")
	}
	return checkCuts(b.Basis, b.K, b.Cuts)
}

// MakeSchedule makes a schedule and stores it. Its JSON is that of its kind with the field "kind" added.
type MakeSchedule struct{ Of ScheduleKind }

// ScheduleKind is a request for a schedule of one kind: a *GeodesicSchedule, *StartSchedule or
// *FormulaSchedule.
type ScheduleKind interface {
	Request
	// Kind returns the kind's name.
	Kind() string
	// Target returns the fields that all kinds have: where the schedule is stored.
	Target() NewSchedule
}

// ScheduleKinds returns an empty request of each kind.
func ScheduleKinds() []ScheduleKind {
	return []ScheduleKind{
		new(GeodesicSchedule), new(StartSchedule),
		&FormulaSchedule{Formula: "edm"}, &FormulaSchedule{Formula: "log-linear"}, &FormulaSchedule{Formula: "cosine"},
	}
}

// Validate implements Request.
func (r *MakeSchedule) Validate() error {
	return Validate(r.Of)
}

// decodeStrictly decodes the kind that "kind" names.
func (r *MakeSchedule) decodeStrictly(at place, v rawValue) error {
	var name string
	kind, object := take(v, "kind")
	if kind == nil {
		return Errorf(BadRequest, "%s is missing", at.field("kind"))
	}
	if err := decodeJSON(kind, at.field("kind"), &name); err != nil {
		return err
	}
	var names []string
	for _, kind := range ScheduleKinds() {
		names = append(names, kind.Kind())
		if kind.Kind() == name {
			SetDefaults(kind)
			r.Of = kind
			return decodeJSON(object, at, kind)
		}
	}
	if instead, ok := goneKinds[name]; ok {
		return Errorf(BadRequest, "The kind %s is gone since 0.1", name).WithHint("%s", instead)
	}
	return oneOf("kind", name, names...)
}

// The values of Sample's start.
const (
	StartStandard = "standard" // noise, x = Σ_j √g_j P_j ξ
	StartMatched  = "matched"  // the law that the schedule carries, x = μ + (Σ + Σ_j g_j P_j)^½ ξ
)

// StartSettings has the options of estimating a start: the mean of a data set, and the channels' covariance at each
// frequency of the DCT.
type StartSettings struct {
	PerClass *bool `json:"per_class,omitempty"` // one law for each class that has images; default true
}

// StartSchedule asks for another schedule with a start: sampling along it starts from the normal law with the mean and
// covariance of a data set, at the schedule's end or at a lower noise level.
type StartSchedule struct {
	NewSchedule
	StartSettings
	Dataset string `json:"dataset"`         // name of the data set that the law is measured on; required
	Model   string `json:"model,omitempty"` // name of a model whose normalization is applied to the data
	// a schedule's or model's name, or JSON such as {"edm":{"T":400}}, whose paths are kept; default edm
	Schedule ScheduleRef `json:"schedule"`
	// noise level to start at; default the schedule's end
	SigmaMax float64 `json:"sigma_max,omitempty" above:"0"`
}

// Kind implements ScheduleKind.
func (r *StartSchedule) Kind() string { return "start" }

// SetDefaults sets what tags cannot say.
func (r *StartSchedule) SetDefaults() {
	r.Schedule = ScheduleRef{Name: "edm", T: DefaultT}
}

// StartInfo describes a schedule's start.
type StartInfo struct {
	Covariance string  `json:"covariance"` // always dct
	PerClass   bool    `json:"per_class"`
	Labels     []int32 `json:"labels,omitempty"` // classes with their own law
	Shrinkage  float64 `json:"shrinkage,omitempty"`
	Images     int64   `json:"images"`   // number of images measured
	Variance   float64 `json:"variance"` // tr Σ over all images
	Hash       string  `json:"hash"`     // SHA-256 of its file
}
