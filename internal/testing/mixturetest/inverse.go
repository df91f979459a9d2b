package mixturetest

import (
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// projectorsOf returns P_j as matrices on whole images, pixels then channels.
func projectorsOf(b *basis.Basis, channels int) ([][][]float64, error) {
	hw := b.H() * b.W()
	out, parts := make([][][]float64, b.J()), make([][]float64, b.J())
	for j := range out {
		out[j] = slices.Collect(slices.Chunk(make([]float64, hw*channels*hw*channels), hw*channels))
		parts[j] = make([]float64, hw)
	}
	unit := make([]float64, hw)
	for col := range hw {
		unit[col] = 1
		if err := b.Split(basis.Shared, unit, parts); err != nil {
			return nil, err
		}
		unit[col] = 0
		for j, part := range parts {
			for row, v := range part {
				for c := range channels {
					out[j][row*channels+c][col*channels+c] = v
				}
			}
		}
	}
	return out, nil
}

// solve returns the components' log densities [B, n], without ln π_i, and their own flows [B, n, d], of x − μ [B, n,
// d], covariances [n, d, d] and projectors [J, d, d].
func solve(diff, g, cov, projectors *graph.Node) (density, flow *graph.Node) {
	batch, n, d := diff.Shape().Dimensions[0], diff.Shape().Dimensions[1], diff.Shape().Dimensions[2]
	combined := func(c *graph.Node) *graph.Node { // Σ_j c_j P_j, [B, d, d], for c [B, J]
		return graph.DotGeneral(c, []int{1}, nil, projectors, []int{0}, nil)
	}
	total := graph.Add(graph.InsertAxes(cov, 0), graph.InsertAxes(combined(g), 1))
	inv, logDet := inverse(graph.Reshape(total, batch*n, d, d))
	flat := graph.Reshape(diff, batch*n, d)
	a := graph.DotGeneral(inv, []int{2}, []int{0}, flat, []int{1}, []int{0}) // S^{-1}(x − μ)
	density = graph.MulScalar(graph.Add(graph.ReduceSum(graph.Mul(a, flat), 1), logDet), -0.5)
	root := combined(graph.Sqrt(g)) // M^{1/2}
	flow = graph.Neg(graph.DotGeneral(graph.Reshape(a, batch, n, d), []int{2}, []int{0}, root, []int{1}, []int{0}))
	return graph.Reshape(density, batch, n), flow
}

// inverse returns S^{-1} and ln|S| of symmetric positive definite matrices S [N, d, d], differentiable to second order.
//
// Gauss–Jordan elimination gives X = S^{-1}, which is then taken as a constant: differentiating through d elimination
// steps would be long and lose digits. The derivatives come back from Newton's iteration for the inverse,
//
//	X ← X (2I − S X),
//
// which leaves the value where it is. As a function of S the constant X is wrong by terms of first order in the change
// of S; a step squares the error, so after two steps it is of fourth order and three derivatives are exact. Likewise
// ln|S| is the constant plus the series of tr ln(XS) about XS = I,
//
//	tr(XS − I) − ½ tr (XS − I)²,
//
// whose first two derivatives are exact.
func inverse(s *graph.Node) (inv, logDet *graph.Node) {
	x, ld := eliminate(graph.StopGradient(s))
	x, ld = graph.StopGradient(x), graph.StopGradient(ld)
	id := identity(s)

	e := graph.Sub(product(x, s), id)
	half := graph.MulScalar(graph.ReduceSum(graph.Mul(e, graph.Transpose(e, 1, 2)), 1, 2), 0.5)
	trace := graph.ReduceSum(graph.Mul(e, id), 1, 2)
	logDet = graph.Add(ld, graph.Sub(trace, half))

	two := graph.MulScalar(id, 2)
	for range 2 {
		x = product(x, graph.Sub(two, product(s, x)))
	}
	return x, logDet
}

// eliminate inverts by Gauss–Jordan elimination without pivoting, which positive definite matrices do not need. In step
// k the row of the pivot is divided by it and then subtracted from the others; ln|S| is the sum of the pivots'
// logarithms.
func eliminate(s *graph.Node) (inv, logDet *graph.Node) {
	d := s.Shape().Dimensions[1]
	n := s.Shape().Dimensions[0]
	id := identity(s)
	a := graph.Concatenate([]*graph.Node{s, graph.BroadcastToDims(id, n, d, d)}, 2) // [N, d, 2d]
	for k := range d {
		row := graph.SliceAxis(a, 1, graph.AxisRange(k, k+1))     // [N, 1, 2d]
		col := graph.SliceAxis(a, 2, graph.AxisRange(k, k+1))     // [N, d, 1]
		pivot := graph.SliceAxis(row, 2, graph.AxisRange(k, k+1)) // [N, 1, 1]
		unit := graph.SliceAxis(id, 2, graph.AxisRange(k, k+1))   // [1, d, 1]
		a = graph.Sub(a, graph.Mul(graph.Sub(col, unit), graph.Div(row, pivot)))
		lp := graph.Reshape(graph.Log(pivot), n)
		if logDet == nil {
			logDet = lp
		} else {
			logDet = graph.Add(logDet, lp)
		}
	}
	return graph.SliceAxis(a, 2, graph.AxisRange(d, 2*d)), logDet
}

// product is the matrix product over a batch.
func product(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{2}, []int{0}, b, []int{1}, []int{0})
}

// identity returns I as [1, d, d].
func identity(like *graph.Node) *graph.Node {
	d := like.Shape().Dimensions[1]
	v := make([][]float64, d)
	for i := range v {
		v[i] = make([]float64, d)
		v[i][i] = 1
	}
	return graph.InsertAxes(graph.ConstAsDType(like.Graph(), like.DType(), v), 0)
}
