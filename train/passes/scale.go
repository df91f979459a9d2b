package passes

import (
	"cmp"
	"context"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	normal "github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

// Scale is what the defaults of a schedule follow from in the data.
type Scale struct {
	// T is the least variance of the noise from which sampling may start: what the exact flow then misses of the data's
	// Gaussian is a thousandth of its variance.
	T float64
	// C is the data's variance, summed over the values of an image, for c of the loss weight: a heuristic.
	C float64
}

const (
	// horizon is the part of the data's variance that a start from noise alone may miss.
	horizon = 1e-3
	// scaleNumbers is how many numbers of images a scale is measured on, leastScaleImages the least number of images.
	scaleNumbers     = 1 << 25
	leastScaleImages = 1 << 10
)

// MeasureSpectrum measures the Gaussian of a data set on images that are evenly spaced in it, and returns their number,
// too.
func MeasureSpectrum(ctx context.Context, d *data.Dataset, report func(done, total int),
) (*normal.Spectrum, int, error) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	moments, n := basis.NewFrequencyMoments(h, w, c), min(d.Len(), max(leastScaleImages, scaleNumbers/d.Pixels()))
	which := make([]int, n)
	for k := range which {
		which[k] = int(int64(k) * int64(d.Len()) / int64(n))
	}
	err := d.Each(ctx, which, report, func(_ []int32, images []float64) error {
		moments.Add(images)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	s, err := normal.NewSpectrum(moments)
	return s, n, err
}

// ScaleOf returns the scale of data with such a Gaussian.
func ScaleOf(s *normal.Spectrum) Scale { return Scale{T: s.Horizon(horizon), C: s.Variance()} }

// Within returns the scale with an end of time that a network knows.
func (s Scale) Within(known schedule.Range) Scale {
	low, _ := known.Ends()
	s.T = min(max(s.T, 2*low*low), known.T())
	return s
}

// MeasureScale measures the scale of a data set on images that are evenly spaced in it.
func MeasureScale(ctx context.Context, d *data.Dataset) (Scale, error) {
	s, _, err := MeasureSpectrum(ctx, d, func(_, _ int) {})
	if err != nil {
		return Scale{}, err
	}
	return ScaleOf(s), nil
}

// DefaultScale sets the end of time and c where they are 0: as the data need, within the noise levels that a network
// knows.
func DefaultScale(ctx context.Context, T, c *float64, d *data.Dataset, known schedule.Range) error {
	if *T != 0 && *c != 0 {
		return nil
	}
	s, err := MeasureScale(ctx, d)
	if err != nil {
		return err
	}
	if s.C == 0 {
		return setting.Errorf("c", "must be given for images that are all alike")
	}
	*T = cmp.Or(*T, s.Within(known).T)
	*c = cmp.Or(*c, s.C)
	return nil
}

// leastEnd is the part of the data's variance that a start from noise alone misses at the least T that end tries.
const leastEnd = 0.1

// end returns the end of time for the sampler: of the highest variance that a network knows, its half, its quarter and
// so on, the T at which the sampler comes closest to the data's Gaussian, in W2² of normal.Spectrum.Bench, along the
// isotropic geodesic of that Gaussian. No network is asked: the Gaussian has E|flow + ε|² = Σ λ/(λ + g).
func (set GeodesicSettings) end(ctx context.Context, law *normal.Spectrum, known schedule.Range) (float64, error) {
	if law.Variance() == 0 {
		return 0, setting.Errorf("dataset", "must hold images that differ for nfe to choose T, got all alike")
	}
	set.T, set.Family = 0, schedule.Family{}
	set = set.resolved(known)
	if err := checkEnds(set.T, set.G0, set.C, known); err != nil {
		return 0, err
	}
	low, _ := known.Ends()
	highest, lowest := set.T, max(law.Horizon(leastEnd), 2*low*low, 2*set.G0)
	chosen, least := highest, math.Inf(1)
	for ; set.T == highest || set.T >= lowest; set.T /= 2 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var samples []schedule.Sample
		for _, sigma := range noiseLevels(set.Points, set.G0, set.T) {
			samples = append(samples, schedule.ResidualSample(sigma, law.Residual(sigma), 0, set.C))
		}
		geodesic, err := set.geodesic(nil, [][][]schedule.Sample{{samples}})
		if err != nil {
			return 0, err
		}
		report, err := law.BenchSampler(basis.None(law.H, law.W), set.Sampler, geodesic.Schedule)
		if err != nil {
			return 0, err
		}
		if report.W2 < least {
			chosen, least = set.T, report.W2
		}
	}
	return chosen, nil
}
