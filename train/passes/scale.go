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

// Scale has the defaults of a schedule that depend on the data.
type Scale struct {
	// T is the smallest variance of the noise from which the exact flow misses at most a thousandth of the variance of the
	// data's Gaussian.
	T float64
	C float64 // the data's variance, summed over the values of an image: a heuristic for c of the loss weight
}

const (
	// horizon is the part of the data's variance that may be missed.
	horizon = 1e-3
	// scaleNumbers is the number of values that a scale is measured on, leastScaleImages the smallest number of images.
	scaleNumbers     = 1 << 25
	leastScaleImages = 1 << 10
)

// MeasureSpectrum measures the Gaussian of a data set on evenly spaced images.
func MeasureSpectrum(ctx context.Context, d *data.Dataset) (*normal.Spectrum, error) {
	h, w, c := d.Height(), d.Width(), d.Channels()
	moments, n := basis.NewFrequencyMoments(h, w, c), min(d.Len(), max(leastScaleImages, scaleNumbers/d.Pixels()))
	which := make([]int, n)
	for k := range which {
		which[k] = int(int64(k) * int64(d.Len()) / int64(n))
	}
	err := d.Each(ctx, which, nil, func(_ []int32, images []float64) error {
		moments.Add(images)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return normal.NewSpectrum(moments)
}

// ScaleOf returns the scale of data with the Gaussian s.
func ScaleOf(s *normal.Spectrum) Scale { return Scale{T: s.Horizon(horizon), C: s.Variance()} }

// Within returns the scale with T in the noise levels of a network.
func (s Scale) Within(known schedule.Range) Scale {
	low, _ := known.Ends()
	s.T = min(max(s.T, 2*low*low), known.T())
	return s
}

// DefaultScale sets T and c to the scale of the data if they are 0, with T in the noise levels of a network.
func DefaultScale(ctx context.Context, T, c *float64, d *data.Dataset, known schedule.Range) error {
	if *T != 0 && *c != 0 {
		return nil
	}
	law, err := MeasureSpectrum(ctx, d)
	if err != nil {
		return err
	}
	s := ScaleOf(law)
	if s.C == 0 {
		return setting.Errorf("c", "must be given for images that are all alike")
	}
	*T = cmp.Or(*T, s.Within(known).T)
	*c = cmp.Or(*c, s.C)
	return nil
}

// leastEnd is the part of the data's variance that is missed at the smallest T that end tries.
const leastEnd = 0.1

// end returns T for the sampler: the highest variance of the network, its half, its quarter and so on, whichever brings
// samples closest to the data's Gaussian, in W2² of normal.Spectrum.Bench, along the isotropic geodesic of that
// Gaussian. It needs no network: the Gaussian has E|flow + ε|² = Σ λ/(λ + g).
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
