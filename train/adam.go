package train

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// adamEps keeps Adam's steps finite.
const adamEps = 1e-8

// scheduleAdam is Adam (Kingma and Ba, arXiv:1412.6980) on a table of schedule
// parameters, in float64:
//
//	m ← β₁ m + (1−β₁) d     v ← β₂ v + (1−β₂) d²
//	θ ← θ − lr · m/(1−β₁ⁿ) / ( √(v/(1−β₂ⁿ)) + ε )
//
// Every row counts its own steps n: the row of a class that is absent from a batch
// stays as it is, moments included.
type scheduleAdam struct {
	beta1, beta2 float64
	m, v         [][][]float64 // [row][subspace][K−1]
	n            []int64       // steps per row
}

func newScheduleAdam(beta1, beta2 float64, like [][]schedule.Theta) *scheduleAdam {
	a := &scheduleAdam{beta1: beta1, beta2: beta2, n: make([]int64, len(like))}
	a.m, a.v = zerosLike(like), zerosLike(like)
	return a
}

// step moves the parameters of the active rows against the gradient d.
func (a *scheduleAdam) step(theta [][]schedule.Theta, d [][][]float64, active []bool, lr float64) {
	for r := range theta {
		if !active[r] {
			continue
		}
		a.n[r]++
		rate := lr / (1 - math.Pow(a.beta1, float64(a.n[r])))
		scale := 1 / (1 - math.Pow(a.beta2, float64(a.n[r])))
		for j, th := range theta[r] {
			m, v := a.m[r][j], a.v[r][j]
			for i, g := range d[r][j] {
				m[i] = a.beta1*m[i] + (1-a.beta1)*g
				v[i] = a.beta2*v[i] + (1-a.beta2)*g*g
				th[i] -= rate * m[i] / (math.Sqrt(scale*v[i]) + adamEps)
			}
		}
	}
}
