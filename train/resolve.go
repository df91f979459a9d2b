package train

import (
	"cmp"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

const maxNFE = 1001

// words are the lists that the oneof tags of Config name.
var words = map[string][]string{"modes": kernels.Modes, "precisions": kernels.Precisions, "ramps": Ramps}

// Resolve returns the configuration with the defaults that do not depend on the start of the run, or a *[setting.Error]
// for the first field that cannot be used. The defaults of T, G0, Knots, Init and C depend on the start and the data.
func (c Config) Resolve() (Config, error) {
	pre := c.Stage == Pretrain
	if c.Stage == "" {
		return c, setting.Errorf("stage", "must be one of %s, got none", strings.Join(Stages, ", "))
	}
	if err := setting.OneOf("stage", c.Stage, Stages...); err != nil {
		return c, err
	}
	if c.Family.Basis == "" {
		c.Family.Basis = "none"
		if c.Stage == Anisotropic {
			c.Family.Basis = "dct"
		}
	}
	setting.SetDefaults(&c)
	c.Kimg = cmp.Or(c.Kimg, pick(pre || c.Model == "", 1200, defaultKimg))
	if c.Stage != Anisotropic || !*c.TrainNetwork { // otherwise it depends on the network
		c.RatioEmbedding = cmp.Or(c.RatioEmbedding, new(false))
	}
	c.LR = cmp.Or(c.LR, pick(pre, 1e-3, 1e-4))
	c.EMAHalflife = cmp.Or(c.EMAHalflife, min(pick(pre, 0.03, 0.05)*c.Kimg, 500))
	c.EMARampup = cmp.Or(c.EMARampup, new(pick(c.Model == "", 0.05, 0)))
	c.ScheduleLR = cmp.Or(c.ScheduleLR, c.defaultScheduleLR())
	c.Keep = cmp.Or(c.Keep, pick(c.Model != "" && !pre && drawsPerKimg*c.Kimg >= fewestDraws, KeepSamples, KeepLast))
	if c.Keep == KeepSamples {
		c.ForNFE = cmp.Or(c.ForNFE, 9)
	}
	if err := setting.Check(&c, words); err != nil {
		return c, err
	}
	return c, c.check()
}

// With the default schedule_lr, an increment of ln g between two knots changes by at most about movement times itself
// over all steps, and largestScheduleLR times itself in one. On CIFAR-10 at 16×16 the gradients have no direction in
// common after the rates have added up to about 0.8.
const (
	defaultKimg       = 102.4
	movement          = 1.2
	largestScheduleLR = 2e-2
)

// defaultScheduleLR returns the paper's rate if the schedule starts from a form, as it does there. For a path that was
// measured or learned, the rates of a run of any length have the same sum.
func (c Config) defaultScheduleLR() float64 {
	measured := c.Init == initGeodesic || c.Init == initTable || c.Init == "" && (c.Model != "" || c.Schedule != "")
	if c.Stage == Isotropic && !measured {
		return 1e-2
	}
	c.ScheduleLR = 1
	sum := c.scheduleRates()
	if !setting.Positive(sum) { // Resolve refuses the length or the ramp
		return largestScheduleLR
	}
	return min(movement/sum, largestScheduleLR)
}

func pick[T any](cond bool, a, b T) T {
	if cond {
		return a
	}
	return b
}

// check returns the first field of a resolved configuration that does not fit the others.
func (c Config) check() error {
	switch {
	case c.Network != nil && c.Model != "":
		return setting.Errorf("network", "must be left out if a model is given to start from")
	case c.Stage == Pretrain && !*c.TrainNetwork:
		return setting.Errorf("train_network", "must be true in the stage pretrain, which trains nothing else")
	case c.Stage == Isotropic && c.Family.Basis != "none":
		return setting.Errorf("family", "must have basis none in the stage isotropic, got %q; use the stage anisotropic",
			c.Family.Basis)
	case c.Stage == Anisotropic && c.Family.Basis == "none":
		return setting.Errorf("family", "must have basis %s or the name of a stored basis in the stage anisotropic, got none",
			strings.Join(basis.Names(func(d basis.Definition) bool { return !d.One }), ", "))
	case c.Family.Basis == "none" && c.Family.K != 0:
		return setting.Errorf("family.k", "must be left out with basis none, got %d", c.Family.K)
	case c.Family.K < 0:
		return setting.Errorf("family.k", "must be positive, got %d", c.Family.K)
	case !*c.TrainSchedule && !*c.TrainNetwork:
		return setting.Errorf("train_schedule", "must be true if train_network is false: nothing would be trained")
	case !*c.TrainSchedule && c.Stage == Pretrain:
		return setting.Errorf("train_schedule", "must be left out in the stage pretrain, which trains no schedule; for the "+
			"trajectory loss along a fixed schedule take the stage isotropic")
	case c.ForNFE != 0 && c.Keep != KeepSamples:
		return setting.Errorf("for_nfe", "must be left out if keep is %s; it is used by keep samples", c.Keep)
	case c.ForNFE != 0 && (c.ForNFE < 3 || c.ForNFE%2 == 0 || c.ForNFE > maxNFE):
		return setting.Errorf("for_nfe", "must be an odd number from 3 to %d, as n steps of Heun's method take 2n − 1 "+
			"evaluations, got %d", maxNFE, c.ForNFE)
	case c.Keep != KeepLast && (c.Stage == Pretrain || c.Network != nil):
		return setting.Errorf("keep", "must be last in the stage pretrain and for a new network, whose start is random, "+
			"got %s", c.Keep)
	case c.asksForRatios() && c.Family.Basis == "none":
		return setting.Errorf("ratio_embedding",
			"must be false with one subspace, which has no ratio; give a family with two, such as {\"basis\":\"dct\"}")
	case c.Stage != Pretrain && c.stdSubspace() != 0 && !*c.TrainNetwork:
		return setting.Errorf("p_std_subspace", "must be 0 while the network is frozen, got %g", c.stdSubspace())
	}
	return c.checkInit()
}

func (c Config) networkRamp() Ramp {
	return Ramp{Kind: c.LRRamp, Rate: c.LR, Length: c.Kimg, Warmup: c.LRWarmup, Hold: *c.LRHold, Final: c.LRFinal}
}

func (c Config) scheduleRamp() Ramp {
	return Ramp{
		Kind: c.ScheduleLRRamp, Rate: c.ScheduleLR, Length: c.Kimg, Warmup: c.ScheduleLRWarmup,
		Hold: c.ScheduleLRHold, Final: *c.ScheduleLRFinal,
	}
}

// stdSubspace returns p_std_subspace; 0 before its default is known.
func (c Config) stdSubspace() float64 {
	if c.PStdSubspace == nil {
		return 0
	}
	return *c.PStdSubspace
}

// The values of Config.Init that are not formulas: a geodesic measured on the run's network and data before the first
// step, and a schedule by name.
const (
	initGeodesic = "geodesic"
	initTable    = "table"
)

// Inits lists the values of Config.Init.
var Inits = append(slices.Clone(schedule.Initial), initGeodesic, initTable)

// checkInit checks the start of the schedule.
func (c Config) checkInit() error {
	switch {
	case c.Init == initTable && c.Schedule == "":
		return setting.Errorf("schedule", "must name a schedule if init is table, got none")
	case c.Init == initGeodesic && c.Schedule != "":
		return setting.Errorf("init", "must be left out to start from the schedule %q, got geodesic, which is measured",
			c.Schedule)
	case c.Init == initGeodesic && c.Stage == Pretrain:
		return setting.Errorf("init", "must not be geodesic in the stage pretrain, which trains no schedule")
	case c.Init == "" || c.Init == initTable || c.Init == initGeodesic:
		return nil
	}
	return setting.OneOf("init", c.Init, Inits...)
}
