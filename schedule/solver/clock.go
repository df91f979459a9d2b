package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// clock is one subspace's view of a sampler: its path and the nodes of the steps.
type clock struct {
	path *schedule.Path
	t    []float64 // times of the nodes, decreasing
	g, u []float64 // variance and noise level √g at the nodes, strictly decreasing

	eulerEnd bool    // the last step is an Euler step
	from     []point // where the steps start, if not at their nodes
}

func newClock(path *schedule.Path, t []float64, eulerEnd bool) *clock {
	c := &clock{path: path, t: t, eulerEnd: eulerEnd}
	for _, ti := range t {
		g, _ := path.Eval(ti)
		c.g = append(c.g, g)
		c.u = append(c.u, math.Sqrt(g))
	}
	return c
}

func (c *clock) steps() int { return len(c.t) - 1 }

// ends reports whether step i is the last one and an Euler step.
func (c *clock) ends(i int) bool { return c.eulerEnd && i == c.steps()-1 }

// order returns the order of step i of a multistep method of order p: no more than
// the evaluations at hand, and 1 where the last step is an Euler step.
func (c *clock) order(i, p int) int {
	if c.ends(i) {
		return 1
	}
	return min(p, i+1)
}

// recent returns the last n of some node values up to node i, newest first.
func recent(v []float64, i, n int) []float64 {
	out := make([]float64, n)
	for k := range out {
		out[k] = v[i-k]
	}
	return out
}

// link is a Stage seen by one subspace.
type link struct {
	t, g  float64 // where the network is evaluated
	alpha float64
	beta  []float64 // newest first
	step  int       // −1 for an inner stage
	noise float64   // standard deviation of the noise added before the evaluation
}

// nodeLink returns a link whose evaluation is at node i and which ends step i.
func (c *clock) nodeLink(i int, alpha float64, beta []float64) link {
	return link{t: c.t[i], g: c.g[i], alpha: alpha, beta: beta, step: i}
}

// point is where a step starts on one subspace's clock.
type point struct {
	t, g, u float64
	noise   float64 // standard deviation of the noise that led here from the node
}

// start returns where step i starts: at its node, or further up where the sampler churns.
func (c *clock) start(i int) point {
	if c.from != nil {
		return c.from[i]
	}
	return point{t: c.t[i], g: c.g[i], u: c.u[i]}
}

// check reports nodes that coincide once they are rounded or clamped.
func (c *clock) check() error {
	for i := 1; i < len(c.u); i++ {
		if !(c.u[i] < c.u[i-1]) {
			return failf("grid", "must have distinct steps, got steps %d and %d both at noise level %v; take fewer steps or "+
				"move sigma_min", i-1, i, c.u[i])
		}
	}
	return nil
}
