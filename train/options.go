package train

import (
	"math"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
)

// The values of Config.ClassWeighting.
const (
	WeightNone     = "none"
	WeightBalanced = "balanced"
)

// The values of Config.EarlyStop.
const (
	StopNone   = "none"
	StopNoise  = "noise"
	StopEnergy = "energy"
	StopBoth   = "both"
)

// What Config.ClassWeighting and Config.EarlyStop may be.
var (
	Weightings = []string{WeightNone, WeightBalanced}
	Stops      = []string{StopNone, StopNoise, StopEnergy, StopBoth}
)

// maxEvalSamples bounds the numbers that are kept of an evaluation.
const maxEvalSamples = 1 << 20

// checkOptions checks what may be added to a plain run.
func (c Config) checkOptions() error {
	for _, f := range []struct {
		name string
		v    float64
	}{
		{"clip", c.Clip},
		{"schedule_clip", c.ScheduleClip},
		{"schedule_ema_halflife_kimg", c.ScheduleEMAHalflife},
		{"early_stop_window_kimg", c.EarlyStopWindow},
		{"eval_every_kimg", c.EvalEvery},
	} {
		if !(f.v >= 0) || math.IsInf(f.v, 1) {
			return setting.Errorf(f.name, "must be at least 0, got %g", f.v)
		}
	}
	if err := setting.OneOf("class_weighting", c.ClassWeighting, Weightings...); err != nil {
		return err
	}
	if err := setting.OneOf("early_stop", c.EarlyStop, Stops...); err != nil {
		return err
	}
	switch {
	case c.Microbatch < 0:
		return setting.Errorf("microbatch", "must be positive, got %d; leave it out to have it chosen", c.Microbatch)
	case c.EvalSamples < 0 || c.EvalSamples == 1 || c.EvalSamples > maxEvalSamples:
		return setting.Errorf("eval_samples", "must lie between 2 and %d, got %d", maxEvalSamples, c.EvalSamples)
	case c.Stage == Pretrain && c.EarlyStop != StopNone:
		return setting.Errorf("early_stop", "must be none in the stage pretrain, which trains no schedule, got %q",
			c.EarlyStop)
	case c.Stage != Pretrain && c.PStdSubspace != 0 && !*c.TrainNetwork:
		return setting.Errorf("p_std_subspace", "must be 0 while the network is frozen, got %g", c.PStdSubspace)
	}
	return nil
}

func (c Config) stopsBy(what string) bool { return c.EarlyStop == what || c.EarlyStop == StopBoth }

// classWeights are n/(C·n_y), so that the mean over the data of a weighted loss is the
// mean over classes of their means. Nil weighs all samples alike.
type classWeights map[int32]float64

func newClassWeights(c Config, d *data.Dataset) (classWeights, error) {
	if c.ClassWeighting != WeightBalanced {
		return nil, nil
	}
	counts := map[int32]float64{}
	for i := range d.Len() {
		label := d.Label(i)
		if label < 0 {
			return nil, setting.Errorf("class_weighting",
				"must be none unless every image has a label, got balanced and no label for image %d", i)
		}
		counts[label]++
	}
	return balanced(counts), nil
}

// balanced returns the weights of classes of so many images.
func balanced(counts map[int32]float64) classWeights {
	var n float64
	for _, of := range counts {
		n += of
	}
	w := classWeights{}
	for label, of := range counts {
		w[label] = n / (float64(len(counts)) * of)
	}
	return w
}

// of returns the weight of a class: for one that the data set does not have, the
// largest of those that it has.
func (w classWeights) of(label int32) float64 {
	if w == nil {
		return 1
	}
	if v, ok := w[label]; ok {
		return v
	}
	var most float64
	for _, v := range w {
		most = math.Max(most, v)
	}
	return most
}
