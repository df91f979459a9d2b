package train

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/schedule"
)

// The stages.
const (
	Pretrain    = "pretrain"
	Isotropic   = "isotropic"
	Anisotropic = "anisotropic"
)

// Config says what a run does. Only the stage, the data set and the network (Network
// or Model) have no default; the zero value of any other field means its default.
// Where zero is a choice of its own the field is a pointer, nil meaning the default.
//
// Lengths are given in kimg, thousands of images, as in EDM.
type Config struct {
	Stage   string `json:"stage"`   // pretrain, isotropic or anisotropic
	Dataset string `json:"dataset"` // name of the data set

	// Where the network comes from: a new one, by EDM's keyword arguments, or a model.
	Network json.RawMessage `json:"network,omitempty"`
	Model   string          `json:"model,omitempty"`

	// Schedule names the schedule to start from. Default: the model's own where it has
	// one and Init is not given, else Init.
	Schedule string `json:"schedule,omitempty"`
	// Family says which paths there are. Default: one, shared ({"basis":"none"}); in the
	// stage anisotropic two, shared ({"basis":"dct"}).
	Family schedule.Family `json:"family"`

	Batch int     `json:"batch,omitempty"` // images per step; default 256
	Kimg  float64 `json:"kimg,omitempty"`  // planned length, which learning-rate ramps refer to; default 1200
	Seed  uint64  `json:"seed,omitempty"`  // of weights, data order, noise and probes
	Flip  bool    `json:"flip,omitempty"`  // mirror half of the images

	// The network's optimiser, Adam.
	TrainNetwork *bool    `json:"train_network,omitempty"` // default true; false freezes the network
	LR           float64  `json:"lr,omitempty"`            // default 1e-3 in pretrain, 1e-5 elsewhere
	Beta1        float64  `json:"beta1,omitempty"`         // default 0.9
	Beta2        float64  `json:"beta2,omitempty"`         // default 0.999
	LRRamp       string   `json:"lr_ramp,omitempty"`       // default cosine; see Ramp
	LRWarmup     float64  `json:"lr_warmup,omitempty"`     // kimg until the rate is reached; default 0
	LRHold       *float64 `json:"lr_hold,omitempty"`       // cosine: part of the length before the rate falls; default 0.5
	LRFinal      float64  `json:"lr_final,omitempty"`      // cosine: the last rate, as a part of lr; default 0
	// EMAHalflife is that of the network's moving average. Default: 3 % of the length in
	// pretrain, 500 elsewhere.
	EMAHalflife float64 `json:"ema_halflife_kimg,omitempty"`

	// The schedule and its optimiser, Adam in float64.
	T                float64  `json:"T,omitempty"`                  // end of time, g(T) = T; default that of the start, else 6400
	G0               float64  `json:"g0,omitempty"`                 // g(0); default that of the start, else 1e-9
	Knots            int      `json:"knots,omitempty"`              // default those of the start, else 32
	Init             string   `json:"init,omitempty"`               // edm (default), log-linear, cosine, geodesic (measured before the first step) or table (Schedule)
	C                float64  `json:"c,omitempty"`                  // Cov(x_0) ≈ c I in the loss weight; default 1
	ScheduleLR       float64  `json:"schedule_lr,omitempty"`        // default 1e-2 in isotropic, 1e-4 in anisotropic
	ScheduleBeta1    float64  `json:"schedule_beta1,omitempty"`     // default 0.9
	ScheduleBeta2    float64  `json:"schedule_beta2,omitempty"`     // default 0.999
	ScheduleLRRamp   string   `json:"schedule_lr_ramp,omitempty"`   // default cosine; see Ramp
	ScheduleLRWarmup float64  `json:"schedule_lr_warmup,omitempty"` // default 0
	ScheduleLRHold   float64  `json:"schedule_lr_hold,omitempty"`   // default 0
	ScheduleLRFinal  *float64 `json:"schedule_lr_final,omitempty"`  // default 0.1
	Stratified       *bool    `json:"stratified,omitempty"`         // one t from each of batch equal parts of [0, T]; default true

	// The estimator of the schedule's gradient.
	Estimator string `json:"estimator,omitempty"` // auto (default), full, backprop, explicit or finite-difference
	Probe     string `json:"probe,omitempty"`     // rademacher (default), sphere or gaussian
	Probes    int    `json:"probes,omitempty"`    // probes averaged per sample; default 1

	// RatioEmbedding lets the network see the ratios of the g_j, through weights that
	// start at zero: a model without them behaves unchanged at first.
	RatioEmbedding bool `json:"ratio_embedding,omitempty"`

	// Noise levels in pretrain: ln σ_j = PMean + PStd·n + PStdSubspace·n_j, n shared by
	// the subspaces, n and n_j unit normal.
	PMean        *float64 `json:"p_mean,omitempty"`         // default −1.2
	PStd         float64  `json:"p_std,omitempty"`          // default 1.2
	PStdSubspace float64  `json:"p_std_subspace,omitempty"` // default 0
}

// Unset names the numbers that are zero, which stands for their default, although zero is no value of theirs.
func (c Config) Unset() []string {
	var names []string
	for _, f := range []struct {
		name string
		zero bool
	}{
		{"batch", c.Batch == 0}, {"kimg", c.Kimg == 0},
		{"lr", c.LR == 0}, {"beta1", c.Beta1 == 0}, {"beta2", c.Beta2 == 0}, {"ema_halflife_kimg", c.EMAHalflife == 0},
		{"T", c.T == 0}, {"g0", c.G0 == 0}, {"knots", c.Knots == 0}, {"c", c.C == 0},
		{"schedule_lr", c.ScheduleLR == 0}, {"schedule_beta1", c.ScheduleBeta1 == 0}, {"schedule_beta2", c.ScheduleBeta2 == 0},
		{"probes", c.Probes == 0}, {"p_std", c.PStd == 0},
	} {
		if f.zero {
			names = append(names, f.name)
		}
	}
	return names
}
