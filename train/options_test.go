package train

import (
	"errors"
	"math"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// analyticConfig trains schedules under an exact flow.
func analyticConfig(stage string) Config {
	cfg := tinyConfig(stage)
	cfg.Network, cfg.TrainNetwork, cfg.Estimator = nil, new(false), "full"
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

// TestNetworkNoiseSpansTheRatios: in joint training the network sees noise about the schedule's, the schedule's
// gradient does not.
func TestNetworkNoiseSpansTheRatios(t *testing.T) {
	net, d := gaussian(t, dct(t), []float64{0.3, 0.05}, 32)
	cfg := analyticConfig(Anisotropic)
	cfg.Family.K = 4
	r := start(t, cfg, Sources{Dataset: d, Analytic: net})
	r.cfg.PStdSubspace = new(0.7)
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
// estimator drives them apart.
func TestDivergenceIsCaught(t *testing.T) {
	net, d := gaussian(t, dct(t), []float64{0.3, 0.005}, 256)
	cfg := analyticConfig(Anisotropic)
	cfg.Family.K, cfg.Batch, cfg.Kimg, cfg.ScheduleLR = 4, 32, 16, 0.1
	step(t, start(t, cfg, Sources{Dataset: d, Analytic: net}), 60) // one that sees them learns
	r := start(t, cfg, Sources{Dataset: d, Analytic: blind{net.(kernels.FlowNetwork)}})
	for range 500 {
		row, err := r.Step(t.Context())
		if lost, ok := errors.AsType[*DivergedError](err); ok {
			if lost.Step != row.Step {
				t.Errorf("step %d diverges at %d", row.Step, lost.Step)
			}
			step(t, r, 1) // training may go on
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("500 steps, and nothing was noticed")
}
