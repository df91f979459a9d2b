// Package frechet compares the law of images with that of others, through features that need no network and no
// training.
//
// Each set of features sees an image as a few dozen numbers, and a distance is that of Fréchet between the normal laws
// which have the features' means and covariances,
//
//	|m_1 − m_2|² + tr(Σ_1 + Σ_2 − 2 (Σ_1^½ Σ_2 Σ_1^½)^½),
//
// over the total variance of the reference's features. Frequencies are linear: a normal law with the data's moments is
// as good to them as the data. Edges are not.
package frechet

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Reference is the law of the features of some images.
type Reference struct {
	features Features
	mean     []float64
	root     *mat.Dense // R with Rᵀ R = Σ
	total    float64    // tr Σ
}

// Reference returns the law of the images of a sample. Fewer than two images and images that do not differ in the
// features are errors.
func (s *Sample) Reference() (*Reference, error) {
	f := s.features
	if n := s.moments.N(); n < 2 {
		return nil, fmt.Errorf("frechet: a reference needs at least two images, got %d", n)
	}
	mean, cov := s.moments.Mean(), s.moments.Covariance()
	r := &Reference{features: f, mean: mean, total: mat.Trace(cov)}
	if !(r.total > 0) {
		return nil, fmt.Errorf("frechet: the images do not differ in their %s", f.Name)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(cov, true) {
		return nil, fmt.Errorf("frechet: the covariance of the %s has no eigenvectors", f.Name)
	}
	var axes mat.Dense
	eigen.VectorsTo(&axes)
	r.root = mat.DenseCopyOf(axes.T())
	for i, v := range eigen.Values(nil) {
		scale := math.Sqrt(max(0, v))
		for k := range r.root.RawRowView(i) {
			r.root.RawRowView(i)[k] *= scale
		}
	}
	return r, nil
}

// Distance returns the squared distance of a sample to the reference, over the reference's total variance. Images may
// be added to the sample later. Less than two images, and values that are not finite, give NaN.
func (r *Reference) Distance(s *Sample) float64 {
	if s.moments.N() < 2 {
		return math.NaN()
	}
	mean, cov := s.moments.Mean(), s.moments.Covariance()
	var half, product mat.Dense
	half.Mul(r.root, cov)
	product.Mul(&half, r.root.T())
	d := len(mean)
	sym := mat.NewSymDense(d, nil)
	var shift float64
	for i := range d {
		shift += (mean[i] - r.mean[i]) * (mean[i] - r.mean[i])
		for j := range i + 1 {
			sym.SetSym(i, j, (product.At(i, j)+product.At(j, i))/2)
		}
	}
	var eigen mat.EigenSym
	if math.IsNaN(shift-shift) || !eigen.Factorize(sym, false) {
		return math.NaN()
	}
	spread := r.total + mat.Trace(cov)
	for _, v := range eigen.Values(nil) {
		spread -= 2 * math.Sqrt(max(0, v))
	}
	return (shift + max(0, spread)) / r.total
}

// Sample holds the moments of the features of some images.
type Sample struct {
	features Features
	moments  *basis.Moments
	x, y     []float64 // scratch: an image and its features
}

// NewSample returns a sample without images.
func (f Features) NewSample() *Sample {
	return &Sample{f, basis.NewMoments(1, f.Dims), make([]float64, f.size), make([]float64, f.Dims)}
}

// NewSample returns a sample without images, to compare with the reference.
func (r *Reference) NewSample() *Sample { return r.features.NewSample() }

// Size returns the number of values of an image.
func (s *Sample) Size() int { return s.features.size }

// Add takes one image.
func (s *Sample) Add(im []float64) {
	copy(s.x, im)
	if !s.features.Unbounded {
		for i, v := range s.x {
			s.x[i] = min(max(v, -1), 1)
		}
	}
	s.features.measure(s.x, s.y)
	s.moments.Add(s.y)
}

// side is how many frequencies, and how many cells, there are at most along an axis.
const side = 8

// Features are numbers of an image [H, W, C].
type Features struct {
	Name string
	Dims int
	// Unbounded takes values as they are; else they are clamped to [−1, 1] first, as images are.
	Unbounded bool

	size    int
	measure func(x, dst []float64)
}

// Frequencies are the coefficients u, v < 8 of the orthonormal DCT-II in each channel.
func Frequencies(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	t := basis.NewFrequencies(h, w, c, nil)
	y := make([]float64, h*w*c)
	return Features{Name: "frequencies", Dims: nu * nv * c, size: h * w * c, measure: func(x, dst []float64) {
		t.Forward(y, x)
		for u := range nu {
			copy(dst[u*nv*c:(u+1)*nv*c], y[u*w*c:])
		}
	}}
}

// Edges are the means, over the channels and the cells of a grid of at most 8×8, of the absolute differences between a
// pixel and the next, down and across.
func Edges(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	return Features{Name: "edges", Dims: 2 * nu * nv, size: h * w * c, measure: func(x, dst []float64) {
		clear(dst)
		for y := range h {
			for k := range w {
				cell := y*nu/h*nv + k*nv/w
				for q := range c {
					v := x[(y*w+k)*c+q]
					if y+1 < h {
						dst[cell] += math.Abs(x[((y+1)*w+k)*c+q] - v)
					}
					if k+1 < w {
						dst[nu*nv+cell] += math.Abs(x[(y*w+k+1)*c+q] - v)
					}
				}
			}
		}
		for i := range dst {
			dst[i] *= float64(nu*nv) / float64(h*w*c)
		}
	}}
}
