package frechet

import (
	"fmt"
	"iter"
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

// NewReference returns the law of images [H, W, C], in one pass. Fewer than two images and
// images that do not differ in the features are errors.
func NewReference[F float32 | float64](f Features, images iter.Seq[[]F]) (*Reference, error) {
	mean, cov, n := momentsOf(f, images)
	if n < 2 {
		return nil, fmt.Errorf("frechet: a reference needs at least two images, got %d", n)
	}
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

// Distance returns the squared distance of images to the reference, over the reference's
// total variance. At least two images are needed; less, and values that are not finite, give
// NaN.
func (r *Reference) Distance(images iter.Seq[[]float32]) float64 {
	mean, cov, n := momentsOf(r.features, images)
	if n < 2 {
		return math.NaN()
	}
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

// momentsOf returns the moments of the features of images.
func momentsOf[F float32 | float64](f Features, images iter.Seq[[]F]) ([]float64, *mat.SymDense, int64) {
	m := basis.NewMoments(1, f.Dims)
	x, y := make([]float64, f.size), make([]float64, f.Dims)
	for im := range images {
		for i, v := range im {
			if x[i] = float64(v); !f.Unbounded {
				x[i] = min(max(x[i], -1), 1)
			}
		}
		f.of(x, y)
		m.Add(y)
	}
	return m.Mean(), m.Covariance(), m.N()
}
