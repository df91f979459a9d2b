package kernels

import (
	"context"
	"fmt"
	"testing"
	"unsafe"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/subspace"
)

// EstimateInput64 is EstimateInput with images in float64, for models of that precision.
type EstimateInput64 struct {
	Mode           Mode
	X0, Eps, Probe []float64
	G, Omega       []float64
	Labels         []int32
}

// Estimate64 is Estimate for images in float64.
func (m *Model) Estimate64(ctx context.Context, w *Weights, in EstimateInput64) (*Terms, error) {
	return estimate(ctx, m, w, in.Mode, in.X0, in.Eps, in.Probe, in.G, in.Omega, in.Labels)
}

// Denoise64 is Denoise with images in float64, for models of that precision.
func (m *Model) Denoise64(ctx context.Context, w *Weights, x, g []float64, labels []int32) (denoised, flow,
	raw []float64, err error,
) {
	return denoise(ctx, m, w, x, g, labels)
}

// Noise returns the ε that a training step draws.
func (m *Model) Noise(seed uint64, step int64, batch int) ([]float64, error) {
	return m.drawn("noise", seed, step, batch, func(r *generator, shape shapes.Shape) *Node { return r.normal(shape) })
}

// Probe returns the probe of that index that a training step draws.
func (m *Model) Probe(kind string, index int, seed uint64, step int64, batch int) ([]float64, error) {
	return m.drawn(fmt.Sprintf("probe %s %d", kind, index), seed, step, batch,
		func(r *generator, shape shapes.Shape) *Node {
			r.normal(shape)
			for range index {
				r.probe(kind, shape)
			}
			return r.probe(kind, shape)
		})
}

func (m *Model) drawn(name string, seed uint64, step int64, batch int,
	draw func(*generator, shapes.Shape) *Node,
) ([]float64, error) {
	ctx := context.Background()
	p, err := m.dev.Program(ctx, fmt.Sprintf("test %s %d|%s", name, batch, m.key), func(g *graph.Graph) []*Node {
		r := &generator{graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))}
		return []*Node{draw(r, shapes.Make(m.dtype, m.imageDims(batch)...))}
	})
	if err != nil {
		return nil, err
	}
	rng, err := m.dev.Upload(randomState(seed, step), 3)
	if err != nil {
		return nil, err
	}
	return readFirst(p.Run(ctx, device.Use(rng)))
}

func readFirst(out []*device.Buffer, err error) ([]float64, error) {
	if err != nil {
		return nil, err
	}
	defer releaseAll(out)
	v := make([]float64, out[0].Size())
	return v, device.Download(out[0], v)
}

// ParameterGradient returns the gradient of the summed loss with respect to every parameter, in PyTorch's layout.
func (m *Model) ParameterGradient(w *Weights, in EstimateInput64) ([][]float32, error) {
	n := len(in.X0) / m.Pixels()
	flat, err := m.differentiated("phi", w, in, func(f *frame, e *estimator) *Node {
		e.train = f.trained()
		_, grads := e.build()
		return m.flatten(f.g, grads)
	}, n)
	if err != nil {
		return nil, err
	}
	b, err := device.UploadAs(m.dev, m.dtype, flat, m.size)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	return m.downloadFlat(b)
}

// LevelGradient returns the derivative of Σ_j ω_j |P_j(flow(x_t) + ε)|² by g_j at constant ω, by ordinary
// differentiation of that expression as it stands.
func (m *Model) LevelGradient(w *Weights, in EstimateInput64) ([]float64, error) {
	return m.differentiated("levels", w, in, func(f *frame, e *estimator) *Node {
		x := e.noisy(e.x0, e.eps)
		out := e.apply(e.input(x), nil)
		r := graph.Add(e.flowOf(x, out), e.eps)
		var loss *Node
		for j, om := range subspace.Columns(e.omega) {
			part := f.sub.Split(r)[j]
			sum := graph.ReduceAllSum(graph.Mul(om, subspace.Dot(part, part)))
			if loss == nil {
				loss = sum
			} else {
				loss = graph.Add(loss, sum)
			}
		}
		return graph.Gradient(loss, e.g)[0]
	}, len(in.X0)/m.Pixels())
}

func (m *Model) differentiated(name string, w *Weights, in EstimateInput64, build func(*frame, *estimator) *Node,
	n int,
) ([]float64, error) {
	ctx := context.Background()
	p, err := m.dev.Program(ctx, fmt.Sprintf("test %s %d|%s", name, n, m.key), func(g *graph.Graph) []*Node {
		f := m.frame(g, n, "params")
		e := &estimator{mode: LossOnly, x0: f.image("x0"), eps: f.image("eps")}
		e.wrapped = f.wrap(f.perSubspace("g"))
		e.omega = f.perSubspace("omega")
		return []*Node{build(f, e)}
	})
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(in.Labels, n)
	if err != nil {
		return nil, err
	}
	run := append(args.withParams(w.flat, device.Use), put(s, in.X0, m.imageDims(n)...), put(s, in.Eps, m.imageDims(n)...),
		put(s, in.G, n, m.J()), put(s, in.Omega, n, m.J()))
	if s.err != nil {
		return nil, s.err
	}
	return readFirst(p.Run(ctx, run...))
}

// Export copies the values back, in PyTorch's layout.
func (w *Weights) Export() ([][]float32, error) { return w.model.downloadFlat(w.flat) }

// StateMemory returns where the parameters, the two moments and the average lie; nothing if the host cannot see them.
func (t *Trainer) StateMemory(tb testing.TB) (at []*float32) {
	for _, b := range t.replicas[0].state {
		if !b.Device().HostVisible() {
			return nil
		}
		if err := b.View(func(flat any) error {
			at = append(at, unsafe.SliceData(flat.([]float32)))
			return nil
		}); err != nil {
			tb.Fatal(err)
		}
	}
	return at
}

// LoseState makes the next step fail as if a device had lost the state, of which part is left.
func (t *Trainer) LoseState(device int, part bool) {
	state := t.replicas[device].state
	if part {
		state = state[1:]
	}
	releaseAll(state)
}

// ExportFrom is Export from one device.
func (t *Trainer) ExportFrom(device int) (*TrainerState, error) {
	one := *t
	one.replicas = t.replicas[device : device+1]
	return one.Export(context.Background())
}
