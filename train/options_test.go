package train

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/internal/traintest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// analyticConfig trains schedules under an exact flow.
func analyticConfig(stage string) Config {
	cfg := tinyConfig(stage)
	cfg.Network, cfg.TrainNetwork, cfg.Estimator = nil, refuse(), "full"
	return cfg
}

func dct(tb testing.TB) *basis.Basis {
	tb.Helper()
	b, err := basis.DCT(4, 4, 4)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// TestMicrobatchesAreTheBatch: seven images, three at a time, give the rows of seven at once up to the rounding of
// float32.
func TestMicrobatchesAreTheBatch(t *testing.T) {
	net, d := gaussian(t, basis.None(4, 4), []float64{0.2}, 32)
	cfg := analyticConfig(Isotropic)
	cfg.Batch = 7
	whole := step(t, start(t, cfg, Sources{Dataset: d, Analytic: net}), 4)
	cfg.Microbatch = 3
	parts := step(t, start(t, cfg, Sources{Dataset: d, Analytic: net}), 4)
	for i := range whole {
		got, want := parts[i].Values(), whole[i].Values()
		for k, v := range want {
			if d := math.Abs(got[k] - v); !(d <= 1e-4*(1e-3+math.Abs(v))) && !math.IsNaN(v) {
				t.Errorf("step %d, %s: %v, want %v", i+1, RowColumns[k], got[k], v)
			}
		}
	}
}

// TestOptionsResumeExactly: with every option that has state of its own.
func TestOptionsResumeExactly(t *testing.T) {
	net, _ := gaussian(t, dct(t), []float64{0.3, 0.05}, 1)
	d := tinyData(t, 21)
	cfg := analyticConfig(Anisotropic)
	cfg.Family = schedule.Family{PerClass: true, Basis: "dct", K: 4}
	cfg.Batch, cfg.Microbatch, cfg.ClassWeighting = 7, 3, WeightBalanced
	cfg.ScheduleClip, cfg.ScheduleEMAHalflife = 1e-3, 0.01
	cfg.EarlyStop, cfg.EarlyStopWindow, cfg.EvalEvery, cfg.EvalSamples = StopBoth, 0.021, 0.014, 16
	take := func(r *Run, n int) (rows []Row) {
		for range n {
			row, err := r.Step(t.Context())
			var stopped *StoppedError
			if err != nil && !errors.As(err, &stopped) {
				t.Fatal(err)
			}
			row.Seconds, row.GFLOPS = 0, 0
			rows = append(rows, row)
		}
		return rows
	}
	whole := start(t, cfg, Sources{Dataset: d, Analytic: net})
	want := take(whole, 9)
	for _, at := range []int{1, 4, 5} {
		half := start(t, cfg, Sources{Dataset: d, Analytic: net})
		got := take(half, at)
		again, err := Resume(stored(t, half), Sources{Device: traintest.Device(t), Dataset: d, Analytic: net})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(again.Close)
		got = append(got, take(again, 9-at)...)
		if !slices.EqualFunc(got, want, equalRows) {
			t.Errorf("after %d steps: rows\n%v\nwant\n%v", at, got, want)
		}
		a, b := again.Schedule().Theta(), whole.Schedule().Theta()
		for r := range a {
			for j := range a[r] {
				if !slices.Equal(a[r][j], b[r][j]) {
					t.Errorf("after %d steps: the averaged schedules differ", at)
				}
			}
		}
	}
	if want[0].EvalEnergy == 0 || math.IsNaN(want[2].EvalRise) || !math.IsNaN(want[1].EvalEnergy) {
		t.Errorf("evaluations of steps 1, 2, 3: %v, %v, rise %v", want[0].EvalEnergy, want[1].EvalEnergy, want[2].EvalRise)
	}
}

// TestBalancedWeights: the weighted mean over the data is the mean over classes.
func TestBalancedWeights(t *testing.T) {
	im := data.Images{
		Height: 4, Width: 4, Channels: 1, Float32: make([]float32, 16*8),
		Labels: []int32{0, 0, 0, 0, 0, 0, 2, 2},
	}
	d, err := data.New(im)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newClassWeights(Config{ClassWeighting: WeightBalanced}, d)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[int32]float64{}
	for i := range d.Len() {
		sums[d.Label(i)] += w.weight(d.Label(i)) / float64(d.Len())
	}
	if math.Abs(sums[0]-0.5) > 1e-15 || math.Abs(sums[2]-0.5) > 1e-15 || w.weight(1) != w.weight(2) {
		t.Errorf("weights %v give the classes %v", w, sums)
	}
	im.Labels[3] = -1
	if d, err = data.New(im); err != nil {
		t.Fatal(err)
	}
	var field *setting.Error
	if _, err := newClassWeights(Config{ClassWeighting: WeightBalanced}, d); !errors.As(err, &field) ||
		field.Field != "class_weighting" {
		t.Errorf("an image without a class: %v", err)
	}
	if w, err := newClassWeights(Config{}, d); w.weight(0) != 1 || err != nil {
		t.Errorf("no weighting weighs %v, %v", w.weight(0), err)
	}
}

// TestScheduleAverage: it is the moving average of ln g at the knots, an increasing path with the schedule's ends, and
// what is published.
func TestScheduleAverage(t *testing.T) {
	net, d := gaussian(t, basis.None(4, 4), []float64{0.2}, 32)
	cfg := analyticConfig(Isotropic)
	cfg.ScheduleLR, cfg.ScheduleEMAHalflife = 0.3, 0.016 // two steps
	r := start(t, cfg, Sources{Dataset: d, Analytic: net})
	_, want := r.sched.At(0, 0).Knots()
	for range 5 {
		step(t, r, 1)
		_, now := r.sched.At(0, 0).Knots()
		for k := range want {
			want[k] = want[k]*math.Sqrt(0.5) + now[k]*(1-math.Sqrt(0.5))
		}
	}
	path := r.Schedule().At(0, 0)
	_, got := path.Knots()
	for k := range want {
		within(t, "ln g", got[k], want[k], 1e-9*(1+math.Abs(want[k])))
	}
	if path.G0() != r.sched.At(0, 0).G0() || path.GT() != r.sched.T() {
		t.Errorf("ends %v and %v", path.G0(), path.GT())
	}
	state, err := r.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Published(state)
	if err != nil {
		t.Fatal(err)
	}
	if _, published := stored.At(0, 0).Knots(); !slices.Equal(published, got) {
		t.Errorf("the stored state publishes %v, the run %v", published, got)
	}
	_, last := r.sched.At(0, 0).Knots()
	if math.Abs(last[4]-got[4]) < 1e-6 {
		t.Error("the average is the schedule as it stands: then it tests nothing")
	}
}

func TestClippedGradient(t *testing.T) {
	d := [][][]float64{{{3, 0}}, {{0, 4}}}
	if got := clipped(d, 5, 10); &got[0][0][0] != &d[0][0][0] {
		t.Error("a short gradient is copied")
	}
	if got := clipped(d, 5, 1); math.Abs(got[0][0][0]-0.6) > 1e-15 || math.Abs(got[1][0][1]-0.8) > 1e-15 ||
		d[0][0][0] != 3 {
		t.Errorf("clipped to 1: %v", got)
	}
}

// TestNoiseStops: a window whose mean gradient is within its standard error stops the run, one with a direction does
// not.
func TestNoiseStops(t *testing.T) {
	theta := [][]schedule.Theta{{make(schedule.Theta, 2)}}
	tell := func(gradients []float64, stderr float64) (stops []int64) {
		r := &learner{theta: theta, cfg: Config{EarlyStop: StopNoise, EarlyStopWindow: 0.004}}
		for i, v := range gradients {
			d := thetaGradient{estimate: estimate{mean: [][][]float64{{{v, 0}}}, stderr: stderr}}
			var stopped *StoppedError
			row := Row{Step: int64(i + 1), Kimg: float64(i+1) / 1000}
			if errors.As(r.early.noise(r.cfg, d, row, float64(i)/1000), &stopped) {
				stops = append(stops, stopped.Step)
			}
		}
		return stops
	}
	if got := tell([]float64{1, -1, 1, -1, 2, -2, 2, -2}, 1); !slices.Equal(got, []int64{4, 8}) {
		t.Errorf("pure noise stops at %v", got)
	}
	if got := tell([]float64{0.6, 0.6, 0.6, 0.6, 0.4, 0.4, 0.4, 0.4}, 1); !slices.Equal(got, []int64{8}) {
		t.Errorf("0.6 and 0.4 against 1/√4 stop at %v", got)
	}
}

// TestNetworkNoiseSpansTheRatios: in joint training the network sees noise about the schedule's, the schedule's
// gradient does not.
func TestNetworkNoiseSpansTheRatios(t *testing.T) {
	net, d := gaussian(t, dct(t), []float64{0.3, 0.05}, 32)
	cfg := analyticConfig(Anisotropic)
	cfg.Family.K = 4
	r := start(t, cfg, Sources{Dataset: d, Analytic: net})
	r.cfg.PStdSubspace = 0.7
	var ratios []float64
	b, err := r.draw(4096, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(b.g); i += 2 {
		if b.g[i] != b.g[i+1] {
			t.Fatal("the start has equal paths")
		}
		ratios = append(ratios, math.Log(b.network[i]/b.network[i+1]))
	}
	m, stderr := passes.MeanStderr(ratios)
	spread := stderr * math.Sqrt(float64(len(ratios)))
	if math.Abs(m) > 4*stderr || math.Abs(spread/(2*0.7*math.Sqrt2)-1) > 0.05 {
		t.Errorf("ln(g₁/g₂) has mean %v ± %v and deviation %v, want 0 and 1.98", m, stderr, spread)
	}
}

// blind is a network that is told the geometric mean of the g_j alone, as EDM's are.
type blind struct{ kernels.FlowNetwork }

func (b blind) Spec() kernels.Spec {
	s := b.FlowNetwork.Spec()
	s.Key = "blind " + s.Key
	return s
}

func (b blind) Flow(s *nn.Scope, x, g, label *graph.Node) *graph.Node {
	mean := graph.Exp(graph.ReduceAndKeep(graph.Log(g), graph.ReduceMean, 1))
	return b.FlowNetwork.Flow(s, x, graph.BroadcastToDims(mean, g.Shape().Dimensions...), label)
}

// TestDivergenceIsCaught: a network that does not see the ratios of the g_j is wrong where they leave 1, and the full
// estimator drives them apart. The energy on the evaluation set tells, the best schedule is kept, and training can go
// on from it.
func TestDivergenceIsCaught(t *testing.T) {
	net, d := gaussian(t, dct(t), []float64{0.3, 0.005}, 256)
	cfg := analyticConfig(Anisotropic)
	cfg.Family.K, cfg.Batch, cfg.Kimg, cfg.ScheduleLR = 4, 32, 16, 0.1
	cfg.EarlyStop, cfg.EvalEvery, cfg.EvalSamples = StopEnergy, 0.32, 256
	step(t, start(t, cfg, Sources{Dataset: d, Analytic: net}), 60) // one that sees them learns
	r := start(t, cfg, Sources{Dataset: d, Analytic: blind{net.(kernels.FlowNetwork)}})
	var stopped *StoppedError
	var last Row
	for range 500 {
		row, err := r.Step(t.Context())
		if !math.IsNaN(row.EvalEnergy) {
			last = row
		}
		if errors.As(err, &stopped) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if stopped == nil || stopped.Reason != StopEnergy || stopped.Step != last.Step ||
		!(last.EvalRise > 3*last.EvalRiseStderr) {
		t.Fatalf("stopped: %+v, last evaluation %+v", stopped, last)
	}
	best := r.Best()
	t.Logf("%v; best %+v", stopped, best)
	if best == nil || best.Step >= stopped.Step || !(best.Energy < last.EvalEnergy) {
		t.Errorf("best %+v", best)
	}
	energy, err := r.evaluate(t.Context(), r.Schedule())
	if err != nil {
		t.Fatal(err)
	}
	within(t, "energy of the schedule that is kept", passes.Mean(energy), best.Energy, 1e-6*best.Energy)
	step(t, r, 1)
}
