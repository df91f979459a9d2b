package train

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// TestDescentAgainstTheOracle trains schedules under the exact score of a mixture in the plane. Their energies are
// taken of one density F, measured once with 250 images at each of 160 noise levels, so they can be compared with each
// other and with the bound (∫√F dg)² almost without noise: the energy falls, never by more than its own error above its
// least so far, to within 5 % of the bound on 32 knots, and closer on 128. The start is far above. With order 2 the
// descent lowers ∫ (d ln g/ds)³ g²F ds, s = t/T, to within 10 % of its least value instead.
func TestDescentAgainstTheOracle(t *testing.T) {
	const T, g0 = 400.0, 1e-6
	set := mixturetest.Settings{
		Height: 1, Width: 2, Channels: 1, Weights: []float64{0.5, 0.3, 0.2},
		Means: [][]float64{{0.5, 0.2}, {-0.5, 0.3}, {0.1, -0.6}},
		Covs:  [][]float64{{0.02, 0.005, 0.005, 0.004}, {0.003, 0, 0, 0.02}, {0.008, -0.004, -0.004, 0.006}},
	}
	net, err := mixturetest.New(set, nil)
	if err != nil {
		t.Fatal(err)
	}
	const n = 8192
	x := make([]float64, 2*n)
	draws := uint64(0)
	net.Sample(x, func(z []float64) {
		draws++
		noise := make([]float32, len(z))
		latent.Normal(draws, 0, noise)
		for i, v := range noise {
			z[i] = float64(v)
		}
	}, func() float64 {
		draws++
		return float64(latent.Uint64(draws, 1, 0)>>11) * 0x1p-53
	})
	images := data.Images{Height: 1, Width: 2, Channels: 1, Unbounded: true, Float32: make([]float32, 2*n)}
	for i, v := range x {
		images.Float32[i] = float32(v)
	}
	d, err := data.New(images)
	if err != nil {
		t.Fatal(err)
	}
	m, w := onDevice(t, net, basis.None(1, 2))
	oracle, err := passes.MakeGeodesic(t.Context(), m, w, d, passes.GeodesicSettings{
		T: T, G0: g0, Samples: 250,
		Batch: 1024, Seed: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	density, bound := oracle.Schedule.Energy()[0], oracle.Reports[0].Bound
	energy := func(s *schedule.Schedule) (float64, float64) {
		return schedule.Energy([]*schedule.Path{s.At(0, 0)}, density)
	}

	begin := func(order, knots int) *Run {
		return start(t, Config{
			Stage: Isotropic, TrainNetwork: new(false), Init: "log-linear", T: T, G0: g0, Knots: knots, Order: order,
			Batch: 512, Kimg: 512 * 0.2, ScheduleLR: 0.2, ScheduleLRWarmup: 5,
		}, Sources{Dataset: d, Analytic: net})
	}
	reached := map[int]float64{}
	for _, knots := range []int{32, 128} {
		r := begin(1, knots)
		first, _ := energy(r.Schedule())
		least := first
		for range 10 {
			step(t, r, 20)
			now, stderr := energy(r.Schedule())
			if now > least+2*stderr {
				t.Errorf("%d knots: E rises from %.3f to %.3f ± %.3f", knots, least, now, stderr)
			}
			least = min(least, now)
		}
		last, _ := energy(r.Schedule())
		reached[knots] = last / bound
		t.Logf("%d knots: E %.3f → %.3f, bound %.3f, geodesic %.3f", knots, first, last, bound, oracle.Reports[0].Energy)
		if first < 1.5*bound {
			t.Errorf("the start, E = %.3f, is too near the bound, %.3f, to test a descent", first, bound)
		}
	}
	if reached[32] > 1.05 || !(reached[128] < reached[32]) || reached[128] < 1 {
		t.Errorf("energies over the bound: %v; want at most 1.05 on 32 knots, and less, but not below 1, on 128", reached)
	}

	r, cubed := begin(2, 32), 0.0
	step(t, r, 200)
	length := quad.Fixed(func(l float64) float64 {
		return math.Cbrt(math.Exp(2*l) * density[0].At(math.Exp(l)))
	}, math.Log(g0), math.Log(T), 2000, nil, 0)
	path := r.Schedule().At(0, 0)
	tau, _ := path.Knots()
	for k := 1; k < len(tau); k++ {
		cubed += quad.Fixed(func(at float64) float64 {
			g, gdot := path.Eval(at)
			return math.Pow(T*gdot/g, 3) * g * g * density[0].At(g) / T
		}, tau[k-1], tau[k], 60, nil, 0)
	}
	if ratio := cubed / math.Pow(length, 3); !(ratio > 1 && ratio < 1.1) {
		t.Errorf("of order 2 the descent ends at %.3f times the least value", ratio)
	}
}
