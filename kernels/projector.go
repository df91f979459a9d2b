package kernels

import (
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// projector is a basis as compiled programs take it. Separable projectors are
// constants of the program; the vectors of a dense basis are a buffer, from
// which a basis per class gathers every sample's own.
type projector struct {
	basis   *basis.Basis
	key     string
	vectors *device.Buffer  // [rows, k, H·W] of a dense basis, else nil
	rows    map[int32]int32 // label → row, if there is one basis per class
}

func newProjector(dev *device.Device, dtype dtypes.DType, b *basis.Basis) (*projector, error) {
	p := &projector{basis: b, key: b.String()}
	if b.J() == 1 {
		return p, nil
	}
	if _, _, ok := b.Separable(); ok {
		return p, nil
	}
	if b.J() != 2 {
		return nil, inputf("basis", "must have 2 subspaces where it is dense, got %d", b.J())
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
	p.vectors, err = upload(dev, dtype, all, len(groups), b.K(), b.H()*b.W())
	p.key += fmt.Sprintf("x%d", len(groups))
	return p, err
}

// perClass reports whether a sample's label chooses its projectors.
func (p *projector) perClass() bool { return p.rows != nil }

// rowsOf maps labels to rows of the vectors.
func (p *projector) rowsOf(labels []int32) ([]int32, error) {
	out := make([]int32, len(labels))
	for i, label := range labels {
		row, ok := p.rows[label]
		if !ok {
			return nil, inputf("labels", "must be classes that the basis holds vectors for, got %d in sample %d", label, i)
		}
		out[i] = row
	}
	return out, nil
}

// subspaces declares the projector's parameters and returns its application, which is
// computed in the type dtype and takes and gives images of any.
func (p *projector) subspaces(g *graph.Graph, dtype dtypes.DType, batch int) subspaces {
	s := p.nested(g, dtype, batch)
	for i, q := range s.nest {
		s.nest[i] = func(x *Node) *Node { return graph.ConvertDType(q(graph.ConvertDType(x, dtype)), x.DType()) }
	}
	return s
}

func (p *projector) nested(g *graph.Graph, dtype dtypes.DType, batch int) subspaces {
	var s subspaces
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
	if !p.perClass() {
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
func separable(g *graph.Graph, dtype dtypes.DType, qh, qw []float64, h, w int) func(*Node) *Node {
	left := graph.ConstAsDType(g, dtype, matrix(qh, h))
	right := graph.ConstAsDType(g, dtype, matrix(qw, w))
	return func(x *Node) *Node {
		y := graph.DotGeneral(left, []int{1}, nil, x, []int{1}, nil) // [H, B, W, C]
		y = graph.DotGeneral(right, []int{1}, nil, y, []int{2}, nil) // [W, H, B, C]
		return graph.TransposeAllAxes(y, 2, 1, 0, 3)
	}
}

// shared returns x ↦ Vᵀ V x for V [k, H·W].
func shared(v *Node) func(*Node) *Node {
	return func(x *Node) *Node {
		d := x.Shape().Dimensions
		f := graph.Reshape(x, d[0], d[1]*d[2], d[3])
		c := graph.DotGeneral(v, []int{1}, nil, f, []int{1}, nil) // [k, B, C]
		y := graph.DotGeneral(v, []int{0}, nil, c, []int{0}, nil) // [H·W, B, C]
		return graph.Reshape(graph.TransposeAllAxes(y, 1, 0, 2), d...)
	}
}

// perSample returns x_b ↦ V_bᵀ V_b x_b for V [B, k, H·W].
func perSample(v *Node) func(*Node) *Node {
	return func(x *Node) *Node {
		d := x.Shape().Dimensions
		f := graph.Reshape(x, d[0], d[1]*d[2], d[3])
		c := graph.DotGeneral(v, []int{2}, []int{0}, f, []int{1}, []int{0}) // [B, k, C]
		y := graph.DotGeneral(v, []int{1}, []int{0}, c, []int{1}, []int{0}) // [B, H·W, C]
		return graph.Reshape(y, d...)
	}
}

// matrix shapes a flat n×n matrix for a constant.
func matrix(flat []float64, n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = flat[i*n : (i+1)*n]
	}
	return out
}
