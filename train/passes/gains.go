package passes

import (
	"cmp"
	"context"
	"iter"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	normal "github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// gainSamples is how many samples a gain is the mean of, at least: neighbouring noise levels
// are taken together until there are as many. Its relative error then is about √(2/96), 0.14.
const gainSamples = 96

// pooled is how many neighbouring noise levels are taken together, so that at least two remain.
func (set GeodesicSettings) pooled() int {
	return min((gainSamples+set.Samples-1)/set.Samples, set.Points/2)
}

// gainLevels returns the noise levels of gains: geometric means of those taken together. The
// last takes what is over.
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

// measureGains is measureDensity of the whole, which measures the gains of the denoiser in
// the coordinates of the meter's images, q_f = E (flow + ε)_f², in the same pass.
func measureGains(ctx context.Context, meter *meter, set GeodesicSettings) ([]schedule.Sample, local.Row, error) {
	d := meter.data
	law := set.Spectrum
	if law == nil || set.Family.PerClass {
		var unread, err error
		law, err = normal.Measure(d.Height(), d.Width(), d.Channels(), meter.images(ctx, &unread))
		if err := cmp.Or(unread, ctx.Err(), err); err != nil {
			return nil, local.Row{}, err
		}
	}
	row := local.Row{Axes: law.Axes, Variance: make([]float64, len(law.Directions))}
	for f, direction := range law.Directions {
		row.Variance[f] = direction.Variance
	}
	frequencies := basis.NewFrequencies(d.Height(), d.Width(), d.Channels(), law.Axes)
	levels, n := noiseLevels(set.Points, set.G0, set.T), set.pooled()
	counts := make([]float64, set.Points/n)
	for range counts {
		row.Gain = append(row.Gain, make([]float64, frequencies.Size()))
	}
	parts, coordinates := make([][]float64, set.Points), make([]float64, frequencies.Size())
	err := meter.residualImages(ctx, levels, set.Samples, func(i int, residual []float64) {
		p := i / set.Samples
		frequencies.Forward(coordinates, residual)
		at := min(p/n, len(counts)-1)
		counts[at]++
		var sum float64
		for f, v := range coordinates {
			row.Gain[at][f] += (v*v - row.Gain[at][f]) / counts[at]
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

// images returns all images that the meter chooses from, until ctx has ended or one cannot be read, which is then
// unread.
func (r *meter) images(ctx context.Context, unread *error) iter.Seq[[]float32] {
	return func(yield func([]float32) bool) {
		im, n := make([]float32, r.data.Pixels()), r.data.Len()
		if r.pool != nil {
			n = len(r.pool)
		}
		for i := range n {
			if r.pool != nil {
				i = r.pool[i]
			}
			*unread = r.data.Image(i, false, im)
			if *unread != nil || ctx.Err() != nil || !yield(im) {
				return
			}
		}
	}
}
