package schedule

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSoftplusInverse(t *testing.T) {
	for _, y := range []float64{1e-300, 1e-12, 1e-8, 0.1, 1, 20, 700, 1e5} {
		if back := softplus(softplusInverse(y)); math.Abs(back/y-1) > 1e-13 {
			t.Errorf("softplus(softplus⁻¹(%v)) = %v", y, back)
		}
	}
	for _, x := range []float64{-700, -30, -1, 0, 1, 30, 1e4} {
		if back := softplusInverse(softplus(x)); math.Abs(back-x) > 1e-13*math.Max(1, math.Abs(x)) {
			t.Errorf("softplus⁻¹(softplus(%v)) = %v", x, back)
		}
	}
}

func TestEDMTheta(t *testing.T) {
	f := load(t, "schedule/edm32")
	relative(t, "θ", EDMTheta(32, f.T, f.g0), f.F64("theta"), 1e-12)
}

func TestLogLinearAndCosine(t *testing.T) {
	const T, g0, K = 400.0, 1e-6, 40
	tau, linear := LogLinearTheta(K, T, g0).Path(T, g0).Knots()
	_, cosine := CosineTheta(K, T, g0).Path(T, g0).Knots()
	lo, hi := math.Atan(math.Sqrt(g0)), math.Atan(math.Sqrt(T))
	for k, at := range tau {
		a, b := math.Log(g0)+math.Log(T/g0)*at/T, 2*math.Log(math.Tan(lo+(hi-lo)*at/T))
		if math.Abs(linear[k]-a) > 1e-9 || math.Abs(cosine[k]-b) > 1e-9 {
			t.Errorf("ln g(%v) = %v and %v, want %v and %v", at, linear[k], cosine[k], a, b)
		}
	}
}

// A path that has parameters is found again, whatever the scale of the parameters.
func TestThetaFromPathRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 50 {
		n := 1 + rng.IntN(40)
		p := randomTheta(rng, n, 6).Path(900, 1e-7)
		q := ThetaFromPath(p, n+1, 900, 1e-7).Path(900, 1e-7)
		_, a := p.Knots()
		_, b := q.Knots()
		for k := range a {
			if math.Abs(a[k]-b[k]) > 1e-11 {
				t.Fatalf("knot %d: ln g = %v, then %v", k, a[k], b[k])
			}
		}
	}
}

// Another path is met at the knots; its ends are moved.
func TestThetaFromPathMeetsKnots(t *testing.T) {
	p := path(t, []float64{0, 0.7, 10}, []float64{1e-4, 0.3, 90})
	q := ThetaFromPath(p, 11, 100, 1e-5).Path(100, 1e-5)
	if q.G0() != 1e-5 || q.GT() != 100 {
		t.Errorf("ends at %v and %v", q.G0(), q.GT())
	}
	for k := 1; k < 10; k++ {
		want, _ := p.Eval(float64(k))
		if got, _ := q.Eval(10 * float64(k)); math.Abs(got/want-1) > 1e-10 {
			t.Errorf("knot %d: %v, want %v", k, got, want)
		}
	}
}

func TestInitialTheta(t *testing.T) {
	for _, kind := range []string{"edm", "log-linear", "cosine"} {
		for _, knots := range []int{2, 3, 32} {
			th, err := InitialTheta(kind, knots, DefaultT, DefaultG0)
			if err != nil || len(th) != knots-1 || !th.Finite() {
				t.Errorf("%s on %d knots: %v, %v", kind, knots, th, err)
			}
		}
	}
	for _, q := range []struct {
		kind  string
		knots int
		T, g0 float64
	}{
		{"linear", 32, 6400, 1e-9},
		{"edm", 1, 6400, 1e-9},
		{"edm", 1 << 20, 6400, 1e-9},
		{"edm", 32, 6400, 0},
		{"edm", 32, 1, 2},
		{"edm", 32, math.Inf(1), 1e-9},
		{"edm", 32, math.NaN(), 1e-9},
		{"edm", 32, 1e-6, 1e-9},
	} {
		if th, err := InitialTheta(q.kind, q.knots, q.T, q.g0); err == nil {
			t.Errorf("%+v is accepted: %v", q, th)
		}
	}
}
