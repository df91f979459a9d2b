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

// coordinates are those of basis.Frequencies in which a trajectory's states are combined. They are arguments of one
// program, whatever their values.
type coordinates struct {
	count      int        // R
	axes, rows device.Arg // of the channels at each frequency, [R, H·W, C, C]; and the row of each sample, [B]
}

// UseCoordinates makes [Trajectory.CombineCoordinates] combine in the coordinates of basis.Frequencies. Call it once,
// before the first evaluation.
//
//	axes  [R][H·W·C·C], the channels' axes at each frequency; nil for the channels themselves
//	rows  [B], each sample's row of axes and of weights
func (t *Trajectory) UseCoordinates(axes [][]float64, rows []int32) error {
	m := t.model
	channels := m.spec.Channels
	var flat []float64
	for _, row := range axes {
		if row == nil {
			row = channelAxes(m.Pixels(), channels)
		}
		flat = append(flat, row...)
	}
	t.coordinates = coordinates{
		count: len(axes),
		axes:  put(t.stage, flat, len(axes), m.Pixels()/channels, channels, channels),
		rows:  t.stage.keep(m.dev.Upload(padded(rows, 1, t.batch), t.batch)),
	}
	return t.stage.err
}

// channelAxes are those of channels that are their own axes.
func channelAxes(pixels, c int) []float64 {
	axes := make([]float64, pixels*c)
	for f := range pixels / c {
		for k := range c {
			axes[(f*c+k)*c+k] = 1
		}
	}
	return axes
}

// CombineCoordinates moves the state by itself and h parts of the history, each coordinate f of a sample's row r with
// weights of its own:
//
//	x ← Fᵀ ( w_r0 ∘ F x + Σ_i w_r(1+i) ∘ F E_i ),  E_0 the newest evaluation
//
//	weights  [R, 1 + h, H·W·C]
//
// With [Trajectory.KeepStates] E_1 is the state that E_0 was made at, E_2 the evaluation before, and so on. Weights of
// what has not been made must be zero.
func (t *Trajectory) CombineCoordinates(ctx context.Context, weights []float64) error {
	m, c := t.model, t.coordinates
	size, channels := m.Pixels(), m.spec.Channels
	parts := len(weights) / (c.count * size)
	if err := cmp.Or(t.usable(), checkLength("weights", len(weights), min(parts, 1+t.keep)*c.count*size)); err != nil {
		return err
	}
	p, err := m.coordinatesProgram(ctx, t.batch, c.count, t.keep)
	if err != nil {
		return err
	}
	s := m.stage()
	defer s.release()
	return t.run(ctx, s, p, []device.Arg{
		c.axes, c.rows, device.Use(t.x),
		put(s, c.byFrequency(weights, parts, 1+t.keep, channels), c.count, size/channels, 1+t.keep, channels),
	}, t.history)
}

// byFrequency orders weights [R, parts, H·W, C] as [R, H·W, all, C], with zeros for parts that are left out.
func (c coordinates) byFrequency(weights []float64, parts, all, channels int) []float64 {
	frequencies := len(weights) / (c.count * parts * channels)
	out := make([]float64, c.count*frequencies*all*channels)
	for r := range c.count {
		for k := range parts {
			from := weights[(r*parts+k)*frequencies*channels:]
			for f := range frequencies {
				copy(out[((r*frequencies+f)*all+k)*channels:][:channels], from[f*channels:])
			}
		}
	}
	return out
}

// coordinatesProgram is the program of CombineCoordinates.
func (m *Model) coordinatesProgram(ctx context.Context, batch, rows, h int) (*device.Program, error) {
	key := fmt.Sprintf("coordinates %d×%d×%d|%s", batch, rows, h, m.key)
	return m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		height, width, c := m.spec.Height, m.spec.Width, m.spec.Channels
		parameter := func(name string, dtype dtypes.DType, dims ...int) *Node {
			return graph.Parameter(g, name, shapes.Make(dtype, dims...))
		}
		axes := parameter("axes", m.dtype, rows, height*width, c, c)
		row := graph.Reshape(parameter("rows", dtypes.Int32, batch), batch, 1)
		images := []*Node{parameter("x", m.dtype, m.imageDims(batch)...)}
		weights := parameter("weights", m.dtype, rows, height*width, 1+h, c)
		for i := range h {
			images = append(images, parameter(fmt.Sprint("e", i), m.dtype, m.imageDims(batch)...))
		}
		own := graph.Gather(axes, row) // [B, H·W, C, C]
		left := graph.ConstAsDType(g, m.dtype, subspace.Matrix(basis.DCTRows(height, height), height))
		right := graph.ConstAsDType(g, m.dtype, subspace.Matrix(basis.DCTRows(width, width), width))
		planes := func(x *Node, contract int) *Node { // [N, H, W, C]
			y := graph.DotGeneral(left, []int{contract}, nil, x, []int{1}, nil) // [H, N, W, C]
			y = graph.DotGeneral(right, []int{contract}, nil, y, []int{2}, nil) // [W, H, N, C]
			return graph.TransposeAllAxes(y, 2, 1, 0, 3)
		}
		y := graph.Reshape(planes(graph.Concatenate(images, 0), 1), 1+h, batch, height*width, c)
		y = graph.DotGeneral(own, []int{3}, []int{0, 1}, y, []int{3}, []int{1, 2}) // [B, H·W, C, 1 + h]
		y = graph.TransposeAllAxes(y, 0, 1, 3, 2)
		y = graph.ReduceSum(graph.Mul(y, graph.Gather(weights, row)), 2)           // [B, H·W, C]
		y = graph.DotGeneral(own, []int{2}, []int{0, 1}, y, []int{2}, []int{0, 1}) // [B, H·W, C]
		return []*Node{planes(graph.Reshape(y, m.imageDims(batch)...), 0)}
	})
}
