package passes

import (
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
)

// candidate is a family of schedules.
type candidate struct {
	Prediction
	ladder int   // any for none, which is cut nowhere
	at     []int // rungs
}

func (s *survey) candidates() []candidate {
	var out []candidate
	perClass := []bool{false}
	if len(s.pools) > 1 {
		perClass = []bool{false, true}
	}
	for _, own := range perClass {
		out = append(out, candidate{Prediction: Prediction{Basis: "none", PerClass: own}})
		for l, rungs := range s.ladders {
			for i := range rungs.rungs {
				out = append(out, rungs.candidate(own, l, i))
				for k := i + 1; k < len(rungs.rungs) && rungs.pairs; k++ {
					out = append(out, rungs.candidate(own, l, i, k))
				}
			}
		}
	}
	return out
}

// candidate returns the family of this ladder, the l-th, cut at some rungs.
func (l *ladder) candidate(perClass bool, index int, at ...int) candidate {
	c := candidate{Prediction{Basis: l.name, K: l.rungs[at[0]], PerClass: perClass}, index, at}
	for _, i := range at {
		if l.cuts != nil {
			c.Cuts = append(c.Cuts, l.cuts[i])
		}
	}
	return c
}

// predictions returns every candidate's jackknifed energy and gain, the best first.
func (s *survey) predictions(ctx context.Context) ([]Prediction, error) {
	all := s.candidates()
	energies := make([][]float64, s.parts+1) // [1 + left out][candidate]
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
	for i := range all {
		p := all[i].Prediction
		p.Energy, p.Stderr = schedule.Jackknife(s.parts, func(left int) float64 { return energies[left+1][i] })
		p.Gain, p.GainStderr = schedule.Jackknife(s.parts,
			func(left int) float64 { return 1 - energies[left+1][i]/energies[left+1][0] })
		out[i] = p
	}
	slices.SortStableFunc(out, func(a, b Prediction) int {
		switch {
		case a.Gain > b.Gain:
			return -1
		case a.Gain < b.Gain:
			return 1
		}
		return 0
	})
	return out, nil
}

// energies returns the plain energies of all candidates without one part; −1 leaves none
// out.
func (s *survey) energies(all []candidate, left int) ([]float64, error) {
	known := map[string]float64{} // bands that candidates share
	least := func(l, row, from, to int) (float64, error) {
		key := fmt.Sprint(l, row, from, to)
		if v, ok := known[key]; ok {
			return v, nil
		}
		v, err := schedule.LeastEnergy(s.sigma, s.residual(l, row, from, to, left), s.set.C, s.set.G0, s.set.T)
		known[key] = v
		return v, err
	}
	out := make([]float64, len(all))
	for i, c := range all {
		edges := append(append([]int{0}, plusOne(c.at)...), s.ladders[c.ladder].parts())
		rows, share := []int{-1}, []float64{1}
		if c.PerClass {
			rows, share = nil, s.share
			for row := range s.pools {
				rows = append(rows, row)
			}
		}
		for r, row := range rows {
			for j := 1; j < len(edges); j++ {
				v, err := least(c.ladder, row, edges[j-1], edges[j])
				if err != nil {
					return nil, err
				}
				out[i] += share[r] * v
			}
		}
	}
	return out, nil
}

func plusOne(at []int) []int {
	out := make([]int, len(at))
	for i, v := range at {
		out[i] = v + 1
	}
	return out
}

// residual returns the mean squared residual of parts from … to−1 of a ladder by noise
// level, of a row or, for −1, of the rows' mixture.
func (s *survey) residual(l, row, from, to, left int) []float64 {
	var n float64
	for part, count := range s.count {
		if part != left {
			n += count
		}
	}
	out := make([]float64, len(s.sigma))
	for r := range s.pools {
		share := s.share[r]
		switch {
		case row < 0:
		case r == row:
			share = 1
		default:
			continue
		}
		for p := range out {
			for part, sums := range s.energy[l][r][p] {
				if part == left {
					continue
				}
				for _, v := range sums[from:to] {
					out[p] += share * v / n
				}
			}
		}
	}
	return out
}
