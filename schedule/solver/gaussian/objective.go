package gaussian

import (
	"cmp"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// sameVariance is the relative difference of variances in one group: a solver's error varies little over so small a
// part of the spectrum.
const sameVariance = 0.05

// group stands for directions of similar variance.
type group struct {
	Direction         // mean variance, and root of the sum of squared means
	n         float64 // directions
}

// groupDirections returns the groups of directions, by increasing variance.
func groupDirections(band []Direction) []group {
	band = slices.Clone(band)
	slices.SortFunc(band, func(a, b Direction) int { return cmp.Compare(a.Variance, b.Variance) })
	var out []group
	for from, to := 0, 0; from < len(band); from = to {
		for to < len(band) && sameLaw(band[from], band[to]) {
			to++
		}
		out = append(out, groupOf(band[from:to]))
	}
	return out
}

// sameLaw reports whether b, whose variance is at least that of a, may be in the same group.
func sameLaw(a, b Direction) bool {
	if b.Variance > (1+sameVariance)*a.Variance {
		return false
	}
	return a.Start == nil || math.Abs(b.Start.Variance-a.Start.Variance) <= sameVariance*a.Start.Variance
}

// groupOf returns the group of directions. A start's mean is projected on the data's mean; nothing is lost if they are
// equal.
func groupOf(band []Direction) group {
	n := float64(len(band))
	var variance, mean, along, starts float64
	for _, d := range band {
		variance += d.Variance
		mean += d.Mean * d.Mean
		if d.Start != nil {
			along += d.Mean * d.Start.Mean
			starts += d.Start.Variance
		}
	}
	out := group{Direction{Mean: math.Sqrt(mean), Variance: variance / n}, n}
	if band[0].Start != nil {
		out.Start = &StartLaw{Mean: along / math.Sqrt(max(mean, math.SmallestNonzeroFloat64)), Variance: starts / n}
	}
	return out
}

// objective is the distance of a sampler as a sum of squares, a function of the parameters of the nodes of all
// subspaces:
//
//	W2² + noise² · Noise + tie · mean_{j,k} (ln σ_{jk} − mean_j ln σ_{jk})².
type objective struct {
	sampler solver.Settings // resolved
	T, g0   float64
	total   float64   // variance
	bands   [][]group // [J]
	noise   float64
	tie     float64
}

func (o *objective) free() int { return o.sampler.Steps - 1 }

func (o *objective) rows() int {
	n := 0
	for _, band := range o.bands {
		n += 3 * len(band)
	}
	return n + o.tieRows()
}

func (o *objective) tieRows() int {
	if o.tie == 0 || len(o.bands) == 1 {
		return 0
	}
	return len(o.bands) * o.free()
}

// sigma returns the nodes [J][n+1].
func (o *objective) sigma(theta []float64) [][]float64 {
	out := make([][]float64, len(o.bands))
	for j := range out {
		out[j] = levels(theta[j*o.free():(j+1)*o.free()], math.Sqrt(o.T), math.Sqrt(o.g0))
	}
	return out
}

// plan returns the sampler of one subspace with these nodes. Its coefficients do not depend on the other subspaces.
func (o *objective) plan(sigma []float64) (*solver.Plan, error) {
	p, err := pathThrough(sigma, o.T, o.g0)
	if err != nil {
		return nil, err
	}
	return solver.New(o.sampler, schedule.Isotropic(p), 0)
}

// residual writes the roots of the terms of the sum to dst. It returns false if nodes coincide.
func (o *objective) residual(theta, dst []float64) bool {
	sigma := o.sigma(theta)
	for j, band := range o.bands {
		p, err := o.plan(sigma[j])
		if err != nil {
			return false
		}
		r := newRunner(p, 0)
		for _, g := range band {
			deviation, shift := r.outcome(g.Direction)
			dst[0] = (deviation - math.Sqrt(g.Variance)) * math.Sqrt(g.n/o.total)
			dst[1] = shift / math.Sqrt(o.total)
			dst[2] = o.noise * math.Sqrt(g.n*r.noise(g.Variance)/o.total)
			dst = dst[3:]
		}
	}
	if o.tieRows() > 0 {
		tieResiduals(sigma, o.tie, dst)
	}
	return true
}

// tieResiduals writes the roots of the terms of tie · mean_{j,k} (ln σ_{jk} − mean_j ln σ_{jk})² to dst, over the nodes
// between the ends.
func tieResiduals(sigma [][]float64, tie float64, dst []float64) {
	free := len(sigma[0]) - 2
	root := math.Sqrt(tie / float64(len(sigma)*free))
	for k := 1; k <= free; k++ {
		var mean float64
		for _, s := range sigma {
			mean += math.Log(s[k]) / float64(len(sigma))
		}
		for j, s := range sigma {
			dst[j] = root * (math.Log(s[k]) - mean)
		}
		dst = dst[len(sigma):]
	}
}

// The nodes of n steps are noise levels σ_0 > … > σ_n with both ends fixed. Their n log-increments add up to L =
// ln(σ_0/σ_n), whatever the n−1 free parameters:
//
//	ln σ_{k−1} − ln σ_k = L e^{θ_k} / Σ_i e^{θ_i},  θ_n = 0.

// levels returns the nodes for parameters θ.
func levels(theta []float64, hi, lo float64) []float64 {
	top := 0.0
	for _, v := range theta {
		top = max(top, v)
	}
	inc := make([]float64, len(theta)+1)
	var sum float64
	for k := range inc {
		v := 0.0
		if k < len(theta) {
			v = theta[k]
		}
		inc[k] = math.Exp(v - top)
		sum += inc[k]
	}
	out := make([]float64, len(inc)+1)
	out[0], out[len(inc)] = hi, lo
	at := math.Log(hi)
	for k, v := range inc[:len(theta)] {
		at -= math.Log(hi/lo) * v / sum
		out[k+1] = math.Exp(at)
	}
	return out
}

// parameters is the inverse of levels.
func parameters(sigma []float64) []float64 {
	n := len(sigma) - 1
	last := math.Log(sigma[n-1] / sigma[n])
	theta := make([]float64, n-1)
	for k := range theta {
		theta[k] = math.Log(math.Log(sigma[k]/sigma[k+1]) / last)
	}
	return theta
}

// pathThrough returns the path with its knots at the nodes, at uniform times, so that they are the uniform grid of n
// steps.
func pathThrough(sigma []float64, T, g0 float64) (*schedule.Path, error) {
	g := make([]float64, len(sigma))
	for i, s := range sigma {
		g[i] = s * s
	}
	g[0], g[len(g)-1] = T, g0
	return schedule.PathThrough(g, T)
}
