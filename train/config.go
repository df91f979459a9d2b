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

// Stages lists the stages.
var Stages = []string{Pretrain, Isotropic, Anisotropic}

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

	// Precision of the network's activations and products: float32 (default), tf32 or
	// bfloat16. Weights, gradients and what is stored are float32 whatever it is.
	Precision string `json:"precision,omitempty"`
	// Microbatch is how many images of a batch a device sees at a time. Default: all, or
	// an equal part on each of several devices, or where an estimate says that they would
	// not fit its memory, as many as do in the fewest equal parts.
	// The step is that of the whole batch, its noise and probes included, and also where it
	// does not divide the batch; only dropout draws other masks.
	Microbatch int `json:"microbatch,omitempty"`
	// ClassWeighting weighs every sample's loss: none (default), or balanced, n/(C·n_y) with
	// n_y the images of its class among n in C classes, so that classes count alike.
	ClassWeighting string `json:"class_weighting,omitempty"`

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
	// EMARampup bounds the half-life by a part of the images seen so far, so that a new
	// network's average forgets its random start in a run of any length. 0 is no bound.
	// Default, as in EDM: 0.05, and 0 for a run that starts from a model.
	EMARampup *float64 `json:"ema_rampup,omitempty"`
	Clip      float64  `json:"clip,omitempty"` // largest norm of the network's gradient; default 0: none

	// The schedule and its optimiser, Adam in float64.
	// end of time, g(T) = T; default that of the start, else 6400
	T     float64 `json:"T,omitempty"`
	G0    float64 `json:"g0,omitempty"`    // g(0); default that of the start, else 1e-9
	Knots int     `json:"knots,omitempty"` // default those of the start, else 32
	// edm (default), log-linear, cosine, geodesic (measured before the first step) or table (Schedule)
	Init             string   `json:"init,omitempty"`
	C                float64  `json:"c,omitempty"`                  // Cov(x_0) ≈ c I in the loss weight; default 1
	ScheduleLR       float64  `json:"schedule_lr,omitempty"`        // default 1e-2 in isotropic, 1e-4 in anisotropic
	ScheduleBeta1    float64  `json:"schedule_beta1,omitempty"`     // default 0.9
	ScheduleBeta2    float64  `json:"schedule_beta2,omitempty"`     // default 0.999
	ScheduleLRRamp   string   `json:"schedule_lr_ramp,omitempty"`   // default cosine; see Ramp
	ScheduleLRWarmup float64  `json:"schedule_lr_warmup,omitempty"` // default 0
	ScheduleLRHold   float64  `json:"schedule_lr_hold,omitempty"`   // default 0
	ScheduleLRFinal  *float64 `json:"schedule_lr_final,omitempty"`  // default 0.1
	// one t from each of batch equal parts of [0, T]; default true
	Stratified   *bool   `json:"stratified,omitempty"`
	ScheduleClip float64 `json:"schedule_clip,omitempty"` // largest |d_θH|; default 0: none
	// ScheduleEMAHalflife is that of the schedule that is published and saved: the moving
	// average of ln g at the knots. Default 0: the schedule as it stands. ln g and not θ is
	// averaged, because θ's common scale is free and drifts: see docs/method.md.
	ScheduleEMAHalflife float64 `json:"schedule_ema_halflife_kimg,omitempty"`

	// EarlyStop ends the run before its length: none (default), noise, energy or both.
	//
	//	noise   the mean of d_θH over a window is no longer than its own standard error
	//	energy  on a fixed set of images, times and noise, the energy has risen above the
	//	        lowest measured by more than three standard errors of the difference; the
	//	        schedule with the lowest is kept
	EarlyStop       string  `json:"early_stop,omitempty"`
	EarlyStopWindow float64 `json:"early_stop_window_kimg,omitempty"` // of noise; default an eighth of the length
	EvalEvery       float64 `json:"eval_every_kimg,omitempty"`        // of energy; default a sixteenth of the length
	EvalSamples     int     `json:"eval_samples,omitempty"`           // of energy; default 1024

	// The estimator of the schedule's gradient.
	Estimator string `json:"estimator,omitempty"` // auto (default), full, backprop, explicit or finite-difference
	Probe     string `json:"probe,omitempty"`     // rademacher (default), sphere or gaussian
	Probes    int    `json:"probes,omitempty"`    // probes averaged per sample; default 1

	// RatioEmbedding lets the network see the ratios of the g_j, through weights that
	// start at zero: a model without them behaves unchanged at first.
	RatioEmbedding bool `json:"ratio_embedding,omitempty"`

	// Noise levels in pretrain: ln σ_j = PMean + PStd·n + PStdSubspace·n_j, n shared by
	// the subspaces, n and n_j unit normal. In the other stages the network is trained at
	// ln σ_j = ln √g_j + PStdSubspace·n_j, so that it knows the ratios on both sides of the
	// schedule's; the schedule's gradient is that at g.
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
		{"batch", c.Batch == 0},
		{"kimg", c.Kimg == 0},
		{"lr", c.LR == 0},
		{"beta1", c.Beta1 == 0},
		{"beta2", c.Beta2 == 0},
		{"ema_halflife_kimg", c.EMAHalflife == 0},
		{"T", c.T == 0},
		{"g0", c.G0 == 0},
		{"knots", c.Knots == 0},
		{"c", c.C == 0},
		{"schedule_lr", c.ScheduleLR == 0},
		{"schedule_beta1", c.ScheduleBeta1 == 0},
		{"schedule_beta2", c.ScheduleBeta2 == 0},
		{"probes", c.Probes == 0},
		{"p_std", c.PStd == 0},
		{"early_stop_window_kimg", c.EarlyStopWindow == 0},
		{"eval_every_kimg", c.EvalEvery == 0},
		{"eval_samples", c.EvalSamples == 0},
	} {
		if f.zero {
			names = append(names, f.name)
		}
	}
	return names
}
