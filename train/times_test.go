package train

import (
	"math"
	"slices"
	"testing"
)

// TestTimes: one time in every part, a function of seed and step alone, in an order that is not sorted.
func TestTimes(t *testing.T) {
	const n, T = 50, 10.0
	got := times(1, 7, n, T, true)
	if !slices.Equal(got, times(1, 7, n, T, true)) || slices.Equal(got, times(1, 8, n, T, true)) ||
		slices.Equal(got, times(2, 7, n, T, true)) {
		t.Error("times are no function of seed and step, or of one of them alone")
	}
	if slices.IsSorted(got) {
		t.Error("times are in order: a sorted batch would tie classes to times")
	}
	sorted := slices.Sorted(slices.Values(got))
	for i, v := range sorted {
		if v < T*float64(i)/n || v >= T*float64(i+1)/n {
			t.Errorf("part %d has time %v", i, v)
		}
	}
	free := times(1, 7, 20000, T, false)
	var sum, squares float64
	for _, v := range free {
		sum, squares = sum+v, squares+v*v
	}
	within(t, "mean", sum/20000, T/2, 5*T/math.Sqrt(12*20000))
	within(t, "mean square", squares/20000, T*T/3, 5*T*T*math.Sqrt(4.0/45/20000))
}

// TestVariances: ln σ_j has EDM's mean, and its variances add up, shared and own.
func TestVariances(t *testing.T) {
	const n, mean, std, extra = 20000, -1.2, 1.4, 0.7
	g := variances(3, 1, n, 2, mean, std, extra)
	if !slices.Equal(g, variances(3, 1, n, 2, mean, std, extra)) {
		t.Fatal("variances are no function of seed and step")
	}
	var first, square, ratio float64
	for i := range n {
		a, b := math.Log(g[2*i])/2, math.Log(g[2*i+1])/2
		first += a / n
		square += (a - mean) * (a - mean) / n
		ratio += math.Pow(2*(a-b), 2) / n
	}
	within(t, "mean ln σ", first, mean, 0.06)
	within(t, "variance of ln σ", square, std*std+extra*extra, 0.15)
	within(t, "variance of ln g₁/g₂", ratio, 8*extra*extra, 0.25)
	for i, v := range variances(3, 1, 10, 2, mean, std, 0) {
		if i%2 == 1 && v != variances(3, 1, 10, 2, mean, std, 0)[i-1] {
			t.Error("without a deviation of their own the subspaces differ")
		}
	}
}
