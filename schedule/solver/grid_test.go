package solver

import (
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Max(1, math.Abs(want))) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestScheduleGrid(t *testing.T) {
	p := plan(t, Settings{Solver: "euler", Steps: 4}, edm(t, schedule.DefaultT))
	for i, want := range []float64{6400, 4800, 3200, 1600, 0} {
		if p.T[i] != want {
			t.Errorf("time %d: %v, want %v", i, p.T[i], want)
		}
	}
	if p.Init[0] != 80 || p.Stages[0].G[0] != 6400 {
		t.Errorf("starts at %v, g = %v", p.Init[0], p.Stages[0].G[0])
	}
	// The last step ends at g_0, not at 0.
	last := p.Stages[3]
	near(t, "last step", last.Beta[0][0], math.Sqrt(last.G[0])-math.Sqrt(schedule.DefaultG0), 1e-15)
}

// EDM's levels end where the schedule does unless the user says otherwise.
func TestEDMGridFitsTheSchedule(t *testing.T) {
	for _, grid := range []Grid{
		{Kind: GridEDM},
		{Kind: GridEDM, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		{Kind: GridLogSNR},
		{Kind: GridPolynomial},
	} {
		p := plan(t, Settings{Solver: "euler", Steps: 3, Grid: grid}, edm(t, 400))
		if p.T[0] != 400 || p.Init[0] != 20 {
			t.Errorf("starts at t = %v, σ = %v; want the schedule's end, 20", p.T[0], p.Init[0])
		}
		last := edm(t, 400).Sigma(0, p.T[2])
		if grid.Kind == GridPolynomial {
			last = edm(t, 400).Sigma(0, p.T[3])
		}
		near(t, "last level", last, 0.002, 1e-12)
	}

	p := plan(t, Settings{Solver: "euler", Steps: 3, Grid: Grid{Kind: GridEDM}}, edm(t, 1e6))
	near(t, "first level on a wider schedule", p.Init[0], 80, 1e-12)

	p = plan(t, Settings{Solver: "euler", Steps: 3, Grid: Grid{Kind: GridEDM, SigmaMin: 0.01, SigmaMax: 10, Rho: 3}},
		edm(t, 6400))
	mid := math.Pow((math.Cbrt(10)+math.Cbrt(0.01))/2, 3)
	for i, want := range []float64{10, mid, 0.01} {
		near(t, "level", math.Sqrt(p.Stages[i].G[0]), want, 1e-12)
	}
}

func TestLogSNRGrid(t *testing.T) {
	sch := twoPaths(t, []float64{0, 2, 6400}, []float64{1e-9, 3e-4, 6400}, []float64{1e-9, 2e-3, 6400})
	p := plan(t, Settings{Solver: "euler", Steps: 5, Grid: Grid{Kind: GridLogSNR}}, sch)
	for i, st := range p.Stages {
		geo := math.Pow(st.G[0]*st.G[1], 0.25)
		near(t, "level", geo, 80*math.Pow(0.002/80, float64(i)/4), 1e-11)
	}
	if p.T[5] != 0 {
		t.Errorf("ends at %v", p.T[5])
	}
}

// An explicit list holds every time; nothing is appended, x starts at the first.
func TestExplicitTimes(t *testing.T) {
	sch := edm(t, 6400)
	p := plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridT, T: []float64{5000, 700, 30}}}, sch)
	if len(p.Stages) != 2 || p.T[2] != 30 {
		t.Errorf("%d stages, ends at %v", len(p.Stages), p.T[2])
	}
	g, _ := sch.At(0, 0).Eval(5000)
	near(t, "start", p.Init[0], math.Sqrt(g), 1e-15)

	// Near an end means at the end; a final 0 is t = 0.
	p = plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridT, T: []float64{6400 * (1 + 9e-7), 700, -1e-3}}}, sch)
	if p.T[0] != 6400 || p.T[2] != 0 {
		t.Errorf("times %v", p.T)
	}
	p = plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridT, T: []float64{6400 * (1 - 9e-7), 700, 1e-3}}}, sch)
	if p.T[0] != 6400 || p.T[2] != 1e-3 {
		t.Errorf("times %v", p.T)
	}
	p = plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridT, T: []float64{6400 * (1 - 2e-6), 700, 0}}}, sch)
	if p.T[0] == 6400 {
		t.Error("a time further away is kept")
	}
}

