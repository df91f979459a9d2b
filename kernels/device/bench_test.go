package device_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// BenchmarkRun measures one run of a trivial program: what calling the device costs.
func BenchmarkRun(b *testing.B) {
	dev := devicetest.Open(b)
	p, err := dev.Program(b.Context(), "bench x+1", affine(dtypes.Float32, 16, 1))
	if err != nil {
		b.Fatal(err)
	}
	x, err := dev.Upload(make([]float32, 16), 16)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		out, err := p.Run(b.Context(), device.Use(x))
		if err != nil {
			b.Fatal(err)
		}
		out[0].Release()
	}
}

// BenchmarkConvolutions measures a chain of convolutions with their intermediate
// tensors of 8 MiB, where the allocator's settings show.
func BenchmarkConvolutions(b *testing.B) {
	const batch, side, channels = 64, 32, 32
	dev := devicetest.Open(b)
	image := shapes.Make(dtypes.Float32, batch, side, side, channels)
	kernel := shapes.Make(dtypes.Float32, 3, 3, channels, channels)
	p, err := dev.Program(b.Context(), "bench convolutions", func(g *graph.Graph) []*graph.Node {
		x, w := graph.Parameter(g, "x", image), graph.Parameter(g, "w", kernel)
		for range 3 {
			x = graph.Tanh(graph.Convolve(x, w).PadSame().Strides(1).DilationPerAxis(1, 1).Done())
		}
		return []*graph.Node{x}
	})
	if err != nil {
		b.Fatal(err)
	}
	x, err := dev.Upload(make([]float32, image.Size()), image.Dimensions...)
	if err != nil {
		b.Fatal(err)
	}
	w, err := dev.Upload(make([]float32, kernel.Size()), kernel.Dimensions...)
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]float32, image.Size())
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		out, err := p.Run(b.Context(), device.Use(x), device.Use(w))
		if err != nil {
			b.Fatal(err)
		}
		if err := out[0].Read(dst); err != nil {
			b.Fatal(err)
		}
		out[0].Release()
	}
}
