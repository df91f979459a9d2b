package train

import (
	"math"

	"github.com/anisoflight/anisoflight/train/setting"
)

// The ramps of a learning rate; Ramp.At says what they are.
const (
	RampCosine    = "cosine"
	RampConstant  = "constant"
	RampPublished = "published"
	RampCompleted = "completed"
)

// Ramps lists the names of the ramps.
var Ramps = []string{RampCosine, RampConstant, RampPublished, RampCompleted}

// Ramp is how a learning rate changes over a run.
type Ramp struct {
	Kind   string
	Rate   float64 // the highest rate, where the ramp reaches it
	Length float64 // kimg of the whole run
	Warmup float64 // kimg, for cosine and constant
	Hold   float64 // cosine: part of the length before the rate falls
	Final  float64 // cosine: the last rate as a part of Rate
}

// At returns the rate of a step that takes the run from one kimg to another. With p
// the part of the length that lies before it,
//
//	constant   Rate · min(to/Warmup, 1)
//	cosine     the same, times Final + (1−Final)·½(1 + cos πu), u = (p−Hold)/(1−Hold) in [0, 1]
//	published  Rate · min(to/10000, 1) · ½^⌊8(p−½)⌋ for p > ½: the recipe of the paper,
//	           whose ramp a run of 1200 kimg never completes
//	completed  the same with a ramp that ends no later than the middle of the run
func (r Ramp) At(from, to float64) float64 {
	p := from / r.Length
	switch r.Kind {
	case RampConstant:
		return r.Rate * r.warm(to)
	case RampCosine:
		u := 0.0
		if p > r.Hold {
			u = math.Min((p-r.Hold)/(1-r.Hold), 1)
		}
		return r.Rate * r.warm(to) * (r.Final + (1-r.Final)*(1+math.Cos(math.Pi*u))/2)
	}
	ramp := 10000.0
	if r.Kind == RampCompleted {
		ramp = math.Min(ramp, r.Length/2)
	}
	halvings := math.Max(math.Floor(8*(p-0.5)), 0)
	return r.Rate * math.Min(to/ramp, 1) * math.Pow(0.5, halvings)
}

func (r Ramp) warm(to float64) float64 {
	if r.Warmup <= 0 {
		return 1
	}
	return math.Min(to/r.Warmup, 1)
}

// check returns the first field that cannot be used; prefix heads its name.
func (r Ramp) check(prefix string) error {
	if err := setting.OneOf(prefix+"lr_ramp", r.Kind, Ramps...); err != nil {
		return err
	}
	switch {
	case !setting.Positive(r.Rate):
		return setting.Errorf(prefix+"lr", "must be positive, got %g", r.Rate)
	case !(r.Warmup >= 0) || math.IsInf(r.Warmup, 1):
		return setting.Errorf(prefix+"lr_warmup", "must be at least 0, got %g", r.Warmup)
	case !(r.Hold >= 0 && r.Hold <= 1):
		return setting.Errorf(prefix+"lr_hold", "must lie between 0 and 1, as a part of the length, got %g", r.Hold)
	case !(r.Final >= 0 && r.Final <= 1):
		return setting.Errorf(prefix+"lr_final", "must lie between 0 and 1, as a part of %slr, got %g", prefix, r.Final)
	}
	return nil
}
