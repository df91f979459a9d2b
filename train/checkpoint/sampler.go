package checkpoint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Version 0.1 stored samplers as schedules: a sampler in the file of the schedule, and next to it the files of a
// denoiser's statistics and of fitted coefficients in their parts.

// A Sampler is a plan for a row of the schedule that held it, with its tails.
type Sampler struct {
	*solver.Plan
	Tails [][]solver.Stage
}

// The samplers of 0.1 that were no solvers by name.
const (
	localName  = "local"
	fittedName = "fitted"
)

// LoadSamplers returns what the folder of a schedule of 0.1 holds as a sampler, for each row.
func LoadSamplers(dir string, s *schedule.Schedule) (out []Sampler, err error) {
	var statistics *local.Statistics
	var of *fitted
	made := s.Sampler()
	_, err = readFolder(dir, func(folder *atomicdir.Stored) (struct{}, error) {
		return struct{}{}, readParts(folder, []part{
			sidecarPart("statistics", made.Solver != localName && made.Solver != fittedName, readStatistics, &statistics),
			sidecarPart("fitted", made.Solver != fittedName, readFitted, &of),
		})
	})
	if err != nil {
		return nil, err
	}
	for row := range max(1, len(s.Labels())) {
		one, err := samplerOf(s, row, statistics, of)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func samplerOf(s *schedule.Schedule, row int, statistics *local.Statistics, of *fitted) (out Sampler, err error) {
	made := s.Sampler()
	if made.Solver != localName && made.Solver != fittedName {
		set := solver.Settings{Solver: made.Solver, Order: made.Order, NFE: made.NFE}
		if out.Plan, err = solver.New(set, s, row); err == nil {
			out.Tails, err = solver.Tails(set, s, row)
		}
		return out, err
	}
	if s.J() != 1 || row >= statistics.Rows() {
		return out, fmt.Errorf("its statistics are of %d rows and one subspace, the schedule of others", statistics.Rows())
	}
	maker := statistics.Sampler(row)
	var tails []solver.Weights
	var k solver.Coefficients
	if made.Solver == fittedName {
		if k = of.Coefficients; len(k.Alpha[0]) != statistics.Size() {
			return out, fmt.Errorf("its coefficients are in %d parts, its statistics in %d", len(k.Alpha[0]), statistics.Size())
		}
		if k.Coordinates, tails = maker.Coordinates, of.tails; tails == nil {
			tails = maker.ShortTails(k)
		}
	} else {
		if made.Order != 0 {
			maker.Order = made.Order
		}
		sigma := make([]float64, made.NFE+1)
		for i := range sigma {
			sigma[i] = s.Sigma(row, s.T()*float64(made.NFE-i)/float64(made.NFE))
		}
		k = maker.On(sigma)
		tails = maker.Tails(k)
	}
	out.Plan, err = k.Plan(s)
	for _, w := range tails {
		out.Tails = append(out.Tails, w.Steps())
	}
	return out, err
}

// sidecarPart reads a file of 0.1.
func sidecarPart[T any](name string, optional bool, read func(*sidecarFile) (*T, error), v **T) part {
	return Sidecar[T]{name + ".safetensors", "anisoflight-" + name, nil, read}.optionalPart(v, optional)
}

// fitted has coefficients, and the leading weights of samplers that begin at step k = 1 … N − 1; nil for none. Its
// file has sigma [N + 1], alpha [N, d] and beta [N, d, h] in d parts, and alpha.k and beta.k.
type fitted struct {
	solver.Coefficients
	tails []solver.Weights
}

func readFitted(f *sidecarFile) (*fitted, error) {
	read := func(suffix string) (w solver.Weights) {
		t := f.Lookup("beta" + suffix)
		if t == nil || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
			f.note("beta"+suffix, "must be there, of three dimensions")
			return w
		}
		n, d, h := t.Shape[0], t.Shape[1], t.Shape[2]
		alpha, beta := f.float64s("alpha"+suffix, n, d), f.float64s("beta"+suffix, n, d, h)
		for i := range n {
			if f.err == nil {
				w.Alpha = append(w.Alpha, alpha[i*d:(i+1)*d])
				w.Beta = append(w.Beta, slices.Collect(slices.Chunk(beta[i*d*h:(i+1)*d*h], h)))
			}
		}
		return w
	}
	out := &fitted{}
	out.Weights = read("")
	out.Sigma = f.float64s("sigma", len(out.Alpha)+1)
	for k := 1; k < len(out.Alpha); k++ {
		suffix := "." + strconv.Itoa(k)
		if f.Lookup("beta"+suffix) == nil {
			continue
		}
		tail, steps, parts := read(suffix), len(out.Alpha)-k, len(out.Alpha[0])
		if f.err == nil && (len(tail.Alpha) > steps || len(tail.Alpha[0]) != parts) {
			f.note("beta"+suffix, "must have at most %d steps, in %d parts", steps, parts)
		}
		if out.tails == nil {
			out.tails = make([]solver.Weights, len(out.Alpha)-1)
		}
		out.tails[k-1] = tail
	}
	return out, f.err
}

// readStatistics reads sigma [P] and, for each label, −1 for all images, in the parts [B, C]: gain.LABEL [P, B, C],
// variance.LABEL and axes.LABEL [B, C, C].
func readStatistics(f *sidecarFile) (*local.Statistics, error) {
	var bands basis.Bands
	for key, n := range map[string]*int{"bands": &bands.N, "height": &bands.H, "width": &bands.W} {
		var err error
		if *n, err = strconv.Atoi(f.Metadata[key]); err != nil || *n < 1 || *n > 1<<12 {
			return nil, f.failf("", "has metadata that cannot be read")
		}
	}
	labels, size := f.labels("variance", "B", "C")
	t := f.Lookup("sigma")
	if t == nil || len(t.Shape) != 1 || size == nil {
		return nil, f.failf("sigma", "and the variance of a label must be there")
	}
	sigma := f.float64s("sigma", t.Shape...)
	var rows []local.Row
	for _, label := range labels {
		name := "." + strconv.Itoa(label)
		row := local.Row{Variance: f.float64s("variance"+name, size...), Axes: f.axes(name, size)}
		gain := f.float64s("gain"+name, append([]int{len(sigma)}, size...)...)
		row.Gain = slices.Collect(slices.Chunk(gain, max(len(row.Variance), 1)))
		rows = append(rows, row)
	}
	if f.err != nil {
		return nil, f.err
	}
	if slices.Equal(labels, []int{basis.Shared}) {
		labels = nil
	}
	bands.C = size[1]
	return local.New(bands, labels, sigma, rows)
}
