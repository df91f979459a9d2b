package sampler

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Guide mixes the evaluations of two networks, the network's own D₁ and the guide's D₀:
//
//	D = D₀ + s (D₁ − D₀)
//
// and the flow in the same way, at noise levels in (From, To]. Elsewhere D is D₁. A stage may have a scale of its own:
// see [solver.Stage].
type Guide struct {
	Net      Network // of D₀
	Labels   bool    // D₀ sees the labels of the rows, otherwise none
	Scale    float64 // s
	From, To float64 // σ, the geometric mean over the subspaces
}

// scale returns s of a stage, 1 if it is not guided.
func (g *Guide) scale(s solver.Stage) float64 {
	if g == nil || g.Scale == 1 {
		return 1
	}
	var log float64
	for _, v := range s.G {
		log += math.Log(v) / float64(2*len(s.G))
	}
	if sigma := math.Exp(log); sigma <= g.From || sigma > g.To {
		return 1
	}
	if s.Guidance != nil {
		return 1 + *s.Guidance*(g.Scale-1)
	}
	return g.Scale
}

// Evaluations returns the number of evaluations in the first n stages of a plan: two where networks are mixed.
func (g *Guide) Evaluations(p *solver.Plan, n int) (count int) {
	for _, s := range p.Stages[:n] {
		count++
		if scale := g.scale(s); scale != 1 && scale != 0 {
			count++
		}
	}
	return count
}

// evaluateGuided evaluates a stage in which at least one row is guided.
func (s *Sampler) evaluateGuided(ctx context.Context, net Network, plans []*solver.Plan, st *stage) error {
	guide := s.Guide
	var x []float32
	var g []float64
	var labels []int32
	err := s.Device.Take(ctx, func() (err error) {
		x, g, labels, err = st.input(ctx)
		return err
	})
	if err != nil {
		return err
	}
	scale := make([]float64, len(labels))
	needed := false // the network's own evaluation
	for i := range scale {
		scale[i] = guide.scale(plans[i].Stages[st.k])
		needed = needed || scale[i] != 0
	}
	seen := labels
	if !guide.Labels {
		seen = slices.Repeat([]int32{-1}, len(labels))
	}
	network, err := guide.Net.OnDevice(net.Model.Device())
	if err != nil {
		return err
	}
	denoised, flow, _, err := denoise(ctx, s.Device, network, x, g, seen)
	if err != nil {
		return err
	}
	if needed {
		own, ownFlow, _, err := denoise(ctx, s.Device, net, x, g, labels)
		if err != nil {
			return err
		}
		for i, w := range scale {
			mix(denoised[i*st.size:(i+1)*st.size], own[i*st.size:], w)
			mix(flow[i*st.size:(i+1)*st.size], ownFlow[i*st.size:], w)
		}
	}
	return s.Device.Take(ctx, func() error { return st.output(ctx, denoised, flow, nil) })
}

// mix replaces y_0 by y_0 + s (y_1 − y_0), and by y_1 exactly if s = 1.
func mix(y0, y1 []float32, s float64) {
	if s == 1 {
		copy(y0, y1)
		return
	}
	for i, v := range y0 {
		y0[i] = float32(float64(v) + s*(float64(y1[i])-float64(v)))
	}
}
