package kernels

import (
	"errors"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Weights are the values of a network's parameters on the device: immutable,
// shared by any number of users, counted. The maker holds one reference.
//
// All parameters lie in one flat tensor, each in its device layout, in the order
// of the network's Params: one buffer to pass, copy or average, however many
// layers there are.
type Weights struct {
	model *Model
	refs  atomic.Int64
	flat  *device.Buffer // [N]; nil for a network without parameters
}

func newWeights(m *Model, flat *device.Buffer) *Weights {
	w := &Weights{model: m, flat: flat}
	w.refs.Store(1)
	return w
}

// Upload copies parameter values, in PyTorch's layout and the order of the
// network's Params, to the device.
func (m *Model) Upload(values [][]float32) (*Weights, error) {
	flat, err := m.uploadFlat("values", values)
	if err != nil {
		return nil, err
	}
	return newWeights(m, flat), nil
}

// Retain adds a reference and returns w.
func (w *Weights) Retain() *Weights {
	w.refs.Add(1)
	return w
}

// Release drops a reference; the last one frees the device's memory.
func (w *Weights) Release() {
	if w != nil && w.refs.Add(-1) == 0 {
		w.flat.Release()
	}
}

// Export copies the values back, in PyTorch's layout.
func (w *Weights) Export() ([][]float32, error) {
	if w.refs.Load() <= 0 {
		return nil, ErrReleased
	}
	return w.model.downloadFlat(w.flat)
}

// uploadFlat joins values to the flat tensor.
func (m *Model) uploadFlat(field string, values [][]float32) (*device.Buffer, error) {
	flat := make([]float32, m.size)
	if err := m.join(flat, field, values); err != nil || m.size == 0 {
		return nil, err
	}
	return device.UploadAs(m.dev, m.dtype, flat, m.size)
}

// join puts the values of each parameter into a flat tensor; it is the inverse of split.
func (m *Model) join(flat []float32, field string, values [][]float32) error {
	if len(values) != len(m.params) {
		return inputf(field, "must hold %d tensors, one for each parameter, got %d", len(m.params), len(values))
	}
	for i, p := range m.params {
		n := p.Size()
		if len(values[i]) != n {
			return inputf(field, "must hold %d values for %s, got %d", n, p.Name, len(values[i]))
		}
		p.PutDevice(flat[:n], values[i])
		flat = flat[n:]
	}
	return nil
}

// downloadFlat is the inverse of uploadFlat. Where the host sees the device's memory the result is the one copy.
func (m *Model) downloadFlat(b *device.Buffer) ([][]float32, error) {
	if m.size == 0 {
		return m.split(nil), nil
	}
	var out [][]float32
	err := b.View(func(flat any) error {
		seen, ok := flat.([]float32)
		if !ok {
			return errors.ErrUnsupported
		}
		out = m.split(seen)
		return nil
	})
	if !errors.Is(err, errors.ErrUnsupported) {
		return out, err
	}
	flat := make([]float32, m.size)
	if err := device.Download(b, flat); err != nil {
		return nil, err
	}
	return m.split(flat), nil
}

// split returns the values of each parameter in a flat tensor, in PyTorch's layout.
func (m *Model) split(flat []float32) [][]float32 {
	out := make([][]float32, len(m.params))
	for i, p := range m.params {
		n := p.Size()
		out[i] = p.FromDevice(flat[:n:n])
		flat = flat[n:]
	}
	return out
}
