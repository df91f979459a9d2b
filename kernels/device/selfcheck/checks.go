package selfcheck

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// matmul computes C = A·B for A [16, 32], B [32, 8].
func matmul(ctx context.Context, dev *device.Device) (string, error) {
	const n, k, m = 16, 32, 8
	a, b := wave[float32](n*k, 0), wave[float32](k*m, 1)
	got, err := evaluate(ctx, dev, "matmul", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "a", shapes.Make(dtypes.Float32, n, k))
		y := graph.Parameter(g, "b", shapes.Make(dtypes.Float32, k, m))
		return []*graph.Node{graph.Dot(x, y)}
	}, input[float32]{a, []int{n, k}}, input[float32]{b, []int{k, m}})
	if err != nil {
		return "", err
	}
	want := make([]float64, n*m)
	for i := range n {
		for j := range m {
			for l := range k {
				want[i*m+j] += float64(a[i*k+l]) * float64(b[l*m+j])
			}
		}
	}
	return compare(got, want, 1e-4, "float32 16×32 by 32×8")
}

// pixelSum computes Σ x² over the pixels of [1, 16, 16, 64], a sum that is written in another form for XLA on the host.
func pixelSum(ctx context.Context, dev *device.Device) (string, error) {
	const pixels, channels = 16, 64
	x := wave[float32](pixels*pixels*channels, 2)
	got, err := evaluate(ctx, dev, "pixel sum", func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, pixels, pixels, channels))
		return []*graph.Node{graph.ReduceSum(graph.Square(x), 1, 2)}
	}, input[float32]{x, []int{1, pixels, pixels, channels}})
	if err != nil {
		return "", err
	}
	want := make([]float64, channels)
	for i, v := range x {
		want[i%channels] += float64(v) * float64(v)
	}
	return compare(got, want, 1e-3, "float32 squares over 16×16 pixels")
}

// The convolution of all checks: 3×3, same padding, NHWC by HWIO.
const (
	side, kernel = 6, 3
	in, out      = 2, 3
)

func conv(x, w *graph.Node) *graph.Node {
	return graph.Convolve(x, w).PadSame().Strides(1).DilationPerAxis(1, 1).Done()
}

// convolved is conv written out, for x [side, side, in] and w [kernel, kernel, in, out].
func convolved[T float32 | float64](x, w []T) []float64 {
	y := make([]float64, side*side*out)
	for r := range side {
		for c := range side {
			for dr := range kernel {
				for dc := range kernel {
					i, j := r+dr-kernel/2, c+dc-kernel/2
					if i < 0 || j < 0 || i >= side || j >= side {
						continue
					}
					for a := range in {
						for b := range out {
							y[(r*side+c)*out+b] += float64(x[(i*side+j)*in+a]) * float64(w[((dr*kernel+dc)*in+a)*out+b])
						}
					}
				}
			}
		}
	}
	return y
}

func convolution(ctx context.Context, dev *device.Device) (string, error) {
	x, w := wave[float32](side*side*in, 2), wave[float32](kernel*kernel*in*out, 3)
	got, err := evaluate(ctx, dev, "convolution", func(g *graph.Graph) []*graph.Node {
		px := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 1, side, side, in))
		pw := graph.Parameter(g, "w", shapes.Make(dtypes.Float32, kernel, kernel, in, out))
		return []*graph.Node{conv(px, pw)}
	}, input[float32]{x, []int{1, side, side, in}}, input[float32]{w, []int{kernel, kernel, in, out}})
	if err != nil {
		return "", err
	}
	return compare(got, convolved(x, w), 1e-4, "float32 3×3 on 6×6×2")
}

// secondDerivative differentiates through a convolution twice, as the schedule's
// gradient does. With f(x) = Σ (x ∗ w)³/6 the gradient of ⟨∇f, z⟩ is the Hessian
// of f times z, which central differences of the first derivative approximate:
//
//	H z ≈ (∇f(x + δz) − ∇f(x − δz)) / 2δ
func secondDerivative(ctx context.Context, dev *device.Device) (string, error) {
	const delta = 1e-5
	dims := []int{1, side, side, in}
	shape := shapes.Make(dtypes.Float64, dims...)
	w := input[float64]{wave[float64](kernel*kernel*in*out, 3), []int{kernel, kernel, in, out}}
	gradient := func(g *graph.Graph) (df, x *graph.Node) {
		x = graph.Parameter(g, "x", shape)
		y := conv(x, graph.Parameter(g, "w", shapes.Make(dtypes.Float64, w.dims...)))
		f := graph.DivScalar(graph.ReduceAllSum(graph.Mul(y, graph.Mul(y, y))), 6)
		return graph.Gradient(f, x)[0], x
	}
	x, z := wave[float64](side*side*in, 4), wave[float64](side*side*in, 5)
	got, err := evaluate(ctx, dev, "second derivative", func(g *graph.Graph) []*graph.Node {
		df, x := gradient(g)
		dz := graph.ReduceAllSum(graph.Mul(df, graph.Parameter(g, "z", shape)))
		return graph.Gradient(dz, x)
	}, input[float64]{x, dims}, w, input[float64]{z, dims})
	if err != nil {
		return "", err
	}
	var sides [2][]float64
	for i, h := range []float64{delta, -delta} {
		shifted := make([]float64, len(x))
		for j := range shifted {
			shifted[j] = x[j] + h*z[j]
		}
		sides[i], err = evaluate(ctx, dev, "first derivative", func(g *graph.Graph) []*graph.Node {
			df, _ := gradient(g)
			return []*graph.Node{df}
		}, input[float64]{shifted, dims}, w)
		if err != nil {
			return "", err
		}
	}
	want := make([]float64, len(x))
	for j := range want {
		want[j] = (sides[0][j] - sides[1][j]) / (2 * delta)
	}
	return compare(got, want, 1e-6, "float64, through a convolution, against central differences")
}

func donation(ctx context.Context, dev *device.Device) (string, error) {
	p, err := dev.Program(ctx, "selfcheck donation", func(g *graph.Graph) []*graph.Node {
		return []*graph.Node{graph.Neg(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4)))}
	})
	if err != nil {
		return "", err
	}
	b, err := dev.Upload(wave[float32](4, 0), 4)
	if err != nil {
		return "", err
	}
	res, err := p.Run(ctx, device.Donate(b))
	if err != nil {
		return "", err
	}
	res[0].Release()
	if _, err := p.Run(ctx, device.Use(b)); !errors.Is(err, device.ErrDonated) {
		return "", fmt.Errorf("using it again gave %w, want %w", err, device.ErrDonated)
	}
	return "using it again is an error, not a crash", nil
}
