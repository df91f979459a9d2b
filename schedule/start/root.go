package start

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Root is the map ξ → μ + (Σ + M)^½ ξ of a law at a covariance M of the noise. It is immutable and safe for concurrent
// use.
type Root struct {
	law *Law
	// One of two forms of the root:
	frequencies *basis.Frequencies // with the factor of each coefficient
	factor      []float64
	dense       *mat.SymDense
}

// Fits returns an *Error unless Root can draw at noise M = Σ_j g_j P_j, with P_j of a basis. It can if all g_j are
// equal, and for the bases none and dct. For other bases M and Σ have no directions in common, and Root needs the root
// of the whole matrix, for images of at most maxDense values.
func (l *Law) Fits(b *basis.Basis, g []float64) error {
	switch {
	case b.H() != l.H || b.W() != l.W:
		return failf("start", "must be made for planes of %d×%d, got %d×%d", b.H(), b.W(), l.H, l.W)
	case b.J() != len(g):
		return failf("start", "needs noise in the %d subspaces of the basis, got %d", b.J(), len(g))
	}
	for _, v := range g {
		if !(v >= 0) || math.IsInf(v, 1) {
			return failf("start", "needs noise of finite variances, got %v", v)
		}
	}
	if _, byFrequency := b.FrequencyBands(); equal(g) || byFrequency || l.size() <= maxDense {
		return nil
	}
	return largef("start", "must have the directions of its noise in common with a basis for images of more than %d "+
		"values: %s splits images of %d×%d×%d otherwise; take basis none or dct, or noise of one level",
		maxDense, b.Kind(), l.H, l.W, l.C)
}

// Root returns the map at noise M = Σ_j g_j P_j, with P_j of a basis for a label. Errors are those of Fits, and a
// *basis.Error for a class without vectors.
func (l *Law) Root(b *basis.Basis, label int, g []float64) (*Root, error) {
	if err := l.Fits(b, g); err != nil {
		return nil, err
	}
	r := &Root{law: l}
	bands, byFrequency := b.FrequencyBands()
	if !byFrequency && !equal(g) {
		return r, r.whole(b, label, g)
	}
	r.frequencies = l.frequencies()
	for i, v := range l.Variance {
		j := 0
		if byFrequency {
			j = bands[i/l.C]
		}
		r.factor = append(r.factor, math.Sqrt(v+g[j]))
	}
	return r, nil
}

func equal(g []float64) bool {
	for _, v := range g {
		if v != g[0] {
			return false
		}
	}
	return true
}

// whole sets the root of the whole matrix.
func (r *Root) whole(b *basis.Basis, label int, g []float64) error {
	l := r.law
	sum := l.Covariance()
	n := l.H * l.W
	noise, err := b.Weighted(label, g)
	if err != nil {
		return err
	}
	for i := range n {
		for k := range i + 1 {
			for c := range l.C {
				sum.SetSym(i*l.C+c, k*l.C+c, sum.At(i*l.C+c, k*l.C+c)+noise.At(i, k))
			}
		}
	}
	values, rows, ok := Eigen(sum)
	if !ok {
		return failf("start", "must have a covariance with eigenvectors under the noise")
	}
	d := l.size()
	r.dense = mat.NewSymDense(d, nil)
	for k, v := range values {
		r.dense.SymRankOne(r.dense, math.Sqrt(v), mat.NewVecDense(d, rows[k*d:(k+1)*d]))
	}
	return nil
}

// Draw writes μ + (Σ + M)^½ ξ to dst. Both have H·W·C values; dst may be xi.
func (r *Root) Draw(dst, xi []float64) {
	if r.frequencies != nil {
		r.frequencies.Forward(dst, xi)
		for i, f := range r.factor {
			dst[i] *= f
		}
		r.frequencies.Inverse(dst, dst)
	} else {
		var out mat.VecDense
		out.MulVec(r.dense, mat.NewVecDense(len(xi), xi))
		copy(dst, out.RawVector().Data)
	}
	for i, m := range r.law.Mean {
		dst[i] += m
	}
}

// DrawFloat32 is Draw in place for float32, rounded once.
func (r *Root) DrawFloat32(x []float32) {
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	r.Draw(wide, wide)
	for i, v := range wide {
		x[i] = float32(v)
	}
}
