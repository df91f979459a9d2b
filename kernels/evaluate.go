package kernels

import (
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

// Denoise64 is Denoise with images in float64, for models of that precision.
func (m *Model) Denoise64(ctx context.Context, w *Weights, x, g []float64, labels []int32) (denoised, flow,
	raw []float64, err error,
) {
	return denoise(ctx, m, w, x, g, labels)
}

func denoise[T device.Float](ctx context.Context, m *Model, w *Weights, x []T, g []float64, labels []int32) (
	denoised, flow, raw []T, err error,
) {
	n := len(x) / m.Pixels()
	switch {
	case n == 0 || len(x) != n*m.Pixels():
		return nil, nil, nil, inputf("x", "must hold whole images of %d values, got %d values", m.Pixels(), len(x))
	case len(g) != n*m.J():
		return nil, nil, nil, inputf("g", "must hold %d values, got %d", n*m.J(), len(g))
	case labels != nil && len(labels) != n:
		return nil, nil, nil, inputf("labels", "must be one for each of %d images, got %d", n, len(labels))
	case w.refs.Load() <= 0:
		return nil, nil, nil, ErrReleased
	}
	if err := checkVariances("g", g); err != nil {
		return nil, nil, nil, err
	}
	batch := Bucket(n)
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(padded(labels, 1, batch), batch)
	if err != nil {
		return nil, nil, nil, err
	}
	state, err := device.UploadAs(m.dev, m.dtype, padded(x, m.Pixels(), batch), m.imageDims(batch)...)
	if err != nil {
		return nil, nil, nil, err
	}
	defer state.Release()
	out, err := m.evaluate(ctx, w, args, batch, state, g)
	if err != nil {
		return nil, nil, nil, err
	}
	defer out.release()
	denoised, flow, raw = make([]T, len(x)), make([]T, len(x)), make([]T, len(x))
	if err := downloadPadded(out.denoised, denoised); err != nil {
		return nil, nil, nil, err
	}
	if err := downloadPadded(out.flow, flow); err != nil {
		return nil, nil, nil, err
	}
	if out.raw == nil {
		copy(raw, flow)
		return denoised, flow, raw, nil
	}
	return denoised, flow, raw, downloadPadded(out.raw, raw)
}

// evaluation is what one evaluation leaves on the device, each [B, H, W, C]; raw is nil for a FlowNetwork, whose output
// is the flow.
type evaluation struct{ denoised, flow, raw *device.Buffer }

func (e evaluation) release() { releaseAll([]*device.Buffer{e.denoised, e.flow, e.raw}) }

// evaluate runs the network at x for variances g, which are padded here.
func (m *Model) evaluate(ctx context.Context, w *Weights, args *batchArgs, batch int, x *device.Buffer,
	g []float64,
) (evaluation, error) {
	p, err := m.evaluateProgram(ctx, batch)
	if err != nil {
		return evaluation{}, err
	}
	s := m.stage()
	defer s.release()
	run := append(args.using(w), device.Use(x), put(s, padded(g, m.J(), batch), batch, m.J()))
	out, err := s.run(ctx, p, run...)
	if err != nil {
		return evaluation{}, err
	}
	e := evaluation{denoised: out[0], flow: out[1]}
	if len(out) > 2 {
		e.raw = out[2]
	}
	return e, nil
}

// evaluateProgram is the program of evaluate.
func (m *Model) evaluateProgram(ctx context.Context, batch int) (*device.Program, error) {
	return m.program(ctx, fmt.Sprintf("evaluate %d", batch), func(gr *graph.Graph) []*Node {
		return m.evaluateGraph(gr, batch)
	})
}

// evaluateGraph is the program of one evaluation. Its parameters are frame's, then x and g; its outputs those of
// evaluation.
func (m *Model) evaluateGraph(g *graph.Graph, batch int) []*Node {
	f := m.frame(g, batch)
	state := f.image("x")
	net := f.wrap(f.perSubspace("g"))
	raw := net.apply(net.input(state), nil)
	out := []*Node{net.denoisedOf(state, raw), net.flowOf(state, raw)}
	if net.raw != nil {
		out = append(out, raw)
	}
	return out
}

// withHistory appends h parts of a history to the arguments of a program; x stands in for those not made yet.
func withHistory(args []device.Arg, history []*device.Buffer, h int, x *device.Buffer) []device.Arg {
	for i := range h {
		part := x
		if i < len(history) {
			part = history[i]
		}
		args = append(args, device.Use(part))
	}
	return args
}

// combineProgram is the program x' = Σ_j P_j(α_j x + Σ_i β_ji E_i) with h evaluations.
func (m *Model) combineProgram(ctx context.Context, batch, h int) (*device.Program, error) {
	key := fmt.Sprintf("combine %d×%d|%s", batch, h, m.key)
	return m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		f := m.basisFrame(g, batch)
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
