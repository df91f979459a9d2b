package sampler

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// Gram is a reducer: by part, the sums of products that a least-squares fit needs of the last stage of a plan, which
// combines the state and the newest evaluations, each with the state that it was made at.
type Gram struct {
	Sums [2][]*local.Gram // of the rows below split, and of the others

	of            *local.Statistics
	terms, stages int
	target        []float32 // that the last stage should lead to, [n, H, W, C]
	split         int
	row           int            // the first of those at hand
	x             []float32      // their state
	evaluations   [][2][]float32 // D and the state that it was made at, the newest first
}

// NewGram returns the sums of no rows in the parts of statistics that all classes share, for the last of some stages,
// which has a number of terms.
func NewGram(of *local.Statistics, stages, terms int, target []float32, split int) *Gram {
	g := &Gram{of: of, terms: terms, stages: stages, target: target, split: split}
	for half := range g.Sums {
		for range of.Size() {
			g.Sums[half] = append(g.Sums[half], local.NewGram(terms))
		}
	}
	return g
}

// EveryStage implements [Reducer].
func (*Gram) EveryStage() bool { return true }

// Add implements [Reducer].
func (g *Gram) Add(stage int, x, denoised []float32) {
	if stage >= 0 {
		g.evaluations = slices.Insert(g.evaluations, 0, [2][]float32{slices.Clone(denoised), g.x})
		g.evaluations = g.evaluations[:min(len(g.evaluations), g.terms/2)]
	}
	if g.x = slices.Clone(x); stage == g.stages-1 {
		g.sum()
		g.evaluations = nil
	}
}

// sum adds the rows at hand.
func (g *Gram) sum() {
	newest := g.evaluations[0]
	columns := [][]float32{newest[1], newest[0]} // in the order of local.Gram
	for _, e := range g.evaluations[1:] {
		columns = append(columns, e[0], e[1])
	}
	bands := g.of.Bands()
	frequencies, size := bands.Frequencies(g.of.At(0).Axes), bands.H*bands.W*bands.C
	n := len(newest[0]) / size
	columns = append(columns, g.target[g.row*size:])
	coordinates := make([][]float64, n*len(columns))
	safely.For(len(coordinates), func(i int) {
		wide, column := make([]float64, size), columns[i%len(columns)]
		for k, v := range column[i/len(columns)*size:][:size] {
			wide[k] = float64(v)
		}
		frequencies.Forward(wide, wide)
		coordinates[i] = wide
	})
	band, _ := bands.Index()
	sample := make([]float64, len(columns))
	for i := range n {
		sums := g.Sums[min(1, (g.row+i)/g.split)]
		for f := range size {
			for k := range sample {
				sample[k] = coordinates[i*len(columns)+k][f]
			}
			sums[band[f/bands.C]*bands.C+f%bands.C].Add(sample)
		}
	}
	g.row += n
}
