package sampler

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

// Columns are what several plans lead the same latents to, a column for each. They stay where the network is.
type Columns struct {
	Target *States // of the same latents, which have the rows from First on
	At     int
	First  int

	kept [][]float32
}

// Column is a reducer: the samples become column K of some columns. Those behind it are forgotten.
type Column struct {
	Of *Columns
	K  int
	// Sums are over all values of all rows, of products of the target with itself, and of the samples with the target
	// and with columns 0 … K: [K + 3].
	Sums []float64

	size int // of an image
}

// EveryStage implements [Reducer].
func (*Column) EveryStage() bool { return false }

// Add implements [Reducer].
func (c *Column) Add(_ int, x, _ []float32) {
	of := c.Of
	if c.Sums == nil {
		c.Sums = make([]float64, c.K+3)
		of.kept = append(of.kept[:c.K], nil)
	}
	from := len(of.kept[c.K])
	of.kept[c.K] = append(of.kept[c.K], x...)
	target := of.Target.X[of.At][of.First*c.size+from:][:len(x)]
	safely.For(len(c.Sums), func(k int) {
		a, b := x, target
		switch {
		case k == 0:
			a = target
		case k > 1:
			b = of.kept[k-2][from:]
		}
		for i, v := range a {
			c.Sums[k] += float64(v) * float64(b[i])
		}
	})
}

// lastPlan is the one that latents were followed along last, with evaluations that the next may share.
type lastPlan struct {
	of       Trajectories
	denoised map[[2]int][]float32 // by the first row of a batch and the stage
}

// shared prepares for trajectories, and returns how many of their first evaluations are known.
func (k *lastPlan) shared(t Trajectories) int {
	last := k.of
	k.of = t
	p := *t.Plan
	p.Stages = slices.Clone(p.Stages)
	k.of.Plan = &p
	same := last.Plan != nil && p.Data && last.Seed == t.Seed && slices.Equal(last.Labels, t.Labels) &&
		last.Start == t.Start && last.From == t.From && last.At == t.At && slices.Equal(last.Plan.Init, p.Init)
	n := 0
	for same && n < min(len(p.Stages), len(last.Plan.Stages)) && slices.Equal(p.Stages[n].G, last.Plan.Stages[n].G) {
		same = p.Stages[n].Combines(last.Plan.Stages[n])
		n++
	}
	if n == 0 {
		k.denoised = map[[2]int][]float32{}
	}
	return n
}

// reuses reports whether plans that follow each other share evaluations: those of fits do.
func reuses(into []Reducer) bool {
	return slices.ContainsFunc(into, func(r Reducer) bool {
		switch r.(type) {
		case *Gram, *Column:
			return true
		}
		return false
	})
}
