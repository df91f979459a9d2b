package api

// MaxMeasured is the largest number of evaluations in one pass over a data set. All results are held in memory.
const MaxMeasured = 1 << 22

func checkMeasured(points, samples int) error {
	if n := int64(points) * int64(samples); n > MaxMeasured {
		return Errorf(TooLarge, "points × samples must be at most %d evaluations, got %d", MaxMeasured, n)
	}
	return nil
}

// EvaluateSchedule tabulates a schedule.
//
// Rows out, sorted by label, subspace, t.
type EvaluateSchedule struct {
	// a schedule's or model's name, edm, or JSON such as {"edm":{"T":400}}; required
	Schedule ScheduleRef `json:"schedule"`
	// number of times, uniform in [0, T] with both ends
	Points int       `json:"points" default:"256" min:"2" max:"16777216"`
	T      []float64 `json:"t,omitempty"` // times, in place of points
	// return each path's knots, as PutSchedule takes them, in place of points
	Knots  bool    `json:"knots,omitempty"`
	Labels []int32 `json:"labels,omitempty"` // classes; default all
}

// Validate implements Request.
func (r *EvaluateSchedule) Validate() error {
	if r.Knots && r.T != nil {
		return Errorf(BadRequest, "t and knots must not both be given").WithHint("Give one of them.")
	}
	return nil
}

// EvaluateModel measures a model's loss by noise level on a data set.
//
// Rows out, sorted by label, subspace, t.
type EvaluateModel struct {
	Model   string `json:"model"`   // name of the model; required
	Dataset string `json:"dataset"` // name of the data set; required
	// schedule whose noise is added; default the model's own
	Schedule ScheduleRef `json:"schedule,omitzero"`
	Points   int         `json:"points" default:"32" min:"2" max:"1048576"`     // number of noise levels
	Samples  int         `json:"samples" default:"64" min:"1" max:"1073741824"` // images per noise level
	// seed of the images and the noise; default 0
	Seed uint64 `json:"seed"`
	// constant c in the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C float64 `json:"c,omitempty" above:"0"`
}

// Validate implements Request.
func (r *EvaluateModel) Validate() error {
	return checkMeasured(r.Points, r.Samples)
}

// Predict estimates, from one pass of a model over a data set, the largest share of the best isotropic schedule's
// energy that each basis, and schedules per class, can save.
//
// Rows out, the largest gain first.
type Predict struct {
	// name of the model whose residual is measured; required
	Model   string `json:"model"`
	Dataset string `json:"dataset"` // name of the data set to measure it on; required
	// noise variance at the end; default that of the model's own schedule, otherwise as the data need
	T  float64 `json:"T,omitempty"`
	G0 float64 `json:"g0" default:"1e-9"` // noise variance at t = 0
	// constant c in the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C       float64 `json:"c,omitempty" above:"0"`
	Points  int     `json:"points" default:"64" min:"4" max:"4096"`     // number of noise levels
	Samples int     `json:"samples" default:"32" min:"2" max:"1048576"` // images per noise level and class
	Seed    uint64  `json:"seed"`                                       // seed of the images and the noise; default 0
	// list of dct, haar, pca and pca_per_class; default all
	Bases []string `json:"bases,omitempty"`
}

// Validate implements Request.
func (r *Predict) Validate() error {
	if err := checkEnds(r.T, r.G0); err != nil {
		return err
	}
	return checkMeasured(r.Points, r.Samples)
}
