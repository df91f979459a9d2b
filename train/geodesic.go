package train

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// GeodesicSettings says which schedule MakeGeodesic makes, and from how much data.
type GeodesicSettings struct {
	T       float64 // default 6400
	G0      float64 // default 1e-9
	C       float64 // of the loss weight; default 1
	Knots   int     // default 32
	Points  int     // noise levels, uniform in ln σ; default 160
	Samples int     // images per noise level; default 24
	Batch   int     // samples per device program; default 128
	Seed    uint64
	// Family says which paths there are; default one, shared. With a basis other than
	// none, that of the model, each subspace has a path of its own.
	Family schedule.Family
	// Progress is told of samples done; may be nil.
	Progress func(done, total int)
}

// Geodesic is a schedule of least energy, with what is known about its energy.
type Geodesic struct {
	Schedule *schedule.Schedule // with parameters and the energy densities
	Reports  []schedule.Report  // per row of the schedule
}

// lowestSigma is EDM's σ_min. Below it the residual is that of no network at all, and
// the density follows its limit.
const lowestSigma = 0.002

// MakeGeodesic measures the energy density of a network,
//
//	F(g) = E|flow(x_t) + ε|² / (g (c + g)),
//
// in one pass over the data on a grid of noise levels, and returns the schedule of least
// energy: ġ √F constant. A model of several subspaces is measured with the same g in
// each; its schedule is isotropic, or has ġ_j √F_j constant in every subspace, which is
// the best as far as F_j depends on its own g_j alone.
func MakeGeodesic(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, set GeodesicSettings) (*Geodesic, error) {
	orDefault(&set.T, schedule.DefaultT)
	orDefault(&set.G0, schedule.DefaultG0)
	orDefault(&set.C, 1)
	orDefault(&set.Knots, schedule.DefaultKnots)
	orDefault(&set.Points, 160)
	orDefault(&set.Samples, 24)
	switch {
	case !positive(set.T):
		return nil, fieldf("T", "%g; it is positive", set.T)
	case !(set.G0 > 0 && set.G0 < set.T):
		return nil, fieldf("g0", "%g; it lies between 0 and T = %g", set.G0, set.T)
	case !positive(set.C):
		return nil, fieldf("c", "%g; it is positive", set.C)
	case set.Points < 2:
		return nil, fieldf("points", "%d; a density needs at least two", set.Points)
	case set.Samples < 1:
		return nil, fieldf("samples", "%d; it is positive", set.Samples)
	}
	orDefault(&set.Family.Basis, "none")
	split := set.Family.Basis != "none"
	if split && m.J() < 2 {
		return nil, fieldf("family", "basis %s has several subspaces, the model is measured in one", set.Family.Basis)
	}
	labels, pools := []int(nil), [][]int{nil}
	if set.Family.PerClass {
		pools = nil
		for label := range d.Classes() {
			labels = append(labels, label)
			pools = append(pools, poolOf(d, label))
			if pools[label] == nil {
				return nil, fieldf("dataset", "it has no image of class %d", label)
			}
		}
		if labels == nil {
			return nil, fieldf("dataset", "it has no labels to make a schedule per class for")
		}
	}
	out := &Geodesic{}
	var theta [][]schedule.Theta
	var density [][]*schedule.Density
	for i, pool := range pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch)
		meter.progress, meter.total = set.Progress, len(pools)*set.Points*set.Samples
		meter.done = i * set.Points * set.Samples
		measured, err := measureDensity(ctx, meter, set, split)
		if err != nil {
			return nil, err
		}
		var rowTheta []schedule.Theta
		var rowDensity []*schedule.Density
		var rowReport schedule.Report
		for _, samples := range measured {
			path, report, err := schedule.Geodesic(samples, set.T, set.G0, set.Knots)
			if err != nil {
				return nil, err
			}
			f, err := schedule.NewDensity(samples)
			if err != nil {
				return nil, err
			}
			rowTheta = append(rowTheta, schedule.ThetaFromPath(path, set.Knots, set.T, set.G0))
			rowDensity = append(rowDensity, f)
			rowReport.Add(report)
		}
		theta, density, out.Reports = append(theta, rowTheta), append(density, rowDensity), append(out.Reports, rowReport)
	}
	s, err := schedule.FromTheta(set.Family, labels, theta, set.T, set.G0)
	if err != nil {
		return nil, err
	}
	out.Schedule, err = s.WithEnergy(density)
	return out, err
}

// measureDensity measures F at noise levels uniform in ln σ between EDM's lowest, or
// √g_0, and √T: of each subspace, or of the whole. Every level has images and noise of
// its own, so that their errors are independent.
func measureDensity(ctx context.Context, meter *meter, set GeodesicSettings, split bool) ([][]schedule.Sample, error) {
	low, high := math.Max(math.Sqrt(set.G0), lowestSigma), math.Sqrt(set.T)
	if low >= high {
		low = math.Sqrt(set.G0)
	}
	subspaces := meter.model.J()
	var g []float64
	sigma := make([]float64, set.Points)
	for p := range sigma {
		sigma[p] = low * math.Pow(high/low, float64(p)/float64(set.Points-1))
		g = append(g, slices.Repeat([]float64{sigma[p] * sigma[p]}, set.Samples*subspaces)...)
	}
	residual, err := meter.residuals(ctx, 0, g)
	if err != nil {
		return nil, err
	}
	out := make([][]schedule.Sample, 1)
	if split {
		out = make([][]schedule.Sample, subspaces)
	}
	for p := range sigma {
		parts := make([][]float64, len(out))
		for k := range set.Samples {
			at := (p*set.Samples + k) * subspaces
			for j := range parts {
				own := residual[at : at+subspaces]
				if split {
					own = own[j : j+1]
				}
				var sum float64
				for _, v := range own {
					sum += v
				}
				parts[j] = append(parts[j], sum)
			}
		}
		for j, part := range parts {
			value, stderr := meanStderr(part)
			out[j] = append(out[j], schedule.ResidualSample(sigma[p], value, stderr, set.C))
		}
	}
	return out, nil
}
