package start

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// maxNumbers bounds the numbers in the moments of all classes.
const maxNumbers = 1 << 27

// Estimator estimates a start in one pass over images [H, W, C]: the law of all images and, per class, that of each
// class, with the channels' covariance at each frequency of the DCT. Moments are divided by the number of images. The
// covariance of a class of n images is shrunk towards the classes' mean covariance Σ_w,
//
//	Σ_y ← (n Σ_y + C Σ_w)/(n + C),
//
// the posterior mean for an inverse-Wishart prior of 2C + 1 degrees of freedom and scale C Σ_w.
type Estimator struct {
	h, w, c  int
	perClass bool
	units    *normalization.Affine
	classes  map[int]*basis.FrequencyMoments
}

// NewEstimator returns an estimator without images. units is the normalization of the images, nil for images in [−1,
// 1].
func NewEstimator(h, w, c int, perClass bool, units *normalization.Affine) *Estimator {
	return &Estimator{h: h, w: w, c: c, perClass: perClass, units: units, classes: map[int]*basis.FrequencyMoments{}}
}

// Add adds images [n, H, W, C] with a label for each, −1 for none, on all cores. It returns an *Error if there are too
// many classes for its memory.
func (e *Estimator) Add(labels []int32, images []float64) error {
	moments := make([]*basis.FrequencyMoments, len(labels))
	for i, label := range labels {
		if !e.perClass || label < 0 {
			label = Shared
		}
		if e.classes[int(label)] == nil {
			if (len(e.classes)+2)*e.h*e.w*e.c*(e.c+1) > maxNumbers { // and the moments of all images
				return largef("per_class", "takes too much memory for more than %d classes of images of %d×%d×%d values",
					len(e.classes), e.h, e.w, e.c)
			}
			e.classes[int(label)] = basis.NewFrequencyMoments(e.h, e.w, e.c)
		}
		moments[i] = e.classes[int(label)]
	}
	basis.AddImages(moments, images)
	return nil
}

// Moments returns the moments of all images so far.
func (e *Estimator) Moments() *basis.FrequencyMoments {
	all := basis.NewFrequencyMoments(e.h, e.w, e.c)
	for _, label := range slices.Sorted(maps.Keys(e.classes)) {
		all.Merge(e.classes[label])
	}
	return all
}

// Start returns the start of the images. It returns an *Error if there are none, or values that are not finite.
func (e *Estimator) Start() (*Start, error) {
	all, labels := e.Moments(), slices.Sorted(maps.Keys(e.classes))
	if err := all.Check(); err != nil {
		return nil, failf("dataset", "%v", err)
	}
	shared, err := e.law(all, covariancesOf(all))
	if err != nil {
		return nil, err
	}
	set := Settings{Covariance: DCT, Shrinkage: float64(e.c), Units: e.units}
	laws := map[int]*Law{Shared: shared}
	if !e.perClass {
		return New(set, laws)
	}
	within := make(covariances, e.h*e.w) // Σ_w
	for _, label := range labels {
		class := e.classes[label]
		within.add(covariancesOf(class), float64(class.N())/float64(all.N()))
	}
	for _, label := range labels {
		if label == Shared {
			continue
		}
		class, shrunk := e.classes[label], make(covariances, e.h*e.w)
		n := float64(class.N())
		shrunk.add(covariancesOf(class), n/(n+set.Shrinkage))
		shrunk.add(within, set.Shrinkage/(n+set.Shrinkage))
		if laws[label], err = e.law(class, shrunk); err != nil {
			return nil, err
		}
	}
	return New(set, laws)
}

// covariances has the covariance of the channels at each frequency.
type covariances []*mat.SymDense

func covariancesOf(m *basis.FrequencyMoments) covariances {
	h, w, c := m.Dims()
	out := make(covariances, h*w)
	for f := range out {
		out[f] = mat.NewSymDense(c, nil)
		m.Covariance(f, out[f])
	}
	return out
}

// add adds weight·o. A nil entry of s counts as 0.
func (s covariances) add(o covariances, weight float64) {
	for i, block := range o {
		if s[i] == nil {
			s[i] = mat.NewSymDense(block.SymmetricDim(), nil)
		}
		var weighted mat.SymDense
		weighted.ScaleSym(weight, block)
		s[i].AddSym(s[i], &weighted)
	}
}

// law returns the law with the axes of the channels' covariance at each frequency.
func (e *Estimator) law(m *basis.FrequencyMoments, cov covariances) (*Law, error) {
	l := &Law{H: e.h, W: e.w, C: e.c, Images: m.N(), Mean: m.Mean()}
	basis.NewFrequencies(e.h, e.w, e.c, nil).Inverse(l.Mean, l.Mean)
	for f, block := range cov {
		values, rows, ok := Eigen(block)
		if !ok {
			return nil, failf("dataset",
				"must have covariances with eigenvectors, got none for the channels at frequency (%d, %d)", f/e.w, f%e.w)
		}
		for row := range slices.Chunk(rows, e.c) {
			basis.TurnUpright(row)
		}
		l.Variance, l.Axes = append(l.Variance, values...), append(l.Axes, rows...)
	}
	return l, nil
}

// Eigen returns the eigenvalues of a covariance, decreasing and not negative, and its unit eigenvectors as rows [d·d].
// ok is false if they do not converge.
func Eigen(cov *mat.SymDense) (values, rows []float64, ok bool) {
	var e mat.EigenSym
	if !e.Factorize(cov, true) {
		return nil, nil, false
	}
	values = e.Values(nil) // increasing
	slices.Reverse(values)
	var v mat.Dense
	e.VectorsTo(&v)
	for k := range values {
		values[k] = max(0, values[k])
		rows = append(rows, mat.Col(nil, len(values)-1-k, &v)...)
	}
	return values, rows, true
}
