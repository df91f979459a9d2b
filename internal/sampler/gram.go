package sampler

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Gram is a reducer: by part, the sums of products for a least-squares fit of the last stage of a plan. That stage
// combines the state and the newest evaluations, each with the state that it was made at.
type Gram struct {
	Sums [2][]*local.Gram // of the rows below Split, and of the others

	Coordinates   *solver.Coordinates // the parts; nil: all values are one part
	Stages, Terms int
	States        *States // the last stage should lead to States.X[At]
	At, Split     int
	size          int            // of an image
	row           int            // the first that is not summed
	x             []float32      // state of the rows from there
	evaluations   [][2][]float32 // of these rows, D and the state that it was made at, newest first
}

// NewGram returns empty sums for the last of some stages, which has a number of terms, in parts, or for one part if
// they are nil.
func NewGram(of *solver.Coordinates, stages, terms int, states *States, at, split int) *Gram {
	g := &Gram{Coordinates: of, Terms: terms, Stages: stages, States: states, At: at, Split: split}
	parts := 1
	if of != nil {
		parts = of.Parts()
	}
	for half := range g.Sums {
		for range parts {
			g.Sums[half] = append(g.Sums[half], local.NewGram(terms))
		}
	}
	return g
}

// Begin implements [Reducer].
func (g *Gram) Begin(size int) Reduction {
	g.size = size
	products := (g.Terms + 1) * (g.Terms + 1)
	return Reduction{
		EveryStage: true, Fits: true, Kind: "gram", States: g.States, Coordinates: g.Coordinates, StateIndex: g.At,
		Terms: g.Terms, Split: g.Split,
		Sums: 2 * len(g.Sums[0]) * products, Use: func(numbers []float64) {
			for _, half := range g.Sums {
				for _, part := range half {
					part.AddSums(numbers[:products])
					numbers = numbers[products:]
				}
			}
		},
	}
}

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

// sum adds the rows from g.row on.
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

// transform returns the part of each coordinate of an image, and a function that maps an image to its coordinates in
// place.
func (g *Gram) transform() (part []int, coordinates func(x []float64)) {
	part = make([]int, g.size)
	if g.Coordinates == nil {
		return part, func([]float64) {}
	}
	bands := g.Coordinates.Bands
	frequencies := bands.Frequencies(g.Coordinates.Axes[g.Coordinates.Row])
	band, _ := bands.Index()
	for f := range part {
		part[f] = band[f/bands.C]*bands.C + f%bands.C
	}
	return part, func(x []float64) { frequencies.Forward(x, x) }
}

// Products are a reducer: the sums, over all values of all rows, of products of the columns x_0 … x_n, D_0 … D_{n−1}.
// x_k is the state before stage k of n, x_n the last state, and D_k the evaluation of stage k.
type Products struct {
	Stages  int
	Sums    []float64   // [2n + 1]²
	columns [][]float32 // of the rows that are not summed
}

// Begin implements [Reducer].
func (p *Products) Begin(int) Reduction {
	n := 2*p.Stages + 1
	return Reduction{EveryStage: true, Kind: "products", Sums: n * n, Use: keepIn(&p.Sums)}
}

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
