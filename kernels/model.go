package kernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
	"github.com/anisoflight/anisoflight/kernels/subspace"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Model is a network on a device, together with the basis that splits images into subspaces. It holds no parameter
// values; it is immutable and safe for concurrent use. Programs are compiled at their first use, one per function and
// batch size.
type Model struct {
	dev       *device.Device
	precision Precision
	dtype     dtypes.DType // of parameters and images outside the network
	net       Network
	spec      Spec
	params    []nn.Param
	size      int // number of values of all parameters
	proj      *subspace.Projector
	key       string
	costs     sync.Map // device.Cost of an evaluation, by batch

	bucketsOnce sync.Once
	buckets     Buckets

	mu     sync.Mutex
	copies map[*device.Device]*Model // on other devices
}

// NewModel returns a model in float32. The basis must have the network's image size; nil means none (J = 1).
func NewModel(dev *device.Device, net Network, b *basis.Basis) (*Model, error) {
	return NewModelAt(Float32, dev, net, b)
}

// NewModelAt is NewModel with programs of the given precision; empty means Float32.
func NewModelAt(precision Precision, dev *device.Device, net Network, b *basis.Basis) (*Model, error) {
	if precision != Float64 {
		var err error
		if precision, err = ParsePrecision(string(precision)); err != nil {
			return nil, err
		}
		if _, analytic := net.(FlowNetwork); analytic {
			precision = Float32
		}
	}
	m := &Model{
		dev: dev, precision: precision, dtype: precision.master(), net: net, spec: net.Spec(), params: net.Params(),
	}
	if m.spec.Parametrization == nil {
		m.spec.Parametrization = parametrization.OfEDM(m.spec.SigmaData)
	}
	if m.spec.SigmaData == 0 {
		m.spec.SigmaData = m.spec.Parametrization.SigmaData()
	}
	if b == nil {
		b = basis.None(m.spec.Height, m.spec.Width)
	}
	if err := m.check(b); err != nil {
		return nil, err
	}
	for _, p := range m.params {
		m.size += p.Size()
	}
	autodiff.Install()
	var err error
	if m.proj, err = subspace.NewProjector(dev, m.precision.projections(), b); err != nil {
		return nil, err
	}
	m.key = fmt.Sprintf("%s|%s|%s|%s", m.precision, m.proj.Key, m.spec.Parametrization.Key(), m.spec.Key)
	return m, nil
}

func (m *Model) check(b *basis.Basis) error {
	_, raw := m.net.(RawNetwork)
	_, flow := m.net.(FlowNetwork)
	switch {
	case raw == flow:
		return inputf("network", "%T must be either a RawNetwork or a FlowNetwork", m.net)
	case b.H() != m.spec.Height || b.W() != m.spec.Width:
		return inputf("basis", "must split images of %d×%d as the network's, got %d×%d", m.spec.Height,
			m.spec.Width, b.H(), b.W())
	case m.spec.Ratios != 0 && b.J() != 1 && m.spec.Ratios != b.J()-1:
		return inputf("basis", "must have 1 subspace or %d, one more than the network's log-ratios, got %d",
			m.spec.Ratios+1, b.J())
	}
	return nil
}

// Precision returns the precision of the model's programs.
func (m *Model) Precision() Precision { return m.precision }

// Network returns the network.
func (m *Model) Network() Network { return m.net }

// Device returns the device.
func (m *Model) Device() *device.Device { return m.dev }

// Basis returns the basis.
func (m *Model) Basis() *basis.Basis { return m.proj.Basis }

// J returns the number of subspaces.
func (m *Model) J() int { return m.proj.Basis.J() }

// Pixels returns H·W·C, the number of values in one image.
func (m *Model) Pixels() int { return m.spec.Height * m.spec.Width * m.spec.Channels }

// Range returns the noise levels that the network was trained on.
func (m *Model) Range() schedule.Range { return m.spec.Range }

// SeesAll reports whether the network is a function of all of g_1 … g_J: there is one subspace, or it takes the ratios.
// Then Auto means Backprop.
func (m *Model) SeesAll() bool {
	_, flow := m.net.(FlowNetwork)
	return flow || m.J() == 1 || m.spec.Ratios == m.J()-1
}

// Resolve returns the mode that Auto means for this model, and any other mode unchanged.
func (m *Model) Resolve(mode Mode) (Mode, error) {
	if mode == LossOnly {
		return mode, nil
	}
	mode, err := ParseMode(string(mode))
	if err == nil && mode == Auto {
		mode = Full
		if m.SeesAll() {
			mode = Backprop
		}
	}
	return mode, err
}

// OnDevice returns the model on another device of its process. The first call makes it; m.Close closes it.
func (m *Model) OnDevice(dev *device.Device) (*Model, error) {
	if dev == m.dev {
		return m, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.copies[dev]; c != nil {
		return c, nil
	}
	c, err := NewModelAt(m.precision, dev, m.net, m.Basis())
	if err != nil {
		return nil, err
	}
	if m.copies == nil {
		m.copies = map[*device.Device]*Model{}
	}
	m.copies[dev] = c
	return c, nil
}

// Close frees the devices' memory of the basis. Do not use the model afterwards.
func (m *Model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.copies {
		c.Close()
	}
	m.copies = nil
	m.proj.Vectors.Release()
}

func (m *Model) imageDims(batch int) []int {
	return []int{batch, m.spec.Height, m.spec.Width, m.spec.Channels}
}

// EDMWeight returns the weight ω = (g+σ_d²)/σ_d² of EDM's score-matching loss at noise variance g.
func (m *Model) EDMWeight(g float64) float64 {
	return 1 + g/math.Pow(m.spec.SigmaData, 2)
}

// checkImages checks that a field holds whole images, with one label each or none, and returns the number of images.
func (m *Model) checkImages(field string, values int, labels []int32) (n int, err error) {
	n = values / m.Pixels()
	switch {
	case n == 0 || values != n*m.Pixels():
		return 0, inputf(field, "must hold whole images of %d values, got %d values", m.Pixels(), values)
	case labels != nil && len(labels) != n:
		return 0, inputf("labels", "must be one for each of %d images, got %d", n, len(labels))
	}
	return n, nil
}

// checkLevels checks the variances of n samples.
func (m *Model) checkLevels(field string, n int, g []float64) error {
	for i, v := range g {
		if !(v > 0) || !finite(v) {
			return inputf(field, "must be finite and positive, got %g at %d", v, i)
		}
	}
	return checkLength(field, len(g), n*m.J())
}

// checkWeights checks the weights of n samples' losses.
func (m *Model) checkWeights(n int, omega []float64) error {
	for i, v := range omega {
		if !(v >= 0) || !finite(v) {
			return inputf("omega", "must be finite and not negative, got %g at %d", v, i)
		}
	}
	return checkLength("omega", len(omega), n*m.J())
}
