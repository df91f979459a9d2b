package kernels_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
)

// uniformTable is ᾱ at noise levels uniform in ln σ, so that the label is linear in it.
const (
	tableFrom, tableStep, tableSize = -8.0, 0.5, 33
)

func uniformTable() []float64 {
	out := make([]float64, tableSize)
	for i := range out {
		out[i] = 1 / (1 + math.Exp(2*(tableFrom+tableStep*float64(i))))
	}
	return out
}

// parametrized returns a parametrisation.
func parametrized(t *testing.T, c parametrization.Config) *parametrization.Parametrization {
	t.Helper()
	p, err := parametrization.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// disguise is the laboratory's mixture as a raw network of a parametrisation: it undoes the scaling of its input and
// the noise label, and returns what the parametrisation says that a network predicts. Noise is in the mean of 2×2
// pixels and in the rest.
type disguise struct {
	kernels.FlowNetwork
	as *parametrization.Parametrization
}

// Flow hides that of the mixture, which makes the disguise a RawNetwork alone.
func (disguise) Flow() {}

func (n disguise) Spec() kernels.Spec {
	s := n.FlowNetwork.Spec()
	s.Key, s.Parametrization, s.Ratios = "disguised "+s.Key, n.as, 1
	return s
}

func (n disguise) Raw(s *nn.Scope, z, noise, ratios, label *graph.Node) *graph.Node {
	mean := graph.MulScalar(n.logSigma(noise), 2) // of ln g
	first := graph.Add(graph.Reshape(mean, -1, 1), graph.MulScalar(ratios, 8))
	second := graph.Sub(graph.MulScalar(graph.Reshape(mean, -1, 1), 2), first)
	logs := graph.Concatenate([]*graph.Node{first, second}, 1)
	g := graph.Exp(logs)
	column := func(j int) *graph.Node {
		return graph.Reshape(graph.SliceAxis(g, 1, graph.AxisRange(j, j+1)), -1, 1, 1, 1)
	}
	a, b := n.as.Coefficients(column(0)), n.as.Coefficients(column(1))
	split := func(x *graph.Node) (mean, rest *graph.Node) {
		mean = graph.BroadcastToDims(graph.ReduceAndKeep(x, graph.ReduceMean, 1, 2), x.Shape().Dimensions...)
		return mean, graph.Sub(x, mean)
	}
	low, high := split(z)
	low, high = graph.Div(low, a.In), graph.Div(high, b.In)
	flowLow, flowHigh := split(n.FlowNetwork.Flow(s, graph.Add(low, high), g, label))
	return graph.Add(
		graph.Div(graph.Sub(flowLow, graph.Mul(a.Skip, low)), a.Out),
		graph.Div(graph.Sub(flowHigh, graph.Mul(b.Skip, high)), b.Out))
}

// logSigma is the inverse of the noise label.
func (n disguise) logSigma(c *graph.Node) *graph.Node {
	switch n.as.Kind() {
	case parametrization.EDM:
		return graph.MulScalar(c, 4)
	case parametrization.Flow: // to data, from 0 to 1
		return graph.Log(graph.AddScalar(graph.Reciprocal(c), -1))
	}
	return graph.AddScalar(graph.MulScalar(c, tableStep), tableFrom)
}

// TestEstimatorIsTheGradient: of a network that is wrong (its data are stretched and shifted) and sees all of g, as the
// flow itself and in several parametrisations. Explicit terms with backprop, and the full estimator with an exact
// trace, are finite differences of the loss sample by sample. The terms are those of the flow itself.
func TestEstimatorIsTheGradient(t *testing.T) {
	t.Parallel()
	plain := newLaboratory(t, 1, 64, 1.6, 0.5)
	truth := slices.Concat(plain.differences(t)...)
	g, gdot := plain.levels(plain.theta)
	want := plain.terms(t, kernels.Full, g, gdot)
	for name, as := range map[string]*parametrization.Config{
		"the flow itself": nil,
		"edm":             {Kind: parametrization.EDM, SigmaData: 0.7},
		"v":               {Kind: parametrization.V, AlphasCumprod: uniformTable()},
		"flow to data":    {Kind: parametrization.Flow, ToData: true},
	} {
		t.Run(name, func(t *testing.T) {
			l := *plain
			if as != nil {
				net := disguise{plain.m.Network().(kernels.FlowNetwork), parametrized(t, *as)}
				l.m, l.w = model64(t, net, plain.m.Basis(), nil)
			}
			_, a, b := l.terms(t, kernels.Backprop, g, gdot).Assemble(g, gdot, labC)
			expect(t, "backprop", slices.Concat(l.perSample(a, b)...), truth, 1e-7)
			_, a, b = l.exactTrace(t, g, gdot).Assemble(g, gdot, labC)
			expect(t, "full, exact trace", slices.Concat(l.perSample(a, b)...), truth, 1e-7)

			full := l.terms(t, kernels.Full, g, gdot)
			for term, of := range termsByName {
				expect(t, term, of(full), of(want), 1e-9)
			}
			expect(t, "explicit alone", l.terms(t, kernels.Explicit, g, gdot).ExplicitX, want.ExplicitX, 1e-9)
		})
	}
}
