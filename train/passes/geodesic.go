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

// DefaultOrder is that of Heun's method and of most other solvers at few evaluations.
const DefaultOrder = 2

// GeodesicSettings says which schedule MakeGeodesic makes, and from how much data.
type GeodesicSettings struct {
	T float64 // default the best for Sampler, or as the data need
	// Sampler is what T is chosen for, if it has an NFE and T is 0.
	Sampler solver.Settings
	G0      float64 // default 1e-9
	C       float64 // of the loss weight; default the data's variance, Σλ
	Knots   int     `default:"32"`
	Order   int     `default:"2"`                         // of the solver that the path is for; 1 gives the least energy
	Points  int     `json:"points" default:"160" min:"2"` // noise levels, uniform in ln σ
	Samples int     `json:"samples" default:"24" min:"1"` // images per noise level
	Batch   int     // samples per device program; default 128
	Seed    uint64
	// Family says which paths there are; default one, shared. With a basis other than none, that of the model, each
	// subspace has a path of its own.
	Family schedule.Family
	// Statistics asks for the gains of the denoiser as well, with basis none alone: of each class where the family is per
	// class.
	Statistics bool
	// Spectrum is that of all images, where Statistics are asked for and it is known; it is measured otherwise.
	Spectrum *normal.Spectrum
	// Progress is told of samples done; may be nil.
	Progress func(done, total int)
}

