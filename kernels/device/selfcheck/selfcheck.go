// Package selfcheck checks a device: it runs small programs in float32 and compares them with the pure-Go backend's
// results in float64. `anisoflight doctor` prints the results. Begin reading at [Run].
package selfcheck

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Result is the outcome of one check.
type Result struct {
	Name    string
	Detail  string // the largest deviation
	Seconds float64
	Err     error // nil if the check passed
}

// check is a program with inputs of the given sizes. On XLA for CPU the given number of its places must be rewritten;
// see kernels/device/internal/rewrite.
type check struct {
	name   string
	places int64
	sizes  [][]int
	build  func(in []*graph.Node) *graph.Node
}

// With 128 channels, Winograd's method is used for a convolution and for its kernel's gradient.
var image, kernel = []int{1, 8, 8, 128}, []int{3, 3, 128, 128}

var checks = []check{
	{"matrix product", 0, [][]int{{16, 32}, {32, 8}}, func(in []*graph.Node) *graph.Node {
		return graph.Dot(in[0], in[1])
	}},
	{"sum over pixels", 1, [][]int{{1, 16, 16, 64}}, func(in []*graph.Node) *graph.Node {
		return graph.ReduceSum(graph.Square(in[0]), 1, 2)
	}},
	{"values of groups", 1, [][]int{{1, 4, 1}, {1, 4, 8}}, func(in []*graph.Node) *graph.Node { // as in group norms
		return graph.Mul(graph.BroadcastToDims(in[0], 1, 4, 8), in[1])
	}},
	{"convolution", 1, [][]int{image, kernel}, func(in []*graph.Node) *graph.Node {
		return nn.Convolve(in[0], in[1], 1)
	}},
	{"kernel's gradient", 1, [][]int{image, image, kernel}, func(in []*graph.Node) *graph.Node {
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(nn.Convolve(in[0], in[2], 1), in[1])), in[2])[0]
	}},
	{"second derivative", 0, [][]int{{1, 6, 6, 2}, {3, 3, 2, 3}, {1, 6, 6, 2}}, func(in []*graph.Node) *graph.Node {
		y := nn.Convolve(in[0], in[1], 1) // H z with H the Hessian of Σ y³/6, as the schedule's gradient has it
		first := graph.Gradient(graph.DivScalar(graph.ReduceAllSum(graph.Mul(y, graph.Square(y))), 6), in[0])[0]
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(first, in[2])), in[0])[0]
	}},
}

// Run runs all checks.
func Run(ctx context.Context, dev *device.Device) (results []Result) {
	autodiff.Install()
	reference, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		return []Result{{Name: "pure-Go backend", Err: err}}
	}
	defer reference.Close()
	for _, c := range checks {
		start := time.Now()
		detail, err := c.run(ctx, dev, reference)
		results = append(results, Result{Name: c.name, Detail: detail, Seconds: time.Since(start).Seconds(), Err: err})
	}
	return results
}

func (c check) run(ctx context.Context, dev, reference *device.Device) (detail string, err error) {
	before := dev.Stats()
	got, err := c.evaluate(ctx, dev, dtypes.Float32)
	if err != nil {
		return "", err
	}
	want, err := c.evaluate(ctx, reference, dtypes.Float64)
	if err != nil {
		return "", err
	}
	deviation := floats.Distance(got, want, 2) / floats.Norm(want, 2) // NaN if got has no numbers
	detail = fmt.Sprintf("relative deviation %.1e", deviation)
	if !(deviation <= tolerance) {
		return detail, fmt.Errorf("the relative deviation %.3g exceeds %.0e", deviation, tolerance)
	}
	return detail, c.rewritten(dev, before)
}

// rewritten returns an error if programs compiled since before have too few rewritten places.
func (c check) rewritten(dev *device.Device, before device.Stats) error {
	now := dev.Stats()
	places := now.Rewritten - before.Rewritten
	if dev.Name() != "xla:"+string(device.CPU) || now.Compiled == before.Compiled || places >= c.places {
		return nil
	}
	return fmt.Errorf("right, but slow: %d places of the program were rewritten for XLA's CPU compiler, want %d; "+
		"the rules of kernels/device/internal/rewrite do not match what this release of go-xla writes", places, c.places)
}

// evaluate runs the program in a type, with inputs of order one that do not repeat.
func (c check) evaluate(ctx context.Context, dev *device.Device, dtype dtypes.DType) ([]float64, error) {
	p, err := dev.Program(ctx, "selfcheck "+c.name, func(g *graph.Graph) []*graph.Node {
		var in []*graph.Node
		for i, dims := range c.sizes {
			in = append(in, graph.Parameter(g, fmt.Sprint("x", i), shapes.Make(dtype, dims...)))
		}
		return []*graph.Node{c.build(in)}
	})
	if err != nil {
		return nil, err
	}
	var args []device.Arg
	for i, dims := range c.sizes {
		x := make([]float32, shapes.Make(dtype, dims...).Size())
		for k := range x {
			x[k] = float32(math.Sin(float64(i) + 1.7*float64(k)))
		}
		b, err := device.UploadAs(dev, dtype, x, dims...)
		if err != nil {
			return nil, err
		}
		defer b.Release()
		args = append(args, device.Use(b))
	}
	out, err := p.Run(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer out[0].Release()
	got := make([]float64, out[0].Size())
	return got, device.Download(out[0], got)
}

// tolerance is many times the rounding of float32.
const tolerance = 1e-5
