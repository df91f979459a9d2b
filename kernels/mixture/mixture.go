package mixture

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Mixture is a Gaussian mixture over images, with the projectors that noise is
// added in. It is a [kernels.FlowNetwork].
type Mixture struct {
	spec       kernels.Spec
	d          int
	weights    []float64   // π_i
	means      [][]float64 // μ_i, [d], pixels row-major as in an image
	covs       [][]float64 // Σ_i, [d·d]
	factors    []*mat.TriDense
	projectors [][]float64 // P_j, [d·d]
}

var _ kernels.FlowNetwork = (*Mixture)(nil)

// Settings describe a mixture.
type Settings struct {
	Height, Width, Channels int
	Weights                 []float64   // π_i > 0; normalised here
	Means                   [][]float64 // [H·W·C] each, in the order of an image
	Covs                    [][]float64 // [(H·W·C)²] each, symmetric positive definite
	// SigmaData scales the step of finite differences; default 0.5.
	SigmaData float64
}

// New returns a mixture. The basis gives the projectors P_j and must be the one
// of the model; nil means none (J = 1). It must be shared by all classes.
func New(s Settings, b *basis.Basis) (*Mixture, error) {
	if s.Height < 1 || s.Width < 1 || s.Channels < 1 {
		return nil, fmt.Errorf("mixture: image size %d×%d×%d; every size is at least 1", s.Height, s.Width, s.Channels)
	}
	d := s.Height * s.Width * s.Channels
	if b == nil {
		b = basis.None(s.Height, s.Width)
	}
	switch {
	case b.H() != s.Height || b.W() != s.Width:
		return nil, fmt.Errorf("mixture: the basis splits %d×%d images, these are %d×%d", b.H(), b.W(), s.Height, s.Width)
	case b.PerClass():
		return nil, fmt.Errorf("mixture: a basis per class has no one mixture")
	case len(s.Weights) == 0 || len(s.Means) != len(s.Weights) || len(s.Covs) != len(s.Weights):
		return nil, fmt.Errorf("mixture: each component must have a weight, a mean and a covariance, "+
			"got %d, %d and %d of them", len(s.Weights), len(s.Means), len(s.Covs))
	}
	m := &Mixture{d: d, means: s.Means, covs: s.Covs}
	var sum float64
	for i, w := range s.Weights {
		if !(w > 0) || len(s.Means[i]) != d || len(s.Covs[i]) != d*d {
			return nil, fmt.Errorf("mixture: component %d must have a positive weight, %d means and %d covariances, "+
				"got %g, %d and %d", i, d, d*d, w, len(s.Means[i]), len(s.Covs[i]))
		}
		sum += w
		var chol mat.Cholesky
		if !chol.Factorize(mat.NewSymDense(d, append([]float64(nil), s.Covs[i]...))) {
			return nil, fmt.Errorf("mixture: component %d: the covariance is not positive definite", i)
		}
		var l mat.TriDense
		chol.LTo(&l)
		m.factors = append(m.factors, &l)
	}
	for _, w := range s.Weights {
		m.weights = append(m.weights, w/sum)
	}
	var err error
	if m.projectors, err = projectors(b, s.Channels); err != nil {
		return nil, err
	}
	m.spec = kernels.Spec{Height: s.Height, Width: s.Width, Channels: s.Channels, SigmaData: s.SigmaData, Key: m.digest()}
	return m, nil
}

// Spec implements [kernels.Network].
func (m *Mixture) Spec() kernels.Spec { return m.spec }

// Params implements [kernels.Network]: there are none.
func (m *Mixture) Params() []nn.Param { return nil }

// Sample fills dst [n, H, W, C] with draws from p_0; normal fills its argument
// with unit normal numbers, uniform returns one in [0, 1).
func (m *Mixture) Sample(dst []float64, normal func([]float64), uniform func() float64) {
	z := make([]float64, m.d)
	for ; len(dst) > 0; dst = dst[m.d:] {
		i, u := 0, uniform()
		for i < len(m.weights)-1 && u >= m.weights[i] {
			u -= m.weights[i]
			i++
		}
		normal(z)
		var x mat.VecDense
		x.MulVec(m.factors[i], mat.NewVecDense(m.d, z))
		for k := range m.d {
			dst[k] = m.means[i][k] + x.AtVec(k)
		}
	}
}

// projectors returns P_j as matrices on whole images, pixels then channels.
func projectors(b *basis.Basis, channels int) ([][]float64, error) {
	hw := b.H() * b.W()
	d := hw * channels
	out := make([][]float64, b.J())
	parts := make([][]float64, b.J())
	for j := range out {
		out[j] = make([]float64, d*d)
		parts[j] = make([]float64, hw)
	}
	unit := make([]float64, hw)
	for col := range hw {
		unit[col] = 1
		if err := b.Split(-1, unit, parts); err != nil {
			return nil, err
		}
		unit[col] = 0
		for j, part := range parts {
			for row, v := range part {
				for c := range channels {
					out[j][(row*channels+c)*d+col*channels+c] = v
				}
			}
		}
	}
	return out, nil
}

// digest identifies the numbers that are built into the graph.
func (m *Mixture) digest() string {
	h := sha256.New()
	write := func(v []float64) {
		for _, x := range v {
			_ = binary.Write(h, binary.LittleEndian, math.Float64bits(x))
		}
	}
	write(m.weights)
	for i := range m.means {
		write(m.means[i])
		write(m.covs[i])
	}
	for _, p := range m.projectors {
		write(p)
	}
	return "mixture " + hex.EncodeToString(h.Sum(nil))
}
