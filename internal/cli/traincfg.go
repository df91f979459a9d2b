package cli

import (
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
)

// trainRequest are the fields of a run's configuration (train.Config), by their own
// names: those of CreateRun and of the files in configs/. The defaults named here
// are the engine's; what is not given is not sent.
var trainRequest = []command.Option{
	{Name: "stage", Usage: "`stage`: pretrain, isotropic or anisotropic", OneOf: train.Stages},
	{Name: "dataset", Usage: "`name` of the data set", Names: connect.Datasets},
	{
		Name: "network", Kind: command.Object,
		Usage: "`JSON` of a new network: EDM's keyword arguments, as in a model's config.json",
	},
	{Name: "model", Usage: "`name` of the model to start from, instead of a new network", Names: connect.Models},
	{
		Name:      "schedule",
		Usage:     "`name` of the schedule to start from",
		Otherwise: "the model's own", Names: connect.Schedules,
	},
	{
		Name: "family", Kind: command.Object,
		Usage: "which paths there are: `JSON` such as {\"per_class\":false,\"basis\":\"dct\",\"k\":16}; basis " +
			strings.Join(basis.Names(nil), ", ") + " or a stored one, with k or for dct cuts",
	},

	{Name: "kimg", Kind: command.Number, Usage: "length in `thousands` of images", Otherwise: "1200"},
	{Name: "batch", Kind: command.Whole, Usage: "`images` per step", Otherwise: "256"},
	{Name: "seed", Kind: command.Seed, Usage: "of weights, data order, noise and probes", Otherwise: "0"},
	{Name: "flip", Kind: command.Toggle, Usage: "mirror half of the images"},
	{
		Name: "precision", Usage: connect.PrecisionOption.Usage, Otherwise: connect.PrecisionOption.Otherwise,
		OneOf: api.Precisions,
	},
	{
		Name: "microbatch", Kind: command.Whole,
		Usage:     "`images` of a batch that a device sees at a time, for less memory",
		Otherwise: "an equal share, or as many as fit",
	},
	{
		Name:  "class_weighting",
		Usage: "`kind` of weights of the samples: none or balanced, so that classes count alike", Otherwise: "none",
		OneOf: train.Weightings,
	},

	{Name: "train_network", Kind: command.Toggle, Usage: "train the network, not the schedule alone", Otherwise: "true"},
	{
		Name: "lr", Kind: command.Number,
		Usage:     "the network's learning `rate`",
		Otherwise: "1e-3 in pretrain, 1e-5 elsewhere",
	},
	{Name: "beta1", Kind: command.Number, Usage: "of its Adam", Otherwise: "0.9"},
	{Name: "beta2", Kind: command.Number, Usage: "of its Adam", Otherwise: "0.999"},
	{
		Name:      "lr_ramp",
		Usage:     "`shape` of its rate: cosine, constant, published or completed",
		Otherwise: "cosine", OneOf: train.Ramps,
	},
	{Name: "lr_warmup", Kind: command.Number, Usage: "`kimg` until the rate is reached", Otherwise: "0"},
	{
		Name: "lr_hold", Kind: command.Number,
		Usage:     "of cosine: `part` of the length before the rate falls",
		Otherwise: "0.5",
	},
	{Name: "lr_final", Kind: command.Number, Usage: "of cosine: last rate as a `part` of lr", Otherwise: "0"},
	{
		Name: "ema_halflife_kimg", Kind: command.Number,
		Usage: "half-life in `kimg` of the averaged network", Otherwise: "3 % of the length in pretrain, 500 elsewhere",
	},
	{
		Name: "ema_rampup", Kind: command.Number,
		Usage: "largest half-life as a `part` of the images seen so far", Otherwise: "0.05, and 0 from a model: no bound",
	},
	{Name: "clip", Kind: command.Number, Usage: "largest `norm` of its gradient", Otherwise: "none"},

	{Name: "T", Kind: command.Number, Usage: "end of time, a `variance`", Otherwise: "that of the start, else 6400"},
	{Name: "g0", Kind: command.Number, Usage: "`variance` at t = 0", Otherwise: "that of the start, else 1e-9"},
	{
		Name: "knots", Kind: command.Whole,
		Usage:     "`number` of knots of each path",
		Otherwise: "those of the start, else 32",
	},
	{
		Name: "init",
		Usage: "`kind` of a new schedule: edm, log-linear, cosine, geodesic (measured before the first step) or table " +
			"(schedule, as it is)",
		Otherwise: "edm", OneOf: train.Inits,
	},
	{Name: "c", Kind: command.Number, Usage: "data `variance` c in the weight ġ²/(g(c+g))", Otherwise: "1"},
	{
		Name: "schedule_lr", Kind: command.Number,
		Usage: "the schedule's learning `rate`", Otherwise: "1e-2 in isotropic, 1e-4 in anisotropic",
	},
	{Name: "schedule_beta1", Kind: command.Number, Usage: "of its Adam", Otherwise: "0.9"},
	{Name: "schedule_beta2", Kind: command.Number, Usage: "of its Adam", Otherwise: "0.999"},
	{Name: "schedule_lr_ramp", Usage: "`shape` of its rate, as lr_ramp", Otherwise: "cosine", OneOf: train.Ramps},
	{Name: "schedule_lr_warmup", Kind: command.Number, Usage: "`kimg` until its rate is reached", Otherwise: "0"},
	{Name: "schedule_lr_hold", Kind: command.Number, Usage: "`part` of the length before its rate falls", Otherwise: "0"},
	{Name: "schedule_lr_final", Kind: command.Number, Usage: "last rate as a `part` of schedule_lr", Otherwise: "0.1"},
	{
		Name: "stratified", Kind: command.Toggle,
		Usage: "draw one t from each of batch equal parts of [0, T]", Otherwise: "true",
	},
	{Name: "schedule_clip", Kind: command.Number, Usage: "largest `norm` of its gradient", Otherwise: "none"},
	{
		Name: "schedule_ema_halflife_kimg", Kind: command.Number,
		Usage: "half-life in `kimg` of the averaged schedule that is saved", Otherwise: "none, the schedule as it stands",
	},
	{
		Name: "early_stop",
		Usage: "`reason` to stop before the end: none, noise (the schedule's gradient is nothing else), energy (it has " +
			"risen on a fixed set) or both",
		Otherwise: "none", OneOf: train.Stops,
	},
	{
		Name: "early_stop_window_kimg", Kind: command.Number,
		Usage: "`kimg` that the gradient is averaged over for noise", Otherwise: "an eighth of the length",
	},
	{
		Name: "eval_every_kimg", Kind: command.Number,
		Usage: "`kimg` between two evaluations of the energy", Otherwise: "a sixteenth of the length",
	},
	{Name: "eval_samples", Kind: command.Whole, Usage: "`images` of the fixed evaluation set", Otherwise: "1024"},

	{
		Name:  "estimator",
		Usage: "of the schedule's gradient: `mode` auto, full, backprop, explicit or finite-difference", Otherwise: "auto",
		OneOf: api.Modes,
	},
	{
		Name:      "probe",
		Usage:     "`law` of the probes: rademacher, sphere or gaussian",
		Otherwise: "rademacher", OneOf: kernels.Probes,
	},
	{Name: "probes", Kind: command.Whole, Usage: "`number` of probes averaged per sample", Otherwise: "1"},
	{Name: "ratio_embedding", Kind: command.Toggle, Usage: "let the network see the ratios of the g_j"},

	{Name: "p_mean", Kind: command.Number, Usage: "of pretrain's ln σ: `mean`", Otherwise: "−1.2"},
	{
		Name: "p_std", Kind: command.Number,
		Usage:     "of pretrain's ln σ: `deviation` shared by the subspaces",
		Otherwise: "1.2",
	},
	{
		Name: "p_std_subspace", Kind: command.Number,
		Usage:     "of pretrain's ln σ, elsewhere of the network's about the schedule's: `deviation` of each subspace",
		Otherwise: "0",
	},
}
