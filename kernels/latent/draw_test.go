package latent

import (
	"math"
	"slices"
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

// TestNormalMoments within five standard errors: Var(z^k) is 1, 2, 15, 96.
func TestNormalMoments(t *testing.T) {
	const n = 200_000
	z := make([]float32, n)
	Normal(1, StreamLatent, z)
	for k, q := range []struct{ want, variance float64 }{{0, 1}, {1, 2}, {0, 15}, {3, 96}} {
		var moment float64
		for _, v := range z {
			moment += math.Pow(float64(v), float64(k+1)) / n
		}
		if math.Abs(moment-q.want) > 5*math.Sqrt(q.variance/n) {
			t.Errorf("moment %d is %v, want %v", k+1, moment, q.want)
		}
	}
}

func TestOpenNeverGivesZero(t *testing.T) {
	if lo, hi := open(0), open(math.MaxUint64); lo != 0x1p-53 || hi != 1 {
		t.Errorf("the ends are %v and %v, want 2⁻⁵³ and 1", lo, hi)
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
		for i, v := range slices.Sorted(slices.Values(p)) {
			if v != i || len(p) != n {
				t.Fatalf("Perm(%d) = %v", n, p)
			}
		}
	}
	if slices.Equal(Perm(3, 1, 50), Perm(3, 2, 50)) || slices.Equal(Perm(3, 1, 50), Perm(4, 1, 50)) {
		t.Error("streams and seeds give the same order")
	}
	first := map[[4]int]int{}
	for s := range uint64(24_000) {
		first[[4]int(Perm(s, 0, 4))]++
	}
	for order, count := range first { // five standard deviations
		if len(first) != 24 || math.Abs(float64(count)-1000) > 160 {
			t.Errorf("order %v comes %d times in 24000, one of %d", order, count, len(first))
		}
	}
}
