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

// mostParts is into how many parts the samples of a noise level are divided for the jackknife.
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

// classes divides the images by class if every one of them has a class, and there are several.
func (s *survey) classes(d *data.Dataset) {
	images := map[int][]int{} // by class; in one pass: there may be a million labels
	for i := range d.Len() {
		label := int(d.Label(i))
		if label < 0 {
			return
		}
		images[label] = append(images[label], i)
	}
	if len(images) < 2 {
		return
	}
	s.labels, s.pools, s.share = slices.Sorted(maps.Keys(images)), nil, nil
	for _, label := range s.labels {
		s.pools = append(s.pools, images[label])
		s.share = append(s.share, float64(len(images[label]))/float64(d.Len()))
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
	p := &progress{report: set.Progress, total: len(s.pools) * set.Points * set.Samples}
	for row, pool := range s.pools {
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch, p)
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

// ladder is an orthonormal set of functions on a plane whose leading ones span nested subspaces: cut at one rung it is
// a basis of two subspaces, at more of more.
type ladder struct {
	name  string
	rungs []int              // numbers of leading functions at which it may be cut, increasing
	cuts  []int              // the cut that each rung is, of a basis of cuts
	pairs bool               // two cuts at a time are bases, too
	rows  map[int]*mat.Dense // [rungs' last, H·W] by label, or basis.Shared
}

// ladders returns those of the registered bases: what formulas nest, and the components of the data. Planes too large
// for components go without those, and only names them unless it is empty.
func ladders(ctx context.Context, images Images, perClass bool, only []string) ([]*ladder, error) {
	h, w := images.Height(), images.Width()
	var out []*ladder
	for _, d := range basis.Definitions(basis.Definition.Predicted) {
		if len(only) > 0 && !slices.Contains(only, d.Name) {
			continue
		}
		if d.Chains != nil {
			for _, c := range d.Chains(h, w) {
				rows := mat.NewDense(len(c.Vectors), h*w, slices.Concat(c.Vectors...))
				out = append(out, &ladder{
					name: d.Name, rungs: c.Ranks, cuts: c.Cuts, pairs: c.Cuts != nil,
					rows: map[int]*mat.Dense{basis.Shared: rows},
				})
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
		for _, labels := range b.Groups() { // which no classes share
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

// parts is the number of parts that the rungs cut a plane into.
func (l *ladder) parts() int { return len(l.rungs) + 1 }

// energies adds to sums [parts] the squared lengths of the parts of an image's planes [H·W, C] of a class.
func (l *ladder) energies(label int, planes *mat.Dense, sums []float64) {
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
	part := 0
	for i := range rows.RawMatrix().Rows {
		for part < len(l.rungs)-1 && i >= l.rungs[part] {
			part++
		}
		for _, v := range coef.RawRowView(i) {
			sums[part] += v * v
			rest -= v * v
		}
	}
	sums[len(sums)-1] += max(rest, 0)
}
