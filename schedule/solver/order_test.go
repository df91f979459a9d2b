package solver

import (
	"fmt"
	"math"
	"testing"
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

// TestEverySolverHasAnOrder: those by coordinate are measured in TestLocalOrderOfConvergence, and coefficients that are
// given have no order.
func TestEverySolverHasAnOrder(t *testing.T) {
	for _, m := range Methods() {
		if (m.Accuracy == nil || m.History == nil) != m.given {
			t.Errorf("%s must have its order of convergence and its history in the register", m.Name)
		}
		if m.ByCoordinate && !m.given && m.Name != LocalName {
			t.Errorf("the order of %s is measured by no test", m.Name)
		}
	}
}

// slope returns the fitted order of convergence of a solver.
func slope(t *testing.T, flow flowFunc, s Settings, warm int) float64 {
	t.Helper()
	sch, xi := smooth(t), noise(7, 2)
	no := false
	s.LowerOrderFinal = &no
	var logN, logE []float64
	for _, n := range []int{60, 90, 135, 200} {
		s.Steps = n
		p := plan(t, s, sch)
		start := xi.clone()
		for j := range start {
			for k := range start[j] {
				start[j][k] *= p.Init[j]
			}
		}
		exact := integrate(sch, flow, start, p.T)
		got := run(p, xi, flow, func(i int, x state) state {
			if i <= warm && warm > 0 {
				return exact[i]
			}
			return x
		})
		logN = append(logN, math.Log(float64(n)))
		logE = append(logE, math.Log(distance(got, exact[n])))
	}
	return -fit(logN, logE)
}

// fit returns the slope of a line through points.
func fit(x, y []float64) float64 {
	var mx, my, sxy, sxx float64
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	for i := range x {
		sxy += (x[i] - mx) * (y[i] - my)
		sxx += (x[i] - mx) * (x[i] - mx)
	}
	return sxy / sxx
}

func TestOrderOfConvergence(t *testing.T) {
	for _, c := range orderCases() {
		t.Run(c.name, func(t *testing.T) {
			for law, flow := range map[string]flowFunc{"Gaussian": gaussian(7, 2), "mixture": mixture(2)} {
				got := slope(t, flow, c.settings, c.warm)
				t.Logf("%s: order %.3f", law, got)
				if math.Abs(got-c.want) > 0.15 {
					t.Errorf("%s: order %.3f, want %v", law, got, c.want)
				}
			}
		})
	}
}
