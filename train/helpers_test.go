package train

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/traintest"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// tinyNetwork is a network that compiles in a moment.
const tinyNetwork = `{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
	"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`

// tinyData is two classes of 4×4 images, by turns: a bright left or right half, with noise.
func tinyData(tb testing.TB, n int) *data.Dataset {
	tb.Helper()
	return labelledData(tb, n, func(i int) int { return i % 2 })
}

// labelledData is tinyData with the classes of labelOf.
func labelledData(tb testing.TB, n int, labelOf func(i int) int) *data.Dataset {
	tb.Helper()
	im := data.Images{Height: 4, Width: 4, Channels: 1, Float32: make([]float32, 16*n), Labels: make([]int32, n)}
	latent.Normal(1, 0, im.Float32)
	for i := range n {
		label := labelOf(i)
		im.Labels[i] = int32(label)
		for p := range 16 {
			v := 0.1*im.Float32[i*16+p] - 0.5
			if p%4/2 == label {
				v++
			}
			im.Float32[i*16+p] = min(max(v, -1), 1)
		}
	}
	d, err := data.New(im)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// What the tests of passes use as well.
var (
	gaussian = traintest.Gaussian
	onDevice = traintest.OnDevice
	edm      = traintest.EDM
	within   = traintest.Within
)

func tinyConfig(stage string) Config {
	return Config{
		Stage: stage, Network: json.RawMessage(tinyNetwork), Batch: 8, Kimg: 0.16, LR: 1e-3, ScheduleLR: 0.03, T: 100,
		Knots:       8,
		EMAHalflife: 0.02, Seed: 3, Flip: true,
	}
}

// start begins a run, on the device of traintest unless src has one.
func start(tb testing.TB, cfg Config, src Sources) *Run {
	tb.Helper()
	return begin(tb, src, func(src Sources) (*Run, error) { return New(cfg, src) })
}

// resume is start from a state.
func resume(tb testing.TB, state *checkpoint.Run, src Sources) *Run {
	tb.Helper()
	return begin(tb, src, func(src Sources) (*Run, error) { return Resume(state, src) })
}

func begin(tb testing.TB, src Sources, open func(Sources) (*Run, error)) *Run {
	tb.Helper()
	if src.Device == nil {
		src.Device = traintest.Device(tb)
	}
	r, err := open(src)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// stateOf returns the state of a run.
func stateOf(tb testing.TB, r *Run) *checkpoint.Run {
	tb.Helper()
	state, err := r.State(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

// step takes n steps and returns their rows without the seconds, which differ.
func step(tb testing.TB, r *Run, n int) []Row {
	tb.Helper()
	var rows []Row
	for range n {
		row, err := r.Step(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		row.Seconds, row.GFLOPS = 0, 0
		rows = append(rows, row)
	}
	return rows
}

// equalRows compares rows, NaN equal to NaN.
func equalRows(a, b Row) bool {
	x, y := a.Values(), b.Values()
	for i := range x {
		if x[i] != y[i] && !(math.IsNaN(x[i]) && math.IsNaN(y[i])) {
			return false
		}
	}
	return true
}
