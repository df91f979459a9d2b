package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// draw applies f to ones [rows, columns] in training, and returns the result and the random state afterwards.
func draw(t *testing.T, dev *device.Device, key string, rows, columns int, rng []uint64,
	f func(s *nn.Scope, x *nn.Node) *nn.Node,
) ([]float32, []uint64) {
	t.Helper()
	program, err := dev.Program(t.Context(), t.Name()+key, func(g *graph.Graph) []*nn.Node {
		s := nn.NewScope(nil, nil)
		s.RNG = graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))
		y := f(s, graph.Ones(g, shapes.Make(dtypes.Float32, rows, columns)))
		return []*nn.Node{y, s.RNG}
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := dev.Upload(rng, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	out, err := program.Run(t.Context(), device.Use(b))
	if err != nil {
		t.Fatal(err)
	}
	y, state := make([]float32, rows*columns), make([]uint64, 3)
	if err := out[0].Read(y); err != nil {
		t.Fatal(err)
	}
	if err := out[1].Read(state); err != nil {
		t.Fatal(err)
	}
	return y, state
}

func TestDropout(t *testing.T) {
	const n, rate = 1 << 16, 0.13
	drop := func(s *nn.Scope, x *nn.Node) *nn.Node { return nn.Dropout(s, x, rate) }
	for _, dev := range []*device.Device{devicetest.PureGo(t), devicetest.Open(t)} {
		y, next := draw(t, dev, "", 1, n, []uint64{1, 2, 3}, drop)
		dropped := 0
		for _, v := range y {
			switch v {
			case 0:
				dropped++
			case float32(1 / (1 - rate)):
			default:
				t.Fatalf("%s: one became %v", dev.Name(), v)
			}
		}
		if e := math.Abs(float64(dropped) - rate*n); e > 5*math.Sqrt(n*rate*(1-rate)) {
			t.Errorf("%s: %d of %d dropped, want about %v", dev.Name(), dropped, n, rate*n)
		}

		again, _ := draw(t, dev, "", 1, n, []uint64{1, 2, 3}, drop)
		if !slices.Equal(y, again) {
			t.Errorf("%s: one state gives two masks", dev.Name())
		}
		other, _ := draw(t, dev, "", 1, n, next, drop)
		both := 0
		for i := range y {
			if y[i] == 0 && other[i] == 0 {
				both++
			}
		}
		if e := math.Abs(float64(both) - rate*rate*n); e > 5*math.Sqrt(n*rate*rate) {
			t.Errorf("%s: %d entries dropped twice in a row, want about %v", dev.Name(), both, rate*rate*n)
		}
	}
}

func TestDropRows(t *testing.T) {
	const rows, columns, rate = 4096, 3, 0.25
	y, _ := draw(t, devicetest.PureGo(t), "", rows, columns, []uint64{1, 2, 3}, func(s *nn.Scope, x *nn.Node) *nn.Node {
		return nn.DropRows(s, x, rate)
	})
	dropped := 0
	for row := range slices.Chunk(y, columns) {
		if row[0] == 0 {
			dropped++
		}
		if row[0] != row[1] || row[1] != row[2] || row[0] != 0 && row[0] != 1 {
			t.Fatalf("a row of ones became %v", row)
		}
	}
	if e := math.Abs(float64(dropped) - rate*rows); e > 5*math.Sqrt(rows*rate*(1-rate)) {
		t.Errorf("%d of %d rows dropped, want about %v", dropped, rows, rate*rows)
	}
}
