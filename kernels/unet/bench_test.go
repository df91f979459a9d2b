package unet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// BenchmarkNetwork times a DDPM++ of 32 channels on 64 images of 8×8 pixels,
// 2.4 GFLOP forward: F, a = Jᵀw, the gradient of every parameter, and the double
// backward h = ∇ₓ⟨a, z⟩. Compilation is reported apart, in seconds.
func BenchmarkNetwork(b *testing.B) {
	cfg := unet.Defaults(unet.SongUNet)
	cfg.ImgResolution, cfg.ImgChannels, cfg.LabelDim = kernels.Square(8), 3, 10
	cfg.ModelChannels, cfg.ChannelMult, cfg.NumBlocks, cfg.AttnResolutions = 32, []int{1, 2}, 2, []int{4}
	net, err := unet.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	dev := devicetest.Open(b)
	image := shapes.Make(dtypes.Float32, 64, 8, 8, 3)
	params, values := net.Params(), net.Init(1)

	var args []device.Arg
	upload := func(v []float32, dims ...int) {
		buf, err := dev.Upload(v, dims...)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(buf.Release)
		args = append(args, device.Use(buf))
	}
	for i, p := range params {
		upload(p.ToDevice(values[i]), p.DeviceShape()...)
	}
	upload(make([]float32, 64), 64)
	for range 3 {
		upload(make([]float32, image.Size()), image.Dimensions...)
	}

	for _, c := range []struct {
		name string
		out  func(f, x, w, z *node, params []*node) []*node
	}{
		{"forward", func(f, x, w, z *node, _ []*node) []*node { return []*node{f, sum(x), sum(w), sum(z)} }},
		{"vjp", func(f, x, w, z *node, _ []*node) []*node {
			return append(graph.Gradient(inner(f, w), x), sum(z))
		}},
		{"parameters", func(f, x, w, z *node, params []*node) []*node {
			return append(graph.Gradient(inner(f, w), params...), sum(x), sum(z))
		}},
		{"double", func(f, x, w, z *node, _ []*node) []*node {
			a := graph.Gradient(inner(f, w), x)[0]
			return []*node{a, graph.Gradient(inner(a, z), x)[0]}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			start := time.Now()
			program, err := dev.Program(b.Context(), fmt.Sprint("bench ", c.name), func(g *graph.Graph) []*node {
				var in []*node
				for _, p := range params {
					in = append(in, graph.Parameter(g, p.Name, shapes.Make(dtypes.Float32, p.DeviceShape()...)))
				}
				noise := graph.Parameter(g, "noise", shapes.Make(dtypes.Float32, 64))
				x, w, z := graph.Parameter(g, "x", image), graph.Parameter(g, "w", image), graph.Parameter(g, "z", image)
				return c.out(net.Apply(nn.NewScope(params, in), x, noise, nil, nil, nil), x, w, z, in)
			})
			if err != nil {
				b.Fatal(err)
			}
			compile := time.Since(start)
			for b.Loop() {
				out, err := program.Run(b.Context(), args...)
				if err != nil {
					b.Fatal(err)
				}
				for _, o := range out {
					o.Release()
				}
			}
			b.ReportMetric(compile.Seconds(), "compile-s")
		})
	}
}

func sum(x *node) *node      { return graph.ReduceAllSum(x) }
func inner(x, y *node) *node { return sum(graph.Mul(x, y)) }
