package kernels

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/subspace"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// coordinates are the bands of frequencies in which a trajectory's states are combined.
type coordinates struct {
	bands basis.Bands
	count int         // of bands
	axes  [][]float64 // of the channels in each band, [R][count·C·C], nil for the channels themselves
	rows  device.Arg  // of each sample, [B]
}

// UseCoordinates sets the bands of frequencies for [Trajectory.CombineCoordinates]. Call it once, before the first
// evaluation.
//
//	axes  [R][bands·C·C], axes of the channels in each band; nil for the channels themselves
//	rows  [B], the row of axes and weights for each sample
func (t *Trajectory) UseCoordinates(bands basis.Bands, axes [][]float64, rows []int32) error {
	if bands.H*bands.W*bands.C != t.model.Pixels() {
		return checkLength("bands", bands.H*bands.W*bands.C, t.model.Pixels())
	}
	t.coordinates = coordinates{
		bands: bands, count: bands.Parts() / bands.C, axes: axes,
		rows: t.stage.keep(t.model.dev.Upload(padded(rows, 1, t.batch), t.batch)),
	}
	return t.stage.err
}

// CombineCoordinates moves the state, with its own weight for each part: an axis of a band. For a sample of row r and
// h entries of the history,
//
//	x ← Fᵀ ( w_r0 ∘ F x + Σ_i w_r(1+i) ∘ F E_i ),  E_0 the newest evaluation
//
//	weights  [R, 1 + h, parts]
//
// With [Trajectory.KeepStates], E_1 is the state of evaluation E_0, E_2 the evaluation before, and so on. Weights of
// entries that do not exist yet must be zero.
func (t *Trajectory) CombineCoordinates(ctx context.Context, weights []float64) error {
	m, c := t.model, t.coordinates
	channels, row := c.bands.C, len(c.axes)*c.count*c.bands.C
	terms := len(weights) / row
	if err := cmp.Or(t.usable(), checkLength("weights", len(weights), min(terms, 1+t.keep)*row)); err != nil {
		return err
	}
	p, err := m.coordinatesProgram(ctx, t.batch, len(c.axes), t.keep, c)
	if err != nil {
		return err
	}
	s := m.stage()
	defer s.release()
	matrices := put(s, c.matrices(weights, terms, 1+t.keep), len(c.axes)*c.count, 1+t.keep, channels, channels)
	return t.run(ctx, s, p, []device.Arg{c.rows, device.Use(t.x), matrices}, t.history)
}

// matrices returns Σ_k A_k w_k A_kᵀ for weights [R, terms, parts] and axes A_k, as [R, bands, all, C, C]. Terms beyond
// those given are zero.
func (c coordinates) matrices(weights []float64, terms, all int) []float64 {
	n := c.bands.C
	out := make([]float64, len(c.axes)*c.count*all*n*n)
	for r, axes := range c.axes {
		for band := range c.count {
			for term := range terms {
				to := out[((r*c.count+band)*all+term)*n*n:]
				for k, w := range weights[((r*terms+term)*c.count+band)*n:][:n] {
					if axes == nil {
						to[k*n+k] = w
						continue
					}
					axis := axes[(band*n+k)*n:][:n]
					for a, x := range axis {
						for b, y := range axis {
							to[a*n+b] += w * x * y
						}
					}
				}
			}
		}
	}
	return out
}

// coordinatesProgram is the program of CombineCoordinates.
func (m *Model) coordinatesProgram(ctx context.Context, batch, rows, h int, in coordinates) (*device.Program, error) {
	key := fmt.Sprintf("coordinates %d×%d×%d in %d|%s", batch, rows, h, in.bands.N, m.key)
	return m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		height, width, c := in.bands.H, in.bands.W, in.bands.C
		parameter := func(name string, dtype dtypes.DType, dims ...int) *Node {
			return graph.Parameter(g, name, shapes.Make(dtype, dims...))
		}
		row := parameter("rows", dtypes.Int32, batch)
		images := []*Node{parameter("x", m.dtype, m.imageDims(batch)...)}
		matrices := parameter("matrices", m.dtype, rows*in.count, 1+h, c, c)
		for i := range h {
			images = append(images, parameter(fmt.Sprint("e", i), m.dtype, m.imageDims(batch)...))
		}
		band, _ := in.bands.Index()
		index := graph.ConstAsDType(g, dtypes.Int32, [][]int{band})
		index = graph.Add(graph.MulScalar(graph.Reshape(row, batch, 1), in.count), index) // [B, H·W]
		left := graph.ConstAsDType(g, m.dtype, subspace.Matrix(basis.DCTRows(height, height), height))
		right := graph.ConstAsDType(g, m.dtype, subspace.Matrix(basis.DCTRows(width, width), width))
		planes := func(x *Node, contract int) *Node { // [N, H, W, C]
			y := graph.DotGeneral(left, []int{contract}, nil, x, []int{1}, nil) // [H, N, W, C]
			y = graph.DotGeneral(right, []int{contract}, nil, y, []int{2}, nil) // [W, H, N, C]
			return graph.TransposeAllAxes(y, 2, 1, 0, 3)
		}
		y := graph.Reshape(planes(graph.Concatenate(images, 0), 1), 1+h, batch, height*width, 1, c)
		y = graph.TransposeAllAxes(y, 1, 2, 0, 3, 4)
		chosen := graph.Gather(matrices, graph.InsertAxes(index, -1)) // [B, H·W, 1 + h, C, C]
		y = graph.ReduceSum(graph.Mul(chosen, y), 2, 4)               // symmetric in the channels
		return []*Node{planes(graph.Reshape(y, m.imageDims(batch)...), 0)}
	})
}
