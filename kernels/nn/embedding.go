package nn

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Frequencies returns the n frequencies of EDM's positional embedding,
//
//	f_i = 10000^{−i/(n−e)},  i = 0, ..., n−1
//
// with e = 1 where endpoint is set, so that the last is 1/10000, and 0 otherwise.
func Frequencies(n int, endpoint bool) []float64 {
	f := make([]float64, n)
	last := float64(n)
	if endpoint {
		last--
	}
	for i := range f {
		f[i] = math.Pow(10000, -float64(i)/last)
	}
	return f
}

// Waves returns sin(t·f) and cos(t·f), [B, n] each, of t [B] and frequencies f [n].
func Waves(t, f *Node) (sin, cos *Node) {
	angle := graph.Mul(graph.Reshape(t, -1, 1), graph.Reshape(f, 1, -1))
	return graph.Sin(angle), graph.Cos(angle)
}

// Constants puts values into the graph as a vector of the type of like.
func Constants(like *Node, values []float64) *Node {
	return graph.ConvertDType(graph.Const(like.Graph(), values), like.DType())
}
