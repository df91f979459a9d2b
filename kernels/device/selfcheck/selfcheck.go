// Package selfcheck runs small programs whose results are known, to tell whether a device computes what it should.
// `anisoflight doctor` prints them. Begin reading at [Run].
package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Result is the outcome of one check.
type Result struct {
	Name    string
	Detail  string // what was compared, and the largest deviation
	Seconds float64
	Err     error // nil if the check passed
}

// check is one of the checks. On XLA for CPU the given number of places of its programs must be rewritten into the form
// that is fast there.
type check struct {
	name   string
	places int64
	run    func(context.Context, *device.Device) (detail string, err error)
}

var checks = []check{
	{"matrix product", 0, product},
	{"sum over pixels", 1, pixelSum},
	{"values of groups", 1, groupValues},
	{"convolution", 1, convolution},
	{"kernel's gradient", 1, kernelGradient},
	{"second derivative", 0, secondDerivative},
	{"donated buffer", 0, donation},
}

// Run compares what the device computes with sums written out in float64 and with central differences. It also uses a
// donated buffer again, which must be an error.
func Run(ctx context.Context, dev *device.Device) []Result {
	autodiff.Install()
	var results []Result
	for _, c := range checks {
		start, before := time.Now(), dev.Stats()
		detail, err := c.run(ctx, dev)
		if err == nil {
			err = c.rewritten(dev, before)
		}
		results = append(results, Result{Name: c.name, Detail: detail, Seconds: time.Since(start).Seconds(), Err: err})
	}
	return results
}

// rewritten returns an error if programs compiled since before were not given the form that is fast.
func (c check) rewritten(dev *device.Device, before device.Stats) error {
	now := dev.Stats()
	places := now.Rewritten - before.Rewritten
	if dev.Name() != "xla:"+string(device.CPU) || now.Compiled == before.Compiled || places >= c.places {
		return nil
	}
	return fmt.Errorf("right, but slow: %d places of the program were rewritten for XLA's CPU compiler, want %d; "+
		"the rules of kernels/device/internal/rewrite do not match what this release of go-xla writes", places, c.places)
}

func product(ctx context.Context, dev *device.Device) (string, error) {
	const n, k, m = 16, 32, 8
	a, b := wave[float32](0, n, k), wave[float32](1, k, m)
	want := make([]float64, n*m)
	for i := range n {
		for j := range m {
			for l := range k {
				want[i*m+j] += float64(a.flat[i*k+l]) * float64(b.flat[l*m+j])
			}
		}
	}
	got, err := evaluate(ctx, dev, "product", func(in []*graph.Node) *graph.Node { return graph.Dot(in[0], in[1]) }, a, b)
	return compare(got, want, 1e-4, "float32 16×32 by 32×8", err)
}

func pixelSum(ctx context.Context, dev *device.Device) (string, error) {
	const side, channels = 16, 64
	x := wave[float32](2, 1, side, side, channels)
	want := make([]float64, channels)
	for i, v := range x.flat {
		want[i%channels] += float64(v) * float64(v)
	}
	got, err := evaluate(ctx, dev, "pixel sum", func(in []*graph.Node) *graph.Node {
		return graph.ReduceSum(graph.Square(in[0]), 1, 2)
	}, x)
	return compare(got, want, 1e-3, "float32 squares over 16×16 pixels", err)
}

// groupValues multiplies channels by the value of their group, as group norms do.
func groupValues(ctx context.Context, dev *device.Device) (string, error) {
	const groups, size = 4, 8
	value, x := wave[float32](0, 1, groups, 1), wave[float32](1, 1, groups, size)
	want := make([]float64, groups*size)
	for i := range want {
		want[i] = float64(value.flat[i/size]) * float64(x.flat[i])
	}
	got, err := evaluate(ctx, dev, "group values", func(in []*graph.Node) *graph.Node {
		return graph.Mul(graph.BroadcastToDims(in[0], x.dims...), in[1])
	}, value, x)
	return compare(got, want, 1e-5, "float32, 4 groups of 8 channels", err)
}

// An image and a kernel with so many channels that Winograd's method is used.
const side, taps, channels = 8, 3, 128

func convolution(ctx context.Context, dev *device.Device) (string, error) {
	x, w := wave[float32](2, 1, side, side, channels), wave[float32](3, taps, taps, channels, channels)
	want := make([]float64, side*side*channels)
	eachTap(func(from, tap, to int) {
		for a := range channels {
			for b := range channels {
				want[to*channels+b] += float64(x.flat[from*channels+a]) * float64(w.flat[(tap*channels+a)*channels+b])
			}
		}
	})
	convolution := func(in []*graph.Node) *graph.Node { return convolve(in[0], in[1]) }
	got, err := evaluate(ctx, dev, "convolution", convolution, x, w)
	return compare(got, want, 1e-4, "float32 3×3 on 8×8×128", err)
}

// kernelGradient differentiates ⟨x ∗ w, v⟩ by w.
func kernelGradient(ctx context.Context, dev *device.Device) (string, error) {
	x, v := wave[float32](2, 1, side, side, channels), wave[float32](3, 1, side, side, channels)
	want := make([]float64, taps*taps*channels*channels)
	eachTap(func(from, tap, to int) {
		for a := range channels {
			for b := range channels {
				want[(tap*channels+a)*channels+b] += float64(x.flat[from*channels+a]) * float64(v.flat[to*channels+b])
			}
		}
	})
	got, err := evaluate(ctx, dev, "kernel gradient", func(in []*graph.Node) *graph.Node {
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(convolve(in[0], in[2]), in[1])), in[2])[0]
	}, x, v, wave[float32](4, taps, taps, channels, channels))
	return compare(got, want, 1e-4, "float32, by 3×3×128×128", err)
}

