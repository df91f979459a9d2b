package gaussian

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// The nodes of n steps are noise levels σ_0 > … > σ_n with both ends fixed. Their
// n log-increments add up to L = ln(σ_0/σ_n), whatever the n−1 free parameters:
//
//	ln σ_{k−1} − ln σ_k = L e^{θ_k} / Σ_i e^{θ_i},  θ_n = 0.

// levels returns the nodes of parameters θ.
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

// pathThrough returns the path with its knots at the nodes, at uniform times: the
// uniform grid of n steps passes through them.
func pathThrough(sigma []float64, T, g0 float64) (*schedule.Path, error) {
	n := len(sigma) - 1
	tau, g := make([]float64, n+1), make([]float64, n+1)
	for i, s := range sigma {
		tau[n-i] = T * float64(n-i) / float64(n)
		g[n-i] = s * s
	}
	tau[n], g[n], g[0] = T, T, g0
	return schedule.NewPath(tau, g)
}

func scheduleThrough(sigma [][]float64, T, g0 float64, fam schedule.Family) (*schedule.Schedule, error) {
	paths := make([]*schedule.Path, len(sigma))
	for j, list := range sigma {
		var err error
		if paths[j], err = pathThrough(list, T, g0); err != nil {
			return nil, err
		}
	}
	return schedule.New(fam, nil, [][]*schedule.Path{paths})
}

// familyOf returns a schedule's family on a basis, unless one is given.
func familyOf(b *basis.Basis, fam schedule.Family) schedule.Family {
	if fam.Basis != "" {
		return fam
	}
	fam.Basis = b.Kind()
	if r := int(math.Round(math.Sqrt(float64(b.K())))); b.J() > 1 && b.H() == b.W() && r*r == b.K() {
		fam.K = b.K()
	}
	return fam
}
