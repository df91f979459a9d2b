package train

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
)

// TestGradientByDifferences compares d_θ of the mean of Σ_j A_j g_j + B_j ġ_j, two classes and two subspaces, with
// central differences; and the standard error with its definition.
func TestGradientByDifferences(t *testing.T) {
	const T, g0, n = 9.0, 1e-4, 12
	theta := [][]schedule.Theta{
		{schedule.EDMTheta(6, T, g0), schedule.LogLinearTheta(6, T, g0)},
		{schedule.CosineTheta(6, T, g0), schedule.EDMTheta(6, T, g0)},
		{schedule.EDMTheta(6, T, g0), schedule.EDMTheta(6, T, g0)}, // a class without samples
	}
	of := func(theta [][]schedule.Theta) *schedule.Schedule {
		s, err := schedule.FromTheta(schedule.Family{PerClass: true, Basis: "dct"}, []int{0, 1, 2}, theta, T, g0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	b := batch{t: times(1, 1, n, T, true)}
	A, B := make([]float64, 2*n), make([]float64, 2*n)
	for i := range n {
		b.rows = append(b.rows, i%2)
		for j := range 2 {
			A[2*i+j], B[2*i+j] = math.Sin(float64(i+j)), math.Cos(float64(3*i-j))
		}
	}
	value := func(s *schedule.Schedule, i int) (v float64) {
		for j := range 2 {
			g, gdot := s.At(b.rows[i], j).Eval(b.t[i])
			v += A[2*i+j]*g + B[2*i+j]*gdot
		}
		return v
	}
	// Two terms that sum to A and B.
	half, rest := make([]float64, 2*n), make([]float64, 2*n)
	for i, a := range A {
		half[i] = math.Sin(float64(7 * i))
		rest[i] = a - half[i]
	}
	got := gradient(of(theta), theta, b, []kernels.Part{{A: rest, B: B}, {Index: 3, A: half}})
	var norm2, variance float64
	const h = 1e-5
	for r := range theta {
		for j := range theta[r] {
			for k := range theta[r][j] {
				own := make([]float64, n) // derivatives of the samples
				keep := theta[r][j][k]
				for i := range own {
					theta[r][j][k] = keep + h
					up := value(of(theta), i)
					theta[r][j][k] = keep - h
					own[i] = (up - value(of(theta), i)) / (2 * h)
				}
				theta[r][j][k] = keep
				m, stderr := passes.MeanStderr(own)
				norm2 += m * m
				variance += stderr * stderr
				within(t, "gradient", got.mean[r][j][k], m, 1e-7*(1+math.Abs(m)))
			}
		}
	}
	within(t, "norm", got.norm, math.Sqrt(norm2), 1e-6*got.norm)
	within(t, "stderr", got.stderr, math.Sqrt(variance), 1e-6*got.stderr)
	alone := gradient(of(theta), theta, b, []kernels.Part{{Index: 3, A: half}})
	shares, stderrs := got.byTerm(got.share), got.byTerm(func(term *estimate) float64 { return term.stderr })
	within(t, "sum of the shares", shares[0]+shares[3], 1, 1e-12)
	within(t, "share of a term", shares[3], dotTables(alone.mean, got.mean)/(got.norm*got.norm), 1e-12)
	within(t, "stderr of a term", stderrs[3], alone.stderr, 1e-12*alone.stderr)
	if !math.IsNaN(shares[1]) || !math.IsNaN(stderrs[5]) {
		t.Errorf("terms that are not there have shares %v and standard errors %v", shares, stderrs)
	}
	if !got.active[0] || !got.active[1] || got.active[2] {
		t.Errorf("active rows %v", got.active)
	}
}

func TestCosineOfEstimates(t *testing.T) {
	a := [][][]float64{{{3, 0}}, {{0, 4}}, {{0, 0}}}
	b := [][][]float64{{{6, 0}}, {{0, -8}}, {{5, 5}}}
	for name, c := range map[string]struct {
		a, b [][][]float64
		want float64
	}{
		"itself":                {a, a, 1},
		"rows that both have":   {a, b, (18.0 - 32) / (5 * 10)},
		"a row in common":       {a[:1], b[:1], 1},
		"before there is any":   {a, nil, math.NaN()},
		"no row that both have": {a[2:], b[2:], math.NaN()},
	} {
		if got := cosine(c.a, c.b); !(math.Abs(got-c.want) < 1e-15) && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestGuard(t *testing.T) {
	w := newGuard(1024)
	tell := func(step int, loss float64, skipped bool) error {
		return w.check(Row{Step: int64(step), Loss: loss}, skipped)
	}
	for i := range 50 {
		if err := tell(i, 10*math.Exp(-float64(i)/20)+1, false); err != nil {
			t.Fatalf("a falling loss is called diverged: %v", err)
		}
	}
	if err := tell(50, 40, false); err != nil {
		t.Errorf("one bad batch is called diverged: %v", err)
	}
	told := 0
	for i := range 60 {
		if tell(51+i, 100, false) != nil {
			told++
		}
	}
	if told != 1 {
		t.Errorf("a loss that stays high is told %d times", told)
	}
	told = 0
	for i := range guardSkips {
		if err := tell(200+i, math.NaN(), true); err != nil {
			told++
		}
	}
	if told != 1 {
		t.Errorf("%d steps without a finite gradient are told %d times", guardSkips, told)
	}
}
