package nn_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// draw applies f twice to ones [rows, columns] in training, one after the other.
func draw(t *testing.T, dev *device.Device, rows, columns int, f func(s *nn.Scope, x *nn.Node) *nn.Node) [][]float64 {
	t.Helper()
	return devicetest.Compute(t, dev, "", func(in []*nn.Node) []*nn.Node {
		s := nn.NewScope(nil, nil)
		s.RNG = in[0]
		x := graph.Ones(in[0].Graph(), shapes.Make(dtypes.Float32, rows, columns))
		return []*nn.Node{f(s, x), f(s, x)}
	}, devicetest.Input{Flat: []uint64{1, 2, 3}, Dims: []int{3}})
}

func TestDropout(t *testing.T) {
	const n, rate = 1 << 16, 0.13
	drop := func(s *nn.Scope, x *nn.Node) *nn.Node { return nn.Dropout(s, x, rate) }
	for _, dev := range []*device.Device{devicetest.PureGo(t), devicetest.Open(t)} {
		y := draw(t, dev, 1, n, drop)
		dropped, both := 0, 0
		for i, v := range y[0] {
			switch v {
			case 0:
				dropped++
			case float64(float32(1 / (1 - rate))):
			default:
				t.Fatalf("%s: one became %v", dev.Name(), v)
			}
			if v == 0 && y[1][i] == 0 {
				both++
			}
		}
		if e := math.Abs(float64(dropped) - rate*n); e > 5*math.Sqrt(n*rate*(1-rate)) {
			t.Errorf("%s: %d of %d dropped, want about %v", dev.Name(), dropped, n, rate*n)
		}
		if e := math.Abs(float64(both) - rate*rate*n); e > 5*math.Sqrt(n*rate*rate) {
			t.Errorf("%s: %d entries dropped twice in a row, want about %v", dev.Name(), both, rate*rate*n)
		}
		if again := draw(t, dev, 1, n, drop); !slices.Equal(y[0], again[0]) {
			t.Errorf("%s: one state gives two masks", dev.Name())
		}
	}
}

// TestDropoutInBFloat16: the product x/(1−rate) is rounded to bfloat16, but not its factor.
func TestDropoutInBFloat16(t *testing.T) {
	const rate, steps = 0.13, 128
	var x []float64 // what bfloat16 holds between 1 and 2
	for i := range steps {
		x = append(x, 1+float64(i)/steps)
	}
	y := devicetest.Compute(t, devicetest.Open(t), "", func(in []*nn.Node) []*nn.Node {
		s := nn.NewScope(nil, nil)
		s.RNG = in[0]
		dropped := nn.Dropout(s, graph.ConvertDType(in[1], dtypes.BFloat16), rate)
		return []*nn.Node{graph.ConvertDType(dropped, dtypes.Float32)}
	}, devicetest.Input{Flat: []uint64{1, 2, 3}, Dims: []int{3}}, devicetest.In(dtypes.Float32, x, 1, steps))[0]
	for i, got := range y {
		want := x[i] / (1 - rate)
		if half := math.Exp2(math.Floor(math.Log2(want))) / (2 * steps); got != 0 && math.Abs(got-want) > half {
			t.Errorf("%v became %v, want %v ± %v", x[i], got, want, half)
		}
	}
}

func TestDropRows(t *testing.T) {
	const rows, columns, rate = 4096, 3, 0.25
	y := draw(t, devicetest.PureGo(t), rows, columns, func(s *nn.Scope, x *nn.Node) *nn.Node {
		return nn.DropRows(s, x, rate)
	})[0]
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
