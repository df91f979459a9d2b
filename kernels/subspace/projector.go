package subspace

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Projector is a basis as compiled programs take it. Separable projectors are constants of the program; the vectors of
// a dense basis are a buffer, from which a basis per class gathers every sample's own.
type Projector struct {
	basis   *basis.Basis
	key     string
	vectors *device.Buffer  // [rows, k, H·W] of a dense basis, else nil
	rows    map[int32]int32 // label → row, if there is one basis per class
}

// NewProjector puts a basis on a device, its vectors in the type dtype.
func NewProjector(dev *device.Device, dtype dtypes.DType, b *basis.Basis) (*Projector, error) {
	p := &Projector{basis: b, key: b.String()}
	if b.J() == 1 {
		return p, nil
	}
	if _, _, ok := b.Separable(); ok {
		return p, nil
	}
	groups := b.Groups()
	if b.PerClass() {
		p.rows = map[int32]int32{}
	}
	var all []float64
	for i, labels := range groups {
		v, err := b.Vectors(labels[0])
		if err != nil {
			return nil, err
		}
		all = append(all, v...)
		if b.PerClass() {
			for _, label := range labels {
				p.rows[int32(label)] = int32(i)
			}
		}
	}
	var err error
	p.vectors, err = device.UploadAs(dev, dtype, all, len(groups), b.K(), b.H()*b.W())
	p.key += fmt.Sprintf("x%d", len(groups))
	return p, err
}

// Basis returns the basis.
func (p *Projector) Basis() *basis.Basis { return p.basis }

// Key tells programs with different projectors apart.
func (p *Projector) Key() string { return p.key }

// Vectors returns the vectors of a dense basis, an argument of every program on it; else nil.
func (p *Projector) Vectors() *device.Buffer { return p.vectors }

// PerClass reports whether a sample's label chooses its projectors.
func (p *Projector) PerClass() bool { return p.rows != nil }

// Row returns the row of the vectors that belongs to a label, and reports whether there is one.
func (p *Projector) Row(label int32) (int32, bool) {
	row, ok := p.rows[label]
	return row, ok
}

// In declares the projector's parameters and returns its application, which is computed in the type dtype and takes and
// gives images of any.
func (p *Projector) In(g *graph.Graph, dtype dtypes.DType, batch int) Subspaces {
	s := p.nested(g, dtype, batch)
	for i, q := range s.nest {
		s.nest[i] = func(x *graph.Node) *graph.Node { return graph.ConvertDType(q(graph.ConvertDType(x, dtype)), x.DType()) }
	}
	return s
}

func (p *Projector) nested(g *graph.Graph, dtype dtypes.DType, batch int) Subspaces {
	var s Subspaces
	if p.basis.J() == 1 {
		return s
	}
	if p.vectors == nil {
		for i := range p.basis.J() - 1 {
			qh, qw, _ := p.basis.SeparableAt(i)
			s.nest = append(s.nest, separable(g, dtype, qh, qw, p.basis.H(), p.basis.W()))
		}
		return s
	}
	v := graph.Parameter(g, "vectors", shapes.Make(dtype, p.vectors.Dims()...))
	if !p.PerClass() {
		k, hw := p.basis.K(), p.basis.H()*p.basis.W()
		s.nest = append(s.nest, shared(graph.Reshape(v, k, hw)))
		return s
	}
	rows := graph.Parameter(g, "rows", shapes.Make(dtypes.Int32, batch))
	own := graph.StopGradient(graph.Gather(v, graph.Reshape(rows, batch, 1)))
	s.nest = append(s.nest, perSample(own))
	return s
}

// separable returns X ↦ Q_H X Q_W on every channel.
func separable(g *graph.Graph, dtype dtypes.DType, qh, qw []float64, h, w int) func(*graph.Node) *graph.Node {
	left := graph.ConstAsDType(g, dtype, Matrix(qh, h))
	right := graph.ConstAsDType(g, dtype, Matrix(qw, w))
	return func(x *graph.Node) *graph.Node {
		y := graph.DotGeneral(left, []int{1}, nil, x, []int{1}, nil) // [H, B, W, C]
		y = graph.DotGeneral(right, []int{1}, nil, y, []int{2}, nil) // [W, H, B, C]
		return graph.TransposeAllAxes(y, 2, 1, 0, 3)
	}
}

// shared returns x ↦ Vᵀ V x for V [k, H·W].
func shared(v *graph.Node) func(*graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node {
		d := x.Shape().Dimensions
		f := graph.Reshape(x, d[0], d[1]*d[2], d[3])
		c := graph.DotGeneral(v, []int{1}, nil, f, []int{1}, nil) // [k, B, C]
		y := graph.DotGeneral(v, []int{0}, nil, c, []int{0}, nil) // [H·W, B, C]
		return graph.Reshape(graph.TransposeAllAxes(y, 1, 0, 2), d...)
	}
}

// perSample returns x_b ↦ V_bᵀ V_b x_b for V [B, k, H·W].
func perSample(v *graph.Node) func(*graph.Node) *graph.Node {
	return func(x *graph.Node) *graph.Node {
		d := x.Shape().Dimensions
		f := graph.Reshape(x, d[0], d[1]*d[2], d[3])
		c := graph.DotGeneral(v, []int{2}, []int{0}, f, []int{1}, []int{0}) // [B, k, C]
		y := graph.DotGeneral(v, []int{1}, []int{0}, c, []int{1}, []int{0}) // [B, H·W, C]
		return graph.Reshape(y, d...)
	}
}

// Matrix shapes a flat n×n matrix for a constant.
func Matrix(flat []float64, n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = flat[i*n : (i+1)*n]
	}
	return out
}
