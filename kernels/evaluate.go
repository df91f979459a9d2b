package kernels

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// Denoise evaluates the network once.
//
//	x         [B, H, W, C]  noisy images
//	g         [B*J]         noise variances
//	labels    [B]           classes, −1 for none; nil for all −1
//	denoised  D(x)
//	flow      M^{-1/2}(D(x) − x), computed directly
//	raw       the network's own output F (the flow for a [FlowNetwork])
func (m *Model) Denoise(ctx context.Context, w *Weights, x []float32, g []float64, labels []int32) (denoised, flow,
	raw []float32, err error,
) {
	return denoise(ctx, m, w, x, g, labels)
}

func denoise[T device.Float](ctx context.Context, m *Model, w *Weights, x []T, g []float64, labels []int32) (
	denoised, flow, raw []T, err error,
) {
	n, err := m.checkImages("x", len(x), labels)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cmp.Or(m.checkLevels("g", n, g), w.usable()); err != nil {
		return nil, nil, nil, err
	}
	batch := Bucket(n)
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(labels, batch)
	if err != nil {
		return nil, nil, nil, err
	}
	state := put(s, padded(x, m.Pixels(), batch), m.imageDims(batch)...)
	out, err := m.evaluate(ctx, s, w, args, batch, state, g)
	if err != nil {
		return nil, nil, nil, err
	}
	defer releaseAll(out)
	var images [3][]T
	for i := range images {
		images[i] = make([]T, len(x))
		if i == len(out) { // the output of a FlowNetwork is the flow
			copy(images[i], images[1])
		} else if err := downloadPadded(out[i], images[i]); err != nil {
			return nil, nil, nil, err
		}
	}
	return images[0], images[1], images[2], nil
}

// evaluate runs evaluateGraph at x for variances g, which it pads.
func (m *Model) evaluate(ctx context.Context, s *staging, w *Weights, args batchArgs, batch int, x device.Arg,
	g []float64,
) ([]*device.Buffer, error) {
	p, err := m.program(ctx, fmt.Sprintf("evaluate %d", batch), func(gr *graph.Graph) []*Node {
		return m.evaluateGraph(gr, batch)
	})
	if err != nil {
		return nil, err
	}
	return s.run(ctx, p, append(args.withParams(w.flat, device.Use), x, put(s, padded(g, m.J(), batch), batch, m.J()))...)
}

// evaluateGraph draws one evaluation. Its parameters are those of frame, then x and g. Its outputs are the denoised
// images, the flow and, for a raw network, the network's output.
func (m *Model) evaluateGraph(g *graph.Graph, batch int) []*Node {
	f := m.frame(g, batch, "params")
	state := f.image("x")
	net := f.wrap(f.perSubspace("g"))
	raw := net.apply(net.input(state), nil)
	out := []*Node{net.denoisedOf(state, raw), net.flowOf(state, raw)}
	if net.raw != nil {
		out = append(out, raw)
	}
	return out
}

// combineProgram is the program x' = Σ_j P_j(α_j x + Σ_i β_ji E_i) with h evaluations.
func (m *Model) combineProgram(ctx context.Context, batch, h int) (*device.Program, error) {
	key := fmt.Sprintf("combine %d×%d|%s", batch, h, m.key)
	return m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		f := &frame{model: m, g: g, batch: batch, sub: m.proj.In(g, m.precision.projections(), batch)}
		state := f.image("x")
		weights := f.param("coefficients", batch, m.J()*(h+1))
		c := subspace.Columns(weights)
		terms := []subspace.Term{subspace.Scaled(c[:m.J()], state)}
		for i := range h {
			terms = append(terms, subspace.Scaled(c[(i+1)*m.J():(i+2)*m.J()], f.image(fmt.Sprint("e", i))))
		}
		return []*Node{f.sub.Mix(terms...)}
	})
}
