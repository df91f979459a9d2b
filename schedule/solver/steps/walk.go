package steps

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// walk measures single steps of a solver.
type walk struct {
	settings solver.Settings
	teacher  *Teacher
	products *products
	sigma    [][][]float64 // [row][J][2M+1], √g_j at the teacher's times
	data     bool          // the solver combines denoised images
}

// newWalk takes the solver local, which steps coordinates of its own, for DPM-Solver++(2M), which it is where the
// coordinates have no variance: the products are of subspaces.
func newWalk(s solver.Settings, t *Teacher, p *products) (*walk, error) {
	if s.Solver == solver.LocalName {
		var err error
		if s, err = (solver.Settings{Solver: "dpmpp2m", Steps: s.Steps}).Resolve(); err != nil {
			return nil, err
		}
	}
	plan, err := solver.New(s, t.Schedule, 0)
	if err != nil {
		return nil, err
	}
	w := &walk{settings: s, teacher: t, products: p, data: plan.Data}
	for row := range p.gram {
		var own [][]float64
		for j := range t.Schedule.J() {
			list := make([]float64, len(t.X))
			for k := range list {
				g, _ := t.Schedule.At(row, j).Eval(t.Schedule.T() * float64(len(list)-1-k) / float64(len(list)-1))
				list[k] = math.Sqrt(g)
			}
			own = append(own, list)
		}
		w.sigma = append(w.sigma, own)
	}
	return w, nil
}

// error returns the error of step number step of the sampler, the last of some candidates,
// carried to the end: the root mean square over all values of
//
//	Σ_j carry_j P_j (x′ − x),  x′ what the solver makes of the trajectory's states, x the trajectory.
func (w *walk) error(nodes []int, step int) (float64, error) {
	nodes = nodes[max(0, len(nodes)-1-solver.MaxHistory):]
	t := w.teacher
	times, own := make([]float64, len(nodes)), make([]float64, len(nodes))
	for k, i := range nodes {
		times[k], own[k] = t.time(i), float64(len(nodes)-1-k)
	}
	var sum float64
	for row, grams := range w.products.gram {
		paths := make([]*schedule.Path, t.Schedule.J())
		for j := range paths {
			var err error
			if paths[j], err = retimed(t.Schedule.At(row, j), times, own[0]); err != nil {
				return 0, err
			}
		}
		stages, err := solver.Local(w.settings, paths, own, step)
		if err != nil {
			return 0, err
		}
		for j, gram := range grams {
			c := w.combination(stages, row, j, nodes)
			var square float64
			for a, va := range c {
				for b, vb := range c {
					square += va * vb * gram.At(a, b)
				}
			}
			carry := w.products.carry[j][nodes[len(nodes)-1]]
			sum += max(0, square) * carry * carry
		}
	}
	return math.Sqrt(sum / w.products.count), nil
}

// combination returns the weights of the teacher's vectors in P_j (x′ − x). The vectors are X, then D.
func (w *walk) combination(stages []solver.Stage, row, j int, nodes []int) map[int]float64 {
	t := w.teacher
	last := len(nodes) - 1
	c := map[int]float64{2 * nodes[last-1]: 1}
	// The evaluations are at these of the teacher's times, newest first.
	var at []int
	for k := last - 2; k >= 0; k-- {
		at = append(at, 2*nodes[k])
	}
	for i, st := range stages {
		place := 2 * nodes[last-1]
		if i > 0 { // the middle of the step
			place = nodes[last-1] + nodes[last]
		}
		at = append([]int{place}, at...)
		for k := range c {
			c[k] *= st.Alpha[j]
		}
		for k, b := range st.Beta[j] {
			d := len(t.X) + at[k]
			if w.data {
				c[d] += b
				continue
			}
			sigma := w.sigma[row][j][at[k]] // flow = (D − x)/σ
			c[d] += b / sigma
			c[at[k]] -= b / sigma
		}
	}
	c[2*nodes[last]]--
	return c
}
