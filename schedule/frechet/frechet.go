// Package frechet measures how far images are from others, by features that need no network and no training.
//
// A set of features maps an image to a few dozen numbers. The distance of two sets of images is the Fréchet distance of
// normal laws with their features' means and covariances,
//
//	|m_1 − m_2|² + tr(Σ_1 + Σ_2 − 2 (Σ_1^½ Σ_2 Σ_1^½)^½),
//
// divided by the total variance of the reference's features. Frequencies are linear, so they cannot tell a normal law
// with the data's moments from the data. Edges and responses can.
package frechet

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Reference is the law of the features of some images.
type Reference struct {
	features Features
	scale    []float64 // that each feature is multiplied by; nil: 1
	mean     []float64
	root     *mat.Dense // R with Rᵀ R = Σ
	total    float64    // tr Σ
	bias     float64    // of the distance of n of the images, times n
}

// ReferenceOf returns the law of the features of all images of some parts. The parts are a random division of the
// images: their distances to the whole give the bias that [Reference.Excess] subtracts, which is 0 of a single part. It
// returns an error for fewer than two images, and for images that do not differ in the features.
func ReferenceOf(parts ...*Sample) (*Reference, error) {
	whole := parts[0].features.NewSample()
	for _, s := range parts {
		whole.Merge(s)
	}
	r, err := whole.reference()
	if err != nil || len(parts) == 1 {
		return r, err
	}
	n, measured := float64(whole.moments.N()), 0.0
	for _, s := range parts {
		if m := float64(s.moments.N()); m > 1 && m < n {
			r.bias += r.Distance(s) / (1/m - 1/n) // a part is not independent of the whole
			measured++
		}
	}
	r.bias /= max(1, measured)
	return r, nil
}

