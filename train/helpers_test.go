package train

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

// tinyNetwork is a network that compiles in a moment.
const tinyNetwork = `{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
	"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`

// tinyData is two classes of 4×4 images: a bright left or right half, with noise.
func tinyData(tb testing.TB, n int) *data.Dataset {
	tb.Helper()
	im := data.Images{Height: 4, Width: 4, Channels: 1, Float32: make([]float32, 16*n), Labels: make([]int32, n)}
	latent.Normal(1, 0, im.Float32)
	for i := range n {
		label := i % 2
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

func tinyConfig(stage string) Config {
	return Config{
		Stage: stage, Network: json.RawMessage(tinyNetwork), Batch: 8, Kimg: 0.16, LR: 1e-3, ScheduleLR: 0.03, T: 100, Knots: 8,
		EMAHalflife: 0.02, Seed: 3, Flip: true,
	}
}

func start(tb testing.TB, cfg Config, src Sources) *Run {
	tb.Helper()
	src.Device = devicetest.Open(tb)
	r, err := New(cfg, src)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
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

// gaussian returns N(0, Σ) over images of h×w with variances[j] in subspace j of the
// basis as a network that is optimal for n images drawn from it.
func gaussian(tb testing.TB, b *basis.Basis, variances []float64, n int) (kernels.Network, *data.Dataset) {
	tb.Helper()
	return gaussianOn(tb, b, b, variances, n)
}

// whole is the same network with one noise level.
func whole(tb testing.TB, b *basis.Basis, variances []float64) kernels.Network {
	tb.Helper()
	net, _ := gaussianOn(tb, b, basis.None(b.H(), b.W()), variances, 1)
	return net
}

// gaussianOn is gaussian with noise in the subspaces of another basis.
func gaussianOn(tb testing.TB, b, noise *basis.Basis, variances []float64, n int) (kernels.Network, *data.Dataset) {
	tb.Helper()
	d := b.H() * b.W()
	cov, root := make([]float64, d*d), make([]float64, d*d)
	parts := make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, d)
	}
	unit := make([]float64, d)
	for i := range d {
		clear(unit)
		unit[i] = 1
		if err := b.Split(-1, unit, parts); err != nil {
			tb.Fatal(err)
		}
		for j, p := range parts {
			for k, v := range p {
				cov[i*d+k] += variances[j] * v
				root[i*d+k] += math.Sqrt(variances[j]) * v
			}
		}
	}
	net, err := mixture.New(mixture.Settings{
		Height: b.H(), Width: b.W(), Channels: 1, Weights: []float64{1}, Means: [][]float64{make([]float64, d)}, Covs: [][]float64{cov},
	}, noise)
	if err != nil {
		tb.Fatal(err)
	}
	white := make([]float32, n*d)
	latent.Normal(2, 0, white)
	pixels := make([]float32, n*d)
	for i := range n {
		for p := range d {
			var v float64
			for k := range d {
				v += root[p*d+k] * float64(white[i*d+k])
			}
			pixels[i*d+p] = float32(min(max(v, -1), 1))
		}
	}
	set, err := data.New(data.Images{Height: b.H(), Width: b.W(), Channels: 1, Float32: pixels})
	if err != nil {
		tb.Fatal(err)
	}
	return net, set
}

func onDevice(tb testing.TB, net kernels.Network, b *basis.Basis) (*kernels.Model, *kernels.Weights) {
	tb.Helper()
	m, err := kernels.NewModel(devicetest.Open(tb), net, b)
	if err != nil {
		tb.Fatal(err)
	}
	w, err := m.Upload(nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Release(); m.Close() })
	return m, w
}

func within(tb testing.TB, what string, got, want, tol float64) {
	tb.Helper()
	if !(math.Abs(got-want) <= tol) {
		tb.Errorf("%s: %v, want %v ± %v", what, got, want, tol)
	}
}

func refuse() *bool { return new(bool) }
