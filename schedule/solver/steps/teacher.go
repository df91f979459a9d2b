package steps

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Teacher holds converged trajectories along a schedule's path, at 2M+1 uniform times from
// T down to 0. Every other time is a candidate; those between serve second points.
type Teacher struct {
	Schedule *schedule.Schedule
	Basis    *basis.Basis
	Labels   []int32     // [L] of the trajectories
	X        [][]float32 // [2M+1][L·H·W·C]
	D        [][]float32 // [2M][L·H·W·C], denoised images of X; the last time needs none
}

// MaxSteps bounds the steps that can be chosen: the work grows with their fourth power.
const MaxSteps = 32

// Candidates returns M for a choice of n steps, a multiple of n.
func Candidates(n int) int { return n * max(2, (32+n-1)/n) }

// M returns the number of intervals between candidates.
func (t *Teacher) M() int { return (len(t.X) - 1) / 2 }

// time returns the time of candidate i.
func (t *Teacher) time(i int) float64 { return t.Schedule.T() * float64(t.M()-i) / float64(t.M()) }

// products are the inner products of a teacher's vectors X_0 … X_2M, D_0 … D_2M−1, summed
// over the trajectories of a row.
type products struct {
	gram  [][]*mat.Dense // [row][J] of P_j
	carry [][]float64    // [J][M+1], how much of an error at a candidate is left at the end
	count float64        // values of all trajectories together
}

// measure returns the products. An error in subspace j at time t is taken to reach the end as the
// differences between trajectories do,
//
//	carry_j(t) = rms(P_j (x_0 − mean)) / rms(P_j (x_t − mean)).
func (t *Teacher) measure() (*products, error) {
	s, b := t.Schedule, t.Basis
	h, w := b.H(), b.W()
	hw, l := h*w, len(t.Labels)
	size := len(t.X[0]) / l
	c, times := size/hw, len(t.X)
	all := append(append([][]float32(nil), t.X...), t.D...)
	out := &products{count: float64(l * size)}
	for range s.Rows() {
		grams := make([]*mat.Dense, s.J())
		for j := range grams {
			grams[j] = mat.NewDense(len(all), len(all), nil)
		}
		out.gram = append(out.gram, grams)
	}
	parts := make([]*mat.Dense, s.J())
	sums := make([]*mat.Dense, s.J()) // over trajectories
	for j := range parts {
		parts[j], sums[j] = mat.NewDense(len(all), size, nil), mat.NewDense(len(all), size, nil)
	}
	plane, split := make([]float64, hw), make([][]float64, s.J())
	for j := range split {
		split[j] = make([]float64, hw)
	}
	var gram mat.Dense
	for i, label := range t.Labels {
		row, err := s.Row(int(label))
		if err != nil {
			return nil, err
		}
		which := int(label)
		if !b.PerClass() {
			which = basis.Shared
		}
		for k, v := range all {
			for ch := range c {
				for p := range plane {
					plane[p] = float64(v[i*size+p*c+ch])
				}
				if err := b.Split(which, plane, split); err != nil {
					return nil, err
				}
				for j := range split {
					for p, e := range split[j] {
						parts[j].Set(k, p*c+ch, e)
					}
				}
			}
		}
		for j := range parts {
			gram.Mul(parts[j], parts[j].T())
			out.gram[row][j].Add(out.gram[row][j], &gram)
			sums[j].Add(sums[j], parts[j])
		}
	}
	for j := range s.J() {
		spread := func(k int) float64 {
			var squares float64
			for r := range out.gram {
				squares += out.gram[r][j].At(k, k)
			}
			mean := mat.Norm(sums[j].RowView(k), 2)
			return math.Sqrt(max(0, squares-mean*mean/float64(l)))
		}
		carry := make([]float64, t.M()+1)
		end := spread(times - 1)
		for i := range carry {
			carry[i] = 1
			if at := spread(2 * i); l > 1 && end > 0 && at > end {
				carry[i] = end / at
			}
		}
		out.carry = append(out.carry, carry)
	}
	return out, nil
}
