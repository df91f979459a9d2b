package schedule_test

import (
	"errors"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// Where Φ has a closed form the knots lie on its inverse.
func TestWeightedInClosedForm(t *testing.T) {
	const T, g0, c, knots = 400.0, 1e-6, 1.5, 33
	at := func(path *schedule.Path, k int) float64 {
		tau, _ := path.Knots()
		g, _ := path.Eval(tau[k])
		return g
	}
	constant, err := schedule.Weighted([]float64{1}, []float64{3}, c, T, g0, knots)
	if err != nil {
		t.Fatal(err)
	}
	// w = σ^−2 = 1/g: Φ = ∫ s/(c+s) ds = g − c ln(c + g), inverted by bisection.
	power, err := schedule.Weighted([]float64{1e-4, 100}, []float64{1e8, 1e-4}, c, T, g0, knots)
	if err != nil {
		t.Fatal(err)
	}
	phi := func(g float64) float64 { return g - c*math.Log((c+g)/c) }
	for k := range knots {
		part := float64(k) / (knots - 1)
		want := (c+g0)*math.Pow((c+T)/(c+g0), part) - c
		if got := at(constant, k); math.Abs(got-want) > 1e-10*(c+want) {
			t.Errorf("constant weight, knot %d: g = %v, want %v", k, got, want)
		}
		g := at(power, k)
		if got := (phi(g) - phi(g0)) / (phi(T) - phi(g0)); math.Abs(got-part) > 1e-11 {
			t.Errorf("w = 1/g, knot %d: Φ(g)/Φ(T) = %v, want %v", k, got, part)
		}
	}
}

// Score matching with the weight is the trajectory loss up to one constant, whatever the error h: the two sides of
// Lemma A.2, each by quadrature along the path.
func TestWeightedIsTheLemma(t *testing.T) {
	const T, g0, c, knots = 100.0, 1e-4, 1.0, 16385
	sigma, w := []float64{0.05, 0.5, 2}, []float64{2, 9, 0.3}
	path, err := schedule.Weighted(sigma, w, c, T, g0, knots)
	if err != nil {
		t.Fatal(err)
	}
	weight := func(g float64) float64 {
		s := math.Sqrt(g)
		for i := range sigma {
			if s < sigma[i] {
				if i == 0 {
					return w[0]
				}
				part := math.Log(s/sigma[i-1]) / math.Log(sigma[i]/sigma[i-1])
				return math.Pow(w[i-1], 1-part) * math.Pow(w[i], part)
			}
		}
		return w[len(w)-1]
	}
	var quotients []float64
	for _, h := range []func(g float64) float64{
		func(float64) float64 { return 1 },
		func(g float64) float64 { return 1 / (1 + g) },
		func(g float64) float64 { return math.Exp(-g) },
	} {
		var loss, matching float64
		const parts = 400_000
		for i := range parts {
			at := T * (float64(i) + 0.5) / parts
			g, gdot := path.Eval(at)
			loss += gdot * gdot / (c + g) * h(g) * T / parts
			matching += weight(g) * h(g) * gdot * T / parts
		}
		quotients = append(quotients, loss/matching)
	}
	for _, q := range quotients[1:] {
		if math.Abs(q/quotients[0]-1) > 1e-3 {
			t.Errorf("quotients %v", quotients)
		}
	}
}

func TestWeightsThatAreRefused(t *testing.T) {
	for name, q := range map[string]struct {
		sigma, w []float64
		c        float64
		row      int
	}{
		"nothing":       {nil, nil, 1, -1},
		"unequal":       {[]float64{1, 2}, []float64{1}, 1, -1},
		"not rising":    {[]float64{1, 1}, []float64{1, 1}, 1, 1},
		"no weight":     {[]float64{1, 2}, []float64{1, 0}, 1, 1},
		"infinite":      {[]float64{math.Inf(1)}, []float64{1}, 1, 0},
		"no c":          {[]float64{1}, []float64{1}, 0, -1},
		"out of digits": {[]float64{1, 1.001}, []float64{1e-320, 1}, 1, -1},
	} {
		_, err := schedule.Weighted(q.sigma, q.w, q.c, 400, 1e-6, 32)
		var refused *schedule.Error
		if !errors.As(err, &refused) || refused.Row != q.row {
			t.Errorf("%s: %v", name, err)
		}
	}
}
