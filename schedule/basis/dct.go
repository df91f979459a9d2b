package basis

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

var dct = Definition{
	Name: KindDCT, Usage: "low frequencies of the cosine transform", Cuts: true,
	Formula: func(h, w, k int, cuts []int) (*Basis, error) {
		if len(cuts) > 0 {
			return DCTBands(h, w, cuts...)
		}
		return DCT(h, w, k)
	},
	CheckK: checkSquare,
	Chains: dctChains,
}

// DCTRows returns the first m rows of the orthonormal DCT-II of length n, [m·n]:
//
//	A_ui = α_u cos(π (2i+1) u/(2n)),  α_0 = √(1/n),  α_u = √(2/n) for u > 0.
func DCTRows(n, m int) []float64 {
	a := make([]float64, m*n)
	for u := range m {
		alpha := math.Sqrt(2 / float64(n))
		if u == 0 {
			alpha = math.Sqrt(1 / float64(n))
		}
		for i := range n {
			a[u*n+i] = alpha * math.Cos(math.Pi*float64((2*i+1)*u)/float64(2*n))
		}
	}
	return a
}

func newCut(h, w, nu, nv int) cut {
	return cut{h: h, w: w, nu: nu, nv: nv, ah: DCTRows(h, nu), aw: DCTRows(w, nv)}
}

// DCT returns the basis of two subspaces whose first is spanned by the k DCT-II functions of lowest frequency, u and v
// < √k. k = 0 means half of each axis, u < H/2 and v < W/2. It returns an *Error unless k is a perfect square that the
// plane has.
func DCT(h, w, k int) (*Basis, error) {
	if k == 0 {
		if h < 2 || w < 2 {
			return nil, failf(Shared, -1, "a %d×%d plane has no lower half of frequencies; use basis none", h, w)
		}
		return bands(KindDCT, h, w, newCut(h, w, h/2, w/2)), nil
	}
	if wrong := checkSquare(k); wrong != "" {
		return nil, failf(Shared, -1, "%s", wrong)
	}
	return DCTBands(h, w, root(k))
}

func root(k int) int { return int(math.Round(math.Sqrt(math.Max(0, float64(k))))) }

func checkSquare(k int) string {
	if r := root(k); r*r != k {
		return fmt.Sprintf("k must be a perfect square for basis dct, got %d", k)
	}
	return ""
}

// dctFunctions yields 1 + max(u, v) and the DCT function of each frequency, in the order of max(u, v).
func dctFunctions(h, w int) iter.Seq2[int, []float64] {
	return func(yield func(int, []float64) bool) {
		rows, cols := DCTRows(h, h), DCTRows(w, w)
		for cut := 1; cut <= max(h, w); cut++ {
			for u := range min(cut, h) {
				for v := range min(cut, w) {
					if max(u, v) != cut-1 {
						continue
					}
					f := make([]float64, 0, h*w)
					for y := range h {
						for x := range w {
							f = append(f, rows[u*h+y]*cols[v*w+x])
						}
					}
					if !yield(cut, f) {
						return
					}
				}
			}
		}
	}
}

// dctChains returns one chain of all DCT functions in the order of max(u, v), cut at 1 … max(H, W)−1.
func dctChains(h, w int) []Chain {
	var c Chain
	for cut, f := range dctFunctions(h, w) {
		if cut == max(h, w) {
			break
		}
		if len(c.Cuts) < cut {
			c.Ranks, c.Cuts = append(c.Ranks, 0), append(c.Cuts, cut)
		}
		c.Vectors = append(c.Vectors, f)
		c.Ranks[cut-1] = len(c.Vectors)
	}
	if c.Cuts == nil {
		return nil
	}
	return []Chain{c}
}

