package basis

import "math"

var haar = Definition{
	Name: KindHaar, Usage: "means of 2×2 pixels, or of larger blocks where k says so", Made: true,
	Formula: func(h, w, k int, _ []int) (*Basis, error) { return Haar(h, w, k) },
	Chains: func(h, w int) (out []Chain) {
		for k := h * w / 4; k >= 1; k /= 4 {
			b, err := Haar(h, w, k)
			if err != nil {
				break // no such scale
			}
			out = append(out, Chain{Vectors: rowsOf(b.cuts[0].functions(), h*w), Ranks: []int{k}})
		}
		return out
	},
}

// Haar returns the basis of two subspaces whose first holds the coarse part of the
// Haar wavelet transform: planes that are constant on blocks of 2^l×2^l pixels,
// k = H·W/4^l. k = 0 means l = 1. Both sizes must be multiples of 2^l.
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

// haarRows returns the coarse functions of length n, [n/side · n]: each is constant on
// a run of side samples and zero elsewhere.
func haarRows(n, side int) []float64 {
	a := make([]float64, n/side*n)
	for i := range n {
		a[i/side*n+i] = 1 / math.Sqrt(float64(side))
	}
	return a
}
