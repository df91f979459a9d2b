// Package selfcheck runs a few small programs whose results are known, to tell
// whether a device computes what it should. `anisoflight doctor` prints them.
//
// It may import kernels/device and kernels/autodiff. Begin at [Run].
package selfcheck

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/gomlx/gomlx/pkg/core/graph"

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

// Run computes a matrix product, a sum over pixels, a convolution and a second derivative on the
// device and compares them with sums written out in float64, and with central
// differences. It also reuses a donated buffer, which must be an error.
func Run(ctx context.Context, dev *device.Device) []Result {
	autodiff.Install()
	var results []Result
	for _, c := range []struct {
		name string
		run  func(context.Context, *device.Device) (string, error)
	}{
		{"matrix product", matmul},
		{"sum over pixels", pixelSum},
		{"convolution", convolution},
		{"second derivative", secondDerivative},
		{"donated buffer", donation},
	} {
		start := time.Now()
		detail, err := c.run(ctx, dev)
		results = append(results, Result{Name: c.name, Detail: detail, Seconds: time.Since(start).Seconds(), Err: err})
	}
	return results
}

// evaluate runs a program on freshly uploaded inputs and reads its first output.
func evaluate[T float32 | float64](ctx context.Context, dev *device.Device, key string,
	build func(*graph.Graph) []*graph.Node, in ...input[T],
) ([]T, error) {
	p, err := dev.Program(ctx, "selfcheck "+key, build)
	if err != nil {
		return nil, err
	}
	args := make([]device.Arg, len(in))
	for i, x := range in {
		b, err := dev.Upload(x.flat, x.dims...)
		if err != nil {
			return nil, err
		}
		defer b.Release()
		args[i] = device.Use(b)
	}
	out, err := p.Run(ctx, args...)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, b := range out {
			b.Release()
		}
	}()
	got := make([]T, out[0].Size())
	return got, out[0].Read(got)
}

type input[T any] struct {
	flat []T
	dims []int
}

// wave fills a slice with numbers of order one that repeat nowhere.
func wave[T float32 | float64](n int, phase float64) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(math.Sin(phase + 1.7*float64(i)))
	}
	return x
}

// compare reports the largest absolute deviation, and an error if it exceeds tol.
func compare[T float32 | float64](got []T, want []float64, tol float64, what string) (string, error) {
	if len(got) != len(want) {
		return what, fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	worst := 0.0
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); d > worst || math.IsNaN(d) {
			worst = d
		}
	}
	detail := fmt.Sprintf("%s, deviation %.1e", what, worst)
	if !(worst <= tol) {
		return detail, fmt.Errorf("deviation %.3g exceeds %.0e", worst, tol)
	}
	return detail, nil
}
