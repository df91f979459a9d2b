package passes

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	normal "github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// randomImages returns n images, of bytes or of floats beyond [−1, 1], with classes −1 … classes−1.
func randomImages(tb testing.TB, n, h, w, c, classes int, float bool) *data.Dataset {
	tb.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	im := data.Images{Height: h, Width: w, Channels: c, Unbounded: float}
	if float {
		im.Float32 = make([]float32, n*h*w*c)
		for i := range im.Float32 {
			im.Float32[i] = float32(rng.NormFloat64())
		}
	} else {
		im.Uint8 = make([]byte, n*h*w*c)
		_, _ = rand.NewChaCha8([32]byte{1}).Read(im.Uint8)
	}
	if classes > 0 {
		im.Labels = make([]int32, n)
		for i := range im.Labels {
			im.Labels[i] = int32(rng.IntN(classes+1)) - 1
		}
	}
	d, err := data.New(im)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// measureAll returns the numbers of every pass over images: the moments and laws of all and of the classes, distances
// of features to a reference, components, and the spectrum that schedules follow from.
func measureAll(t *testing.T, d *data.Dataset) (numbers []float64) {
	t.Helper()
	h, w, c := d.Height(), d.Width(), d.Channels()
	law, laws := start.NewEstimator(h, w, c, true, nil), mixture.NewMeasure(d.Pixels(), 0)
	features := []frechet.Features{frechet.Frequencies(h, w, c), frechet.Edges(h, w, c)}
	samples := []*frechet.Sample{features[0].NewSample(), features[1].NewSample()}
	others := []*frechet.Sample{features[0].NewSample(), features[1].NewSample()}
	err := d.Each(t.Context(), nil, nil, func(labels []int32, images []float64) error {
		for i, s := range samples {
			s.Add(images)
			others[i].Add(images[:len(images)/len(labels)*min(3, len(labels))])
		}
		if err := laws.Add(labels, images); err != nil {
			return err
		}
		return law.Add(labels, images)
	})
	if err != nil {
		t.Fatal(err)
	}
	of, err := law.Start()
	if err != nil {
		t.Fatal(err)
	}
	for _, label := range append(of.Labels(), start.Shared) {
		l := of.Law(label)
		numbers = slices.Concat(numbers, l.Mean, l.Variance, l.Axes)
	}
	moments := law.Moments()
	numbers = append(numbers, moments.Mean()...)
	for f := range h * w {
		block := mat.NewSymDense(c, nil)
		moments.Covariance(f, block)
		numbers = append(numbers, mat.DenseCopyOf(block).RawMatrix().Data...)
	}
	for i, s := range samples {
		r, err := frechet.ReferenceOf(s)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, r.Distance(others[i]))
	}
	whole, err := laws.Laws()
	if err != nil {
		t.Fatal(err)
	}
	numbers = slices.Concat(numbers, whole[0].Mean, whole[0].Cov)
	b, _, err := PCA(t.Context(), d, PCASettings{})
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := b.Vectors(basis.Shared)
	if err != nil {
		t.Fatal(err)
	}
	spectrum, err := MeasureSpectrum(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, direction := range spectrum.Directions {
		numbers = append(numbers, direction.Mean, direction.Variance)
	}
	return append(numbers, vectors...)
}

// TestPassesDoNotDependOnCores: every number of a pass is the same, to the bit, however many cores make it.
func TestPassesDoNotDependOnCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for name, d := range map[string]*data.Dataset{
		"bytes with classes":    randomImages(t, 700, 8, 9, 3, 4, false),
		"floats beyond [−1, 1]": randomImages(t, 300, 9, 8, 1, 0, true),
		"less than a block":     randomImages(t, 5, 4, 4, 2, 2, true),
	} {
		var want []float64
		for _, cores := range []int{1, 2, 3, 7} {
			runtime.GOMAXPROCS(cores)
			switch got := measureAll(t, d); {
			case want == nil:
				want = got
			case !slices.Equal(got, want):
				t.Errorf("%s: other numbers on %d cores", name, cores)
			}
		}
	}
}

// TestLawIsThatOfImagesOneByOne: blocks change no bit of a law.
func TestLawIsThatOfImagesOneByOne(t *testing.T) {
	d := randomImages(t, 600, 5, 7, 3, 3, false)
	whole, single := start.NewEstimator(5, 7, 3, true, nil), start.NewEstimator(5, 7, 3, true, nil)
	err := d.Each(t.Context(), nil, nil, func(labels []int32, images []float64) error {
		for i := range labels {
			if err := single.Add(labels[i:i+1], images[i*d.Pixels():(i+1)*d.Pixels()]); err != nil {
				return err
			}
		}
		return whole.Add(labels, images)
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := whole.Start()
	if err != nil {
		t.Fatal(err)
	}
	b, err := single.Start()
	if err != nil {
		t.Fatal(err)
	}
	for label := start.Shared; label < 3; label++ {
		x, y := a.Law(label), b.Law(label)
		if x.Images != y.Images || !slices.Equal(x.Mean, y.Mean) || !slices.Equal(x.Variance, y.Variance) ||
			!slices.Equal(x.Axes, y.Axes) {
			t.Errorf("class %d: another law", label)
		}
	}
}

// BenchmarkImages measures 50,000 images of 32×32×3 bytes in ten classes: reading them; their laws, with the moments of
// all; each set of features; and all of it in one pass, as few does. processor-s is the time on all cores together.
func BenchmarkImages(b *testing.B) {
	const n, h, w, c = 50_000, 32, 32, 3
	d := randomImages(b, n, h, w, c, 10, false)
	each := func(b *testing.B, use func(labels []int32, images []float64)) {
		if err := d.Each(b.Context(), nil, nil, func(labels []int32, images []float64) error {
			use(labels, images)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
	run := func(name string, f func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			before := processorSeconds(b)
			for b.Loop() {
				f(b)
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "images/s")
			b.ReportMetric((processorSeconds(b)-before)/float64(b.N), "processor-s")
		})
	}
	run("read", func(b *testing.B) { each(b, func([]int32, []float64) {}) })
	run("law", func(b *testing.B) {
		law := start.NewEstimator(h, w, c, true, nil)
		each(b, func(labels []int32, images []float64) { _ = law.Add(labels, images) })
		if _, err := law.Start(); err != nil {
			b.Fatal(err)
		}
	})
	for _, f := range []frechet.Features{frechet.Frequencies(h, w, c), frechet.Edges(h, w, c)} {
		run(f.Name, func(b *testing.B) {
			s := f.NewSample()
			each(b, func(_ []int32, images []float64) { s.Add(images) })
		})
	}
	run("all", func(b *testing.B) {
		law := start.NewEstimator(h, w, c, true, nil)
		samples := []*frechet.Sample{frechet.Frequencies(h, w, c).NewSample(), frechet.Edges(h, w, c).NewSample()}
		each(b, func(labels []int32, images []float64) {
			_ = law.Add(labels, images)
			for _, s := range samples {
				s.Add(images)
			}
		})
		if _, err := normal.NewSpectrum(law.Moments()); err != nil {
			b.Fatal(err)
		}
		if _, err := law.Start(); err != nil {
			b.Fatal(err)
		}
		for _, s := range samples {
			if _, err := frechet.ReferenceOf(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// processorSeconds returns the time that this process has spent on all processors.
func processorSeconds(tb testing.TB) float64 {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