func convolve(x, w *graph.Node) *graph.Node {
	return graph.Convolve(x, w).PadSame().Strides(1).DilationPerAxis(1, 1).Done()
}

// eachTap calls f for every pixel from which a pixel of a convolution's result takes its value by a tap of the kernel.
func eachTap(f func(from, tap, to int)) {
	for to := range side * side {
		for tap := range taps * taps {
			row, column := to/side+tap/taps-taps/2, to%side+tap%taps-taps/2
			if 0 <= row && row < side && 0 <= column && column < side {
				f(row*side+column, tap, to)
			}
		}
	}
}

// secondDerivative differentiates through a convolution twice, as the schedule's gradient does. With f(x) = Σ (x ∗
// w)³/6 the gradient of ⟨∇f, z⟩ is the Hessian of f times z, which central differences of the first derivative
// approximate:
//
//	H z ≈ (∇f(x + δz) − ∇f(x − δz)) / 2δ
func secondDerivative(ctx context.Context, dev *device.Device) (string, error) {
	const delta = 1e-5
	x, z, w := wave[float64](4, 1, 6, 6, 2), wave[float64](5, 1, 6, 6, 2), wave[float64](3, taps, taps, 2, 3)
	gradient := func(x, w *graph.Node) *graph.Node {
		y := convolve(x, w)
		return graph.Gradient(graph.DivScalar(graph.ReduceAllSum(graph.Mul(y, graph.Square(y))), 6), x)[0]
	}
	var sides [2][]float64
	for i, h := range []float64{delta, -delta} {
		shifted := wave[float64](4, x.dims...)
		for j := range shifted.flat {
			shifted.flat[j] += h * z.flat[j]
		}
		var err error
		if sides[i], err = evaluate(ctx, dev, "first derivative", func(in []*graph.Node) *graph.Node {
			return gradient(in[0], in[1])
		}, shifted, w); err != nil {
			return "", err
		}
	}
	want := make([]float64, len(x.flat))
	for j := range want {
		want[j] = (sides[0][j] - sides[1][j]) / (2 * delta)
	}
	got, err := evaluate(ctx, dev, "second derivative", func(in []*graph.Node) *graph.Node {
		return graph.Gradient(graph.ReduceAllSum(graph.Mul(gradient(in[0], in[1]), in[2])), in[0])[0]
	}, x, w, z)
	return compare(got, want, 1e-6, "float64, through a convolution, against central differences", err)
}

func donation(ctx context.Context, dev *device.Device) (string, error) {
	p, err := dev.Program(ctx, "selfcheck donation", func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Neg(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4)))}
	})
	if err != nil {
		return "", err
	}
	b, err := dev.Upload(wave[float32](0, 4).flat, 4)
	if err != nil {
		return "", err
	}
	out, err := p.Run(ctx, device.Donate(b))
	if err != nil {
		return "", err
	}
	out[0].Release()
	if _, err := p.Run(ctx, device.Use(b)); !errors.Is(err, device.ErrDonated) {
		return "", fmt.Errorf("using it again gave %w, want %w", err, device.ErrDonated)
	}
	return "using it again is an error, not a crash", nil
}

// tensor is an input of a program.
type tensor[T device.Float] struct {
	flat []T
	dims []int
}

// wave returns a tensor of numbers of order one, none of which repeats.
func wave[T device.Float](phase float64, dims ...int) tensor[T] {
	n := 1
	for _, d := range dims {
		n *= d
	}
	x := tensor[T]{make([]T, n), dims}
	for i := range x.flat {
		x.flat[i] = T(math.Sin(phase + 1.7*float64(i)))
	}
	return x
}

// evaluate runs the program that build makes of parameters for the inputs, and reads its output.
func evaluate[T device.Float](ctx context.Context, dev *device.Device, key string,
	build func(in []*graph.Node) *graph.Node, inputs ...tensor[T],
) ([]T, error) {
	p, err := dev.Program(ctx, "selfcheck "+key, func(g *graph.Graph) []*graph.Node {
		var in []*graph.Node
		for i, x := range inputs {
			shape := shapes.Make(dtypes.FromGenericsType[T](), x.dims...)
			in = append(in, graph.Parameter(g, fmt.Sprint("x", i), shape))
		}
		return []*graph.Node{build(in)}
	})
	if err != nil {
		return nil, err
	}
	var args []device.Arg
	for _, x := range inputs {
		b, err := dev.Upload(x.flat, x.dims...)
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
	got := make([]T, out[0].Size())
	return got, out[0].Read(got)
}

// compare returns what was compared with the largest absolute deviation, and an error if that exceeds tolerance.
func compare[T device.Float](got []T, want []float64, tolerance float64, what string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if len(got) != len(want) {
		return what, fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	worst := 0.0
	for i, v := range want {
		if d := math.Abs(float64(got[i]) - v); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	detail := fmt.Sprintf("%s, deviation %.1e", what, worst)
	if !(worst <= tolerance) {
		return detail, fmt.Errorf("deviation %.3g exceeds %.0e", worst, tolerance)
	}
	return detail, nil
}
