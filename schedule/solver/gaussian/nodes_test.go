package gaussian

import "testing"

// TestLevels: any parameters give decreasing nodes with exact ends, and every such list has parameters.
func TestLevels(t *testing.T) {
	for _, theta := range [][]float64{{}, {0}, {3, -2, 0.5}, {-4, 4, 700, 0}} {
		sigma := levels(theta, 80, 1e-4)
		n := len(theta) + 1
		if sigma[0] != 80 || sigma[n] != 1e-4 {
			t.Errorf("ends are %v, %v", sigma[0], sigma[n])
		}
		for k := 1; k <= n && n < 4; k++ {
			if sigma[k] >= sigma[k-1] {
				t.Errorf("θ = %v: nodes %v do not decrease", theta, sigma)
			}
		}
	}
	want := []float64{80, 12, 1.5, 0.3, 0.01}
	for k, got := range levels(parameters(want), want[0], want[4]) {
		near(t, "node", got, want[k], 1e-13)
	}
}

// TestGroupsKeepWholes: grouping keeps the number of directions, their variance and their squared means, and joins only
// neighbours.
func TestGroupsKeepWholes(t *testing.T) {
	s := patches(t)
	groups := groupDirections(s.Directions)
	if len(groups) >= len(s.Directions) {
		t.Errorf("%d groups of %d directions", len(groups), len(s.Directions))
	}
	var n, variance, means, want float64
	last := 0.0
	for _, g := range groups {
		n += g.n
		variance += g.n * g.Variance
		means += g.Mean * g.Mean
		if !(g.Variance > last) {
			t.Errorf("variance %v after %v", g.Variance, last)
		}
		last = g.Variance
	}
	for _, d := range s.Directions {
		want += d.Mean * d.Mean
	}
	near(t, "directions", n, float64(len(s.Directions)), 0)
	near(t, "variance", variance, s.Variance(), 1e-12)
	near(t, "squared means", means, want, 1e-12)
}
