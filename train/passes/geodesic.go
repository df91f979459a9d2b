package passes

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	normal "github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

// DefaultOrder is the order of Heun's method and of most other solvers at few evaluations.
const DefaultOrder = 2

// GeodesicSettings are the settings of MakeGeodesic.
type GeodesicSettings struct {
	T       float64         // default the best for Sampler if that has an NFE, else as the data need
	Sampler solver.Settings // for the default of T
	G0      float64         // default 1e-9
	C       float64         // of the loss weight; default the data's variance, Σλ
	Knots   int             `default:"32"`
	Order   int             `default:"2"`                         // of the solver; 1 gives the least energy
	Points  int             `json:"points" default:"160" min:"2"` // noise levels, uniform in ln σ
	Samples int             `json:"samples" default:"24" min:"1"` // images per noise level
	Batch   int             // samples per device program; default 128
	Seed    uint64
	// Family of the schedule; default one shared path. Its basis is none, or that of the model, for a path per subspace.
	Family   schedule.Family
	Spectrum *normal.Spectrum // of all images, for statistics; nil: it is measured

	Progress func(done, total int) // as in EvaluateSettings

	statistics bool // measure statistics of the denoiser, too; with basis none alone
}

// Geodesic is the schedule of a measured energy density.
type Geodesic struct {
	Schedule *schedule.Schedule // with parameters and the energy densities
	Reports  []schedule.Report  // per row of the schedule
}

// MakeGeodesic measures the energy density of a network,
//
//	F(g) = E|flow(x_t) + ε|² / (g (c + g)),
//
// in one pass over the data on a grid of noise levels, and returns the schedule of [schedule.Geodesic]: ġ √F is
// constant for order 1. A model of several subspaces is measured with the same g in each. Its schedule is isotropic, or
// has ġ_j √F_j constant in every subspace, which is optimal if F_j depends on g_j alone.
func MakeGeodesic(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, set GeodesicSettings,
) (*Geodesic, error) {
	if set.Sampler.NFE > 0 && set.T == 0 {
		law, err := MeasureSpectrum(ctx, d)
		if err != nil {
			return nil, err
		}
		set.C = cmp.Or(set.C, law.Variance())
		if set.T, err = set.end(ctx, law, m.Range()); err != nil {
			return nil, err
		}
	}
	if err := DefaultScale(ctx, &set.T, &set.C, d, m.Range()); err != nil {
		return nil, err
	}
	set = set.resolved(m.Range())
	labels, measured, _, err := set.measure(ctx, m, w, d)
	if err != nil {
		return nil, err
	}
	return set.geodesic(labels, measured)
}

// MeasureStatistics measures the statistics of a denoiser, per class or over all, in the pass of MakeGeodesic.
func MeasureStatistics(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, set GeodesicSettings,
) (*local.Statistics, error) {
	set = set.resolved(m.Range())
	set.statistics = true
	labels, _, rows, err := set.measure(ctx, m, w, d)
	if err != nil {
		return nil, err
	}
	return set.statisticsOf(d, labels, rows)
}

func (set GeodesicSettings) statisticsOf(d *data.Dataset, labels []int, rows []local.Row) (*local.Statistics, error) {
	return local.New(local.BandsOf(d.Height(), d.Width(), d.Channels()), labels, set.gainLevels(), rows)
}

// measure returns the energy densities of resolved settings, [row][subspace][noise level], the rows of the statistics
// if they are requested, and the labels of the rows, nil for one shared row.
func (set GeodesicSettings) measure(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset,
) (labels []int, measured [][][]schedule.Sample, rows []local.Row, err error) {
	if err := set.check(m.Range(), m.J()); err != nil {
		return nil, nil, nil, err
	}
	pools := [][]int{nil}
	if set.Family.PerClass {
		pools = nil
		images := imagesByClass(d)
		for label := range d.Classes() {
			labels, pools = append(labels, label), append(pools, images[label])
			if pools[label] == nil {
				return nil, nil, nil, setting.Errorf("dataset", "must hold images of every class, got none of class %d", label)
			}
		}
		if labels == nil {
			return nil, nil, nil, setting.Errorf("dataset", "must have labels for a schedule per class, got none")
		}
	}
	p := &progress{report: set.Progress, total: len(pools) * set.Points * set.Samples}
	for _, pool := range pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch, p)
		var density [][]schedule.Sample
		if set.statistics {
			density = make([][]schedule.Sample, 1)
			var row local.Row
			density[0], row, err = meter.gains(ctx, set)
			rows = append(rows, row)
		} else {
			density, err = meter.density(ctx, set)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		measured = append(measured, density)
	}
	return labels, measured, rows, nil
}

