package solver

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// orderCase is a solver with its order of convergence on a smooth schedule of two clocks. warm is the number of steps
// that start exactly: a multistep method that begins at first order is of order 2 at most.
type orderCase struct {
	name     string
	settings Settings
	warm     int
	want     float64
}

// orderCases returns every order of every solver in subspaces, as the register has them, and some options.
func orderCases() []orderCase {
	cases := []orderCase{
		{"heun endpoint", Settings{Solver: "heun", SecondPoint: Endpoint}, 0, 2},
		{"ab 3 from Euler", Settings{Solver: "ab", Order: 3}, 0, 2}, // the warm-up limits it
		{"ab 3 from Heun", Settings{Solver: "ab", Order: 3, Warmup: WarmupHeun}, 0, 3},
		{"ipndm_v 3 from Heun", Settings{Solver: "ipndm_v", Order: 3, Warmup: WarmupHeun}, 0, 3},
		{"dpmpp2m from Heun", Settings{Solver: "dpmpp2m", Warmup: WarmupHeun}, 0, 2},
		{"dpmpp3m_taylor from Heun", Settings{Solver: "dpmpp3m_taylor", Order: 3, Warmup: WarmupHeun}, 0, 3},
		{"deis 2 from Heun", Settings{Solver: "deis", Order: 2, Warmup: WarmupHeun}, 0, 3},
		{"unipc 3 bh1", Settings{Solver: "unipc", Order: 3, Variant: BH1}, 3, 4},
	}
	everyOrder(func(m Method, order int) {
		warm := m.History(order) - 1
		if m.Churns {
			warm = 0 // no step uses an earlier one
		}
		cases = append(cases, orderCase{
			fmt.Sprint(m.Name, " ", order), Settings{Solver: m.Name, Order: order}, warm, float64(m.Accuracy(order)),
		})
	})
	return cases
}

func TestEverySolverHasAnOrder(t *testing.T) {
	for _, m := range Methods() {
		if m.Accuracy == nil || m.History == nil {
			t.Errorf("%s must have its order of convergence and its history in the register", m.Name)
		}
	}
}

// slope returns the order of convergence that plans of more and more steps show, from latents xi. exact returns the
// states of the flow at given times, and warm is the number of steps that start there.
func slope(t *testing.T, flow flowFunc, xi state, planOf func(steps int) *Plan, warm int,
	exact func(x state, times []float64) []state,
) float64 {
	t.Helper()
	var logN, logE []float64
	for _, n := range []int{60, 90, 135, 200} {
		p := planOf(n)
		states := exact(p.start(xi), p.T)
		got := run(p, xi, flow, func(i int, x state) state {
			if i <= warm && warm > 0 {
				return states[i]
			}
			return x
		})
		logN, logE = append(logN, math.Log(float64(n))), append(logE, math.Log(distance(got, states[n])))
	}
	_, slope := stat.LinearRegression(logN, logE, nil, false)
	return -slope
}

func TestOrderOfConvergence(t *testing.T) {
	sch := smooth(t)
	for law, flow := range map[string]flowFunc{"Gaussian": gaussian(7, 2), "mixture": mixture(2)} {
		exact := map[int][]state{} // by the number of uniform steps; the start is that of the schedule
		for _, c := range orderCases() {
			t.Run(law+" "+c.name, func(t *testing.T) {
				no, set := false, c.settings
				set.LowerOrderFinal = &no
				planOf := func(steps int) *Plan {
					set.Steps = steps
					return plan(t, set, sch)
				}
				got := slope(t, flow, noise(7, 2), planOf, c.warm, func(x state, times []float64) []state {
					if exact[len(times)] == nil {
						exact[len(times)] = integrate(sch, flow, x, times)
					}
					return exact[len(times)]
				})
				t.Logf("order %.3f", got)
				if math.Abs(got-c.want) > 0.15 {
					t.Errorf("order %.3f, want %v", got, c.want)
				}
			})
		}
	}
}
