package mixture

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// alignedTolerance is the part of an axis' squared length that may be outside its subspace: rounding of float32.
const alignedTolerance = 1e-5

// principal is a Net on a basis. Every axis of a component lies in one subspace, so that the flow separates: with y =
// U(x − μ) and g_a the noise of axis a's subspace,
//
//	flow = −Σ_i ρ_i Uᵀ( √g_a y_a/(λ_a + g_a) ),
//	ln ρ_i = ln π_i − ½ Σ_a y_a²/(λ_a + g_a) + ln(λ_a + g_a) + const,
//
// which is exact in any precision and costs two products with U.
type principal struct {
	net    *Net
	spec   kernels.Spec
	member [][][]float64 // [n][d][J]: 1 where the axis lies in the subspace; nil for one subspace
}

var _ kernels.FlowNetwork = (*principal)(nil)

// NetworkOn implements [kernels.Architecture]. Every axis must lie in one subspace of b, as for basis none, and for
// dct if the covariances are diagonal in the DCT.
func (n *Net) NetworkOn(values [][]float32, b *basis.Basis) (kernels.Network, error) {
	c := n.cfg
	if b.H() != c.ImgResolution.Height || b.W() != c.ImgResolution.Width {
		return nil, fmt.Errorf("mixture: the basis splits %d×%d images, these are %d×%d", b.H(), b.W(),
			c.ImgResolution.Height, c.ImgResolution.Width)
	}
	if b.PerClass() && c.LabelDim == 0 {
		return nil, fmt.Errorf("mixture: a basis per class needs a mixture with classes")
	}
	p := &principal{net: n}
	if b.J() > 1 {
		var err error
		if p.member, err = n.members(values[2], b); err != nil {
			return nil, err
		}
	}
	numbers, err := json.Marshal([]any{c, p.member, nil}) // what is built into the graph
	p.spec = kernels.Spec{
		Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels, Labels: c.LabelDim,
		SigmaData: c.SigmaData, Key: fmt.Sprintf("mixture %x", sha256.Sum256(numbers)),
	}
	return p, err
}

// members finds the subspace of every axis.
func (n *Net) members(axes []float32, b *basis.Basis) ([][][]float64, error) {
	d, hw, channels := n.cfg.Pixels(), b.H()*b.W(), n.cfg.ImgChannels
	plane, parts := make([]float64, hw), make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, hw)
	}
	out := make([][][]float64, len(n.cfg.Components))
	for i, k := range n.cfg.Components {
		label := k.Label
		if n.cfg.LabelDim == 0 {
			label = basis.Shared
		}
		for a := range d {
			row := make([]float64, b.J()) // squared lengths of the axis in the subspaces
			for c := range channels {
				for q := range plane {
					plane[q] = float64(axes[(i*d+a)*d+q*channels+c])
				}
				if err := b.Split(label, plane, parts); err != nil {
					return nil, err
				}
				for j, part := range parts {
					row[j] += floats.Dot(part, part)
				}
			}
			nearest := floats.MaxIdx(row)
			if outside := 1 - row[nearest]; outside > alignedTolerance {
				return nil, fmt.Errorf("mixture: %.2g of axis %d lies outside its subspace; several subspaces need covariances "+
					"that do not mix them, as dct ones do not", outside, a)
			}
			clear(row)
			row[nearest] = 1
			out[i] = append(out[i], row)
		}
	}
	return out, nil
}

// Spec implements [kernels.Network].
func (p *principal) Spec() kernels.Spec { return p.spec }

// Params implements [kernels.Network].
func (p *principal) Params() []nn.Param { return p.net.Params() }

// Flow implements [kernels.FlowNetwork].
func (p *principal) Flow(s *nn.Scope, x, g, label *graph.Node) *graph.Node {
	n, d, batch := len(p.net.cfg.Components), p.net.cfg.Pixels(), x.Shape().Dimensions[0]
	means, variances, axes := s.Param(meansName), s.Param(variancesName), s.Param(axesName)
	diff := graph.Sub(graph.Reshape(x, batch, 1, d), graph.InsertAxes(means, 0)) // [B, n, d]

	density, parts := p.separate(diff, g, variances, axes) // [B, n], and each component's own flow [B, n, d]
	density = graph.Add(density, p.prior(density, label))
	resp := graph.Reshape(graph.Softmax(density, 1), batch, n, 1) // ρ_i
	return graph.Reshape(graph.ReduceSum(graph.Mul(resp, parts), 1), x.Shape().Dimensions...)
}

// separate returns the components' log densities and flows along their own axes.
func (p *principal) separate(diff, g, variances, axes *graph.Node) (density, flow *graph.Node) {
	var noise *graph.Node // of each axis, [B, n or 1, d or 1]
	if p.member == nil {
		noise = graph.Reshape(g, g.Shape().Dimensions[0], 1, 1)
	} else {
		noise = graph.DotGeneral(g, []int{1}, nil, graph.ConstAsDType(g.Graph(), g.DType(), p.member), []int{2}, nil)
	}
	total := graph.Add(graph.InsertAxes(variances, 0), noise) // λ + g
	// [B, n, a]
	y := graph.TransposeAllAxes(graph.DotGeneral(diff, []int{2}, []int{1}, axes, []int{2}, []int{0}), 1, 0, 2)
	density = graph.ReduceSum(graph.Add(graph.Div(graph.Square(y), total), graph.Log(total)), 2) // [B, n]
	// [B, n, a]
	scaled := graph.Neg(graph.Div(graph.Mul(graph.Sqrt(noise), y), total))
	// [B, n, d]
	flow = graph.TransposeAllAxes(graph.DotGeneral(scaled, []int{2}, []int{1}, axes, []int{1}, []int{0}), 1, 0, 2)
	return graph.MulScalar(density, -0.5), flow
}

// barred is the log weight of components of other classes than the sample's.
const barred = -1e30

// prior returns ln π_i, and bars the components of other classes than the sample's. Without a label all count.
func (p *principal) prior(like, label *graph.Node) *graph.Node {
	components := p.net.cfg.Components
	logs := make([]float64, len(components))
	for i, k := range components {
		logs[i] = math.Log(k.Weight)
	}
	out := graph.InsertAxes(graph.ConstAsDType(like.Graph(), like.DType(), logs), 0)
	if label == nil {
		return out
	}
	others := make([][]float64, p.net.cfg.LabelDim) // [L, n]
	for l := range others {
		others[l] = make([]float64, len(components))
		for i, k := range components {
			if k.Label != l {
				others[l][i] = barred
			}
		}
	}
	bar := graph.DotGeneral(label, []int{1}, nil, graph.ConstAsDType(like.Graph(), like.DType(), others), []int{0}, nil)
	return graph.Add(bar, out)
}
