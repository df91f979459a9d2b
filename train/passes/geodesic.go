package passes

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
	"github.com/anisoflight/anisoflight/train/stats"
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
	// Statistics asks for the gains of the denoiser as well, with basis none alone: of each
	// class where the family is per class.
	Statistics bool
	// Progress is told of samples done; may be nil.
	Progress func(done, total int)
}

// Geodesic is a schedule of least energy, with what is known about its energy.
type Geodesic struct {
	Schedule *schedule.Schedule // with parameters and the energy densities
	Reports  []schedule.Report  // per row of the schedule
	// Statistics are those of the denoiser, by row of the schedule, where they were asked for.
	Statistics *local.Statistics
}

// MakeGeodesic measures the energy density of a network,
//
//	F(g) = E|flow(x_t) + ε|² / (g (c + g)),
//
// in one pass over the data on a grid of noise levels, and returns the schedule of least
// energy: ġ √F constant. A model of several subspaces is measured with the same g in
// each; its schedule is isotropic, or has ġ_j √F_j constant in every subspace, which is
// the best as far as F_j depends on its own g_j alone.
func MakeGeodesic(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset,
	set GeodesicSettings,
) (*Geodesic, error) {
	setting.Default(&set.T, m.Range().T())
	setting.Default(&set.G0, m.Range().G0())
	setting.Default(&set.C, 1)
	setting.Default(&set.Knots, schedule.DefaultKnots)
	setting.Default(&set.Points, 160)
	setting.Default(&set.Samples, 24)
	if err := checkEnds(set.T, set.G0, set.C, m.Range()); err != nil {
		return nil, err
	}
	switch {
	case set.Points < 2:
		return nil, setting.Errorf("points", "must be at least 2 for a density, got %d", set.Points)
	case set.Samples < 1:
		return nil, setting.Errorf("samples", "must be positive, got %d", set.Samples)
	}
	setting.Default(&set.Family.Basis, "none")
	split := set.Family.Basis != "none"
	if split && m.J() < 2 {
		return nil, setting.Errorf("family", "must have basis none for a model that is measured in one subspace, got %s",
			set.Family.Basis)
	}
	if split && set.Statistics {
		return nil, setting.Errorf("statistics", "must be left out with basis %s: they are those of isotropic noise",
			set.Family.Basis)
	}
	labels, pools := []int(nil), [][]int{nil}
	if set.Family.PerClass {
		pools = nil
		for label := range d.Classes() {
			labels = append(labels, label)
			pools = append(pools, poolOf(d, label))
			if pools[label] == nil {
				return nil, setting.Errorf("dataset", "must hold images of every class, got none of class %d", label)
			}
		}
		if labels == nil {
			return nil, setting.Errorf("dataset", "must have labels for a schedule per class, got none")
		}
	}
	out := &Geodesic{}
	var theta [][]schedule.Theta
	var density [][]*schedule.Density
	var rows []local.Row
	for i, pool := range pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch)
		meter.progress, meter.total = set.Progress, len(pools)*set.Points*set.Samples
		meter.done = i * set.Points * set.Samples
		var measured [][]schedule.Sample
		var err error
		if set.Statistics {
			var whole []schedule.Sample
			var row local.Row
			whole, row, err = measureGains(ctx, meter, set)
			measured, rows = [][]schedule.Sample{whole}, append(rows, row)
		} else {
			measured, err = measureDensity(ctx, meter, set, split)
		}
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
	if out.Schedule, err = s.WithEnergy(density); err != nil || !set.Statistics {
		return out, err
	}
	out.Statistics, err = local.New(d.Height(), d.Width(), d.Channels(), labels, set.gainLevels(), rows)
	return out, err
}

// measureDensity measures F at noiseLevels: of each subspace, or of the whole. Every level has images and noise of
// its own, so that their errors are independent.
func measureDensity(ctx context.Context, meter *meter, set GeodesicSettings, split bool) ([][]schedule.Sample, error) {
	subspaces := meter.model.J()
	var g []float64
	levels := noiseLevels(set.Points, set.G0, set.T)
	for _, sigma := range levels {
		g = append(g, slices.Repeat([]float64{sigma * sigma}, set.Samples*subspaces)...)
	}
	residual, err := meter.residuals(ctx, g)
	if err != nil {
		return nil, err
	}
	out := make([][]schedule.Sample, 1)
	if split {
		out = make([][]schedule.Sample, subspaces)
	}
	for p, sigma := range levels {
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
			value, stderr := stats.MeanStderr(part)
			out[j] = append(out[j], schedule.ResidualSample(sigma, value, stderr, set.C))
		}
	}
	return out, nil
}
