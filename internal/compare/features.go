package compare

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Images are N images of D values each, in [−1, 1] or beyond, one after the other.
type Images struct {
	N, D   int
	Values []float32
}

// clamped returns the images as rows [N, D], each value clamped to [−1, 1].
func (im Images) clamped() *mat.Dense {
	out := make([]float64, len(im.Values))
	for i, v := range im.Values {
		out[i] = min(1, max(-1, float64(v)))
	}
	return mat.NewDense(im.N, im.D, out)
}

// Reference are real images as a Fréchet distance sees them: the leading principal
// components of their pixels, and their moments on these.
type Reference struct {
	mean    []float64
	axes    *mat.Dense // [D, k]
	moments Moments
}

// NewReference takes the leading k principal components of the images, all of them
// if there are fewer.
func NewReference(images Images, k int) (*Reference, error) {
	switch {
	case images.N < 2:
		return nil, fmt.Errorf("a Fréchet distance needs at least 2 reference images, not %d", images.N)
	case k < 1:
		return nil, fmt.Errorf("the number of principal components must be at least 1, not %d", k)
	}
	x := images.clamped()
	var cov mat.SymDense
	stat.CovarianceMatrix(&cov, x, nil)
	var eigen mat.EigenSym
	if !eigen.Factorize(&cov, true) {
		return nil, errNoEigenvalues
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors) // in order of increasing eigenvalues
	k = min(k, images.D)
	r := &Reference{mean: MomentsOf(x).Mean, axes: mat.DenseCopyOf(vectors.Slice(0, images.D, images.D-k, images.D))}
	r.moments = MomentsOf(r.features(x))
	return r, nil
}

// Distance returns the Fréchet distance of images to the reference.
func (r *Reference) Distance(images Images) (float64, error) {
	switch {
	case images.D != len(r.mean):
		return 0, fmt.Errorf("the samples have %d values each, the reference images %d", images.D, len(r.mean))
	case images.N < 2:
		return 0, fmt.Errorf("a Fréchet distance needs at least 2 samples, not %d", images.N)
	}
	return FrechetDistance(MomentsOf(r.features(images.clamped())), r.moments)
}

// features are rows less the mean on the axes, [N, k].
func (r *Reference) features(rows *mat.Dense) *mat.Dense {
	n, _ := rows.Dims()
	centred := mat.DenseCopyOf(rows)
	for i := range n {
		row := centred.RawRowView(i)
		for j := range row {
			row[j] -= r.mean[j]
		}
	}
	var out mat.Dense
	out.Mul(centred, r.axes)
	return &out
}

// Spread are the mean and the extremes of a few repetitions.
type Spread struct {
	Mean float64 `json:"mean"`
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
}

// Half returns half the range, what is printed behind ±.
func (s Spread) Half() float64 { return (s.Max - s.Min) / 2 }

func spreadOf(values []float64) Spread {
	s := Spread{Min: slices.Min(values), Max: slices.Max(values)}
	for _, v := range values {
		s.Mean += v / float64(len(values))
	}
	return s
}
