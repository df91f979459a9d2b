package steps

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/solvertest"
)

// The laboratory: images of 1×2 pixels, whose two frequencies are a mixture's two coordinates.
var law = solvertest.Crossed(2)

const r2 = math.Sqrt2 / 2

func rotate(x []float64) []float64 { return []float64{(x[0] + x[1]) * r2, (x[0] - x[1]) * r2} } // its own inverse

// follow runs a plan from unit noise, in the coordinates of the frequencies.
func follow(p *solver.Plan, xi []float64, at func(stage int, x, d []float64)) []float64 {
	x := []float64{p.Init[0] * xi[0], p.Init[len(p.Init)-1] * xi[1]}
	var history [][]float64
	for i, st := range p.Stages {
		g := []float64{st.G[0], st.G[len(st.G)-1]}
		e, d := law.Flow(x, g), make([]float64, 2)
		for k := range d {
			d[k] = x[k] + math.Sqrt(g[k])*e[k]
		}
		if at != nil {
			at(i, x, d)
		}
		if p.Data {
			e = d
		}
		history = append([][]float64{e}, history...)
		next := make([]float64, 2)
		for k := range x {
			j := min(k, len(st.Alpha)-1)
			next[k] = st.Alpha[j] * x[k]
			for h, b := range st.Beta[j] {
				next[k] += b * history[h][k]
			}
		}
		x = next
	}
	return x
}

func latents(n int) [][]float64 {
	rng := rand.New(rand.NewPCG(3, 4))
	out := make([][]float64, n)
	for i := range out {
		out[i] = []float64{rng.NormFloat64(), rng.NormFloat64()}
	}
	return out
}

// teach follows n trajectories with Heun's method on 2M steps, each from times of the teacher to the next.
func teach(t *testing.T, sch *schedule.Schedule, b *basis.Basis, m, n int) *Teacher {
	t.Helper()
	out := &Teacher{
		Schedule: sch, Basis: b, Labels: make([]int32, n), X: make([][]float32, 2*m+1),
		D: make([][]float32, 2*m),
	}
	p, err := solver.New(solver.Settings{Solver: "heun", Steps: 2 * m}, sch, 0)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(to *[]float32, x []float64) {
		for _, v := range rotate(x) {
			*to = append(*to, float32(v))
		}
	}
	for _, xi := range latents(n) {
		end := follow(p, xi, func(stage int, x, d []float64) {
			if stage%2 == 0 {
				keep(&out.X[stage/2], x)
				keep(&out.D[stage/2], d)
			}
		})
		keep(&out.X[2*m], end)
	}
	return out
}

