package passes

import (
	"cmp"
	"context"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/train/data"
)

// Question is a batch of noisy images for a network outside the process.
type Question struct {
	Images []int64   // [B] indices of the images
	Labels []int32   // [B], −1 for none
	Noise  []uint64  // [B] seeds of ε
	G      []float64 // [B] noise variances
}

// Asker evaluates a network outside the process.
type Asker interface {
	// AskResiduals returns flow + ε, [B, H·W·C], of the noisy images of a question.
	AskResiduals(ctx context.Context, q Question) ([]float64, error)
}

// AskStatistics is MeasureStatistics for a network that an Asker evaluates on its copy of the images. The settings have
// a Spectrum.
func AskStatistics(ctx context.Context, asker Asker, d *data.Dataset, known schedule.Range, set GeodesicSettings,
) (*local.Statistics, error) {
	set = set.resolved(known)
	set.Batch, set.statistics = cmp.Or(set.Batch, 128), true
	if err := set.check(known, 1); err != nil {
		return nil, err
	}
	p := &progress{report: set.Progress, total: set.Points * set.Samples}
	s := newSampler(d.Len(), set.Batch, set.Seed, p)
	residuals := func(ctx context.Context, sigma []float64, perLevel int, use func(int, []float64)) error {
		return s.batches(ctx, len(sigma)*perLevel, func(begin, end int) error {
			var q Question
			for sample := begin; sample < end; sample++ {
				image, _ := s.order.At(uint64(sample))
				level := sigma[sample/perLevel]
				q.Images, q.Labels = append(q.Images, int64(image)), append(q.Labels, d.Label(image))
				q.Noise, q.G = append(q.Noise, s.noiseSeed(sample)), append(q.G, level*level)
			}
			values, err := asker.AskResiduals(ctx, q)
			if err != nil {
				return err
			}
			for i := range end - begin {
				use(begin+i, values[i*d.Pixels():][:d.Pixels()])
			}
			return nil
		})
	}
	_, row, err := set.measureGains(ctx, d, set.Spectrum, residuals)
	if err != nil {
		return nil, err
	}
	return set.statisticsOf(d, nil, []local.Row{row})
}
