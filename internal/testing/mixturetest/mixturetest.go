// Package mixturetest is a Gaussian mixture whose flow is known in closed form, as a network without parameters: what
// estimators, runs and passes are compared with in tests:
//
//	S_i = Σ_i + M,  flow = M^{1/2} Σ_i ρ_i S_i^{−1}(μ_i − x),  ρ_i ∝ π_i |S_i|^{−1/2} exp(−½ (x−μ_i)ᵀ S_i^{−1} (x−μ_i))
package mixturetest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Mixture is a Gaussian mixture over images, with the projectors that noise is added in. It is a [kernels.FlowNetwork].
type Mixture struct {
	spec       kernels.Spec
	d          int
	weights    []float64   // π_i
	means      [][]float64 // μ_i, [d], pixels row-major as in an image
	covs       [][]float64 // Σ_i, [d·d]
	factors    []*mat.TriDense
	projectors [][][]float64 // P_j, [d, d]
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

// New returns a mixture. The basis gives the projectors P_j and must be the one of the model; nil means none (J = 1).
// It must be shared by all classes.
func New(s Settings, b *basis.Basis) (*Mixture, error) {
	d := s.Height * s.Width * s.Channels
	if b == nil {
		b = basis.None(s.Height, s.Width)
	}
	m := &Mixture{d: d, means: s.Means, covs: s.Covs}
	var sum float64
	for i, w := range s.Weights {
		sum += w
		var chol mat.Cholesky
		if !chol.Factorize(mat.NewSymDense(d, append([]float64(nil), s.Covs[i]...))) {
			return nil, fmt.Errorf("mixturetest: component %d: the covariance is not positive definite", i)
		}
		var l mat.TriDense
		chol.LTo(&l)
		m.factors = append(m.factors, &l)
	}
	for _, w := range s.Weights {
		m.weights = append(m.weights, w/sum)
	}
	var err error
	if m.projectors, err = projectorsOf(b, s.Channels); err != nil {
		return nil, err
	}
	m.spec = kernels.Spec{Height: s.Height, Width: s.Width, Channels: s.Channels, SigmaData: s.SigmaData}
	numbers, err := json.Marshal([]any{m.weights, m.means, m.covs, m.projectors})
	m.spec.Key = fmt.Sprintf("constant mixture %x", sha256.Sum256(numbers))
	return m, err
}

// Spec implements [kernels.Network].
func (m *Mixture) Spec() kernels.Spec { return m.spec }

// Params implements [kernels.Network]: there are none.
func (m *Mixture) Params() []nn.Param { return nil }

// Sample fills dst [n, H, W, C] with draws from p_0; normal fills its argument with unit normal numbers, uniform
// returns one in [0, 1).
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

// Flow implements [kernels.FlowNetwork]; see the package comment.
func (m *Mixture) Flow(_ *nn.Scope, x, g, _ *graph.Node) *graph.Node {
	batch, n := x.Shape().Dimensions[0], len(m.weights)
	array := func(v any) *graph.Node { return graph.ConstAsDType(x.Graph(), x.DType(), v) }
	covs := make([][][]float64, n)
	for i, c := range m.covs {
		covs[i] = slices.Collect(slices.Chunk(c, m.d))
	}
	logs := make([]float64, n)
	for i, w := range m.weights {
		logs[i] = math.Log(w)
	}
	diff := graph.Sub(graph.Reshape(x, batch, 1, m.d), graph.InsertAxes(array(m.means), 0)) // [B, n, d]
	density, parts := solve(diff, g, array(covs), array(m.projectors))
	density = graph.Add(density, graph.InsertAxes(array(logs), 0))
	resp := graph.Reshape(graph.Softmax(density, 1), batch, n, 1) // ρ_i
	return graph.Reshape(graph.ReduceSum(graph.Mul(resp, parts), 1), x.Shape().Dimensions...)
}
