package passes

import (
	"context"
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

// mostParts is the largest number of parts of the jackknife.
const mostParts = 16

// survey has measured residuals by noise level, class and band of every basis.
type survey struct {
	set     PredictSettings
	labels  []int     // the classes; −1 for all images together
	pools   [][]int   // images of each class
	share   []float64 // π of each class
	sigma   []float64
	count   []float64 // samples in each part of the jackknife
	ladders []*ladder
}

// newSurvey divides the images by class if there are several classes and every image has one.
func newSurvey(d *data.Dataset, set PredictSettings) *survey {
	s := &survey{set: set, labels: []int{-1}, pools: [][]int{nil}, share: []float64{1}}
	s.sigma, s.count = noiseLevels(set.Points, set.G0, set.T), make([]float64, min(mostParts, set.Samples))
	for k := range set.Samples {
		s.count[k%len(s.count)]++
	}
	images := imagesByClass(d)
	if len(images) < 2 || images[-1] != nil {
		return s
	}
	s.labels, s.pools, s.share = slices.Sorted(maps.Keys(images)), nil, nil
	for _, label := range s.labels {
		s.pools = append(s.pools, images[label])
		s.share = append(s.share, float64(len(images[label]))/float64(d.Len()))
	}
	return s
}

// measure sums the squared residuals in the bands of every ladder.
func (s *survey) measure(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset) error {
	set := s.set
	for _, l := range s.ladders {
		l.energy = make([]float64, len(s.pools)*set.Points*len(s.count)*l.bands())
	}
	planes := mat.NewDense(d.Height()*d.Width(), d.Channels(), nil)
	p := &progress{report: set.Progress, total: len(s.pools) * set.Points * set.Samples}
	for row, pool := range s.pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch, p)
		// The rows' streams differ, so that their errors are independent.
		meter.seed = latent.Uint64(meter.seed, streamSample, uint64(row)<<32|1)
		err := meter.residualImages(ctx, s.sigma, set.Samples, func(i int, residual []float64) {
			point, part := i/set.Samples, i%set.Samples%len(s.count)
			copy(planes.RawMatrix().Data, residual)
			for _, l := range s.ladders {
				l.add(s.labels[row], planes, s.sums(l, row, point, part))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sums returns the sums of a ladder's bands for a class, a noise level and a part of the samples.
func (s *survey) sums(l *ladder, row, point, part int) []float64 {
	at := ((row*s.set.Points+point)*len(s.count) + part) * l.bands()
	return l.energy[at : at+l.bands()]
}

// ladder is an orthonormal set of functions on a plane whose leading ones span nested subspaces. Cut at n rungs it is a
// basis of n+1 subspaces.
type ladder struct {
	name  string
	rungs []int              // numbers of leading functions at which it may be cut, increasing
	cuts  []int              // of the basis, for each rung; nil for a basis without cuts
	rows  map[int]*mat.Dense // [rungs' last, H·W] by label, or basis.Shared

	energy []float64 // [row][point][part][bands()], measured
}

// ladders returns the ladders of the registered bases, or of those in only if it is not empty: of formulas, and of the
// components of the data unless planes are too large.
func ladders(ctx context.Context, images *data.Dataset, perClass bool, only []string) ([]*ladder, error) {
	h, w := images.Height(), images.Width()
	var out []*ladder
	for _, d := range basis.Definitions(basis.Definition.Predicted) {
		if len(only) > 0 && !slices.Contains(only, d.Name) {
			continue
		}
		if d.Chains != nil {
			for _, c := range d.Chains(h, w) {
				rows := mat.NewDense(len(c.Vectors), h*w, slices.Concat(c.Vectors...))
				out = append(out, &ladder{name: d.Name, rungs: c.Ranks, cuts: c.Cuts, rows: map[int]*mat.Dense{basis.Shared: rows}})
			}
			continue
		}
		if h*w < 4 || h*w > maxPlane || d.PerClass && !perClass {
			continue
		}
		set := PCASettings{K: h * w / 2, PerClass: d.PerClass}
		b, _, err := PCA(ctx, images, set)
		if err != nil {
			return nil, err
		}
		l := &ladder{name: d.Name, rows: map[int]*mat.Dense{}}
		for k := 1; k <= set.K; k *= 2 {
			l.rungs = append(l.rungs, k)
		}
		n := l.rungs[len(l.rungs)-1]
		for _, labels := range b.Groups() { // of one class each
			v, err := b.Vectors(labels[0])
			if err != nil {
				return nil, err
			}
			l.rows[labels[0]] = mat.NewDense(n, h*w, v[:n*h*w])
		}
		out = append(out, l)
	}
	return out, nil
}

// bands returns the number of bands between the rungs.
func (l *ladder) bands() int { return len(l.rungs) + 1 }

// add adds the squared lengths of an image's planes [H·W, C] in each band to sums.
func (l *ladder) add(label int, planes *mat.Dense, sums []float64) {
	rows, ok := l.rows[basis.Shared]
	if !ok {
		rows = l.rows[label]
	}
	var coef mat.Dense
	coef.Mul(rows, planes)
	rest := 0.0
	for _, v := range planes.RawMatrix().Data {
		rest += v * v
	}
	band := 0
	for i := range rows.RawMatrix().Rows {
		for band < len(l.rungs)-1 && i >= l.rungs[band] {
			band++
		}
		for _, v := range coef.RawRowView(i) {
			sums[band] += v * v
			rest -= v * v
		}
	}
	sums[len(sums)-1] += max(rest, 0)
}
