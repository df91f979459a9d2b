package api

import (
	"slices"
)

// Where sampling starts, by the names of Sample's start.
const (
	StartStandard = "standard" // from noise alone, x = Σ_j √g_j P_j ξ
	StartMatched  = "matched"  // from the law that the schedule carries, x = μ + (Σ + Σ_j g_j P_j)^½ ξ
)

// Covariances lists what a start keeps of the data's covariance Σ, the coarsest first.
var Covariances = []string{"none", "bands", "dct", "pca", "full"}

// StartSettings say how the law of a data set is estimated for a start: its mean and its covariance.
type StartSettings struct {
	// what is kept of the data's covariance: none, one variance for all; bands, one for each band of DCT frequencies;
	// dct, the channels' covariance at each frequency; pca, the leading components and one variance for the rest; or
	// full, all of it. The last two serve images of up to 1024 values. Default dct
	Covariance string `json:"covariance,omitempty" default:"dct" oneof:"covariances"`
	Rank       int    `json:"rank,omitempty" given:"1"` // of pca: leading components; default 16
	Cuts       []int  `json:"cuts,omitempty"`           // of bands: where they are cut, such as [1,2,4]; default octaves
	PerClass   *bool  `json:"per_class,omitempty"`      // a law for each class that has images; default true
	// of per_class: ν images that the classes' mean covariance Σ_w counts for in that of a class of n,
	// (n Σ_y + ν Σ_w)/(n + ν); default the values estimated together
	Shrinkage *float64 `json:"shrinkage,omitempty"`
}

// Start is StartSettings as a field of another request.
type Start struct{ StartSettings }

// decodeStrictly fills in what is left out.
func (r *Start) decodeStrictly(at place, v rawValue) error {
	*r = Start{}
	SetDefaults(r)
	return decodeJSON(v, at, &r.StartSettings)
}

func (r *Start) check(path string) error {
	if r == nil {
		return nil
	}
	return first(validateFields(&r.StartSettings, path), r.StartSettings.check(path))
}

// check completes and checks the fields of a start at a path, "" for those of the request itself.
func (r *StartSettings) check(path string) error {
	if r.Covariance == "" {
		r.Covariance = "dct"
	}
	switch {
	case r.Rank != 0 && r.Covariance != "pca":
		return Errorf(BadRequest, "%s must be left out for covariance %s; only pca takes it", join(path, "rank"),
			r.Covariance)
	case r.Cuts != nil && r.Covariance != "bands":
		return Errorf(BadRequest, "%s must be left out for covariance %s; only bands takes them", join(path, "cuts"),
			r.Covariance)
	case r.Shrinkage != nil && !(*r.Shrinkage >= 0):
		return Errorf(BadRequest, "%s must not be negative, got %g", join(path, "shrinkage"), *r.Shrinkage)
	}
	return nil
}

// StartSchedule is another schedule with a start: sampling along it starts from the normal law that has the mean and
// the covariance of a data set, at the schedule's end or at lower noise levels.
type StartSchedule struct {
	NewSchedule
	StartSettings
	Dataset string `json:"dataset"`         // name of the data set whose mean and covariance are measured; required
	Model   string `json:"model,omitempty"` // name of a model that sees the data in its own units
	// whose paths are kept: a name, a model's for its own, or JSON such as {"edm":{"T":400}}; default edm
	Schedule ScheduleRef `json:"schedule"`
	// start at this lower noise level, one for all subspaces, or one for each such as [20,5]; default the schedule's end
	SigmaMax Levels `json:"sigma_max,omitempty"`
}

// Kind implements ScheduleKind.
func (r *StartSchedule) Kind() string { return "start" }

// SetDefaults sets what tags cannot say.
func (r *StartSchedule) SetDefaults() {
	r.Schedule = ScheduleRef{Name: "edm", T: DefaultT}
}

// Validate implements Request.
func (r *StartSchedule) Validate() error {
	return first(r.check(""), r.SigmaMax.check("sigma_max"))
}

// Levels are noise levels: in JSON one number, or a list with one for each subspace.
type Levels []float64

// decodeStrictly takes one number, or a list.
func (l *Levels) decodeStrictly(at place, v rawValue) error {
	if v.Kind() == '[' {
		return decodeJSON(v, at, (*[]float64)(l))
	}
	*l = make(Levels, 1)
	return decodeJSON(v, at, &(*l)[0])
}

func (l Levels) check(field string) error {
	if i := slices.IndexFunc(l, func(v float64) bool { return !(v > 0) }); i >= 0 {
		return Errorf(BadRequest, "%s must be positive, got %g", field, l[i])
	}
	return nil
}

// StartInfo describes a schedule's start.
type StartInfo struct {
	Covariance string  `json:"covariance"`
	Rank       int     `json:"rank,omitempty" given:"1"`
	Cuts       []int   `json:"cuts,omitempty"`
	PerClass   bool    `json:"per_class"`
	Labels     []int32 `json:"labels,omitempty"` // classes with laws of their own
	Shrinkage  float64 `json:"shrinkage,omitempty"`
	Images     int64   `json:"images"`   // that it was estimated from
	Variance   float64 `json:"variance"` // tr Σ of all images
	Hash       string  `json:"hash"`     // SHA-256 of its file
}

// StatisticsInfo describes the statistics of a denoiser that a schedule carries for the solver local: its mean squared
// errors by noise level, DCT frequency and axis of the channels.
type StatisticsInfo struct {
	Points   int     `json:"points"` // noise levels
	SigmaMin float64 `json:"sigma_min"`
	SigmaMax float64 `json:"sigma_max"`
	Labels   []int32 `json:"labels,omitempty"` // classes with statistics of their own
	Hash     string  `json:"hash"`             // SHA-256 of their file
}
