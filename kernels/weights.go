package kernels

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Weights are the values of a network's parameters on the device. They are immutable, shared and counted by references;
// the creator has the first.
//
// All parameters are in one flat tensor, each in its device layout, in the order of the network's Params. So there is
// one buffer to pass, copy or average.
type Weights struct {
	model *Model
	refs  atomic.Int64
	flat  *device.Buffer // [N]; nil for a network without parameters

	mu     sync.Mutex
	copies map[*device.Device]*Weights // on other devices
}

func newWeights(m *Model, flat *device.Buffer) *Weights {
	w := &Weights{model: m, flat: flat}
	w.refs.Store(1)
	return w
}

// Upload copies parameter values, in PyTorch's layout and the order of the network's Params, to the device.
func (m *Model) Upload(values [][]float32) (*Weights, error) {
	flat := make([]float32, m.size)
	if err := m.join(flat, "values", values); err != nil {
		return nil, err
	}
	return m.weightsOf(flat)
}

// UploadEach is Upload for values that fill passes to put, one parameter at a time and in any order. Parameters that it
// does not pass are zero.
func (m *Model) UploadEach(fill func(put func(i int, values []float32)) error) (*Weights, error) {
	flat := make([]float32, m.size)
	places := m.places(flat)
	if err := fill(func(i int, values []float32) { m.params[i].PutDevice(places[i], values) }); err != nil {
		return nil, err
	}
	return m.weightsOf(flat)
}

// places cuts a flat tensor into those of the parameters.
func (m *Model) places(flat []float32) [][]float32 {
	out := make([][]float32, len(m.params))
	for i, p := range m.params {
		n := p.Size()
		out[i], flat = flat[:n:n], flat[n:]
	}
	return out
}

func (m *Model) weightsOf(flat []float32) (*Weights, error) {
	b, err := m.uploadFlat(flat)
	if err != nil {
		return nil, err
	}
	return newWeights(m, b), nil
}

// uploadFlat copies a flat tensor to the device. It returns nil for a network without parameters.
func (m *Model) uploadFlat(flat []float32) (*device.Buffer, error) {
	if m.size == 0 {
		return nil, nil
	}
	return device.UploadAs(m.dev, m.dtype, flat, m.size)
}

func (w *Weights) usable() error {
	if w.refs.Load() <= 0 {
		return ErrReleased
	}
	return nil
}

// Retain adds a reference and returns w.
func (w *Weights) Retain() *Weights {
	w.refs.Add(1)
	return w
}

// Release drops a reference; the last one frees the device's memory.
func (w *Weights) Release() {
	if w == nil || w.refs.Add(-1) != 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.copies {
		c.Release()
	}
	w.copies = nil
	w.flat.Release()
}

// CopyTo returns the weights on the device of a model. The first call makes the copy, which lives as long as w; the
// caller holds w.
func (w *Weights) CopyTo(m *Model) (*Weights, error) {
	if m.dev == w.model.dev {
		return w, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.copies[m.dev]; c != nil {
		return c, nil
	}
	if err := w.usable(); err != nil {
		return nil, err
	}
	values := make([]float32, m.size)
	if m.size > 0 {
		if err := device.Download(w.flat, values); err != nil {
			return nil, err
		}
	}
	c, err := m.weightsOf(values)
	if err != nil {
		return nil, err
	}
	if w.copies == nil {
		w.copies = map[*device.Device]*Weights{}
	}
	w.copies[m.dev] = c
	return c, nil
}

// ResidesOn reports whether the weights are on a device already.
func (w *Weights) ResidesOn(d *device.Device) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.model.dev == d || w.copies[d] != nil
}

// Bytes returns the memory of the weights on one device.
func (w *Weights) Bytes() int64 { return int64(w.model.size) * int64(w.model.dtype.Size()) }

// join puts the values of each parameter into a flat tensor; it is the inverse of split.
func (m *Model) join(flat []float32, field string, values [][]float32) error {
	if len(values) != len(m.params) {
		return inputf(field, "must hold %d tensors, one for each parameter, got %d", len(m.params), len(values))
	}
	for i, place := range m.places(flat) {
		if len(values[i]) != len(place) {
			return inputf(field, "must hold %d values for %s, got %d", len(place), m.params[i].Name, len(values[i]))
		}
		m.params[i].PutDevice(place, values[i])
	}
	return nil
}

// split returns the values of each parameter in a flat tensor, in PyTorch's layout.
func (m *Model) split(flat []float32) [][]float32 {
	out := m.places(flat)
	for i, p := range m.params {
		out[i] = p.FromDevice(out[i])
	}
	return out
}

// downloadFlat returns the values in a flat tensor. If the host sees the device's memory, they are copied once.
func (m *Model) downloadFlat(b *device.Buffer) (out [][]float32, err error) {
	if m.size == 0 {
		return m.split(nil), nil
	}
	if m.dev.HostVisible() && m.dtype == dtypes.Float32 {
		err = b.View(func(flat any) error {
			out = m.split(flat.([]float32))
			return nil
		})
		return out, err
	}
	flat := make([]float32, m.size)
	if err := device.Download(b, flat); err != nil {
		return nil, err
	}
	return m.split(flat), nil
}

// flatten joins the gradients of the trained parameters to one flat tensor, with zeros for frozen ones.
func (m *Model) flatten(g *graph.Graph, grads []*Node) *Node {
	var parts []*Node
	for _, p := range m.params {
		if p.Frozen {
			parts = append(parts, graph.Zeros(g, shapes.Make(m.dtype, p.Size())))
			continue
		}
		parts = append(parts, graph.Reshape(grads[0], p.Size()))
		grads = grads[1:]
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return graph.Concatenate(parts, 0)
}

// zeros makes a flat tensor of zeros on the device.
func (m *Model) zeros(ctx context.Context) (*device.Buffer, error) {
	return m.flatBy(ctx, "zeros", func(g *graph.Graph) *Node { return graph.Zeros(g, shapes.Make(m.dtype, m.size)) })
}

// copyFlat copies a flat tensor on the device.
func (m *Model) copyFlat(ctx context.Context, b *device.Buffer) (*device.Buffer, error) {
	return m.flatBy(ctx, "copy", func(g *graph.Graph) *Node {
		return graph.MulScalar(graph.Parameter(g, "x", shapes.Make(m.dtype, m.size)), 1)
	}, device.Use(b))
}

// flatBy runs a small program that returns a flat tensor.
func (m *Model) flatBy(ctx context.Context, name string, build func(g *graph.Graph) *Node,
	args ...device.Arg,
) (*device.Buffer, error) {
	p, err := m.dev.Program(ctx, fmt.Sprintf("%s %s %d", name, m.dtype, m.size),
		func(g *graph.Graph) []*Node { return []*Node{build(g)} })
	if err != nil {
		return nil, err
	}
	out, err := p.Run(ctx, args...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}
