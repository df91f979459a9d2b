package api

// MaxMeasured bounds the evaluations of a model in one pass over a data set: the result of each is held in memory.
const MaxMeasured = 1 << 22

func checkMeasured(points, samples int) error {
	if n := int64(points) * int64(samples); n > MaxMeasured {
		return Errorf(TooLarge, "points × samples must be at most %d evaluations, got %d", MaxMeasured, n)
	}
	return nil
}

// MaxPoints bounds the points a request may ask a schedule or a model to be evaluated at.
const MaxPoints = 1 << 24

// EvaluateSchedule tabulates a schedule.
//
// Rows out, sorted by label, subspace, t: label int32 (−1 for the shared row), subspace int32, t, g, gdot, sigma
// float64 with sigma = √g.
type EvaluateSchedule struct {
	// a schedule's or model's name, edm, or JSON such as {"edm":{"T":400}}; required
	Schedule ScheduleRef `json:"schedule"`
	Points   int         `json:"points"`           // number of times, uniform in [0, T] with both ends; default 256
	T        []float64   `json:"t,omitempty"`      // these times instead
	Knots    bool        `json:"knots,omitempty"`  // each path's own knots instead: the table that PutSchedule takes
	Labels   []int32     `json:"labels,omitempty"` // classes; default all
}

// SetDefaults implements Request.
func (r *EvaluateSchedule) SetDefaults() { *r = EvaluateSchedule{Points: 256} }

// Validate implements Request.
func (r *EvaluateSchedule) Validate() error {
	if r.Knots && r.T != nil {
		return Errorf(BadRequest, "t and knots must not both be given").WithHint("Give one of them.")
	}
	return first(need("schedule", r.Schedule.Name), atLeast("points", r.Points, 2), atMost("points", r.Points, MaxPoints))
}

// EvaluateModel measures a model's loss by noise level on a data set: the input of the geodesic.
//
// Rows out: label, subspace int32, t, sigma, loss, residual, stderr float64.
type EvaluateModel struct {
	Model    string      `json:"model"`             // name of the model; required
	Dataset  string      `json:"dataset"`           // name of the data set; required
	Schedule ScheduleRef `json:"schedule,omitzero"` // whose noise is added; default the model's own
	Points   int         `json:"points"`            // noise levels; default 32
	Samples  int         `json:"samples"`           // images per noise level; default 64
	Seed     uint64      `json:"seed"`              // of images and noise; default 0
	C        float64     `json:"c"`                 // of the weight ġ²/(g(c+g)); default 1
}

// SetDefaults implements Request.
func (r *EvaluateModel) SetDefaults() { *r = EvaluateModel{Points: 32, Samples: 64, C: 1} }

// Validate implements Request.
func (r *EvaluateModel) Validate() error {
	return first(need("model", r.Model), need("dataset", r.Dataset), positive("c", r.C),
		atLeast("points", r.Points, 2), atMost("points", r.Points, 1<<20),
		atLeast("samples", r.Samples, 1), atMost("samples", r.Samples, 1<<30),
		checkMeasured(r.Points, r.Samples))
}

// Predict reports how much of the best isotropic schedule's energy every basis, and schedules per class, can save at
// best, from one pass of a model over a data set, before anything is trained.
//
// Rows out, the most promising first: basis int32 (position among bases, names with spaces between, in the stream's
// metadata), per_class int32 (1: schedules per class), k int32 (dimensions of P_1 per channel; 0 of none), cut, cut_2
// int32 (of dct: P_1 holds the frequencies max(u, v) < cut, P_2 those below cut_2 if it is not 0; of others 0), energy,
// stderr, gain, gain_stderr float64 with gain = 1 − energy/(energy of none).
type Predict struct {
	Model   string   `json:"model"`           // name of the model whose residual is measured; required
	Dataset string   `json:"dataset"`         // name of the data set to measure it on; required
	T       float64  `json:"T"`               // end of time, a variance; default the end of the model's own schedule
	G0      float64  `json:"g0"`              // variance at t = 0; default 1e-9
	C       float64  `json:"c"`               // of the weight ġ²/(g(c+g)); default 1
	Points  int      `json:"points"`          // noise levels measured; default 64
	Samples int      `json:"samples"`         // images per noise level and class; default 32
	Seed    uint64   `json:"seed"`            // of the images and the noise; default 0
	Bases   []string `json:"bases,omitempty"` // list of dct, haar, pca and pca_per_class; default all
}

// SetDefaults implements Request.
func (r *Predict) SetDefaults() { *r = Predict{G0: 1e-9, C: 1, Points: 64, Samples: 32} }

// Validate implements Request.
func (r *Predict) Validate() error {
	if err := checkEnds(r.T, r.G0); err != nil {
		return err
	}
	return first(need("model", r.Model), need("dataset", r.Dataset), positive("c", r.C),
		atLeast("points", r.Points, 4), atMost("points", r.Points, 1<<12),
		atLeast("samples", r.Samples, 2), atMost("samples", r.Samples, 1<<20),
		checkMeasured(r.Points, r.Samples))
}
