package train

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// adamEps keeps Adam's steps finite.
const adamEps = 1e-8

// scheduleAdam is Adam (Kingma and Ba, arXiv:1412.6980) on a table of schedule parameters, in float64:
//
//	m ← β₁ m + (1−β₁) d     v ← β₂ v + (1−β₂) d²
//	θ ← θ − lr · m/(1−β₁ⁿ) / ( √(v/(1−β₂ⁿ)) + ε )
//
// Every row counts its steps n: the row of a class that is absent from a batch does not change, nor do its moments.
type scheduleAdam struct {
	beta1, beta2 float64
	m, v         [][][]float64 // [row][subspace][K−1]
	n            []int64       // steps per row
}

func newScheduleAdam(beta1, beta2 float64, theta [][]schedule.Theta) *scheduleAdam {
	return &scheduleAdam{
		beta1: beta1, beta2: beta2, m: zerosLike(theta), v: zerosLike(theta), n: make([]int64, len(theta)),
	}
}

// step moves the parameters of the active rows against the gradient d.
func (a *scheduleAdam) step(theta [][]schedule.Theta, d [][][]float64, active []bool, lr float64) {
	for r := range theta {
		if !active[r] {
			continue
		}
		a.n[r]++
		rate := lr / (1 - math.Pow(a.beta1, float64(a.n[r])))
		scale := 1 / (1 - math.Pow(a.beta2, float64(a.n[r])))
		for j, th := range theta[r] {
			m, v := a.m[r][j], a.v[r][j]
			for i, g := range d[r][j] {
				m[i] = a.beta1*m[i] + (1-a.beta1)*g
				v[i] = a.beta2*v[i] + (1-a.beta2)*g*g
				th[i] -= rate * m[i] / (math.Sqrt(scale*v[i]) + adamEps)
			}
		}
	}
}

// The kinds of a Ramp; Ramp.At defines them.
const (
	RampCosine    = "cosine"
	RampConstant  = "constant"
	RampPublished = "published"
	RampCompleted = "completed"
)

// Ramps lists the names of the ramps.
var Ramps = []string{RampCosine, RampConstant, RampPublished, RampCompleted}

// Ramp is a learning rate as a function of the images seen.
type Ramp struct {
	Kind   string
	Rate   float64 // the highest rate
	Length float64 // kimg of the whole run
	Warmup float64 // kimg, for cosine and constant
	Hold   float64 // cosine: part of the length before the rate falls
	Final  float64 // cosine: the last rate as a part of Rate
}

// At returns the rate of the step between two kimg. With p = from/Length,
//
//	constant   Rate · min(to/Warmup, 1)
//	cosine     the same, times Final + (1−Final)·½(1 + cos πu), u = (p−Hold)/(1−Hold) in [0, 1]
//	published  Rate · min(to/10000, 1) · ½^⌊8(p−½)⌋ for p > ½: the recipe of the paper,
//	           whose warm-up a run of 1200 kimg never completes
//	completed  the same with a warm-up that ends at the middle of the run or before
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

// halflife returns the half-life in kimg of the network's average in a step that begins at kimg: at most the part
// EMARampup of kimg. As in EDM the average after the first step is the network itself.
func (c Config) halflife(kimg float64) float64 {
	if ramp := *c.EMARampup; ramp > 0 {
		return min(c.EMAHalflife, ramp*kimg)
	}
	return c.EMAHalflife
}
