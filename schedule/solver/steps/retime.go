package steps

import (
	"math"
	"slices"
	"sort"

	"github.com/anisoflight/anisoflight/schedule"
)

// Retimed returns a schedule along the same paths on which the uniform grid of n steps
// passes through n+1 decreasing times, from T to 0: time is piecewise linear in time
// before, and the nodes become knots.
func Retimed(sch *schedule.Schedule, times []float64) (*schedule.Schedule, error) {
	paths := make([][]*schedule.Path, sch.Rows())
	for r := range paths {
		for j := range sch.J() {
			p, err := retimed(sch.At(r, j), times, sch.T())
			if err != nil {
				return nil, err
			}
			paths[r] = append(paths[r], p)
		}
	}
	return schedule.New(sch.Family(), sch.Labels(), paths)
}

// retimed returns the part of a path between the first and the last of decreasing times,
// with these at uniform times from T to 0.
func retimed(p *schedule.Path, times []float64, T float64) (*schedule.Path, error) {
	tau, _ := p.Knots()
	first, last := times[0], times[len(times)-1]
	at := slices.Clone(times)
	for _, t := range tau {
		if t > last && t < first {
			at = append(at, t)
		}
	}
	sort.Float64s(at)
	at = slices.Compact(at)
	n := len(times) - 1
	out, g := make([]float64, 0, len(at)), make([]float64, 0, len(at))
	k := n // at lies between times[k] and times[k−1]
	for _, t := range at {
		for k > 1 && t > times[k-1] {
			k--
		}
		v, _ := p.Eval(t)
		s := float64(n-k) + (t-times[k])/(times[k-1]-times[k])
		if len(out) > 0 && !(v > g[len(g)-1]*(1+1e-12)) && s < float64(n) {
			continue // a knot next to a node, but for rounding
		}
		out, g = append(out, math.Min(s/float64(n), 1)*T), append(g, v)
	}
	return schedule.NewPath(out, g)
}
