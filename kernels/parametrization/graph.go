package parametrization

import (
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Coefficients are the four functions of g in a graph, each shaped as g, and
//
//	Mix  in(g) √g    of ε in the scaled state y = in x_0 + in √g ε
//
// in a form whose automatic differentiation loses no digits at large g, where the derivatives of in and √g cancel.
type Coefficients struct{ In, Skip, Out, Keep, Mix *graph.Node }

// Coefficients appends the functions at variances g.
func (p *Parametrization) Coefficients(g *graph.Node) Coefficients {
	root := graph.Sqrt(g)
	one := graph.OnesLike(g)
	switch p.cfg.Kind {
	case VP, Epsilon, V, X0:
		total := graph.AddScalar(g, 1)
		in := graph.Reciprocal(graph.Sqrt(total))
		mix := graph.Reciprocal(graph.Sqrt(graph.AddScalar(graph.Reciprocal(g), 1)))
		switch p.cfg.Kind {
		case V:
			return Coefficients{
				In: in, Skip: graph.Neg(graph.Div(root, total)), Out: graph.Neg(in), Keep: graph.Reciprocal(total),
				Mix: mix,
			}
		case X0:
			inverse := graph.Reciprocal(root)
			return Coefficients{In: in, Skip: graph.Neg(inverse), Out: inverse, Keep: graph.ZerosLike(g), Mix: mix}
		}
		return Coefficients{In: in, Skip: graph.ZerosLike(g), Out: graph.Neg(one), Keep: one, Mix: mix}
	case VE:
		return Coefficients{In: one, Skip: graph.ZerosLike(g), Out: one, Keep: one, Mix: root}
	case Flow:
		in := graph.Reciprocal(graph.AddScalar(root, 1))
		out := graph.Neg(in)
		mix := graph.Reciprocal(graph.AddScalar(graph.Reciprocal(root), 1))
		c := Coefficients{In: in, Skip: out, Out: out, Keep: in, Mix: mix}
		if p.cfg.ToData {
			c.Out = in
		}
		return c
	}
	s := p.cfg.SigmaData * p.cfg.SigmaData
	total := graph.AddScalar(g, s)
	in := graph.Reciprocal(graph.Sqrt(total))
	return Coefficients{
		In: in, Skip: graph.Neg(graph.Div(root, total)), Out: graph.MulScalar(in, p.cfg.SigmaData),
		Keep: graph.MulScalar(graph.Reciprocal(total), s),
		Mix:  graph.Reciprocal(graph.Sqrt(graph.AddScalar(graph.MulScalar(graph.Reciprocal(g), s), 1))),
	}
}

// Noise appends the noise label of ln σ, of any shape [B].
func (p *Parametrization) Noise(logSigma *graph.Node) *graph.Node {
	c := p.cfg
	switch c.Kind {
	case VP:
		log := graph.Log1P(graph.Exp(graph.MulScalar(logSigma, 2)))
		below := graph.AddScalar(graph.Sqrt(graph.AddScalar(graph.MulScalar(log, 2*c.BetaD), c.BetaMin*c.BetaMin)), c.BetaMin)
		return graph.Div(graph.MulScalar(log, 2*(c.Steps-1)), below)
	case VE:
		return graph.AddScalar(logSigma, -math.Ln2)
	case Epsilon, V, X0:
		return p.table.noise(logSigma)
	case Flow:
		sign := -1.0
		if c.ToData {
			sign = 1
		}
		return graph.MulScalar(graph.Reciprocal(graph.AddScalar(graph.Exp(graph.MulScalar(logSigma, sign)), 1)), c.Steps)
	}
	return graph.MulScalar(logSigma, 0.25)
}

// noise interpolates the labels linearly between the knots in ln σ. Before the first knot and behind the last it is
// constant.
func (t table) noise(logSigma *graph.Node) *graph.Node {
	n := len(t.logs)
	ends, starts := make([]float64, n+1), make([]float64, n+1)
	base, slope, from := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for k := range n + 1 { // piece k lies between the knots k−1 and k
		knot := max(k-1, 0)
		base[k], from[k] = t.labels[knot], t.logs[knot]
		starts[k], ends[k] = from[k], t.logs[min(k, n-1)]
		if k > 0 && k < n {
			slope[k] = (t.labels[k] - t.labels[knot]) / (t.logs[k] - t.logs[knot])
		}
	}
	starts[0], ends[n] = -1e30, 1e30
	row := func(v []float64) *graph.Node { return graph.Reshape(nn.Constants(logSigma, v), 1, n+1) }
	at := graph.Reshape(graph.StopGradient(logSigma), -1, 1)
	behind := func(v []float64) *graph.Node {
		return graph.ConvertDType(graph.GreaterOrEqual(at, row(v)), logSigma.DType())
	}
	inside := graph.StopGradient(graph.Sub(behind(starts), behind(ends)))
	pick := func(v []float64) *graph.Node { return graph.ReduceSum(graph.Mul(inside, row(v)), 1) }
	return graph.Add(pick(base), graph.Mul(pick(slope), graph.Sub(logSigma, pick(from))))
}
