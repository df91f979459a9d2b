package gaussian

import (
	"iter"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// MaxFull bounds the values of an image whose whole covariance is kept: every
// evaluation of a bench takes some d³ operations.
const MaxFull = 1024

// Full is the normal law of H×W images of C channels with all of their covariance, where
// a Spectrum keeps what is diagonal in the DCT. It is the bench of bases that mix
// frequencies: principal components, Haar, a user's own.
type Full struct {
	H, W, C int
	Mean    []float64     // [H·W·C], channels fastest
	Cov     *mat.SymDense // [H·W·C]²
}

// MeasureFull returns the law of images [H, W, C], in one pass. Errors are those of
// Measure; images of more than MaxFull values are one, too.
func MeasureFull[F float32 | float64](h, w, c int, images iter.Seq[[]F]) (*Full, error) {
	if h < 1 || w < 1 || c < 1 || h*w*c > MaxFull {
		return nil, failf("dataset",
			"must hold images of 1 … %d values for the whole covariance, got %d×%d pixels in %d channels", MaxFull, h, w, c)
	}
	m := basis.NewMoments(h, w*c)
	row := make([]float64, h*w*c)
	for im := range images {
		if len(im) != len(row) {
			return nil, failf("dataset", "must hold images of %d×%d×%d = %d values, got %d in image %d", h, w, c, len(row),
				len(im), m.N())
		}
		for i, v := range im {
			row[i] = float64(v)
		}
		m.Add(row)
	}
	if m.N() == 0 {
		return nil, failf("dataset", "must hold at least one image, got none")
	}
	out := &Full{H: h, W: w, C: c, Mean: m.Mean(), Cov: m.Covariance()}
	for i, v := range out.Mean {
		if s := out.Cov.At(i, i); math.IsNaN(v-v) || math.IsNaN(s-s) {
			return nil, failf("dataset", "must hold finite values, got another")
		}
	}
	return out, nil
}

// SplitLaw is a Full law in coordinates that each lie in one subspace of a basis.
type SplitLaw struct {
	mean  *mat.VecDense
	cov   *mat.SymDense
	from  []int        // [J+1], subspace j has the coordinates from[j] … from[j+1]−1
	roots []*mat.Dense // R with Rᵀ R = cov, of the whole and then of each subspace
	total float64      // variance

	basis *basis.Basis
	label int
	turn  *mat.Dense // from images to the coordinates
	start *start.Law // of the states at which sampling starts; nil for noise alone
}

// From returns the law with sampling started from another, x_T = μ + (Σ + M)^½ ξ. One of
// another size is an *Error.
func (s *SplitLaw) From(l *start.Law) (*SplitLaw, error) {
	if len(l.Mean) != s.mean.Len() || l.H != s.basis.H() {
		return nil, failf("start", "must be made for the data's images of %d values, got %d×%d×%d", s.mean.Len(), l.H, l.W,
			l.C)
	}
	out := *s
	out.start = l
	return &out, nil
}

// On turns the law to the subspaces of a basis, those of a class where it has one for
// each. A basis of another size, a class without vectors and data without variance are
// errors.
func (f *Full) On(b *basis.Basis, label int) (*SplitLaw, error) {
	if b.H() != f.H || b.W() != f.W {
		return nil, failf("basis", "must split planes of %d×%d as the data has, got %d×%d", f.H, f.W, b.H(), b.W())
	}
	s := &SplitLaw{total: mat.Trace(f.Cov), basis: b, label: label}
	if !(s.total > 0) {
		return nil, failf("dataset", "must hold images that differ, got all alike")
	}
	axes, err := adapted(b, label)
	if err != nil {
		return nil, err
	}
	d := f.H * f.W * f.C
	turn := mat.NewDense(d, d, nil) // axes ⊗ I, for the channels
	for r := range f.H * f.W {
		for q := range f.H * f.W {
			for c := range f.C {
				turn.Set(r*f.C+c, q*f.C+c, axes.At(q, r))
			}
		}
	}
	s.turn, s.mean = turn, mat.NewVecDense(d, nil)
	s.mean.MulVec(turn, mat.NewVecDense(d, f.Mean))
	var half, full mat.Dense
	half.Mul(turn, f.Cov)
	full.Mul(&half, turn.T())
	s.cov = mat.NewSymDense(d, nil)
	for i := range d {
		for j := range i + 1 {
			s.cov.SetSym(i, j, (full.At(i, j)+full.At(j, i))/2)
		}
	}
	s.from = []int{0}
	for _, dims := range b.Dims() {
		s.from = append(s.from, s.from[len(s.from)-1]+dims*f.C)
	}
	for j := range len(s.from) {
		root, err := root(s.cov, s.span(j))
		if err != nil {
			return nil, err
		}
		s.roots = append(s.roots, root)
	}
	return s, nil
}

// span returns the coordinates of the whole (0) or of subspace j − 1.
func (s *SplitLaw) span(j int) [2]int {
	if j == 0 {
		return [2]int{0, s.from[len(s.from)-1]}
	}
	return [2]int{s.from[j-1], s.from[j]}
}

// adapted returns orthonormal columns, those of P_1 first and so on: the eigenvectors of
// Σ_j j P_j, whose eigenvalues rise.
func adapted(b *basis.Basis, label int) (*mat.Dense, error) {
	weights := make([]float64, b.J())
	for j := range weights {
		weights[j] = float64(j)
	}
	sum, err := b.Weighted(label, weights)
	if err != nil {
		return nil, err
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sum, true) {
		return nil, failf("basis", "must have projectors with eigenvectors")
	}
	var axes mat.Dense
	eigen.VectorsTo(&axes)
	return &axes, nil
}

// root returns R with Rᵀ R the covariance of some coordinates.
func root(cov *mat.SymDense, span [2]int) (*mat.Dense, error) {
	var eigen mat.EigenSym
	if !eigen.Factorize(cov.SliceSym(span[0], span[1]), true) {
		return nil, failf("dataset", "must have a covariance with eigenvectors")
	}
	var axes mat.Dense
	eigen.VectorsTo(&axes)
	out := mat.DenseCopyOf(axes.T())
	for i, v := range eigen.Values(nil) {
		scale := math.Sqrt(max(0, v))
		for k := range out.RawRowView(i) {
			out.RawRowView(i)[k] *= scale
		}
	}
	return out, nil
}
