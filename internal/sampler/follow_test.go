package sampler_test

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// onDevice returns the ensemble of a mixture's network on a device of its own.
func onDevice(t *testing.T, m *ensembletest.Mixture) *sampler.OnDevice {
	t.Helper()
	return on(t, devicetest.PureGo(t), m)
}

// on returns the ensemble of a mixture's network.
func on(t *testing.T, dev *device.Device, m *ensembletest.Mixture) *sampler.OnDevice {
	t.Helper()
	net, err := mixturetest.New(m.Settings, m.Basis)
	if err != nil {
		t.Fatal(err)
	}
	model, err := kernels.NewModel(dev, net, m.Basis)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := model.Upload(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Release(); model.Close() })
	return &sampler.OnDevice{
		Device: batch.New(batch.NewQueue(1), false), Network: sampler.Network{Model: model, Weights: weights},
	}
}

// path returns a schedule whose subspaces end at these noise levels.
func path(t *testing.T, b *basis.Basis, ends ...float64) *schedule.Schedule {
	t.Helper()
	var rows []schedule.TableRow
	for j, end := range ends {
		rows = append(rows, schedule.TableRow{Label: -1, Subspace: j, T: 0, G: 1e-6},
			schedule.TableRow{Label: -1, Subspace: j, T: 1, G: end * end})
	}
	family := schedule.Family{Basis: b.Kind()}
	if b.J() > 1 {
		family.K = b.K()
	}
	s, err := schedule.FromTable(family, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A network on a device is taken along a plan as the plan's formula says, from noise and from the law of data, in
// subspaces and in coordinates; rows that fill a batch up count for nothing.
func TestFollowIsThePlan(t *testing.T) {
	dct, err := basis.DCT(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	haar, err := basis.Haar(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	law := &start.Law{H: 4, W: 4, C: 1, Mean: make([]float64, 16), Variance: make([]float64, 16)}
	for f := range law.Mean {
		law.Mean[f], law.Variance[f] = 0.1*float64(f%3), 1/float64(1+f)
	}
	from, err := start.New(start.Settings{Covariance: start.DCT}, map[int]*start.Law{start.Shared: law})
	if err != nil {
		t.Fatal(err)
	}
	const n = 11 // a whole batch and three rows of another
	for _, q := range []struct {
		name    string
		basis   *basis.Basis
		ends    []float64
		solver  string
		matched bool
	}{
		{"one level", basis.None(4, 4), []float64{4}, "ipndm", false},
		{"one level from the law", basis.None(4, 4), []float64{4}, "unipc", true},
		{"two levels", dct, []float64{4, 1.5}, "heun", false},
		{"two levels from the law", dct, []float64{4, 1.5}, "ipndm", true},
		{"a basis that mixes frequencies", haar, []float64{5, 2}, "dpmpp2m", true},
		{"coordinates", basis.None(4, 4), []float64{4}, "local", false},
	} {
		t.Run(q.name, func(t *testing.T) {
			exact := ensembletest.Smooth(4, 2)
			exact.Basis = q.basis
			levels := path(t, q.basis, q.ends...)
			var plan *solver.Plan
			if q.solver == "local" { // coefficients for each frequency
				statistics, err := exact.Statistics(t.Context(), 16, nil, func(int, int) {})
				if err != nil {
					t.Fatal(err)
				}
				plan, err = statistics.Sampler(0).On([]float64{2, 1.2, 0.6, 0.2, 0.1}).Plan(levels)
				if err != nil {
					t.Fatal(err)
				}
			} else if plan, err = solver.New(solver.Settings{Solver: q.solver, NFE: 4}, levels, 0); err != nil {
				t.Fatal(err)
			}
			evaluations := 0
			along := sampler.Trajectories{
				Plan: plan, Seed: 7, Labels: make([]int32, n), Progress: func(n int) { evaluations += n },
			}
			for i := range along.Labels {
				along.Labels[i] = -1
			}
			if q.matched {
				along.Start = from
			}
			var got, want every
			var samples sampler.Samples
			if err := onDevice(t, exact).Follow(t.Context(), along, &got, &samples); err != nil {
				t.Fatal(err)
			}
			if evaluations != n*plan.NFE {
				t.Errorf("%d evaluations are told, want %d", evaluations, n*plan.NFE)
			}
			along.Progress = nil
			if err := exact.Follow(t.Context(), along, &want); err != nil {
				t.Fatal(err)
			}
			if len(q.ends) > 1 { // the states before the first stage are those of one subspace
				delete(want, stage{-1, false})
			}
			for stage, numbers := range want {
				near(t, stage, got[stage], numbers)
			}
			near(t, "the samples", samples, want[stage{plan.NFE - 1, false}])
			if got[stage{-1, true}] != nil {
				t.Error("there are denoised images before the first stage")
			}
		})
	}
}

// Several devices take batches at the same time. Progress counts the evaluations of all, and the samples keep their
// order.
func TestProgressCountsAllDevices(t *testing.T) {
	exact := ensembletest.Smooth(4, 2)
	plan, err := solver.New(solver.Settings{Solver: "ipndm", NFE: 3}, path(t, exact.Basis, 4), 0)
	if err != nil {
		t.Fatal(err)
	}
	dev := devicetest.Host(t, 4)
	network := on(t, dev, exact)
	n := 5*network.Network.Model.Buckets().Large + 3
	evaluations := 0
	along := sampler.Trajectories{
		Plan: plan, Seed: 7, Labels: slices.Repeat([]int32{-1}, n), Progress: func(n int) { evaluations += n },
	}
	var got, want sampler.Samples
	if err := network.Follow(t.Context(), along, &got); err != nil {
		t.Fatal(err)
	}
	if evaluations != n*plan.NFE {
		t.Errorf("%d evaluations are told, want %d", evaluations, n*plan.NFE)
	}
	if err := exact.Follow(t.Context(), along, &want); err != nil {
		t.Fatal(err)
	}
	near(t, "the samples", got, want)
}

// every keeps what each stage leaves.
type every map[stage][]float32

type stage struct {
	k        int
	denoised bool
}

func (*every) Begin(int) sampler.Reduction { return sampler.Reduction{EveryStage: true} }

func (e *every) Add(k int, x, denoised []float32) {
	if *e == nil {
		*e = every{}
	}
	(*e)[stage{k, false}] = append((*e)[stage{k, false}], x...)
	(*e)[stage{k, true}] = append((*e)[stage{k, true}], denoised...)
}

func near(t *testing.T, what any, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%v: %d values, want %d", what, len(got), len(want))
	}
	for i, v := range want {
		if math.Abs(float64(got[i]-v)) > 2e-4*max(1, math.Abs(float64(v))) {
			t.Fatalf("%v: value %d is %g, want %g", what, i, got[i], v)
		}
	}
}

// Plans that follow each other share their first evaluations, and their samples are those of plans that do not.
// Columns add up products of them.
func TestSharedEvaluationsChangeNothing(t *testing.T) {
	exact := ensembletest.Smooth(4, 2)
	network := onDevice(t, exact)
	base, err := solver.New(solver.Settings{Solver: "dpmpp2m", NFE: 4}, path(t, exact.Basis, 4), 0)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(stage int, change func(st *solver.Stage)) *solver.Plan {
		p := *base
		p.Stages = slices.Clone(base.Stages)
		change(&p.Stages[stage])
		return &p
	}
	plans := []*solver.Plan{
		base,
		changed(3, func(st *solver.Stage) { st.Alpha = []float64{2 * st.Alpha[0]} }),
		changed(2, func(st *solver.Stage) { st.G = []float64{1.1 * st.G[0]} }),
		changed(0, func(st *solver.Stage) { st.Alpha = []float64{0.9 * st.Alpha[0]} }),
		base,
	}
	along := sampler.Trajectories{Seed: 7, Labels: slices.Repeat([]int32{-1}, 11)}
	var target sampler.States
	along.Plan, target.Every = base, 4
	if err := onDevice(t, exact).Follow(t.Context(), along, &target); err != nil {
		t.Fatal(err)
	}
	columns := &sampler.Columns{Target: &target}
	var all [][]float32
	for k, p := range plans {
		along.Plan = p
		var got, want sampler.Samples
		column := &sampler.Column{Columns: columns, K: k}
		if err := network.Follow(t.Context(), along, column, &got); err != nil {
			t.Fatal(err)
		}
		if err := onDevice(t, exact).Follow(t.Context(), along, &want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the samples of plan %d depend on the plan before it", k)
		}
		all = append(all, got)
		for i, other := range append([][]float32{target.X[0]}, all...) {
			var sum float64
			for n, v := range got {
				sum += float64(v) * float64(other[n])
			}
			if off := column.Sums[i+1]/sum - 1; math.Abs(off) > 1e-9 {
				t.Errorf("plan %d: product %d is off by %v", k, i, off)
			}
		}
	}
}
