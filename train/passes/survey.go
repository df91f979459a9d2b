package passes

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/train/data"
)

// mostParts is into how many parts the samples of a noise level are divided for the
// jackknife.
const mostParts = 16

// survey is the pass and what it measured.
type survey struct {
	set     PredictSettings
	share   []float64 // π of each class; one for all images where there are none
	pools   [][]int
	labels  []int
	sigma   []float64
	ladders []*ladder
	parts   int // of the jackknife
	// energy[l][row][point][part] holds the sums of the parts of ladder l, [parts()].
	energy [][][][][]float64
	count  []float64 // samples in each part
}

// classes divides labelled images by class.
func (s *survey) classes(d *data.Dataset) {
	var pools [][]int
	var labels []int
	var share []float64
	of := map[int][]int{} // in one pass: there may be a million labels
	for i := range d.Len() {
		of[int(d.Label(i))] = append(of[int(d.Label(i))], i)
	}
	for label := range d.Classes() {
		if pool := of[label]; pool != nil {
			pools, labels, share = append(pools, pool), append(labels, label), append(share, float64(len(pool))/float64(d.Len()))
		}
	}
	total := 0.0
	for _, v := range share {
		total += v
	}
	if len(pools) > 1 && math.Abs(total-1) < 1e-9 { // every image has a class
		s.pools, s.labels, s.share = pools, labels, share
	}
}

// measure sums the residuals' parts of every class, noise level and part.
func (s *survey) measure(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset) error {
	set := s.set
	s.sigma = noiseLevels(set.Points, set.G0, set.T)
	s.parts = min(mostParts, set.Samples)
	s.count = make([]float64, s.parts)
	for k := range set.Samples {
		s.count[k%s.parts]++
	}
	s.energy = make([][][][][]float64, len(s.ladders))
	for l, rungs := range s.ladders {
		s.energy[l] = make([][][][]float64, len(s.pools))
		for row := range s.pools {
			s.energy[l][row] = make([][][]float64, set.Points)
			for p := range set.Points {
				for range s.parts {
					s.energy[l][row][p] = append(s.energy[l][row][p], make([]float64, rungs.parts()))
				}
			}
		}
	}
	planes := mat.NewDense(d.Height()*d.Width(), d.Channels(), nil)
	for row, pool := range s.pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch)
		meter.progress, meter.total = set.Progress, len(s.pools)*set.Points*set.Samples
		meter.done = row * set.Points * set.Samples
		// The rows' streams differ, so that their errors are independent.
		meter.seed = latent.Uint64(meter.seed, streamSample, uint64(row)<<32|1)
		err := meter.residualImages(ctx, s.sigma, set.Samples, func(i int, residual []float64) {
			p, k := i/set.Samples, i%set.Samples
			copy(planes.RawMatrix().Data, residual)
			for l, rungs := range s.ladders {
				rungs.energies(s.labels[row], planes, s.energy[l][row][p][k%s.parts])
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
