// Package train turns data into networks and noise schedules.
//
// A Run is one training stage:
//
//	pretrain      the network alone, by EDM's score-matching loss
//	isotropic     one path g(t), by the trajectory loss; with the network or without
//	anisotropic   one path per subspace, from the isotropic one
//
// Its Config has the same names everywhere: in configs/*.yaml, on the command line and in CreateRun. A step draws
// images and noise levels on the host, runs one program on the device (package kernels), and moves the schedule's
// parameters θ with Adam in float64. State returns everything that the next step depends on, and Resume continues from
// it: a resumed run has the same rows as one that was never stopped. A step whose loss blows up is a [DivergedError].
//
// Package passes measures networks and data without a run.
//
// A Run belongs to one goroutine. The schedules, rows and models that it returns are immutable.
//
// Begin with config.go, then setup.go, run.go and step.go. learner.go is the part of a step that the host computes, for
// a Run and for a Remote, whose network is outside the process.
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

// Config says what a run does. Only the stage, the data set and the network (Network or Model) have no default; the
// zero value of any other field means its default. A field is a pointer if zero is a valid choice; nil means the
// default.
//
// Lengths are given in kimg, thousands of images, as in EDM.
type Config struct {
	Stage   string `json:"stage"`   // what is trained
	Dataset string `json:"dataset"` // name of the data set

	// JSON of a new network: EDM's keyword arguments, as in a model's config.json
	Network json.RawMessage `json:"network,omitempty"`
	// name of the model to start from, instead of a new network
	Model string `json:"model,omitempty"`

	// name of the schedule to start from; default the model's own
	//
	// A model without one, and a run that gives Init, start from Init.
	Schedule string `json:"schedule,omitempty"`
	// which paths there are: JSON such as {"per_class":false,"basis":"dct","k":16}; default one, shared, and in the stage
	// anisotropic two, {"basis":"dct"}
	Family schedule.Family `json:"family"`

	Batch int `json:"batch,omitempty" default:"256" min:"1" max:"65536"` // images per step
	// length in thousands of images, which ramps refer to; default 102.4 from a model, 1200 in pretrain or without one
	Kimg float64 `json:"kimg,omitempty" above:"0"`
	Seed uint64  `json:"seed,omitempty"` // of weights, data order, noise and probes; default 0
	Flip bool    `json:"flip,omitempty"` // mirror half of the images

	// arithmetic of the network's activations and products
	//
	// Weights, gradients and what is stored are float32 whatever it is.
	Precision string `json:"precision,omitempty" oneof:"precisions" default:"float32"`
	// images of a batch that a device sees at a time; default an equal share, or as many as fit
	//
	// The step is that of the whole batch, its noise and probes included, and also if it does not divide the batch; only
	// dropout draws other masks.
	Microbatch int `json:"microbatch,omitempty" min:"0"`

	TrainNetwork *bool `json:"train_network,omitempty" default:"true"` // train the network, not the schedule alone
	// train the schedule, not the network alone
	//
	// Else the network is trained by the trajectory loss along a schedule that stays.
	TrainSchedule *bool `json:"train_schedule,omitempty" default:"true"`

	// what the run gives when its model is saved: the best state by samples, or by energy, or the last state; default
	// samples of a run from a model of 6.4 kimg or more, else last
	//
	// States are measured at the start, at half of the length and when the model is saved, on draws that training does not
	// see. The start is one of them. By samples, a state's network may be better along the path of the start.
	Keep   string `json:"keep,omitempty" oneof:"samples energy last"`
	ForNFE int    `json:"for_nfe,omitempty"` // evaluations of Heun's method that samples are judged by, odd; default 9

	// learning rate; default 1e-3 in pretrain, 1e-4 elsewhere
	LR    float64 `json:"lr,omitempty" above:"0"`
	Beta1 float64 `json:"beta1,omitempty" default:"0.9" above:"0" below:"1"`   // of the network's Adam
	Beta2 float64 `json:"beta2,omitempty" default:"0.999" above:"0" below:"1"` // of the network's Adam
	// shape of the network's learning rate
	LRRamp   string  `json:"lr_ramp,omitempty" default:"cosine" oneof:"ramps"`
	LRWarmup float64 `json:"lr_warmup,omitempty" min:"0"` // kimg until the rate is reached; default 0
	// of cosine: part of the length before it falls
	LRHold  *float64 `json:"lr_hold,omitempty" default:"0.5" min:"0" max:"1"`
	LRFinal float64  `json:"lr_final,omitempty" min:"0" max:"1"` // of cosine: last rate as a part of lr; default 0
	// half-life in kimg of the averaged network; default 3 % of the length in pretrain and 5 % elsewhere, at most 500
	EMAHalflife float64 `json:"ema_halflife_kimg,omitempty" above:"0"`
	// largest half-life as a part of the images seen so far; default 0.05, and 0 from a model: no bound
	//
	// It makes a new network's average forget its random start in a run of any length.
	EMARampup *float64 `json:"ema_rampup,omitempty" min:"0" max:"1"`
	Clip      float64  `json:"clip,omitempty" min:"0"` // largest norm of the network's gradient; default none

	// end of time, a variance; default that of the start, else as the data need
	T  float64 `json:"T,omitempty" above:"0"`
	G0 float64 `json:"g0,omitempty" above:"0"` // variance at t = 0; default that of the start, else 1e-9
	// number of knots of each path; default those of the start, else 32
	Knots int `json:"knots,omitempty" given:"2" max:"4096"`
	// kind of a new schedule: geodesic is measured before the first step, table is schedule as it is; default geodesic of
	// a model, edm of a new network
	Init string `json:"init,omitempty"`
	// c of the weight ġ²/(g(c+g)); default the data's variance, summed over an image
	C float64 `json:"c,omitempty" above:"0"`
	// order p of the solver that the schedule is learned for, a factor (T ġ/g)^{p−1} in the weight: 1 is the paper's loss
	Order int `json:"order,omitempty" default:"2" min:"1" max:"16"`
	// the schedule's learning rate; default 1e-2 in isotropic from a form such as edm, else such that the rates of all
	// steps add up to 1.2, and at most 2e-2
	ScheduleLR float64 `json:"schedule_lr,omitempty" above:"0"`

	// of the schedule's Adam
	ScheduleBeta1 float64 `json:"schedule_beta1,omitempty" default:"0.9" above:"0" below:"1"`
	// of the schedule's Adam
	ScheduleBeta2 float64 `json:"schedule_beta2,omitempty" default:"0.999" above:"0" below:"1"`
	// shape of its rate, as lr_ramp
	ScheduleLRRamp string `json:"schedule_lr_ramp,omitempty" default:"cosine" oneof:"ramps"`
	// kimg until its rate is reached; default 0
	ScheduleLRWarmup float64 `json:"schedule_lr_warmup,omitempty" min:"0"`
	// part of the length before its rate falls; default 0
	ScheduleLRHold float64 `json:"schedule_lr_hold,omitempty" min:"0" max:"1"`
	// last rate as a part of schedule_lr
	ScheduleLRFinal *float64 `json:"schedule_lr_final,omitempty" default:"0.1" min:"0" max:"1"`
	// one t from each of batch equal parts of [0, T]
	Stratified *bool `json:"stratified,omitempty" default:"true"`

	Estimator string `json:"estimator,omitempty" oneof:"modes" default:"auto"` // of the schedule's gradient
	// law of the estimator's probes
	Probe  string `json:"probe,omitempty" default:"rademacher" oneof:"rademacher sphere gaussian"`
	Probes int    `json:"probes,omitempty" default:"1" min:"1" max:"256"` // number of probes averaged per sample

	// let the network see the ratios of the g_j; default true in the stage anisotropic where the network is trained
	//
	// Their weights start at zero: a model without them behaves unchanged at first.
	RatioEmbedding *bool `json:"ratio_embedding,omitempty"`

	// Noise levels in pretrain: ln σ_j = PMean + PStd·n + PStdSubspace·n_j, n shared by the subspaces, n and n_j unit
	// normal. In the other stages the network is trained at ln σ_j = ln √g_j + PStdSubspace·n_j, so that it knows the
	// ratios on both sides of the schedule's; the schedule's gradient is that at g.

	PMean *float64 `json:"p_mean,omitempty" default:"-1.2"` // of pretrain's ln σ: mean
	// of pretrain's ln σ: deviation shared by the subspaces
	PStd float64 `json:"p_std,omitempty" default:"1.2" above:"0"`
	// of pretrain's ln σ, elsewhere of the network's about the schedule's: deviation of each subspace; default 0.5 in
	// anisotropic of a network that is trained and sees the ratios, else 0
	PStdSubspace *float64 `json:"p_std_subspace,omitempty" min:"0"`
}
