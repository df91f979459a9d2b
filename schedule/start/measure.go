package start

import (
	"errors"
	"iter"
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Measure returns the start of images [H, W, C] with their labels, rows first, in one pass. Moments are those of the
// images themselves (divided by their number), except for the shrinkage of Settings. A class without images, and images
// without a label, get the law of all.
//
// No images, images of another size and values that are not finite are an *Error.
func Measure[F float32 | float64](h, w, c int, images iter.Seq2[int, []F], set Settings) (*Start, error) {
	if h < 1 || w < 1 || c < 1 {
		return nil, failf("dataset", "must hold images of positive sizes, got %d×%d pixels in %d channels", h, w, c)
	}
	set, err := set.fit(h, w, c)
	if err != nil {
		return nil, err
	}
	e := &estimator{h: h, w: w, c: c, set: set, classes: map[int]moments{}}
	if e.bands, err = bandsOf(h, w, set); err != nil {
		return nil, err
	}
	row := make([]float64, h*w*c)
	n := 0
	for label, im := range images {
		if len(im) != len(row) {
			return nil, failf("dataset", "must hold images of %d×%d×%d = %d values, got %d in image %d", h, w, c, len(row),
				len(im), n)
		}
		for i, v := range im {
			row[i] = float64(v)
			if v-v != 0 {
				return nil, failf("dataset", "must hold finite values, got another in image %d", n)
			}
		}
		if err := e.add(label, row); err != nil {
			return nil, err
		}
		n++
	}
	if n == 0 {
		return nil, failf("dataset", "must hold at least one image, got none")
	}
	laws, err := e.laws()
	if err != nil {
		return nil, err
	}
	return New(set, laws)
}

// moments are those of one class: of their frequencies, or dense.
type moments struct {
	frequencies *basis.FrequencyMoments
	dense       *basis.Moments
}

func (m moments) images() int64 {
	if m.dense != nil {
		return m.dense.N()
	}
	return m.frequencies.N()
}

// estimator gathers the moments of each class and makes laws of them.
type estimator struct {
	h, w, c int
	set     Settings
	bands   []int // of Bands: each frequency's
	classes map[int]moments
}

func (e *estimator) fresh() moments {
	if e.set.dense() {
		return moments{dense: basis.NewMoments(e.h, e.w*e.c)}
	}
	return moments{frequencies: basis.NewFrequencyMoments(e.h, e.w, e.c)}
}

func (e *estimator) add(label int, row []float64) error {
	if !e.set.PerClass || label < 0 {
		label = Shared
	}
	m, ok := e.classes[label]
	if !ok {
		each := e.h * e.w * e.c * (e.c + 1)
		if e.set.dense() {
			each = e.h * e.w * e.c * e.h * e.w * e.c
		}
		if (len(e.classes)+2)*each > maxNumbers { // and those of all images
			return largef("per_class", "takes too much memory for more than %d classes of images of %d×%d×%d values",
				len(e.classes), e.h, e.w, e.c)
		}
		m = e.fresh()
		e.classes[label] = m
	}
	if m.dense != nil {
		m.dense.Add(row)
	} else {
		m.frequencies.Add(row)
	}
	return nil
}

// laws returns the law of all images and, per class, those of the classes.
func (e *estimator) laws() (map[int]*Law, error) {
	all := e.fresh()
	labels := slices.Sorted(maps.Keys(e.classes))
	for _, label := range labels {
		if m := e.classes[label]; m.dense != nil {
			all.dense.Merge(m.dense)
		} else {
			all.frequencies.Merge(m.frequencies)
		}
	}
	mean, total := e.moments(all)
	out := map[int]*Law{}
	var err error
	if out[Shared], err = e.law(mean, total, all.images()); err != nil || !e.set.PerClass {
		return out, err
	}
	within := make(covariances, len(total)) // Σ_w, the classes' mean covariance
	for _, label := range labels {
		_, class := e.moments(e.classes[label])
		within.add(class, float64(e.classes[label].images())/float64(all.images()))
	}
	for _, label := range labels {
		if label == Shared {
			continue
		}
		n := e.classes[label].images()
		mean, class := e.moments(e.classes[label])
		shrunk := make(covariances, len(class))
		shrunk.add(class, float64(n)/(float64(n)+e.set.Shrinkage))
		shrunk.add(within, e.set.Shrinkage/(float64(n)+e.set.Shrinkage))
		if out[label], err = e.law(mean, shrunk, n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// covariances are those of blocks: of the channels at each frequency, or of everything.
type covariances []*mat.SymDense

// add adds weight·o. A nil entry is 0.
func (s covariances) add(o covariances, weight float64) {
	for i, block := range o {
		n := block.SymmetricDim()
		if s[i] == nil {
			s[i] = mat.NewSymDense(n, nil)
		}
		for a := range n {
			for b := a; b < n; b++ {
				s[i].SetSym(a, b, s[i].At(a, b)+weight*block.At(a, b))
			}
		}
	}
}

// moments returns the mean image and the covariances of m.
func (e *estimator) moments(m moments) ([]float64, covariances) {
	if m.dense != nil {
		return m.dense.Mean(), covariances{m.dense.Covariance()}
	}
	mean := m.frequencies.Mean()
	basis.NewFrequencies(e.h, e.w, e.c, nil).Inverse(mean, mean)
	out := make(covariances, e.h*e.w)
	for f := range out {
		out[f] = mat.NewSymDense(e.c, nil)
		m.frequencies.Covariance(f, out[f])
	}
	return mean, out
}

// law keeps of the covariances what the settings ask for.
func (e *estimator) law(mean []float64, cov covariances, images int64) (*Law, error) {
	l := &Law{H: e.h, W: e.w, C: e.c, Images: images, Mean: mean}
	switch e.set.Covariance {
	case None, Bands:
		e.level(l, cov)
		return l, nil
	case DCT:
		return l, e.diagonal(l, cov)
	}
	return l, e.components(l, cov[0])
}

// level gives each band of frequencies its mean variance; None has one band.
func (e *estimator) level(l *Law, cov covariances) {
	sums, counts := map[int]float64{}, map[int]float64{}
	for f, block := range cov {
		sums[e.bands[f]] += mat.Trace(block)
		counts[e.bands[f]] += float64(e.c)
	}
	l.Variance = make([]float64, e.h*e.w*e.c)
	for i := range l.Variance {
		band := e.bands[i/e.c]
		l.Variance[i] = sums[band] / counts[band]
	}
}

// diagonal turns the channels of each frequency to their own axes.
func (e *estimator) diagonal(l *Law, cov covariances) error {
	l.Axes = make([]float64, 0, e.h*e.w*e.c*e.c)
	for f, block := range cov {
		values, rows, err := eigen(block)
		if err != nil {
			return failf("dataset", "must have covariances with eigenvectors, got none for the channels at frequency (%d, %d)",
				f/e.w, f%e.w)
		}
		l.Variance, l.Axes = append(l.Variance, values...), append(l.Axes, rows...)
	}
	return nil
}

// components keeps the leading eigenvectors, all of them for Full.
func (e *estimator) components(l *Law, cov *mat.SymDense) error {
	values, rows, err := eigen(cov)
	if err != nil {
		return failf("dataset", "must have a covariance with eigenvectors")
	}
	d := len(values)
	rank := d
	if e.set.Covariance == PCA {
		rank = e.set.Rank
	}
	for _, v := range values[rank:] {
		l.Rest += v / float64(d-rank)
	}
	l.Variance, l.Vectors = values[:rank], rows[:rank*d]
	return nil
}

var errEigen = errors.New("start: no eigenvectors")

// eigen returns the eigenvalues, falling and not negative, and the eigenvectors as rows, the largest entry of each
// positive.
func eigen(cov *mat.SymDense) (values, rows []float64, err error) {
	var e mat.EigenSym
	if !e.Factorize(cov, true) {
		return nil, nil, errEigen
	}
	rising := e.Values(nil)
	var v mat.Dense
	e.VectorsTo(&v)
	d := len(rising)
	values, rows = make([]float64, d), make([]float64, d*d)
	for k := range d {
		values[k] = max(0, rising[d-1-k])
		row, largest := rows[k*d:(k+1)*d], 0.0
		for i := range row {
			row[i] = v.At(i, d-1-k)
			if abs := max(row[i], -row[i]); abs > max(largest, -largest) {
				largest = row[i]
			}
		}
		if largest < 0 {
			for i := range row {
				row[i] = -row[i]
			}
		}
	}
	return values, rows, nil
}

// bandsOf returns the band of each frequency: of None all one, of Bands those of the cuts.
func bandsOf(h, w int, set Settings) ([]int, error) {
	if set.Covariance != Bands || len(set.Cuts) == 0 {
		return make([]int, h*w), nil
	}
	b, err := basis.DCTBands(h, w, set.Cuts...)
	if err != nil {
		return nil, failf("cuts", "must be cuts of the images' frequencies: %v", err)
	}
	bands, _ := b.FrequencyBands()
	return bands, nil
}
