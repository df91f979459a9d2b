package train

import (
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

const (
	maxBatch  = 1 << 16
	maxKnots  = 1 << 12
	maxOrder  = 16
	maxProbes = 1 << 8
	maxNFE    = 1001
)

func orPointer[T any](v **T, by T) {
	if *v == nil {
		*v = &by
	}
}

// Resolve returns the configuration with the defaults filled in that do not depend on where the run starts, or a
// *[setting.Error] for the first field that cannot be used. T, G0, Knots, Init and C stay zero where they are left to
// the start and the data.
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
	setting.Default(&c.Batch, 256)
	setting.Default(&c.Kimg, pick(pre || c.Model == "", 1200, defaultKimg))
	setting.Default(&c.Precision, string(kernels.Float32))
	orPointer(&c.TrainNetwork, true)
	orPointer(&c.TrainSchedule, true)
	if c.Stage != Anisotropic || !*c.TrainNetwork { // else the network says whether it can
		orPointer(&c.RatioEmbedding, false)
	}
	setting.Default(&c.LR, pick(pre, 1e-3, 1e-4))
	setting.Default(&c.Beta1, 0.9)
	setting.Default(&c.Beta2, 0.999)
	setting.Default(&c.LRRamp, RampCosine)
	orPointer(&c.LRHold, 0.5)
	setting.Default(&c.EMAHalflife, min(pick(pre, 0.03, 0.05)*c.Kimg, 500))
	orPointer(&c.EMARampup, pick(c.Model == "", 0.05, 0))
	setting.Default(&c.Order, passes.DefaultOrder)
	setting.Default(&c.ScheduleBeta1, 0.9)
	setting.Default(&c.ScheduleBeta2, 0.999)
	setting.Default(&c.ScheduleLRRamp, RampCosine)
	orPointer(&c.ScheduleLRFinal, 0.1)
	setting.Default(&c.ScheduleLR, c.defaultScheduleLR())
	setting.Default(&c.Keep, pick(c.Model != "" && !pre && drawsPerKimg*c.Kimg >= fewestDraws, KeepSamples, KeepLast))
	if c.Keep == KeepSamples {
		setting.Default(&c.ForNFE, 9)
	}
	orPointer(&c.Stratified, true)
	setting.Default(&c.Estimator, string(kernels.Auto))
	setting.Default(&c.Probe, kernels.Rademacher)
	setting.Default(&c.Probes, 1)
	orPointer(&c.PMean, -1.2)
	setting.Default(&c.PStd, 1.2)
	return c, c.check()
}

// What the default of schedule_lr comes to: an increment of ln g between two knots changes by at most about the part
// movement of itself over all steps, and largestScheduleLR of itself in one. On CIFAR-10 at 16×16 the gradients have no
// direction in common once the rates have added up to about 0.8.
const (
	defaultKimg       = 102.4
	movement          = 1.2
	largestScheduleLR = 2e-2
)