// resolved returns the settings with the defaults for a network's noise levels, without data.
func (set GeodesicSettings) resolved(known schedule.Range) GeodesicSettings {
	set.T = cmp.Or(set.T, known.T())
	set.G0 = cmp.Or(set.G0, known.G0())
	set.C = cmp.Or(set.C, 1)
	setting.SetDefaults(&set)
	set.Family.Basis = cmp.Or(set.Family.Basis, "none")
	return set
}

// perSubspace reports whether there is a path for each subspace.
func (set GeodesicSettings) perSubspace() bool { return set.Family.Basis != "none" }

// check returns a *[setting.Error] of the first field that cannot be used with a number of subspaces.
func (set GeodesicSettings) check(known schedule.Range, subspaces int) error {
	if err := cmp.Or(checkEnds(set.T, set.G0, set.C, known), setting.Check(&set, nil)); err != nil {
		return err
	}
	switch {
	case set.perSubspace() && subspaces < 2:
		return setting.Errorf("family", "must have basis none for a model that is measured in one subspace, got %s",
			set.Family.Basis)
	case set.perSubspace() && set.statistics:
		return setting.Errorf("statistics", "must be left out with basis %s: they need isotropic noise", set.Family.Basis)
	}
	return nil
}

// geodesic returns the schedule of measured densities, [row][subspace][noise level].
func (set GeodesicSettings) geodesic(labels []int, measured [][][]schedule.Sample) (*Geodesic, error) {
	out := &Geodesic{}
	var theta [][]schedule.Theta
	var density [][]*schedule.Density
	for _, row := range measured {
		var rowTheta []schedule.Theta
		var rowDensity []*schedule.Density
		var rowReport schedule.Report
		for _, samples := range row {
			path, report, err := schedule.Geodesic(samples, set.Order, set.T, set.G0, set.Knots)
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

// density measures F at noiseLevels, of each subspace or of all together. The levels have different images and noise,
// so their errors are independent.
func (r *meter) density(ctx context.Context, set GeodesicSettings) ([][]schedule.Sample, error) {
	subspaces := r.model.J()
	var g []float64
	levels := noiseLevels(set.Points, set.G0, set.T)
	for _, sigma := range levels {
		g = append(g, slices.Repeat([]float64{sigma * sigma}, set.Samples*subspaces)...)
	}
	residual, err := r.residuals(ctx, g)
	if err != nil {
		return nil, err
	}
	parts, width := 1, subspaces // subspaces of a part
	if set.perSubspace() {
		parts, width = subspaces, 1
	}
	out := make([][]schedule.Sample, parts)
	sums := make([]float64, set.Samples)
	for p, sigma := range levels {
		for part := range out {
			for k := range sums {
				sums[k] = 0
				for _, v := range residual[(p*set.Samples+k)*subspaces+part*width:][:width] {
					sums[k] += v
				}
			}
			value, stderr := MeanStderr(sums)
			out[part] = append(out[part], schedule.ResidualSample(sigma, value, stderr, set.C))
		}
	}
	return out, nil
}

// lowestSigma is EDM's σ_min. No network is trained below it; the density follows its limit there.
const lowestSigma = schedule.DefaultSigmaMin

// noiseLevels returns n noise levels uniform in ln σ between EDM's lowest, or √g_0, and √T.
func noiseLevels(n int, g0, T float64) []float64 {
	low, high := math.Max(math.Sqrt(g0), lowestSigma), math.Sqrt(T)
	if low >= high {
		low = math.Sqrt(g0)
	}
	sigma := make([]float64, n)
	for p := range sigma {
		sigma[p] = low * math.Pow(high/low, float64(p)/float64(n-1))
	}
	return sigma
}

// checkEnds checks the ends of a path against the noise levels of a network, and c of the loss weight.
func checkEnds(T, g0, c float64, known schedule.Range) error {
	lo, hi := known.Ends()
	switch {
	case !known.Holds(T):
		return setting.Errorf("T", "must lie within the model's noise levels, %.6g … %.6g as variances, got %g",
			lo*lo, hi*hi, T)
	case g0 > 0 && !known.Holds(g0):
		return setting.Errorf("g0", "must lie within the model's noise levels, %.6g … %.6g as variances, got %g",
			lo*lo, hi*hi, g0)
	case !setting.Positive(T):
		return setting.Errorf("T", "must be positive, got %g", T)
	case !(g0 > 0 && g0 < T):
		return setting.Errorf("g0", "must lie between 0 and T = %g, got %g", T, g0)
	case !setting.Positive(c):
		return setting.Errorf("c", "must be positive, got %g", c)
	}
	return nil
}

// gainSamples is the smallest number of samples in the mean of a gain: neighbouring noise levels are pooled. The
// relative error of a gain is then about √(2/96), 0.14.
const gainSamples = 96

// pooled returns the number of neighbouring noise levels that are pooled, so that at least two remain.
func (set GeodesicSettings) pooled() int {
	return min((gainSamples+set.Samples-1)/set.Samples, set.Points/2)
}

// gainLevels returns the noise levels of gains, the geometric means of pooled levels. The last pool has the remainder.
func (set GeodesicSettings) gainLevels() []float64 {
	n := set.pooled()
	levels := noiseLevels(set.Points, set.G0, set.T)
	out := make([]float64, set.Points/n)
	for i := range out {
		from, to := i*n, (i+1)*n
		if i == len(out)-1 {
			to = len(levels)
		}
		var sum float64
		for _, sigma := range levels[from:to] {
			sum += math.Log(sigma)
		}
		out[i] = math.Exp(sum / float64(to-from))
	}
	return out
}

// gains is measureGains with the spectrum of the settings, or that of the meter's images.
func (r *meter) gains(ctx context.Context, set GeodesicSettings) ([]schedule.Sample, local.Row, error) {
	law := set.Spectrum
	if law == nil || set.Family.PerClass {
		moments := basis.NewFrequencyMoments(r.data.Height(), r.data.Width(), r.data.Channels())
		err := r.data.Each(ctx, r.pool, nil, func(_ []int32, images []float64) error {
			moments.Add(images)
			return nil
		})
		if err == nil {
			law, err = normal.NewSpectrum(moments)
		}
		if err != nil {
			return nil, local.Row{}, err
		}
	}
	return set.measureGains(ctx, r.data, law, r.residualImages)
}

// measureGains is density of all subspaces together. In the same pass it measures the gains of the denoiser in
// bands, q = E (flow + ε)², in the coordinates of law. residuals calls use with flow + ε [H·W·C] of perLevel samples at
// each noise level.
func (set GeodesicSettings) measureGains(ctx context.Context, d *data.Dataset, law *normal.Spectrum,
	residuals func(ctx context.Context, sigma []float64, perLevel int, use func(sample int, residual []float64)) error,
) ([]schedule.Sample, local.Row, error) {
	bands := local.BandsOf(d.Height(), d.Width(), d.Channels())
	law, err := law.InBands(bands)
	if err != nil {
		return nil, local.Row{}, err
	}
	row := local.Row{Axes: law.Axes, Variance: make([]float64, len(law.Directions))}
	for f, direction := range law.Directions {
		row.Variance[f] = direction.Variance
	}
	frequencies := bands.Frequencies(law.Axes)
	band, _ := bands.Index()
	levels, n := noiseLevels(set.Points, set.G0, set.T), set.pooled()
	row.Gain = make([][]float64, set.Points/n)
	counts := make([][]float64, len(row.Gain))
	for at := range counts {
		row.Gain[at], counts[at] = make([]float64, len(row.Variance)), make([]float64, len(row.Variance))
	}
	parts, coordinates := make([][]float64, set.Points), make([]float64, frequencies.Size())
	err = residuals(ctx, levels, set.Samples, func(i int, residual []float64) {
		p := i / set.Samples
		frequencies.Forward(coordinates, residual)
		at := min(p/n, len(counts)-1)
		var sum float64
		for f, v := range coordinates {
			part := band[f/bands.C]*bands.C + f%bands.C
			counts[at][part]++
			row.Gain[at][part] += (v*v - row.Gain[at][part]) / counts[at][part]
			sum += v * v
		}
		parts[p] = append(parts[p], sum)
	})
	if err != nil {
		return nil, local.Row{}, err
	}
	out := make([]schedule.Sample, len(levels))
	for p, sigma := range levels {
		value, stderr := MeanStderr(parts[p])
		out[p] = schedule.ResidualSample(sigma, value, stderr, set.C)
	}
	return out, row, nil
}
