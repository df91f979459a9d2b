package subspace

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Projector is a basis for compiled programs. Separable projectors are constants of the program. The vectors of a dense
// basis are a buffer; with a basis per class, the program gathers the vectors of each sample.
type Projector struct {
	Basis   *basis.Basis
	Key     string          // tells programs with different projectors apart
	Vectors *device.Buffer  // [rows, k, H·W] of a dense basis, an argument of every program on it; else nil
	Rows    map[int32]int32 // label → row of the vectors, if there is one basis per class; else nil
}

// NewProjector puts a basis on a device, its vectors in the type dtype.
func NewProjector(dev *device.Device, dtype dtypes.DType, b *basis.Basis) (*Projector, error) {
	p := &Projector{Basis: b, Key: b.String()}
	if b.J() == 1 {
		return p, nil
	}
	if _, _, ok := b.Separable(0); ok {
		return p, nil
	}
	groups := b.Groups()
	if b.PerClass() {
		p.Rows = map[int32]int32{}
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
				p.Rows[int32(label)] = int32(i)
			}
		}
	}
	var err error
	p.Vectors, err = device.UploadAs(dev, dtype, all, len(groups), b.K(), b.H()*b.W())
	p.Key += fmt.Sprintf("x%d", len(groups))
	return p, err
}

// In declares the projector's parameters in a graph and returns its application. It is computed in the type dtype, and
// images keep their type.
func (p *Projector) In(g *graph.Graph, dtype dtypes.DType, batch int) (s Subspaces) {
	add := func(q func(*graph.Node) *graph.Node) {
		s.nest = append(s.nest, func(x *graph.Node) *graph.Node {
			return graph.ConvertDType(q(graph.ConvertDType(x, dtype)), x.DType())
		})
	}
	if p.Vectors == nil {
		for i := range p.Basis.J() - 1 {
			qh, qw, _ := p.Basis.Separable(i)
			add(separable(g, dtype, qh, qw, p.Basis.H(), p.Basis.W()))
		}
		return s
	}
	v := graph.Parameter(g, "vectors", shapes.Make(dtype, p.Vectors.Dims()...))
	if p.Rows == nil {
		add(shared(graph.Reshape(v, p.Basis.K(), p.Basis.H()*p.Basis.W())))
		return s
	}
	rows := graph.Parameter(g, "rows", shapes.Make(dtypes.Int32, batch))
	add(perSample(graph.StopGradient(graph.Gather(v, graph.Reshape(rows, batch, 1)))))
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
func Matrix(flat []float64, n int) [][]float64 { return slices.Collect(slices.Chunk(flat, n)) }