// defaultScheduleLR is the paper's rate if the schedule starts from a form, as it does there. A path that was measured
// or learned can go as far as it has to in a run of any length.
func (c Config) defaultScheduleLR() float64 {
	measured := c.Init == initGeodesic || c.Init == initTable || c.Init == "" && (c.Model != "" || c.Schedule != "")
	if c.Stage == Isotropic && !measured {
		return 1e-2
	}
	c.ScheduleLR = 1
	sum := c.scheduleRates()
	if !setting.Positive(sum) { // the length or the ramp is refused below
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

// check returns the first field of a resolved configuration that cannot be used.
func (c Config) check() error {
	for _, check := range []func() error{
		c.checkNames,
		func() error { return c.networkRamp().check("") },
		func() error { return c.scheduleRamp().check("schedule_") },
		c.checkNumbers,
		c.checkOptions,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkNumbers checks the fields that have a range of their own.
func (c Config) checkNumbers() error {
	type number struct {
		field string
		value float64
	}
	for _, f := range []number{
		{"kimg", c.Kimg}, {"ema_halflife_kimg", c.EMAHalflife}, {"c", c.C}, {"p_std", c.PStd}, {"T", c.T}, {"g0", c.G0},
	} {
		given := f.value != 0 || f.field != "T" && f.field != "g0" && f.field != "c" // else the start or the data have them
		if given && !setting.Positive(f.value) {
			return setting.Errorf(f.field, "must be positive, got %g", f.value)
		}
	}
	for _, f := range []number{
		{"beta1", c.Beta1}, {"beta2", c.Beta2}, {"schedule_beta1", c.ScheduleBeta1}, {"schedule_beta2", c.ScheduleBeta2},
	} {
		if !(f.value > 0 && f.value < 1) {
			return setting.Errorf(f.field, "must lie between 0 and 1, got %g", f.value)
		}
	}
	for _, f := range []number{
		{"clip", c.Clip}, {"p_std_subspace", c.stdSubspace()},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			return setting.Errorf(f.field, "must be at least 0, got %g", f.value)
		}
	}
	for _, f := range []struct {
		field            string
		value, low, high int
	}{
		{"batch", c.Batch, 1, maxBatch},
		{"probes", c.Probes, 1, maxProbes},
		{"order", c.Order, 1, maxOrder},
		{"knots", c.Knots, 2, maxKnots},
	} {
		given := f.value != 0 || f.low == 1 // else the start has them
		if given && (f.value < f.low || f.value > f.high) {
			return setting.Errorf(f.field, "must lie between %d and %d, got %d", f.low, f.high, f.value)
		}
	}
	switch {
	case !(*c.EMARampup >= 0 && *c.EMARampup <= 1):
		return setting.Errorf("ema_rampup", "must lie between 0 and 1, as a part of the images seen, got %g", *c.EMARampup)
	case !setting.Finite(*c.PMean):
		return setting.Errorf("p_mean", "must be finite, got %g", *c.PMean)
	}
	return nil
}

func (c Config) checkNames() error {
	if err := setting.OneOf("keep", c.Keep, KeepSamples, KeepEnergy, KeepLast); err != nil {
		return err
	}
	switch {
	case c.Network != nil && c.Model != "":
		return setting.Errorf("network", "must be left out where a model is given to start from")
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
		return setting.Errorf("train_schedule", "must be true where train_network is false: nothing would be trained")
	case !*c.TrainSchedule && c.Stage == Pretrain:
		return setting.Errorf("train_schedule", "must be left out in the stage pretrain, which trains no schedule; take the "+
			"stage isotropic for the trajectory loss along a schedule that stays")
	case c.ForNFE != 0 && c.Keep != KeepSamples:
		return setting.Errorf("for_nfe", "must be left out where keep is %s; keep samples is judged by it", c.Keep)
	case c.ForNFE != 0 && (c.ForNFE < 3 || c.ForNFE%2 == 0 || c.ForNFE > maxNFE):
		return setting.Errorf("for_nfe", "must be an odd number from 3 to %d, as n steps of Heun's method take 2n − 1 "+
			"evaluations, got %d", maxNFE, c.ForNFE)
	case c.Keep != KeepLast && (c.Stage == Pretrain || c.Network != nil):
		return setting.Errorf("keep", "must be last in the stage pretrain and for a new network, whose start is worth "+
			"nothing, got %s", c.Keep)
	case c.asksForRatios() && c.Family.Basis == "none":
		return setting.Errorf("ratio_embedding",
			"must be false with one subspace, which has no ratio; give a family with two, such as {\"basis\":\"dct\"}")
	}
	if err := setting.OneOf("probe", c.Probe, kernels.Probes...); err != nil {
		return err
	}
	if _, err := kernels.ParseMode(c.Estimator); err != nil {
		return setting.OneOf("estimator", c.Estimator, kernels.Modes...)
	}
	if _, err := kernels.ParsePrecision(c.Precision); err != nil {
		return setting.OneOf("precision", c.Precision, kernels.Precisions...)
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

// checkOptions checks what may be added to a plain run.
func (c Config) checkOptions() error {
	switch {
	case c.Microbatch < 0:
		return setting.Errorf("microbatch", "must be positive, got %d; leave it out to have it chosen", c.Microbatch)
	case c.Stage != Pretrain && c.stdSubspace() != 0 && !*c.TrainNetwork:
		return setting.Errorf("p_std_subspace", "must be 0 while the network is frozen, got %g", c.stdSubspace())
	}
	return nil
}

// stdSubspace is p_std_subspace, 0 before it is known.
func (c Config) stdSubspace() float64 {
	if c.PStdSubspace == nil {
		return 0
	}
	return *c.PStdSubspace
}

// initGeodesic and initTable are the starts of a schedule that are no formula: measured on the run's own network and
// data before the first step, and a schedule by name.
const (
	initGeodesic = "geodesic"
	initTable    = "table"
)

// Inits lists what Config.Init may be.
var Inits = append(slices.Clone(schedule.Initial), initGeodesic, initTable)

// checkInit checks the start of the schedule.
func (c Config) checkInit() error {
	switch {
	case c.Init == initTable && c.Schedule == "":
		return setting.Errorf("schedule", "must name a schedule where init is table, got none")
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
