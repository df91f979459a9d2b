package train

import (
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// TestInitGeodesic: the run begins where MakeGeodesic ends, in every subspace alike, and a run resumed before or after
// its first step goes on as if it had never stopped.
func TestInitGeodesic(t *testing.T) {
	const T, g0 = 25.0, 1e-6
	b, err := basis.DCT(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	net, d := gaussian(t, b, []float64{0.04, 0.004}, 512)
	cfg := Config{
		Stage: Anisotropic, Family: schedule.Family{Basis: "dct", K: 1}, TrainNetwork: new(false), Init: "geodesic",
		T: T, G0: g0, Knots: 8, Batch: 16, Kimg: 0.16, ScheduleLR: 1e-12, Seed: 3,
	}
	r := start(t, cfg, Sources{Dataset: d, Analytic: net})
	step(t, r, 1)
	m, w := onDevice(t, net, b)
	want, err := passes.MakeGeodesic(t.Context(), m, w, d, passes.GeodesicSettings{T: T, G0: g0, Knots: 8, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []float64{0.1 * T, 0.5 * T, 0.9 * T} {
		v, _ := want.Schedule.At(0, 0).Eval(at)
		for j := range 2 {
			got, _ := r.Schedule().At(0, j).Eval(at)
			within(t, "g of a subspace", got, v, 1e-6*v)
		}
	}
	src := Sources{Dataset: d, Analytic: net}
	again := resume(t, stateOf(t, start(t, cfg, src)), src)
	step(t, again, 1)
	x, _ := r.Schedule().At(0, 0).Knots()
	y, _ := again.Schedule().At(0, 0).Knots()
	for i := range x {
		if x[i] != y[i] {
			t.Errorf("knot %d: %v, resumed %v", i, x[i], y[i])
		}
	}
}
