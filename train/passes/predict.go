package passes

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/train/data"
)

// PredictSettings are the settings of Predict.
type PredictSettings struct {
	T       float64  // default as the data need
	G0      float64  // default 1e-9
	C       float64  // of the loss weight; default the data's variance, Σλ
	Points  int      `json:"points" default:"64" min:"4"`  // noise levels, uniform in ln σ
	Samples int      `json:"samples" default:"32" min:"2"` // images per noise level and class
	Batch   int      // samples per device program; default 128
	Seed    uint64   // of images and noise
	Bases   []string // with basis.Definition.Predicted; default all

	Progress func(done, total int) // as in EvaluateSettings
}

// Prediction is the least energy of a family of schedules.
type Prediction struct {
	Basis    string
	Cuts     []int // of dct, in max(u, v)
	K        int   // dimensions of P_1 per channel; 0 for basis none
	PerClass bool  // schedules per class
	Energy   float64
	Stderr   float64
	// Gain is 1 − E/E_iso, relative to the best isotropic energy. All energies have the same images and noise, so its
	// error is much smaller than theirs.
	Gain, GainStderr float64
}

// Predict returns how much energy a basis, or schedules per class, can save, from one pass over the data with equal g
// in all directions and before training. With F_yj the energy density of class y in subspace j and π_y the share of the
// class, the best isotropic schedule has the energy (∫√F dg)², F = Σ_y π_y Σ_j F_yj, and other families have
//
//	shared, subspaces j          Σ_j (∫√(Σ_y π_y F_yj) dg)²
//	per class                    Σ_y π_y (∫√(Σ_j F_yj) dg)²
//	per class, subspaces j       Σ_y π_y Σ_j (∫√F_yj dg)²
//
// which are not larger (Minkowski). The prediction is exact if F_j depends on g_j alone, as for a Gaussian whose
// covariance commutes with the basis; otherwise it is of first order in ln(g_j/g_k). The jackknife corrects energies
// for gains by noise. The best come first.
//
// The model must have one subspace.
func Predict(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, set PredictSettings,
) ([]Prediction, error) {
	if err := DefaultScale(ctx, &set.T, &set.C, d, m.Range()); err != nil {
		return nil, err
	}
	set.G0 = cmp.Or(set.G0, m.Range().G0())
	setting.SetDefaults(&set)
	if err := set.check(m.Range()); err != nil {
		return nil, err
	}
	if m.J() != 1 {
		panic("train: Predict measures with one noise level")
	}
	s := newSurvey(d, set)
	var err error
	if s.ladders, err = ladders(ctx, d, len(s.pools) > 1, set.Bases); err != nil {
		return nil, err
	}
	if len(s.ladders) == 0 {
		return nil, setting.Errorf("dataset", "must suit one of the bases, got images of %d×%d pixels", d.Height(), d.Width())
	}
	if err := s.measure(ctx, m, w, d); err != nil {
		return nil, err
	}
	return s.predictions(ctx)
}

func (set PredictSettings) check(known schedule.Range) error {
	if err := cmp.Or(checkEnds(set.T, set.G0, set.C, known), setting.Check(&set, nil)); err != nil {
		return err
	}
	for _, b := range set.Bases {
		if known := basis.Names(basis.Definition.Predicted); !slices.Contains(known, b) {
			return setting.Errorf("bases", "must be of %s, got %q", strings.Join(known, ", "), b)
		}
	}
	return nil
}

// candidate is a family of schedules.
type candidate struct {
	Prediction
	ladder *ladder // any for basis none
	rungs  []int   // indices of the rungs at which it is cut
}

// candidates returns all families; the isotropic one is first.
func (s *survey) candidates() (all []candidate) {
	for _, perClass := range []bool{false, true}[:min(len(s.pools), 2)] {
		all = append(all, candidate{Prediction{Basis: "none", PerClass: perClass}, s.ladders[0], nil})
		for _, l := range s.ladders {
			for i := range l.rungs {
				all = append(all, l.candidate(perClass, i))
				for k := i + 1; k < len(l.rungs) && l.cuts != nil; k++ { // bases of two cuts
					all = append(all, l.candidate(perClass, i, k))
				}
			}
		}
	}
	return all
}

func (l *ladder) candidate(perClass bool, rungs ...int) candidate {
	c := candidate{Prediction{Basis: l.name, K: l.rungs[rungs[0]], PerClass: perClass}, l, rungs}
	for _, i := range rungs {
		if l.cuts != nil {
			c.Cuts = append(c.Cuts, l.cuts[i])
		}
	}
	return c
}

// predictions returns every candidate's jackknifed energy and gain, the best first.
func (s *survey) predictions(ctx context.Context) ([]Prediction, error) {
	all := s.candidates()
	parts := len(s.count)
	energies := make([][]float64, parts+1) // [1 + left out][candidate]
	for left := range energies {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if energies[left], err = s.energies(all, left-1); err != nil {
			return nil, err
		}
	}
	out := make([]Prediction, len(all))
	for i, c := range all {
		p := c.Prediction
		p.Energy, p.Stderr = frechet.Jackknife(parts, func(left int) float64 { return energies[left+1][i] })
		p.Gain, p.GainStderr = frechet.Jackknife(parts,
			func(left int) float64 { return 1 - energies[left+1][i]/energies[left+1][0] })
		out[i] = p
	}
	slices.SortStableFunc(out, func(a, b Prediction) int { return cmp.Compare(b.Gain, a.Gain) })
	return out, nil
}

// energies returns the least energies of all candidates without the part left of the samples, or with all for −1.
func (s *survey) energies(all []candidate, left int) ([]float64, error) {
	type band struct {
		ladder         *ladder
		row, from, end int
	}
	known := map[band]float64{} // candidates have bands in common
	out := make([]float64, len(all))
	for i, c := range all {
		rows, share := []int{-1}, []float64{1}
		if c.PerClass {
			rows, share = nil, s.share
			for row := range s.pools {
				rows = append(rows, row)
			}
		}
		for r, row := range rows {
			from := 0
			for j := range len(c.rungs) + 1 {
				b := band{c.ladder, row, from, c.ladder.bands()}
				if j < len(c.rungs) {
					b.end = c.rungs[j] + 1
				}
				from = b.end
				least, ok := known[b]
				if !ok {
					var err error
					residual := s.residual(c.ladder, row, b.from, b.end, left)
					if least, err = schedule.LeastEnergy(s.sigma, residual, s.set.C, s.set.G0, s.set.T); err != nil {
						return nil, err
					}
					known[b] = least
				}
				out[i] += share[r] * least
			}
		}
	}
	return out, nil
}

// residual returns the mean squared residual of bands from … end−1 of a ladder by noise level, of a row or, for −1, of
// all rows, without the part left of the samples.
func (s *survey) residual(l *ladder, row, from, end, left int) []float64 {
	var n float64
	for part, count := range s.count {
		if part != left {
			n += count
		}
	}
	out := make([]float64, len(s.sigma))
	for r, share := range s.share {
		switch row {
		case -1:
		case r:
			share = 1
		default:
			continue
		}
		for p := range out {
			for part := range s.count {
				if part == left {
					continue
				}
				for _, v := range s.sums(l, r, p, part)[from:end] {
					out[p] += share * v / n
				}
			}
		}
	}
	return out
}
