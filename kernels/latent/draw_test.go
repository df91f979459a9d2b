package latent

import (
	"math"
	"slices"
	"sort"
	"testing"
)

// These values are what every seed of every model stands for: a change of the generator changes all samples and must be
// meant.
func TestGolden(t *testing.T) {
	z := make([]float32, 3)
	Normal(42, StreamLatent, z)
	if want := []float32{0.22313596, -0.99619246, -1.2897444}; !slices.Equal(z, want) {
		t.Errorf("Normal(42): %v, want %v", z, want)
	}
	if got := Uint64(42, 1, 7); got != 0x5281c34e4c78c45f {
		t.Errorf("Uint64: %#x", got)
	}
	if got := Perm(42, 1, 6); !slices.Equal(got, []int{2, 4, 5, 0, 1, 3}) {
		t.Errorf("Perm: %v", got)
	}
	var labels []int32
	for s := range uint64(8) {
		labels = append(labels, Label(s, 10))
	}
	if !slices.Equal(labels, []int32{8, 6, 4, 7, 7, 9, 0, 4}) {
		t.Errorf("Label: %v", labels)
	}
}

func TestNormalIsAFunctionOfPosition(t *testing.T) {
	long := make([]float32, 101)
	Normal(9, 3, long)
	for _, n := range []int{0, 1, 2, 7, 100} {
		short := make([]float32, n)
		Normal(9, 3, short)
		if !slices.Equal(short, long[:n]) {
			t.Errorf("%d numbers are not the first of %d", n, len(long))
		}
	}
	other := make([]float32, 101)
	Normal(9, 4, other)
	if slices.Equal(other, long) {
		t.Error("two streams give the same numbers")
	}
}

// kolmogorov returns √n·sup|F_n − F|; it exceeds 1.95 once in a thousand.
func kolmogorov(x []float64, cdf func(float64) float64) float64 {
	sort.Float64s(x)
	n := float64(len(x))
	var d float64
	for i, v := range x {
		f := cdf(v)
		d = max(d, math.Abs(f-float64(i)/n), math.Abs(f-float64(i+1)/n))
	}
	return d * math.Sqrt(n)
}

func TestNormalDistribution(t *testing.T) {
	const n = 200_000
	z := make([]float32, n)
	Normal(1, StreamLatent, z)
	x := make([]float64, n)
	var m [5]float64
	var neighbours float64
	for i, v := range z {
		x[i] = float64(v)
		for k := range m {
			m[k] += math.Pow(x[i], float64(k)) / n
		}
		if i > 0 {
			neighbours += x[i] * x[i-1] / n
		}
	}
	// Moments within five standard errors: Var(z^k) is 1, 2, 15, 96.
	for k, q := range []struct{ want, variance float64 }{{1, 0}, {0, 1}, {1, 2}, {0, 15}, {3, 96}} {
		if math.Abs(m[k]-q.want) > 5*math.Sqrt(q.variance/n)+1e-9 {
			t.Errorf("moment %d is %v, want %v", k, m[k], q.want)
		}
	}
	if math.Abs(neighbours) > 5/math.Sqrt(n) {
		t.Errorf("neighbours correlate: %v", neighbours)
	}
	if d := kolmogorov(x, func(v float64) float64 { return 0.5 * math.Erfc(-v/math.Sqrt2) }); d > 1.95 {
		t.Errorf("Kolmogorov's distance %v", d)
	}
}

func TestOpenNeverGivesZero(t *testing.T) {
	if lo, hi := open(0), open(math.MaxUint64); lo != 0x1p-53 || hi != 1 {
		t.Errorf("the ends are %v and %v, want 2⁻⁵³ and 1", lo, hi)
	}
}

// chiSquare reports how far counts are from uniform, in standard deviations of χ².
func chiSquare(counts []int) float64 {
	total := 0
	for _, c := range counts {
		total += c
	}
	want := float64(total) / float64(len(counts))
	var chi float64
	for _, c := range counts {
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	dof := float64(len(counts) - 1)
	return (chi - dof) / math.Sqrt(2*dof)
}

func TestLabelsAreUniform(t *testing.T) {
	for _, classes := range []int{1, 2, 3, 10, 1000} {
		counts := make([]int, classes)
		for s := range uint64(100_000) {
			counts[Label(s, classes)]++
		}
		if classes > 1 && chiSquare(counts) > 5 {
			t.Errorf("%d classes: χ² is %.1f standard deviations off", classes, chiSquare(counts))
		}
	}
}

// below refuses exactly the low words that would favour some results.
func TestBelowIsUnbiased(t *testing.T) {
	const n = 3 << 62 // 2⁶⁴ mod n = 2⁶², so a quarter of all words must go
	calls := 0
	words := []uint64{0, 1, 2} // 0·n and others: low words 0, n, 2n mod 2⁶⁴
	got := below(n, func() uint64 { calls++; return words[calls-1] })
	if calls != 2 || got != 0 {
		t.Errorf("result %d after %d words, want 0 after 2", got, calls)
	}
}

func TestPerm(t *testing.T) {
	for _, n := range []int{0, 1, 2, 50} {
		p := Perm(3, 1, n)
		sorted := slices.Sorted(slices.Values(p))
		for i, v := range sorted {
			if v != i {
				t.Fatalf("Perm(%d) = %v", n, p)
			}
		}
		if len(p) != n {
			t.Fatalf("Perm(%d) has %d entries", n, len(p))
		}
	}
	if slices.Equal(Perm(3, 1, 50), Perm(3, 2, 50)) || slices.Equal(Perm(3, 1, 50), Perm(4, 1, 50)) {
		t.Error("streams and seeds give the same order")
	}
	// All 24 orders of four, equally likely.
	counts := map[[4]int]int{}
	for s := range uint64(24_000) {
		counts[[4]int(Perm(s, 0, 4))]++
	}
	var c []int
	for _, v := range counts {
		c = append(c, v)
	}
	if len(c) != 24 || chiSquare(c) > 5 {
		t.Errorf("%d orders of four, χ² is %.1f standard deviations off", len(c), chiSquare(c))
	}
}
