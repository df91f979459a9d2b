package train

import (
	"math"

	"github.com/anisoflight/anisoflight/kernels/latent"
)

// The streams of package latent that training draws from.
const (
	streamTime  uint32 = 0x74696d65
	streamSigma uint32 = 0x7369676d
)

// times returns n times in [0, T) as a function of seed and step: independent and
// uniform, or stratified, one from each of n equal parts of [0, T] in random order, so
// that no class of a sorted batch keeps to one part.
func times(seed uint64, step int64, n int, T float64, stratified bool) []float64 {
	key := latent.Uint64(seed, streamTime, uint64(step))
	t := make([]float64, n)
	for i := range t {
		t[i] = unit(key, uint64(i))
	}
	if stratified {
		for i, part := range latent.Perm(key, streamTime, n) {
			t[i] = (float64(part) + t[i]) / float64(n)
		}
	}
	for i := range t {
		t[i] *= T
	}
	return t
}

// unit returns a number uniform in [0, 1).
func unit(key, counter uint64) float64 {
	return float64(latent.Uint64(key, streamTime, counter)>>11) * 0x1p-53
}

// variances returns n·j noise variances of EDM's score-matching loss as a function of
// seed and step,
//
//	ln σ_j = mean + std·n + extra·n_j,   g_j = σ_j²,
//
// n unit normal per sample and n_j per sample and subspace.
func variances(seed uint64, step int64, n, j int, mean, std, extra float64) []float64 {
	draw := make([]float32, n*(j+1))
	latent.Normal(latent.Uint64(seed, streamSigma, uint64(step)), streamSigma, draw)
	g := make([]float64, 0, n*j)
	for i := range n {
		own := draw[i*(j+1) : (i+1)*(j+1)]
		for _, x := range own[1:] {
			g = append(g, math.Exp(2*(mean+std*float64(own[0])+extra*float64(x))))
		}
	}
	return g
}
