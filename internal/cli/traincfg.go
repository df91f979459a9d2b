package cli

import (
	"strings"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// trainRequest are the fields of a run's configuration (train.Config), by their own
// names: those of CreateRun and of the files in configs/. The defaults named here
// are the engine's; what is not given is not sent.
var trainRequest = []option{
	{name: "stage", usage: "`stage`: pretrain, isotropic or anisotropic"},
	{name: "dataset", usage: "`name` of the data set"},
	{name: "network", kind: object, usage: "`JSON` of a new network: EDM's keyword arguments, as in a model's config.json"},
	{name: "model", usage: "`name` of the model to start from, instead of a new network"},
	{name: "schedule", usage: "`name` of the schedule to start from (default: the model's own)"},
	{name: "family", kind: object, usage: "which paths there are: `JSON` such as {\"per_class\":false,\"basis\":\"dct\",\"k\":16}; basis " + strings.Join(basis.Names(nil), ", ") + " or a stored one, with k or for dct cuts"},

	{name: "kimg", kind: number, usage: "length in `thousands` of images (default 1200)"},
	{name: "batch", kind: whole, usage: "`images` per step (default 256)"},
	{name: "seed", kind: seed, usage: "of weights, data order, noise and probes (default 0)"},
	{name: "flip", kind: toggle, usage: "mirror half of the images"},
	{name: "precision", usage: precisionOption.usage},
	{name: "microbatch", kind: whole, usage: "`images` of a batch that the device sees at a time, for less memory (default: all, or as many as fit)"},
	{name: "class_weighting", usage: "`kind` of weights of the samples: none (default) or balanced, so that classes count alike"},

	{name: "train_network", kind: toggle, usage: "train the network, not the schedule alone (default true)"},
	{name: "lr", kind: number, usage: "the network's learning `rate` (default 1e-3 in pretrain, 1e-5 elsewhere)"},
	{name: "beta1", kind: number, usage: "of its Adam (default 0.9)"},
	{name: "beta2", kind: number, usage: "of its Adam (default 0.999)"},
	{name: "lr_ramp", usage: "`shape` of its rate: cosine (default), constant, published or completed"},
	{name: "lr_warmup", kind: number, usage: "`kimg` until the rate is reached (default 0)"},
	{name: "lr_hold", kind: number, usage: "of cosine: `part` of the length before the rate falls (default 0.5)"},
	{name: "lr_final", kind: number, usage: "of cosine: last rate as a `part` of lr (default 0)"},
	{name: "ema_halflife_kimg", kind: number, usage: "half-life in `kimg` of the averaged network (default 3 % of the length in pretrain, 500 elsewhere)"},
	{name: "ema_rampup", kind: number, usage: "largest half-life as a `part` of the images seen so far (default 0.05, and 0 from a model: no bound)"},
	{name: "clip", kind: number, usage: "largest `norm` of its gradient (default: none)"},

	{name: "T", kind: number, usage: "end of time, a `variance` (default that of the start, else 6400)"},
	{name: "g0", kind: number, usage: "`variance` at t = 0 (default that of the start, else 1e-9)"},
	{name: "knots", kind: whole, usage: "`number` of knots of each path (default those of the start, else 32)"},
	{name: "init", usage: "`kind` of a new schedule: edm (default), log-linear, cosine, geodesic (measured before the first step) or table (schedule, as it is)"},
	{name: "c", kind: number, usage: "data `variance` c in the weight ġ²/(g(c+g)) (default 1)"},
	{name: "schedule_lr", kind: number, usage: "the schedule's learning `rate` (default 1e-2 in isotropic, 1e-4 in anisotropic)"},
	{name: "schedule_beta1", kind: number, usage: "of its Adam (default 0.9)"},
	{name: "schedule_beta2", kind: number, usage: "of its Adam (default 0.999)"},
	{name: "schedule_lr_ramp", usage: "`shape` of its rate, as lr_ramp (default cosine)"},
	{name: "schedule_lr_warmup", kind: number, usage: "`kimg` until its rate is reached (default 0)"},
	{name: "schedule_lr_hold", kind: number, usage: "`part` of the length before its rate falls (default 0)"},
	{name: "schedule_lr_final", kind: number, usage: "last rate as a `part` of schedule_lr (default 0.1)"},
	{name: "stratified", kind: toggle, usage: "draw one t from each of batch equal parts of [0, T] (default true)"},
	{name: "schedule_clip", kind: number, usage: "largest `norm` of its gradient (default: none)"},
	{name: "schedule_ema_halflife_kimg", kind: number, usage: "half-life in `kimg` of the averaged schedule that is saved (default: none, the schedule as it stands)"},
	{name: "early_stop", usage: "`reason` to stop before the end: none (default), noise (the schedule's gradient is nothing else), energy (it has risen on a fixed set) or both"},
	{name: "early_stop_window_kimg", kind: number, usage: "`kimg` that the gradient is averaged over for noise (default an eighth of the length)"},
	{name: "eval_every_kimg", kind: number, usage: "`kimg` between two evaluations of the energy (default a sixteenth of the length)"},
	{name: "eval_samples", kind: whole, usage: "`images` of the fixed evaluation set (default 1024)"},

	{name: "estimator", usage: "of the schedule's gradient: `mode` auto (default), full, backprop, explicit or finite-difference"},
	{name: "probe", usage: "`law` of the probes: rademacher (default), sphere or gaussian"},
	{name: "probes", kind: whole, usage: "`number` of probes averaged per sample (default 1)"},
	{name: "ratio_embedding", kind: toggle, usage: "let the network see the ratios of the g_j"},

	{name: "p_mean", kind: number, usage: "of pretrain's ln σ: `mean` (default −1.2)"},
	{name: "p_std", kind: number, usage: "of pretrain's ln σ: `deviation` shared by the subspaces (default 1.2)"},
	{name: "p_std_subspace", kind: number, usage: "of pretrain's ln σ, elsewhere of the network's about the schedule's: `deviation` of each subspace (default 0)"},
}
