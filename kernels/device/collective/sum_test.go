package collective_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/collective"
)

// draws returns vectors of very different sizes, so that every order of adding them rounds differently.
func draws(n, vectors int) [][]float32 {
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	out := make([][]float32, vectors)
	for k := range out {
		out[k] = make([]float32, n)
		for i := range out[k] {
			out[k][i] = float32(rng.NormFloat64() * math.Exp(4*rng.NormFloat64()))
		}
	}
	return out
}

func upload(t *testing.T, on []*device.Device, x [][]float32) []*device.Buffer {
	t.Helper()
	out := make([]*device.Buffer, len(x))
	for k := range x {
		b, err := on[k].Upload(x[k], len(x[k]))
		if err != nil {
			t.Fatal(err)
		}
		out[k] = b
	}
	return out
}

// TestSumIsInOrder: on every device lie the bits of ((x_0 + x_1) + x_2) + x_3, which training relies on.
func TestSumIsInOrder(t *testing.T) {
	devices := devicetest.Several(t)
	for _, count := range []int{2, 3, 4} {
		for _, n := range []int{1, 7, 1000, 300_001} {
			x := draws(n, count)
			want, other := slices.Clone(x[0]), slices.Clone(x[count-1])
			for k := 1; k < count; k++ {
				for i := range want {
					want[i] += x[k][i]
					other[i] += x[count-1-k][i]
				}
			}
			if count > 2 && n > 100 && slices.Equal(want, other) {
				t.Fatal("the order makes no difference here")
			}
			given := upload(t, devices, x)
			sums, err := collective.Sum(t.Context(), given)
			if err != nil {
				t.Fatal(err)
			}
			for k, sum := range sums {
				got := make([]float32, n)
				if err := sum.Read(got); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d values on %d devices: device %d has other bits", n, count, k)
				}
				if sum.Device() != devices[k] {
					t.Errorf("sum %d lies on device %d", k, slices.Index(devices, sum.Device()))
				}
				if err := given[k].Read(got); !errors.Is(err, device.ErrDonated) {
					t.Errorf("term %d afterwards: %v", k, err)
				}
				sum.Release()
			}
		}
	}
	for k, d := range devices {
		if held := d.Stats().BufferBytes; held != 0 {
			t.Errorf("device %d holds %d bytes", k, held)
		}
	}
}

// TestSumBesideOthers: sums come to an end beside programs that keep all devices busy, and beside other sums.
func TestSumBesideOthers(t *testing.T) {
	devices := devicetest.Several(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	busy, stop := context.WithCancel(ctx)
	var others, sums sync.WaitGroup
	for i := range 8 {
		others.Go(func() {
			d := devices[i%4]
			p, err := d.Program(ctx, "busy f32[256,256]", func(g *graph.Graph) []*graph.Node {
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 256, 256))
				return []*graph.Node{graph.Dot(graph.Dot(x, x), x)}
			})
			if err != nil {
				t.Error(err)
				return
			}
			in, err := d.Upload(make([]float32, 256*256), 256, 256)
			if err != nil {
				t.Error(err)
				return
			}
			defer in.Release()
			for busy.Err() == nil {
				out, err := p.Run(ctx, device.Use(in))
				if err != nil {
					t.Error(err)
					return
				}
				out[0].Release()
			}
		})
	}
	x := draws(10_000, 4)
	for range 2 {
		sums.Go(func() {
			for range 25 {
				out, err := collective.Sum(ctx, upload(t, devices, x))
				if err != nil {
					t.Error(err)
					return
				}
				for _, b := range out {
					b.Release()
				}
			}
		})
	}
	sums.Wait()
	stop()
	others.Wait()
}