func TestExplicitLevels(t *testing.T) {
	sch := edm(t, 6400)
	p := plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridSigma, Sigma: []float64{80 * (1 + 9e-7), 3, 0}}}, sch)
	if p.Init[0] != 80 || p.T[0] != 6400 || p.T[2] != 0 {
		t.Errorf("start %v, times %v", p.Init[0], p.T)
	}
	near(t, "level", math.Sqrt(p.Stages[1].G[0]), 3, 1e-12)
	p = plan(t, Settings{Solver: "euler", Grid: Grid{
		Kind:  GridSigma,
		Sigma: []float64{3, math.Sqrt(1e-9) * (1 - 9e-7)},
	}}, sch)
	if p.T[1] != 0 {
		t.Errorf("ends at %v, want 0", p.T[1])
	}

	// Of several subspaces the levels are geometric means.
	two := twoPaths(t, []float64{0, 2, 6400}, []float64{1e-9, 3e-4, 6400}, []float64{1e-9, 2e-3, 6400})
	p = plan(t, Settings{Solver: "euler", Grid: Grid{Kind: GridSigma, Sigma: []float64{5, 0.3}}}, two)
	near(t, "mean", math.Pow(p.Stages[0].G[0]*p.Stages[0].G[1], 0.25), 5, 1e-12)
}

// Every solver takes one Euler step where a grid ends at t = 0 by the contract.
func TestLastStepIsEuler(t *testing.T) {
	sch := edm(t, 6400)
	for _, name := range Names() {
		for _, grid := range []Grid{
			{Kind: GridEDM},
			{Kind: GridLogSNR},
			{Kind: GridT, T: []float64{6400, 900, 60, 8, 1, 0}},
		} {
			s := Settings{Solver: name, Grid: grid, Steps: 5}
			p := plan(t, s, sch)
			st := p.Stages[len(p.Stages)-1]
			u := math.Sqrt(st.G[0])
			alpha, beta := 1.0, u-math.Sqrt(schedule.DefaultG0)
			if p.Data { // the same step in terms of D
				alpha = math.Sqrt(schedule.DefaultG0) / u
				beta = 1 - alpha
			}
			near(t, name+" α", st.Alpha[0], alpha, 1e-14)
			if name == "unipc" {
				continue // its last link corrects the step before as well
			}
			if len(st.Beta[0]) != 1 {
				t.Fatalf("%s on %s: %d evaluations in the last step", name, grid.Kind, len(st.Beta[0]))
			}
			near(t, name+" β", st.Beta[0][0], beta, 1e-14)
		}
	}
}

// Rows of a per-class schedule have plans of one shape, each on its own path.
func TestRows(t *testing.T) {
	a := twoPaths(t, []float64{0, 2, 6400}, []float64{1e-9, 3e-4, 6400}, []float64{1e-9, 2e-3, 6400})
	b := twoPaths(t, []float64{0, 3, 6400}, []float64{1e-9, 2e-4, 6400}, []float64{1e-9, 5e-3, 6400})
	rows := [][]*schedule.Path{{a.At(0, 0), a.At(0, 1)}, {b.At(0, 0), b.At(0, 1)}}
	sch, err := schedule.New(schedule.Family{Basis: "dct", PerClass: true}, []int{0, 1}, rows)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		s := Settings{Solver: name, Steps: 6, Grid: Grid{Kind: GridEDM}}
		var plans [2]*Plan
		for r, alone := range []*schedule.Schedule{a, b} {
			if plans[r], err = New(s, sch, r); err != nil {
				t.Fatal(err)
			}
			one := plan(t, s, alone)
			for i, st := range one.Stages {
				for j := range 2 {
					near(t, name, plans[r].Stages[i].G[j], st.G[j], 1e-14)
				}
			}
		}
		if plans[0].NFE != plans[1].NFE || plans[0].History != plans[1].History {
			t.Fatalf("%s: %d and %d evaluations", name, plans[0].NFE, plans[1].NFE)
		}
		for i, st := range plans[0].Stages {
			if o := plans[1].Stages[i]; len(o.Beta[0]) != len(st.Beta[1]) || o.Step != st.Step {
				t.Errorf("%s: stage %d has another shape on row 1", name, i)
			}
		}
	}
}

// With ten steps a table is what was published, with 0 at its end; other numbers of steps are log-linear between.
func TestTableGrid(t *testing.T) {
	if got := strings.Join(Tables(), " "); got != "ays-sd15 ays-sdxl ays-svd" {
		t.Errorf("tables %s", got)
	}
	levels := func(name string, n int, T float64) []float64 {
		var out []float64
		for _, st := range plan(t, Settings{Solver: "dpmpp2m", Steps: n, Grid: Grid{Kind: GridTable, Table: name}},
			edm(t, T)).Stages {
			out = append(out, math.Sqrt(st.G[0]))
		}
		return out
	}
	for i, got := range levels("ays-svd", 10, 700*700) {
		near(t, "svd", got, []float64{700, 54.5, 15.886, 7.977, 4.248, 1.789, 0.981, 0.403, 0.173, 0.034}[i], 1e-9)
	}
	five := levels("ays-sd15", 5, 6400)
	for i, want := range []float64{14.6146412293, 3.8636745985, 1.8841921177, 0.9642583904, 0.3977456272} {
		near(t, "sd15, every other", five[i], want, 1e-9)
	}
	twenty := levels("ays-sdxl", 20, 6400)
	near(t, "sdxl, in between", twenty[3], math.Sqrt(6.3184485287*3.7681790315), 1e-9)
	if len(twenty) != 20 {
		t.Errorf("%d evaluations for 20 steps", len(twenty))
	}
}
