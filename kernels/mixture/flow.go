package mixture

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Flow implements [kernels.FlowNetwork]; see the package comment.
func (m *Mixture) Flow(_ *nn.Scope, x, g, _ *graph.Node) *graph.Node {
	d, n := m.d, len(m.weights)
	gr, dtype := x.Graph(), x.DType()
	batch := x.Shape().Dimensions[0]
	noise := combine(m.projectors, g, d)                          // [B, d, d]
	root := combine(m.projectors, graph.Sqrt(g), d)               // M^{1/2}
	cov := graph.InsertAxes(constant(gr, dtype, m.matrices()), 0) // [1, n, d, d]
	s := graph.Add(cov, graph.InsertAxes(noise, 1))               // [B, n, d, d]
	inv, logDet := inverse(graph.Reshape(s, batch*n, d, d))

	mean := graph.InsertAxes(constant(gr, dtype, m.means), 0) // [1, n, d]
	diff := graph.Reshape(graph.Sub(mean, graph.Reshape(x, batch, 1, d)), batch*n, d)
	a := graph.DotGeneral(inv, []int{2}, []int{0}, diff, []int{1}, []int{0}) // S^{-1}(μ − x), [B·n, d]
	square := graph.ReduceSum(graph.Mul(a, diff), 1)
	logs := make([]float64, n)
	for i, w := range m.weights {
		logs[i] = math.Log(w)
	}
	density := graph.MulScalar(graph.Add(square, logDet), -0.5)
	density = graph.Add(graph.Reshape(density, batch, n), graph.InsertAxes(constant(gr, dtype, logs), 0))
	resp := graph.Softmax(density, 1) // ρ_i
	score := graph.ReduceSum(graph.Mul(graph.Reshape(resp, batch, n, 1), graph.Reshape(a, batch, n, d)), 1)
	flow := graph.DotGeneral(root, []int{2}, []int{0}, score, []int{1}, []int{0})
	return graph.Reshape(flow, x.Shape().Dimensions...)
}

func (m *Mixture) matrices() [][][]float64 {
	out := make([][][]float64, len(m.covs))
	for i, c := range m.covs {
		out[i] = square(c, m.d)
	}
	return out
}

func square(flat []float64, d int) [][]float64 {
	out := make([][]float64, d)
	for i := range out {
		out[i] = flat[i*d : (i+1)*d]
	}
	return out
}