// DCTBands returns the basis of nested frequency bands, J = len(cuts)+1: with cuts c_1 < c_2 < …, P_1 has the
// frequencies max(u, v) < c_1, P_2 those below c_2 that are not in P_1, and so on, and P_J the rest. It returns an
// *Error unless the cuts increase from 1 on and leave a rest.
func DCTBands(h, w int, cuts ...int) (*Basis, error) {
	if h < 1 || w < 1 {
		return nil, failf(Shared, -1, "a %d×%d plane has no frequencies", h, w)
	}
	if len(cuts) == 0 {
		return nil, failf(Shared, -1, "no cuts; use basis none for one subspace")
	}
	spans := make([]cut, len(cuts))
	for i, c := range cuts {
		switch {
		case c < 1 || c > max(h, w):
			return nil, failf(Shared, -1, "cut %d is outside 1 … %d, the frequencies of a %d×%d plane", c, max(h, w), h, w)
		case i > 0 && c <= cuts[i-1]:
			return nil, failf(Shared, -1, "cut %d after %d; cuts must increase", c, cuts[i-1])
		case c >= h && c >= w:
			return nil, failf(Shared, -1, "cut %d keeps every frequency of a %d×%d plane; nothing is left for the last subspace",
				c, h, w)
		}
		spans[i] = newCut(h, w, min(c, h), min(c, w))
	}
	return bands(KindDCT, h, w, spans...), nil
}

func bands(kind string, h, w int, spans ...cut) *Basis {
	b := &Basis{kind: kind, h: h, w: w, cuts: spans}
	below := 0
	for _, c := range spans {
		b.dims = append(b.dims, c.nu*c.nv-below)
		below = c.nu * c.nv
	}
	b.dims = append(b.dims, h*w-below)
	return b
}

// Separable returns the factors of the projector X → Q_H X Q_W to the nested span R_{i+1}, row-major [H·H] and [W·W],
// with Q = AᵀA. ok is false for bases that are not separable, and unless 0 ≤ i < J−1.
func (b *Basis) Separable(i int) (qh, qw []float64, ok bool) {
	if i < 0 || i >= len(b.cuts) {
		return nil, nil, false
	}
	c := b.cuts[i]
	return gram(c.ah, c.h), gram(c.aw, c.w), true
}

var haar = Definition{
	Name: KindHaar, Usage: "means of 2×2 pixels, or of larger blocks where k says so", Made: true,
	Formula: func(h, w, k int, _ []int) (*Basis, error) { return Haar(h, w, k) },
	Chains: func(h, w int) (out []Chain) {
		for k := h * w / 4; k >= 1; k /= 4 {
			b, err := Haar(h, w, k)
			if err != nil {
				break // no such scale
			}
			vectors := slices.Collect(slices.Chunk(b.cuts[0].functions(), h*w))
			out = append(out, Chain{Vectors: vectors, Ranks: []int{k}})
		}
		return out
	},
}

// Haar returns the basis of two subspaces whose first has the coarse part of the Haar wavelet transform: planes that
// are constant on blocks of 2^l×2^l pixels, k = H·W/4^l. k = 0 means l = 1. It returns an *Error unless both sizes are
// multiples of 2^l.
func Haar(h, w, k int) (*Basis, error) {
	if h < 2 || w < 2 || h%2 != 0 || w%2 != 0 {
		return nil, failf(Shared, -1, "a %d×%d plane has no Haar basis; its sizes must be even", h, w)
	}
	if k == 0 {
		k = h * w / 4
	}
	var ranks []int
	for side := 2; h%side == 0 && w%side == 0; side *= 2 {
		rank := h / side * (w / side)
		if rank == k {
			return bands(KindHaar, h, w, cut{
				h: h, w: w, nu: h / side, nv: w / side, ah: haarRows(h, side),
				aw: haarRows(w, side),
			}), nil
		}
		ranks = append(ranks, rank)
	}
	return nil, failf(Shared, -1, "k is %d; the Haar bases of a %d×%d plane have k in %v", k, h, w, ranks)
}

// haarRows returns the coarse functions of length n, [n/side · n]: each is constant on side samples and zero elsewhere.
func haarRows(n, side int) []float64 {
	a := make([]float64, n/side*n)
	for i := range n {
		a[i/side*n+i] = 1 / math.Sqrt(float64(side))
	}
	return a
}
