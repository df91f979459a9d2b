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
	Schedule ScheduleRef `json:"schedule"`
	Points   int         `json:"points"`           // default 256: uniform in [0, T] with both ends
	T        []float64   `json:"t,omitempty"`      // these times instead
	Knots    bool        `json:"knots,omitempty"`  // each path's own knots instead: the table that PutSchedule takes
	Labels   []int32     `json:"labels,omitempty"` // default: all
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

func atMost(field string, value, most int) error {
	if value > most {
		return Errorf(TooLarge, "%s must be at most %d, got %d", field, most, value)
	}
	return nil
}

// EvaluateModel measures a model's loss by noise level on a data set: the input of the geodesic.
//
// Rows out: label, subspace int32, t, sigma, loss, residual, stderr float64.
type EvaluateModel struct {
	Model    string      `json:"model"`
	Dataset  string      `json:"dataset"`
	Schedule ScheduleRef `json:"schedule,omitzero"` // default: the model's own
	Points   int         `json:"points"`            // noise levels; default 32
	Samples  int         `json:"samples"`           // images per noise level; default 64
	Seed     uint64      `json:"seed"`
	C        float64     `json:"c"` // of the loss weight; default 1
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
