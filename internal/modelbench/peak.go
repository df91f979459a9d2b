package modelbench

import (
	"context"
	"fmt"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// MatmulRate measures the device's rate of float32 matrix products, in GFLOP/s: the best
// of several products of square matrices, of a size that takes ten milliseconds at least.
func MatmulRate(ctx context.Context, dev *device.Device) (float64, error) {
	for n := 512; ; n *= 2 {
		seconds, err := product(ctx, dev, n)
		if err != nil {
			return 0, err
		}
		if seconds >= 0.01 || n == 16384 {
			return 2e-9 * float64(n) * float64(n) * float64(n) / seconds, nil
		}
	}
}

// product returns the least time of a product of two n×n matrices.
func product(ctx context.Context, dev *device.Device, n int) (float64, error) {
	matrix, err := dev.Upload(make([]float32, n*n), n, n)
	if err != nil {
		return 0, err
	}
	defer matrix.Release()
	p, err := dev.Program(ctx, fmt.Sprint("bench product ", n), func(g *graph.Graph) []*node {
		a := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, n, n))
		b := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, n, n))
		return []*node{graph.DotGeneral(a, []int{1}, nil, b, []int{0}, nil)}
	})
	if err != nil {
		return 0, err
	}
	var least float64
	for i := range 12 {
		began := time.Now()
		out, err := p.Run(ctx, device.Use(matrix), device.Use(matrix))
		if err != nil {
			return 0, err
		}
		releaseAll(out)
		if s := time.Since(began).Seconds(); i == 0 || s < least {
			least = s
		}
	}
	return least, nil
}
