package train

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// increments returns ln g_{k+1} − ln g_k of every path [row][subspace][K−1].
func increments(s *schedule.Schedule) [][][]float64 {
	out := make([][][]float64, s.Rows())
	for r := range out {
		for j := range s.J() {
			_, logg := s.At(r, j).Knots()
			inc := make([]float64, len(logg)-1)
			for k := range inc {
				inc[k] = logg[k+1] - logg[k]
			}
			out[r] = append(out[r], inc)
		}
	}
	return out
}

// moveAverage moves an average of increments, which is one of ln g at the knots, towards a
// schedule: average ← β average + (1−β) now.
//
// ln g is averaged and not θ. The common scale of softplus(θ) is free, so that θ drifts
// along directions in which the schedule stays; ln g has no such freedom, and a mean of
// increasing functions with the same ends is one.
func moveAverage(average [][][]float64, s *schedule.Schedule, beta float64) {
	for r, row := range increments(s) {
		for j, inc := range row {
			for k, v := range inc {
				average[r][j][k] = beta*average[r][j][k] + (1-beta)*v
			}
		}
	}
}

// scheduleOf returns the schedule of the family of like that has such increments.
func scheduleOf(like *schedule.Schedule, inc [][][]float64) (*schedule.Schedule, error) {
	T, g0 := like.T(), like.At(0, 0).G0()
	theta := make([][]schedule.Theta, len(inc))
	for r, row := range inc {
		for j, own := range row {
			tau, _ := like.At(r, j).Knots()
			g, logg := make([]float64, len(tau)), math.Log(g0)
			g[0] = g0
			for k, v := range own {
				logg += v
				g[k+1] = math.Exp(logg)
			}
			g[len(own)] = T
			p, err := schedule.NewPath(tau, g)
			if err != nil {
				return nil, err
			}
			theta[r] = append(theta[r], schedule.ThetaFromPath(p, len(tau), T, g0))
		}
	}
	return schedule.FromTheta(like.Family(), like.Labels(), theta, T, g0)
}

// Published returns the schedule that a model saved from a stored state gets: the average
// where the state has one.
func Published(s *checkpoint.Run) (*schedule.Schedule, error) {
	if s.ScheduleAverage == nil {
		return s.Schedule, nil
	}
	if !sameTable(increments(s.Schedule), s.ScheduleAverage) {
		return nil, stateError("the average does not fit the schedule")
	}
	average, err := scheduleOf(s.Schedule, s.ScheduleAverage)
	if err != nil {
		return nil, err
	}
	if p := s.Schedule.Provenance(); p != nil {
		average = average.WithProvenance(*p)
	}
	return average, nil
}

func dotTables(a, b [][][]float64) (sum float64) {
	for r, row := range a {
		for j, sub := range row {
			for k, v := range sub {
				sum += v * b[r][j][k]
			}
		}
	}
	return sum
}

func cloneTable(t [][][]float64) [][][]float64 {
	if t == nil {
		return nil
	}
	out := make([][][]float64, len(t))
	for r, row := range t {
		for _, v := range row {
			out[r] = append(out[r], slices.Clone(v))
		}
	}
	return out
}

func sameTable(a, b [][][]float64) bool {
	return slices.EqualFunc(a, b, func(a, b [][]float64) bool {
		return slices.EqualFunc(a, b, func(a, b []float64) bool { return len(a) == len(b) })
	})
}

// zerosLike returns a table of zeros of the shape of another.
func zerosLike[T ~[]float64](theta [][]T) [][][]float64 {
	out := make([][][]float64, len(theta))
	for r, row := range theta {
		out[r] = make([][]float64, len(row))
		for j, th := range row {
			out[r][j] = make([]float64, len(th))
		}
	}
	return out
}
