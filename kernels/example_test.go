package kernels_test

import (
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/internal/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// One Gaussian N(0, ¼ I) in two pixels, whose denoiser is D(x) = ¼/(¼+g) x: one
// Euler step of the probability flow from variance 0.75 towards 0,
// x ← x + √g flow, ends at D(x).
func Example() {
	dev, err := device.Open(device.Config{})
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	gauss, err := mixturetest.New(mixturetest.Settings{
		Height: 1, Width: 2, Channels: 1,
		Weights: []float64{1}, Means: [][]float64{{0, 0}}, Covs: [][]float64{{0.25, 0, 0, 0.25}},
	}, nil)
	if err != nil {
		panic(err)
	}
	model, err := kernels.NewModel(dev, gauss, nil)
	if err != nil {
		panic(err)
	}
	weights, err := model.Upload(nil) // an analytic network has no parameters
	if err != nil {
		panic(err)
	}
	defer weights.Release()

	ctx := context.Background()
	x := []float32{2, -1}
	t, err := model.NewTrajectory(ctx, weights, x, nil, 1)
	if err != nil {
		panic(err)
	}
	defer t.Close()
	if err := t.Evaluate(ctx, []float64{0.75}); err != nil {
		panic(err)
	}
	if err := t.Combine(ctx, []float64{1}, []float64{0.8660254}); err != nil {
		panic(err)
	}
	if err := t.X(x); err != nil {
		panic(err)
	}
	fmt.Printf("%.4f\n", x)
	// Output: [0.5000 -0.2500]
}
