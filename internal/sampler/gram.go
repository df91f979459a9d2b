package sampler

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// Gram is a reducer: by part, the sums of products that a least-squares fit needs of the last stage of a plan, which
// combines the state and the newest evaluations, each with the state that it was made at.
type Gram struct {
	Sums [2][]*local.Gram // of the rows below Split, and of the others

	Of            *local.Statistics // whose parts they are, of row 0; nil: all values are one part
	Stages, Terms int
	States        *States // the last stage should lead to those At
	At, Split     int
	size          int            // of an image
	row           int            // the first of those at hand
	x             []float32      // their state
	evaluations   [][2][]float32 // D and the state that it was made at, the newest first
}

// NewGram returns the sums of no rows in the parts of statistics that all classes share, or in one part if they are
// nil, for the last of some stages, which has a number of terms.
func NewGram(of *local.Statistics, stages, terms int, states *States, at, split int) *Gram {
	g := &Gram{Of: of, Terms: terms, Stages: stages, States: states, At: at, Split: split}
	for half := range g.Sums {
		for range parts(of) {
			g.Sums[half] = append(g.Sums[half], local.NewGram(terms))
		}
	}
	return g
}

func parts(of *local.Statistics) int {
	if of == nil {
		return 1
	}
	return of.Size()
}

// EveryStage implements [Reducer].
func (*Gram) EveryStage() bool { return true }

// Add implements [Reducer].
func (g *Gram) Add(stage int, x, denoised []float32) {
	if stage >= 0 {
		g.evaluations = slices.Insert(g.evaluations, 0, [2][]float32{slices.Clone(denoised), g.x})
		g.evaluations = g.evaluations[:min(len(g.evaluations), g.Terms/2)]
	}
	if g.x = slices.Clone(x); stage == g.Stages-1 {
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
	part, coordinates := g.transform()
	columns = append(columns, g.States.X[g.At][g.row*len(part):])
	n, size := len(newest[0])/len(part), len(part)
	rows := make([][]float64, n*len(columns))
	safely.For(len(rows), func(i int) {
		wide, column := make([]float64, size), columns[i%len(columns)]
		for k, v := range column[i/len(columns)*size:][:size] {
			wide[k] = float64(v)
		}
		coordinates(wide)
		rows[i] = wide
	})
	sample := make([]float64, len(columns))
	for i := range n {
		sums := g.Sums[min(1, (g.row+i)/g.Split)]
		for f, p := range part {
			for k := range sample {
				sample[k] = rows[i*len(columns)+k][f]
			}
			sums[p].Add(sample)
		}
	}
	g.row += n
}

// transform returns the part of each coordinate of an image, and what turns an image to them, in place.
func (g *Gram) transform() (part []int, coordinates func(x []float64)) {
	part = make([]int, g.size)
	if g.Of == nil {
		return part, func([]float64) {}
	}
	bands := g.Of.Bands()
	frequencies := bands.Frequencies(g.Of.At(0).Axes)
	band, _ := bands.Index()
	for f := range part {
		part[f] = band[f/bands.C]*bands.C + f%bands.C
	}
	return part, func(x []float64) { frequencies.Forward(x, x) }
}

// Products are a reducer: the sums over all values of all rows of products of the states x_k before each of n stages,
// the last state x_n, and the evaluations D_k: columns x_0 … x_n, D_0 … D_{n−1}.
type Products struct {
	Stages  int
	Sums    []float64   // [2n + 1]²
	columns [][]float32 // of the rows at hand
}

// EveryStage implements [Reducer].
func (*Products) EveryStage() bool { return true }

// Add implements [Reducer].
func (p *Products) Add(stage int, x, denoised []float32) {
	n := 2*p.Stages + 1
	if stage < 0 {
		p.columns = make([][]float32, n)
	} else {
		p.columns[p.Stages+1+stage] = slices.Clone(denoised)
	}
	p.columns[stage+1] = slices.Clone(x)
	if stage < p.Stages-1 {
		return
	}
	if p.Sums == nil {
		p.Sums = make([]float64, n*n)
	}
	safely.For(n, func(i int) {
		for j := range n {
			for k, v := range p.columns[i] {
				p.Sums[i*n+j] += float64(v) * float64(p.columns[j][k])
			}
		}
	})
	p.columns = nil
}
