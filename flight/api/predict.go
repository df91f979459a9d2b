package api

// Predict reports how much of the best isotropic schedule's energy every basis, and schedules per class, can save at
// best, from one pass of a model over a data set, before anything is trained.
//
// Rows out, the most promising first: basis int32 (position among bases, names with spaces between, in the stream's
// metadata), per_class int32 (1: schedules per class), k int32 (dimensions of P_1 per channel; 0 of none), cut, cut_2
// int32 (of dct: P_1 holds the frequencies max(u, v) < cut, P_2 those below cut_2 if it is not 0; of others 0), energy,
// stderr, gain, gain_stderr float64 with gain = 1 − energy/(energy of none).
type Predict struct {
	Model   string   `json:"model"`
	Dataset string   `json:"dataset"`
	T       float64  `json:"T"`       // default: the end of the model's own schedule
	G0      float64  `json:"g0"`      // default 1e-9
	C       float64  `json:"c"`       // of the loss weight; default 1
	Points  int      `json:"points"`  // noise levels; default 64
	Samples int      `json:"samples"` // images per noise level and class; default 32
	Seed    uint64   `json:"seed"`
	Bases   []string `json:"bases,omitempty"` // some of those, without none; default all
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