// Geodesic is the schedule of a measured density, with what is known about its energy.
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
// in one pass over the data on a grid of noise levels, and returns the schedule of [schedule.Geodesic]: ġ √F constant
// for order 1. A model
// of several subspaces is measured with the same g in each; its schedule is isotropic, or has ġ_j √F_j constant in
// every subspace, which is the best as far as F_j depends on its own g_j alone.
func MakeGeodesic(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset,
	set GeodesicSettings,
) (*Geodesic, error) {
	if set.Sampler.NFE > 0 && set.T == 0 {
		law, _, err := MeasureSpectrum(ctx, d, func(_, _ int) {})
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
	labels, measured, rows, err := set.measure(ctx, m, w, d)
	if err != nil {
		return nil, err
	}
	out, err := set.geodesic(labels, measured)
	if err != nil || !set.Statistics {
		return out, err
	}
	out.Statistics, err = set.statistics(d, labels, rows)
	return out, err
}

// MeasureStatistics measures the statistics of a denoiser that MakeGeodesic would measure, and makes no schedule.
func MeasureStatistics(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset,
	set GeodesicSettings,
) (*local.Statistics, error) {
	set.C = cmp.Or(set.C, 1) // of no influence here
	set = set.resolved(m.Range())
	set.Statistics = true
	labels, _, rows, err := set.measure(ctx, m, w, d)
	if err != nil {
		return nil, err
	}
	return set.statistics(d, labels, rows)
}

func (set GeodesicSettings) statistics(d *data.Dataset, labels []int, rows []local.Row) (*local.Statistics, error) {
	return local.New(local.BandsOf(d.Height(), d.Width(), d.Channels()), labels, set.gainLevels(), rows)
}

// AskStatistics is MeasureStatistics for a network that somebody else evaluates on images of which it has a copy.
// Settings have a Spectrum.
func AskStatistics(ctx context.Context, by ImageAsker, d *data.Dataset, known schedule.Range, set GeodesicSettings,
) (*local.Statistics, error) {
	set = set.resolved(known)
	set.Batch, set.Statistics = cmp.Or(set.Batch, 128), true
	if err := set.check(known, 1); err != nil {
		return nil, err
	}
	p := &progress{report: set.Progress, total: set.Points * set.Samples}
	s := newSampler(1, d.Len(), set.Batch, set.Seed, p)
	images := func(ctx context.Context, sigma []float64, perLevel int, use func(int, []float64)) error {
		return s.batches(ctx, len(sigma)*perLevel, func(begin, end int) error {
			q := Question{J: 1}
			for sample := begin; sample < end; sample++ {
				image, _ := s.order.At(uint64(sample))
				level := sigma[sample/perLevel]
				q.Images, q.Labels = append(q.Images, int64(image)), append(q.Labels, d.Label(image))
				q.Noise, q.G = append(q.Noise, s.noiseSeed(sample)), append(q.G, level*level)
			}
			residuals, err := by.AskImages(ctx, q)
			if err != nil {
				return err
			}
			for i := range end - begin {
				use(begin+i, residuals[i*d.Pixels():][:d.Pixels()])
			}
			return nil
		})
	}
	_, row, err := set.measureGains(ctx, d, set.Spectrum, images)
	if err != nil {
		return nil, err
	}
	return set.statistics(d, nil, []local.Row{row})
}

// measure returns the energy densities of resolved settings, [row][subspace][noise level], and the rows of the
// statistics if they are asked for. labels are those of the rows, nil for one shared row.
func (set GeodesicSettings) measure(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset,
) (labels []int, measured [][][]schedule.Sample, rows []local.Row, err error) {
	if err := set.check(m.Range(), m.J()); err != nil {
		return nil, nil, nil, err
	}
	pools := [][]int{nil}
	if set.Family.PerClass {
		pools = nil
		for label := range d.Classes() {
			labels = append(labels, label)
			pools = append(pools, classImages(d, label))
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
		if set.Statistics {
			var whole []schedule.Sample
			var row local.Row
			if whole, row, err = meter.gains(ctx, set); err != nil {
				return nil, nil, nil, err
			}
			density, rows = [][]schedule.Sample{whole}, append(rows, row)
		} else {
			density, err = measureDensity(ctx, &meter.sampler, set)
		}
		if err != nil {
			return nil, nil, nil, err
		}
		measured = append(measured, density)
	}
	return labels, measured, rows, nil
}

// resolved fills in the defaults for a network that knows such noise levels, where no data are at hand.
func (set GeodesicSettings) resolved(known schedule.Range) GeodesicSettings {
	set.T = cmp.Or(set.T, known.T())
	set.G0 = cmp.Or(set.G0, known.G0())
	set.C = cmp.Or(set.C, 1)
	setting.SetDefaults(&set)
	set.Family.Basis = cmp.Or(set.Family.Basis, "none")
	return set
}

// split reports whether each subspace has a path of its own.
func (set GeodesicSettings) split() bool { return set.Family.Basis != "none" }

// check returns the first field that cannot be used with a network of so many subspaces.
func (set GeodesicSettings) check(known schedule.Range, subspaces int) error {
	if err := cmp.Or(checkEnds(set.T, set.G0, set.C, known), setting.Check(&set, nil)); err != nil {
		return err
	}
	switch {
	case set.split() && subspaces < 2:
		return setting.Errorf("family", "must have basis none for a model that is measured in one subspace, got %s",
			set.Family.Basis)
	case set.split() && set.Statistics:
		return setting.Errorf("statistics", "must be left out with basis %s: they are those of isotropic noise",
			set.Family.Basis)
	}
	return nil
}

// geodesic returns the schedule of the densities measured, [row][subspace][noise level].
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

// measureDensity measures F at noiseLevels: of each subspace, or of the whole. Every level has images and noise of its
// own, so that their errors are independent.
func measureDensity(ctx context.Context, s *sampler, set GeodesicSettings) ([][]schedule.Sample, error) {
	var g []float64
	levels := noiseLevels(set.Points, set.G0, set.T)
	for _, sigma := range levels {
		g = append(g, slices.Repeat([]float64{sigma * sigma}, set.Samples*s.j)...)
	}
	residual, err := s.residuals(ctx, g)
	if err != nil {
		return nil, err
	}
	parts, width := 1, s.j // subspaces of a part
	if set.split() {
		parts, width = s.j, 1
	}
	out := make([][]schedule.Sample, parts)
	sums := make([]float64, set.Samples)
	for p, sigma := range levels {
		for part := range out {
			for k := range sums {
				sums[k] = 0
				for _, v := range residual[(p*set.Samples+k)*s.j+part*width:][:width] {
					sums[k] += v
				}
			}
			value, stderr := MeanStderr(sums)
			out[part] = append(out[part], schedule.ResidualSample(sigma, value, stderr, set.C))
		}
	}
	return out, nil
}

// lowestSigma is EDM's σ_min. Below it the residual is that of no network at all, and the density follows its limit.
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

// checkEnds checks the ends of a path, of noise levels that a network was trained on, and c of the loss weight.
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

// gainSamples is how many samples a gain is the mean of, at least: neighbouring noise levels are taken together until
// there are as many. Its relative error then is about √(2/96), 0.14.
const gainSamples = 96

// pooled is how many neighbouring noise levels are taken together, so that at least two remain.
func (set GeodesicSettings) pooled() int {
	return min((gainSamples+set.Samples-1)/set.Samples, set.Points/2)
}

// gainLevels returns the noise levels of gains: geometric means of those taken together. The last takes what is over.
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

// gains measures with the spectrum of the meter's own images, or that of the settings.
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

// measureGains is measureDensity of the whole, which measures the gains of the denoiser in the bands of images of a
// law, q = E (flow + ε)² over their coordinates, in the same pass. residuals calls use with flow + ε [H·W·C] of a
// number of samples at each noise level.
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
