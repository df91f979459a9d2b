package kernels

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// wrapped is a network in a graph at noise variances g, as a flow. Both kinds of network have one form: a function F
// of a scaled state y, with
//
//	y        = Σ_j in_j P_j x
//	flow     = Σ_j P_j( skip_j x + out_j F(y) )
//	denoised = Σ_j P_j( keep_j x + √g_j out_j F(y) )
//
// For a RawNetwork the coefficients are those of its parametrisation at g_j. For a FlowNetwork in, out and keep are 1
// and skip is 0. The flow is never computed as (D − x)/√g, which loses all digits in float32 at small g.
type wrapped struct {
	*frame
	raw  RawNetwork
	flow FlowNetwork

	g      *Node            // [B, J]
	gs     subspace.Scalars // its columns
	root   subspace.Scalars // √g_j
	log    *Node            // [B], ln σ_geo / 4, from which a RawNetwork's noise label is computed
	noise  *Node            // [B], the label
	ratios *Node            // [B, Ratios] or nil
	inner  *Node            // [B, J], the conditioning of a FlowNetwork: a separate node for g

	in, skip, out, keep subspace.Scalars
	cross               subspace.Scalars // in_j √g_j
}

// wrap prepares the network for the variances g [B, J].
func (f *frame) wrap(g *Node) *wrapped {
	m := f.model
	w := &wrapped{frame: f, g: g, gs: subspace.Columns(g)}
	w.root = w.gs.Each(graph.Sqrt)
	switch net := m.net.(type) {
	case FlowNetwork:
		w.flow = net
		w.inner = graph.Identity(g)
	case RawNetwork:
		w.raw = net
		w.log, w.ratios = conditioning(g, m.spec.Ratios)
		w.noise = m.spec.Parametrization.Noise(graph.MulScalar(w.log, 4))
		for _, v := range w.gs {
			c := m.spec.Parametrization.Coefficients(v)
			w.in, w.skip, w.out = append(w.in, c.In), append(w.skip, c.Skip), append(w.out, c.Out)
			w.keep, w.cross = append(w.keep, c.Keep), append(w.cross, c.Mix)
		}
	}
	return w
}

// conditioning returns the inputs of a raw network that depend on g [B, J]:
//
//	log     [B]          mean_j ln g_j / 8 = ln(σ_geo)/4, EDM's noise label
//	ratios  [B, ratios]  (ln g_i − mean_j ln g_j) / 8, i < J
//
// On one subspace the ratios are 0. Neither is computed from the other, so a derivative by one keeps the other fixed.
func conditioning(g *Node, ratios int) (log, rho *Node) {
	d := g.Shape().Dimensions
	logs := graph.MulScalar(graph.Log(g), 0.125)
	mean := graph.MulScalar(graph.ReduceSum(logs, 1), 1/float64(d[1]))
	switch {
	case ratios == 0:
	case d[1] == 1:
		s := g.Shape().Clone()
		s.Dimensions[1] = ratios
		rho = graph.Zeros(g.Graph(), s)
	default:
		lead := graph.SliceAxis(logs, 1, graph.AxisRange(0, ratios))
		rho = graph.Sub(lead, graph.Reshape(mean, d[0], 1))
	}
	return graph.Identity(mean), rho
}

// input returns the scaled state y of x.
func (w *wrapped) input(x *Node) *Node {
	if w.in == nil {
		return graph.Identity(x)
	}
	return w.sub.Mix(subspace.Scaled(w.in, x))
}

// apply appends F(y), in training with a random state rng. A raw network takes y in the precision's type of
// activations; F has the type of y.
func (w *wrapped) apply(y, rng *Node) *Node {
	s := nn.NewScope(w.model.params, w.values)
	s.RNG = rng
	if w.flow != nil {
		return w.flow.Flow(s, y, w.inner, w.label)
	}
	f := w.raw.Raw(s, graph.ConvertDType(y, w.model.precision.Activations()), w.noise, w.ratios, w.label)
	return graph.ConvertDType(f, y.DType())
}

// flowOf returns the flow at x, given F of its scaled state.
func (w *wrapped) flowOf(x, f *Node) *Node {
	if w.flow != nil {
		return f
	}
	return w.sub.Mix(subspace.Scaled(w.skip, x), subspace.Scaled(w.out, f))
}

// denoisedOf returns D(x).
func (w *wrapped) denoisedOf(x, f *Node) *Node {
	return w.sub.Mix(subspace.Scaled(w.keep, x), subspace.Scaled(w.root.Times(w.out), f))
}

// noisy returns x_t = x_0 + Σ_j √g_j P_j ε.
func (w *wrapped) noisy(x0, eps *Node) *Node {
	return graph.Add(x0, w.sub.Mix(subspace.Scaled(w.root, eps)))
}

// residual returns r = flow + ε. For a raw network it is
//
//	r = Σ_j P_j[ keep_j ε + skip_j x_0 + out_j F ]
//
// because flow + ε cancels at large g.
func (w *wrapped) residual(x0, eps, f *Node) *Node {
	if w.flow != nil {
		return graph.Add(f, eps)
	}
	return w.sub.Mix(subspace.Scaled(w.keep, eps), subspace.Scaled(w.skip, x0), subspace.Scaled(w.out, f))
}
