package sampler

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// Columns are the samples of several plans from the same latents, a column for each plan. They stay where the network
// is.
type Columns struct {
	// Target.X[At] are the states that the samples should reach. Its rows begin at First.
	Target *States
	At     int
	First  int

	kept [][]float32
}

// Column is a reducer: the samples become column K of Columns. Later columns are dropped.
type Column struct {
	Columns *Columns
	K       int
	// Sums [K + 3] are sums over all values of all rows: of the squared target, and of products of the samples with the
	// target and with columns 0 … K.
	Sums []float64

	size int // of an image
}

// Begin implements [Reducer].
func (c *Column) Begin(size int) Reduction {
	c.size = size
	return Reduction{
		Fits: true, Kind: "column", States: c.Columns.Target, StateIndex: c.Columns.At, FirstRow: c.Columns.First,
		Column: c.K, Sums: c.K + 3, Use: keepIn(&c.Sums),
	}
}

// Add implements [Reducer].
func (c *Column) Add(_ int, x, _ []float32) {
	all := c.Columns
	if c.Sums == nil {
		c.Sums = make([]float64, c.K+3)
		all.kept = append(all.kept[:c.K], nil)
	}
	from := len(all.kept[c.K])
	all.kept[c.K] = append(all.kept[c.K], x...)
	target := all.Target.X[all.At][all.First*c.size+from:][:len(x)]
	safely.For(len(c.Sums), func(k int) {
		a, b := x, target
		switch {
		case k == 0:
			a = target
		case k > 1:
			b = all.kept[k-2][from:]
		}
		for i, v := range a {
			c.Sums[k] += float64(v) * float64(b[i])
		}
	})
}

// lastPlan holds the last trajectories and the evaluations that the next may share.
type lastPlan struct {
	trajectories Trajectories
	denoised     map[[2]int][]float32 // by the first row of a batch and the stage
}

// replace makes t the last trajectories. It returns the number of their first evaluations that are known.
func (l *lastPlan) replace(t Trajectories) int {
	last := l.trajectories
	l.trajectories = t
	p := *t.Plan
	p.Stages = slices.Clone(p.Stages)
	l.trajectories.Plan = &p
	same := last.Plan != nil && p.Data && last.Seed == t.Seed && slices.Equal(last.Labels, t.Labels) &&
		last.Start == t.Start && last.From == t.From && last.At == t.At && slices.Equal(last.Plan.Init, p.Init)
	n := 0
	for same && n < min(len(p.Stages), len(last.Plan.Stages)) && p.Stages[n].Evaluates(last.Plan.Stages[n]) {
		same = p.Stages[n].Combines(last.Plan.Stages[n])
		n++
	}
	if n == 0 {
		l.denoised = map[[2]int][]float32{}
	}
	return n
}