func schedules(t *testing.T) map[string]*schedule.Schedule {
	t.Helper()
	path := func(middle float64) *schedule.Path {
		p, err := schedule.NewPath([]float64{0, 30, 100}, []float64{1e-4, middle, 100})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	two, err := schedule.New(schedule.Family{Basis: "dct"}, nil, [][]*schedule.Path{{path(0.3), path(0.05)}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*schedule.Schedule{"J = 1": schedule.Isotropic(path(0.3)), "J = 2": two}
}

func basisOf(t *testing.T, sch *schedule.Schedule) *basis.Basis {
	t.Helper()
	if sch.J() == 1 {
		return basis.None(1, 2)
	}
	b, err := basis.Dense(1, 2, map[int][][]float64{basis.Shared: {{r2, r2}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The chosen steps bring the solver closer to the converged solution than uniform ones do (iPNDM, whose weights are
// those of uniform steps, by nothing), and the sum of their errors is less.
func TestChoose(t *testing.T) {
	for name, sch := range schedules(t) {
		b := basisOf(t, sch)
		sets := []solver.Settings{{Solver: "euler", Steps: 6}, {Solver: "ipndm", Steps: 6}}
		if sch.J() > 1 {
			sets = []solver.Settings{{Solver: "heun", Steps: 4}, {Solver: "ab", Steps: 5}, {Solver: "unipc", Order: 3, Steps: 5}}
		}
		for _, set := range sets {
			set, err := set.Resolve()
			if err != nil {
				t.Fatal(err)
			}
			teacher := teach(t, sch, b, Candidates(set.Steps), 24)
			c, err := Choose(t.Context(), set, teacher, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			truth := func(sch *schedule.Schedule) float64 {
				p, err := solver.New(set, sch, 0)
				if err != nil {
					t.Fatal(err)
				}
				var sum float64
				for i, xi := range latents(24) {
					for k, v := range rotate(follow(p, xi, nil)) {
						sum += math.Pow(v-float64(teacher.X[2*teacher.M()][2*i+k]), 2)
					}
				}
				return math.Sqrt(sum / 48)
			}
			chosen, uniform := truth(c.Schedule), truth(sch)
			t.Logf("%s, %s: error %.4f (sum %.4f), uniform %.4f (sum %.4f)", name, set.Solver, chosen, c.Predicted, uniform,
				c.PredictedUniform)
			if !(c.Predicted < c.PredictedUniform && chosen < 1.02*uniform) {
				t.Errorf("%s, %s: error %.4f (sum %.4f), uniform %.4f (sum %.4f)", name, set.Solver, chosen, c.Predicted, uniform,
					c.PredictedUniform)
			}
			c, err = Choose(t.Context(), set, teacher, func(_ context.Context, sch *schedule.Schedule) (float64,
				error,
			) {
				return truth(sch), nil
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			moved := truth(c.Schedule)
			t.Logf("  moved %.4f", moved)
			if moved > min(chosen, 0.9*uniform) {
				t.Errorf("%s, %s: moved to %.4f from %.4f, uniform %.4f", name, set.Solver, moved, chosen, uniform)
			}
		}
	}
}

// A step's error is what the solver itself does from the trajectory's states.
func TestErrorOfOneStep(t *testing.T) {
	sch := schedules(t)["J = 2"]
	b := basisOf(t, sch)
	set, err := solver.Settings{Solver: "euler", Steps: 4}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	teacher := teach(t, sch, b, 32, 24)
	p, err := teacher.measure()
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWalk(set, teacher, p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.error([]int{3, 9, 17}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var want float64
	for i := range 24 {
		at := func(v []float32) []float64 { return rotate([]float64{float64(v[2*i]), float64(v[2*i+1])}) }
		x, d, to := at(teacher.X[18]), at(teacher.D[18]), at(teacher.X[34])
		for j := range x {
			from, _ := sch.At(0, j).Eval(teacher.time(9))
			g, _ := sch.At(0, j).Eval(teacher.time(17))
			step := x[j] + math.Sqrt(from)*(1-math.Sqrt(g/from))*(d[j]-x[j])/math.Sqrt(from)
			want += math.Pow(p.carry[j][17]*(step-to[j]), 2)
		}
	}
	if want = math.Sqrt(want / 48); math.Abs(got/want-1) > 1e-6 {
		t.Errorf("error %v, want %v", got, want)
	}
}

// A retimed schedule is the same path, with the nodes at uniform times.
func TestRetimed(t *testing.T) {
	sch := schedules(t)["J = 2"]
	times := []float64{100, 61, 30, 4, 0}
	got, err := Retimed(sch, times)
	if err != nil {
		t.Fatal(err)
	}
	for j := range sch.J() {
		for k, u := range times {
			for _, part := range []float64{0, 0.3, 0.5} {
				from, to := u, 25*float64(len(times)-1-k)
				if k+1 < len(times) {
					from, to = u+part*(times[k+1]-u), to-25*part
				}
				want, _ := sch.At(0, j).Eval(from)
				if g, _ := got.At(0, j).Eval(to); math.Abs(g/want-1) > 1e-9 {
					t.Errorf("subspace %d: g(%v) is %v, at %v it was %v", j, to, g, from, want)
				}
			}
		}
	}
}

func TestChooseStops(t *testing.T) {
	sch := schedules(t)["J = 1"]
	set, err := solver.Settings{Solver: "euler", Steps: 4}.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Choose(ctx, set, teach(t, sch, basisOf(t, sch), 32, 4), nil, func(done, total int) {
		if total != 4 {
			t.Errorf("%d of %d", done, total)
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
