package search

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

const (
	// fineSteps are those of a reference, by iPNDM-4.
	fineSteps = 40
	// LeastLevels is the least number of Settings.Levels.
	LeastLevels = fineSteps
	// keptNumbers bounds the states of a reference that are kept.
	keptNumbers = 1 << 28
)

// reference has a network's converged trajectories.
type reference struct {
	network      sampler.Ensemble
	schedule     *schedule.Schedule   // that they follow, isotropic
	trajectories sampler.Trajectories // without a plan
	fine         []float64            // noise levels, falling
	states       *sampler.States      // at every States.Every-th node after the first
	products     *nodeProducts
}

// newReference follows trajectories along a path, from its end down to the lowest level for g0, to their converged
// samples, or on evenly spaced known levels if there are some. Further reducers see them as well.
func newReference(
	ctx context.Context, network sampler.Ensemble, path *schedule.Schedule, g0 float64, known []float64,
	t sampler.Trajectories, reducers ...sampler.Reducer,
) (*reference, error) {
	r := &reference{network: network, schedule: path, trajectories: t}
	r.fine = levelsBetween(math.Sqrt(path.At(0, 0).GT()), lowestOf(g0), 7, fineSteps)
	if known != nil {
		for i := range fineSteps {
			r.fine[i] = known[i*(len(known)-1)/(fineSteps-1)]
		}
	}
	plan, err := solver.New(solver.Settings{
		Solver: "ipndm", Warmup: solver.WarmupHeun, Grid: solver.Grid{Kind: solver.GridSigma, Sigma: r.fine},
	}, r.schedule, 0)
	if err != nil {
		return nil, err
	}
	h, w, c := network.Shape()
	values := len(t.Labels) * h * w * c
	r.states = &sampler.States{Every: 1}
	for fineSteps%r.states.Every != 0 || fineSteps/r.states.Every > keptNumbers/values && r.states.Every < fineSteps {
		r.states.Every++
	}
	products := &sampler.Products{Stages: fineSteps}
	t.Plan = plan
	if err := network.Follow(ctx, t, append(reducers, r.states, products)...); err != nil {
		return nil, err
	}
	last := products.Sums[fineSteps*(2*fineSteps+1)+fineSteps] // of the samples' squares
	r.products = &nodeProducts{r.fine, products.Sums, last / float64(values)}
	return r, nil
}

// pathToZero returns EDM's schedule from lastLevel up to the variance T.
func pathToZero(T, g0 float64) (*schedule.Schedule, error) {
	path, err := schedule.EDM(T, g0)
	if err == nil && g0 != schedule.DefaultG0 {
		path, err = path.ToZero()
	}
	return path, err
}

// lastLevel is the noise level at which all samplers end. It is not 0, so that solvers keep their order in the last
// step.
var lastLevel = math.Sqrt(schedule.DefaultG0)

// lowestOf returns the lowest level at which a network is evaluated, given the least variance g0 of its range.
func lowestOf(g0 float64) float64 { return max(schedule.DefaultSigmaMin, math.Sqrt(g0)) }

// levelsBetween returns the noise levels of n steps by EDM's rule with exponent rho, the last one replaced by
// lastLevel.
func levelsBetween(highest, lowest, rho float64, n int) []float64 {
	high, low := math.Pow(highest, 1/rho), math.Pow(lowest, 1/rho)
	out := make([]float64, n+1)
	for i := range n {
		out[i] = math.Pow(high+(low-high)*float64(i)/float64(n), rho)
	}
	out[n] = lastLevel
	return out
}

// nodes returns the nodes between which n steps by least squares have the least error, or nil if there are too few:
// see [nodeProducts.nodes].
func (r *reference) nodes(n int, first func(node int) float64) []int {
	return r.products.nodes(n, r.states.Every, first)
}

// levels returns the noise levels of nodes, and the standard deviation of noise to start from there; 0 at the first
// node.
func (r *reference) levels(nodes []int) (sigma []float64, deviation float64) {
	for _, k := range nodes {
		sigma = append(sigma, r.fine[k])
	}
	if nodes[0] > 0 {
		deviation = r.products.deviation(nodes[0])
	}
	return sigma, deviation
}

// nearest returns the node that is nearest to a noise level.
func (r *reference) nearest(sigma float64) (best int) {
	for k, s := range r.fine {
		if math.Abs(math.Log(s/sigma)) < math.Abs(math.Log(r.fine[best]/sigma)) {
			best = k
		}
	}
	return best
}

// fit fits coefficients between nodes to the first samples trajectories, near those of local and in its parts. As many
// further trajectories choose the ridge.
func (r *reference) fit(ctx context.Context, samples int, nodes []int, local solver.Local) (*fitter, error) {
	f := &fitter{
		ctx: ctx, network: r.network, trajectories: r.trajectories, samples: samples, schedule: r.schedule, local: local,
		states: r.states,
	}
	f.trajectories.Labels, f.trajectories.Progress = f.trajectories.Labels[:2*samples], nil
	for _, k := range nodes[1:] {
		f.at = append(f.at, k/r.states.Every-1)
	}
	sigma, deviation := r.levels(nodes)
	if f.trajectories.Start == nil {
		f.deviation = deviation
	}
	return f, f.fitAll(sigma)
}