func (s *Sample) reference() (*Reference, error) {
	f := s.features
	if n := s.moments.N(); n < 2 {
		return nil, fmt.Errorf("frechet: a reference needs at least two images, got %d", n)
	}
	mean, cov := s.moments.Mean(), s.moments.Covariance()
	r := &Reference{features: f, mean: mean}
	if f.standard {
		r.scale = make([]float64, f.Dims)
		for i := range r.scale {
			if v := cov.At(i, i); v > 0 {
				r.scale[i] = 1 / math.Sqrt(v)
			}
		}
		r.rescale(mean, cov)
	}
	r.total = mat.Trace(cov)
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

// rescale multiplies each feature by its scale.
func (r *Reference) rescale(mean []float64, cov *mat.SymDense) {
	for i, a := range r.scale {
		mean[i] *= a
		for j, b := range r.scale[:i+1] {
			cov.SetSym(i, j, a*b*cov.At(i, j))
		}
	}
}

// Distance returns the squared distance of a sample to the reference, divided by the reference's total variance. Images
// may be added to the sample later. It is NaN for fewer than two images and for values that are not finite.
func (r *Reference) Distance(s *Sample) float64 {
	if s.moments.N() < 2 {
		return math.NaN()
	}
	mean, cov := s.moments.Mean(), s.moments.Covariance()
	r.rescale(mean, cov)
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

// rounding is the part of the bias within which [Reference.Excess] is rounded off at 0.
const rounding = 0.1

// Excess returns the distance of a sample less the expected one of as many images of the reference, b. As the
// difference x may be negative, it is rounded off at 0: (x + √(x² + (b/5)²))/2. The bias of Fréchet distances is that
// of Chong and Forsyth (2020), about c/n for n images.
func (r *Reference) Excess(s *Sample) float64 {
	b := r.bias / float64(s.moments.N())
	x := r.Distance(s) - b
	return (x + math.Hypot(x, 2*rounding*b)) / 2
}

// Sample has the moments of the features of some images.
type Sample struct {
	features Features
	moments  *basis.Moments
}

// NewSample returns a sample without images.
func (f Features) NewSample() *Sample { return &Sample{f, basis.NewMoments(1, f.Dims)} }

// Size returns the number of values of an image.
func (s *Sample) Size() int { return s.features.size }

// Merge adds the images of o, which has the same features. o is not changed.
func (s *Sample) Merge(o *Sample) { s.moments.Merge(o.moments) }

// Add adds images [n, H, W, C], on all cores.
func (s *Sample) Add(images []float64) { add(s, images) }

// AddFloat32 is Add of float32.
func (s *Sample) AddFloat32(images []float32) { add(s, images) }

const (
	// blockImages is the number of images whose features are kept at a time.
	blockImages = 256
	// groupNumbers is the number of values that one core takes at a time, those of at least one image.
	groupNumbers = 1 << 15
)

// add adds images block by block. The blocks have no effect on the result.
func add[E float32 | float64](s *Sample, images []E) {
	size, dims := s.features.size, s.features.Dims
	n, group := len(images)/size, max(1, groupNumbers/size)
	y := make([]float64, min(n, blockImages)*dims)
	for begin := 0; begin < n; begin += blockImages {
		block := min(blockImages, n-begin)
		safely.For((block+group-1)/group, func(g int) {
			x := make([]float64, size)
			for i := g * group; i < min((g+1)*group, block); i++ {
				for k, v := range images[(begin+i)*size:][:size] {
					if x[k] = float64(v); !s.features.Unbounded {
						x[k] = min(max(x[k], -1), 1)
					}
				}
				s.features.measure(x, y[i*dims:(i+1)*dims])
			}
		})
		s.moments.Add(y[:block*dims])
	}
}

// side bounds the number of frequencies, and of cells, along an axis.
const side = 8

// Features map an image [H, W, C] to numbers.
type Features struct {
	Name string
	Dims int
	// Unbounded takes values as they are. Otherwise they are clamped to [−1, 1] first, as images are.
	Unbounded bool

	// standard divides features by their standard deviations on the reference, so that all count alike.
	standard bool
	size     int
	// measure writes the features of an image to dst. It is safe for concurrent use.
	measure func(x, dst []float64)
}

// Given returns features that were measured elsewhere: their values take the place of an image.
func Given(name string, dims int) Features {
	return Features{
		Name: name, Dims: dims, Unbounded: true, standard: true, size: dims,
		measure: func(x, dst []float64) { copy(dst, x) },
	}
}

// Frequencies returns the coefficients u, v < 8 of the orthonormal DCT-II in each channel.
func Frequencies(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	t := basis.NewFrequencies(h, w, c, nil)
	return Features{Name: "frequencies", Dims: nu * nv * c, size: h * w * c, measure: func(x, dst []float64) {
		t.Low(dst, x, nu, nv)
	}}
}

// Edges returns the means of the absolute differences between neighbouring pixels, down and across, over the channels
// and the cells of a grid of at most 8×8.
func Edges(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	return Features{Name: "edges", Dims: 2 * nu * nv, size: h * w * c, measure: func(x, dst []float64) {
		clear(dst)
		for y := range h {
			row := x[y*w*c : (y+1)*w*c]
			next := row // the last row has no difference down
			if y+1 < h {
				next = x[(y+1)*w*c : (y+2)*w*c]
			}
			for cell := range nv { // its pixels k have k·nv/w = cell
				from, to := (cell*w+nv-1)/nv*c, ((cell+1)*w+nv-1)/nv*c
				at := y*nu/h*nv + cell
				dst[at] = addDifferences(dst[at], row[from:to], next[from:to])
				dst[nu*nv+at] = addDifferences(dst[nu*nv+at], row[from:min(to, len(row)-c)], row[from+c:])
			}
		}
		for i := range dst {
			dst[i] *= float64(nu*nv) / float64(h*w*c)
		}
	}}
}

// FrequenciesAndEdges returns both, which suffice to compare the states of a run. unbounded is of their values.
func FrequenciesAndEdges(h, w, c int, unbounded bool) []Features {
	out := []Features{Frequencies(h, w, c), Edges(h, w, c)}
	for i := range out {
		out[i].Unbounded = unbounded
	}
	return out
}

// addDifferences adds the absolute differences of the values of a from those of b.
func addDifferences(sum float64, a, b []float64) float64 {
	b = b[:len(a)]
	for i, v := range a {
		sum += math.Abs(b[i] - v)
	}
	return sum
}
