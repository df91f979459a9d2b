package start

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

const h, w, c, d = 3, 4, 2, 24

// images returns correlated images of three classes, the last of few.
func images(seed uint64) (rows [][]float64, labels []int32) {
	r := rand.New(rand.NewPCG(seed, 1))
	mix := make([]float64, d*d)
	for i := range mix {
		mix[i] = r.NormFloat64()
	}
	for i := range 90 {
		label := int32(i % 2)
		if i%30 == 7 {
			label = 2
		}
		x := make([]float64, d)
		for k := range d {
			z := r.NormFloat64() / (1 + float64(k))
			for j := range x {
				x[j] += mix[k*d+j] * z
			}
			x[k] += float64(label) + 2
		}
		rows, labels = append(rows, x), append(labels, label)
	}
	return rows, labels
}

// startOf returns the start of images.
func startOf(t *testing.T, perClass bool) *Start {
	t.Helper()
	e := NewEstimator(h, w, c, perClass, nil)
	rows, labels := images(1)
	if err := e.Add(labels, slices.Concat(rows...)); err != nil {
		t.Fatal(err)
	}
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// moments2 returns the mean and the covariance of the images of one class, −1 for all.
func moments2(rows [][]float64, labels []int32, class int32) (mean []float64, cov *mat.SymDense, n float64) {
	mean, cov = make([]float64, d), mat.NewSymDense(d, nil)
	for i, x := range rows {
		if class < 0 || labels[i] == class {
			n++
			for k, v := range x {
				mean[k] += v
			}
		}
	}
	for k := range mean {
		mean[k] /= n
	}
	for i, x := range rows {
		if class < 0 || labels[i] == class {
			off := mat.NewVecDense(d, nil)
			off.SubVec(mat.NewVecDense(d, x), mat.NewVecDense(d, mean))
			cov.SymRankOne(cov, 1/n, off)
		}
	}
	return mean, cov, n
}

func same(t *testing.T, what string, got, want mat.Matrix) {
	t.Helper()
	var off mat.Dense
	off.Sub(got, want)
	if norm := mat.Norm(&off, 2); !(norm <= 1e-9*(1+mat.Norm(want, 2))) {
		t.Fatalf("%s: off by %v", what, norm)
	}
}

// laws returns one along frequencies and axes of the channels, and one along frequencies alone.
func laws(t *testing.T) map[string]*Law {
	t.Helper()
	out := map[string]*Law{"axes": startOf(t, false).Law(Shared)}
	rows, labels := images(1)
	mean, _, _ := moments2(rows, labels, -1)
	level := &Law{H: h, W: w, C: c, Mean: mean, Variance: make([]float64, d)}
	for i := range level.Variance {
		level.Variance[i] = 1 + float64(i/8)
	}
	out["frequencies"] = level
	for name, l := range out {
		if err := l.Check(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := l.TotalVariance(), mat.Trace(l.Covariance()); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s: total variance %v, want %v", name, got, want)
		}
	}
	return out
}

// The law of all images keeps their mean, their total variance, and the channels' covariance at each frequency.
func TestEstimatorKeepsMoments(t *testing.T) {
	rows, labels := images(1)
	mean, cov, _ := moments2(rows, labels, -1)
	l := startOf(t, true).Law(3)
	same(t, "mean", mat.NewVecDense(d, l.Mean), mat.NewVecDense(d, mean))
	if got, want := l.TotalVariance(), mat.Trace(cov); math.Abs(got-want) > 1e-9*want || l.Images != 90 {
		t.Errorf("total variance %v of %d images, want %v of 90", got, l.Images, want)
	}
	checkFrequencies(t, l.Covariance(), cov)
}

// checkFrequencies compares the channels' covariances at each frequency.
func checkFrequencies(t *testing.T, got, want *mat.SymDense) {
	t.Helper()
	f := basis.NewFrequencies(h, w, c, nil)
	turn := mat.NewDense(d, d, nil)
	for i := range d {
		x := make([]float64, d)
		x[i] = 1
		f.Forward(x, x)
		turn.SetCol(i, x)
	}
	in := func(m *mat.SymDense) *mat.Dense {
		var half, out mat.Dense
		half.Mul(turn, m)
		out.Mul(&half, turn.T())
		return &out
	}
	a, b := in(got), in(want)
	for i := range d {
		for j := range d {
			v := b.At(i, j)
			if i/c != j/c {
				v = 0
			}
			if math.Abs(a.At(i, j)-v) > 1e-9 {
				t.Fatalf("coefficients %d and %d have covariance %v, want %v", i, j, a.At(i, j), v)
			}
		}
	}
}

// Σ_y is shrunk towards the classes' mean covariance; a class without images has the law of all.
func TestEstimatorPerClass(t *testing.T) {
	rows, labels := images(1)
	within := mat.NewSymDense(d, nil)
	for class := range int32(3) {
		_, cov, n := moments2(rows, labels, class)
		cov.ScaleSym(n/90, cov)
		within.AddSym(within, cov)
	}
	s := startOf(t, true)
	for class := range int32(3) {
		mean, cov, n := moments2(rows, labels, class)
		want, rest := mat.NewSymDense(d, nil), mat.NewSymDense(d, nil)
		want.ScaleSym(n/(n+c), cov)
		rest.ScaleSym(c/(n+c), within)
		want.AddSym(want, rest)
		same(t, "mean", mat.NewVecDense(d, s.Law(int(class)).Mean), mat.NewVecDense(d, mean))
		checkFrequencies(t, s.Law(int(class)).Covariance(), want)
	}
	if s.Law(7) != s.Law(Shared) || s.Law(7).Images != 90 || fmt.Sprint(s.Labels()) != "[0 1 2]" {
		t.Errorf("labels %v, law of another class of %d images", s.Labels(), s.Law(7).Images)
	}
	if got := s.Settings(); got.Shrinkage != c || !got.PerClass || got.Covariance != DCT {
		t.Errorf("settings %+v", got)
	}
}

// The root of every form of law is symmetric and its square is Σ + M, M isotropic, by bands of frequencies, and in a
// basis that has nothing in common with Σ.
func TestRootIsTheSymmetricRoot(t *testing.T) {
	dct, err := basis.DCT(h, w, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := slices.Collect(slices.Chunk(basis.DCTRows(h*w, 3), h*w)) // of a line, not of a plane
	dense, err := basis.Dense(h, w, map[int][][]float64{basis.Shared: rows})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range laws(t) {
		for _, at := range []struct {
			b *basis.Basis
			g []float64
		}{
			{basis.None(h, w), []float64{25}},
			{basis.None(h, w), []float64{0}},
			{dct, []float64{9, 9}},
			{dct, []float64{9, 0.5}},
			{dense, []float64{4, 4}},
			{dense, []float64{4, 0.25}},
		} {
			root, err := l.Root(at.b, 0, at.g)
			if err != nil {
				t.Fatal(err)
			}
			got := matrixOf(root)
			same(t, "symmetry", got, got.T())
			want := l.Covariance()
			parts := make([][]float64, len(at.g))
			for j := range parts {
				parts[j] = make([]float64, h*w)
			}
			for i := range h * w {
				x := make([]float64, h*w)
				x[i] = 1
				if err := at.b.Split(0, x, parts); err != nil {
					t.Fatal(err)
				}
				for j, g := range at.g {
					for k := range i + 1 {
						for q := range c {
							want.SetSym(i*c+q, k*c+q, want.At(i*c+q, k*c+q)+g*parts[j][k])
						}
					}
				}
			}
			var square mat.Dense
			square.Mul(got, got)
			same(t, fmt.Sprint(name, " on ", at.b, at.g), &square, want)
		}
	}
}

// matrixOf returns (Σ + M)^½, [H·W·C]².
func matrixOf(r *Root) *mat.Dense {
	out, x := mat.NewDense(d, d, nil), make([]float64, d)
	for i := range d {
		clear(x)
		x[i] = 1
		r.Draw(x, x)
		for k, m := range r.law.Mean {
			x[k] -= m
		}
		out.SetCol(i, x)
	}
	return out
}

// As the noise grows the state tends to the standard start from the same ξ.
func TestRootTendsToTheStandardStart(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	xi := make([]float64, d)
	for i := range xi {
		xi[i] = r.NormFloat64()
	}
	for name, l := range laws(t) {
		root, err := l.Root(basis.None(h, w), Shared, []float64{1e12})
		if err != nil {
			t.Fatal(err)
		}
		x := make([]float64, d)
		root.Draw(x, xi)
		for i := range x {
			if math.Abs(x[i]/1e6-xi[i]) > 1e-4 {
				t.Fatalf("%s: %v, want about %v", name, x[i], 1e6*xi[i])
			}
		}
	}
}

// OnAxes gives the variances in the law's own axes, and refuses axes that it correlates.
func TestOnAxes(t *testing.T) {
	all := laws(t)
	l := all["axes"]
	mean, variance, ok := l.OnAxes(l.Axes)
	if !ok {
		t.Fatal("a law correlates its own axes")
	}
	want := make([]float64, d)
	l.frequencies().Forward(want, l.Mean)
	for i := range d {
		if math.Abs(mean[i]-want[i]) > 1e-12 || math.Abs(variance[i]-l.Variance[i]) > 1e-12 {
			t.Fatalf("direction %d: %v ± %v, want %v ± %v", i, mean[i], variance[i], want[i], l.Variance[i])
		}
	}
	if _, _, ok := l.OnAxes(nil); ok {
		t.Error("channels that correlate are called uncorrelated")
	}
	if _, _, ok := all["frequencies"].OnAxes(l.Axes); !ok {
		t.Error("one variance for all channels has no axes that it correlates")
	}
}

func TestErrors(t *testing.T) {
	haar, ok, err := basis.Formula("haar", 40, 40, 400, nil)
	if err != nil || !ok {
		t.Fatal(err)
	}
	law := laws(t)["axes"]
	nan := NewEstimator(1, 1, 1, false, nil)
	if err := nan.Add([]int32{0}, []float64{math.NaN()}); err != nil {
		t.Fatal(err)
	}
	full := NewEstimator(512, 512, 127, true, nil)
	for _, q := range []struct {
		err  error
		want string
	}{
		{second(NewEstimator(h, w, c, false, nil).Start()), "dataset must hold at least one image, got none"},
		{second(nan.Start()), "dataset must hold finite values"},
		{full.Add([]int32{0}, nil), "per_class takes too much memory for more than 0 classes"},
		{second(New(Settings{Covariance: "x"}, nil)), "covariance must be dct, got \"x\""},
		{second(New(Settings{Covariance: DCT}, nil)), "mean.-1 must be there"},
		{second(law.Root(basis.None(4, 4), 0, []float64{1})), "start must be made for planes of 4×4, got 3×4"},
		{
			second(law.Root(basis.None(h, w), 0, []float64{1, 2})),
			"start needs noise in the 1 subspaces of the basis, got 2",
		},
		{
			(&Law{H: 40, W: 40, C: 1, Mean: make([]float64, 1600)}).Fits(haar, []float64{1, 2}),
			"start must have the directions of its noise in common with a basis for images of more than 1024 values",
		},
	} {
		var own *Error
		if !errors.As(q.err, &own) || !strings.HasPrefix(q.err.Error(), q.want) {
			t.Errorf("error %v, want %q", q.err, q.want)
		}
	}
}

func second[T any](_ T, err error) error { return err }
