package stepcost

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Modes are measured side by side; loss is a step without the schedule's gradient.
var Modes = []kernels.Mode{kernels.Explicit, kernels.Backprop, kernels.Full, kernels.FiniteDifference, kernels.LossOnly}

// Settings say what is measured. Zero values mean defaults.
type Settings struct {
	Net     *unet.Net
	Basis   *basis.Basis // nil: J = 1
	Batch   int          // images per step; default 64
	Frozen  bool         // the network is not trained
	Repeats int          // steps per mode; default 15
	// Progress is told of steps done, the first ones included, which compile; may be nil.
	Progress func(done, total int)
}

// Row is the cost of one mode. Times are in seconds.
type Row struct {
	Mode    kernels.Mode `json:"mode"`
	Median  float64      `json:"median"`
	Low     float64      `json:"low"` // quartiles
	High    float64      `json:"high"`
	Ratio   float64      `json:"ratio"` // to explicit: median over the repetitions, and quartiles
	RatioLo float64      `json:"ratio_low"`
	RatioHi float64      `json:"ratio_high"`
	// Memory of the step's program as its compiler counts it; nil where it does not.
	Memory *device.Memory `json:"memory,omitempty"`
	// Estimate of the same from the step's graph, and the floating-point operations.
	Estimate device.Memory `json:"estimate"`
	FLOPs    int64         `json:"flops"`
}

// Measure takes the steps of all modes in turn, so that what else the machine does falls
// on all of them alike, and compares each repetition with explicit's beside it.
func Measure(ctx context.Context, dev *device.Device, set Settings) ([]Row, error) {
	if set.Batch == 0 {
		set.Batch = 64
	}
	if set.Repeats == 0 {
		set.Repeats = 15
	}
	if set.Batch < 1 || set.Repeats < 1 {
		return nil, fmt.Errorf("images and repetitions must be positive, got %d and %d", set.Batch, set.Repeats)
	}
	model, err := kernels.NewModel(dev, kernels.UNet(set.Net), set.Basis)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	in, err := batch(model, set.Batch)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(Modes))
	trainers := make([]*kernels.Trainer, len(Modes))
	for i, mode := range Modes {
		rows[i].Mode = mode
		cfg := kernels.TrainerConfig{Mode: mode, Estimate: true, TrainNetwork: !set.Frozen}
		cost, err := model.StepCost(cfg, set.Batch)
		if err != nil {
			return nil, err
		}
		rows[i].FLOPs, rows[i].Estimate = cost.FLOPs, cost.Memory
		if trainers[i], err = model.NewTrainer(cfg, set.Net.Init(1)); err != nil {
			return nil, err
		}
		defer trainers[i].Close()
	}
	seconds := make([][]float64, len(Modes)) // [mode][repetition]
	for r := range set.Repeats + 1 {
		for i, t := range trainers {
			in.Step++
			began := time.Now()
			if _, err := t.Step(ctx, in); err != nil {
				return nil, err
			}
			if r > 0 { // the first one compiles
				seconds[i] = append(seconds[i], time.Since(began).Seconds())
			}
			if set.Progress != nil {
				set.Progress(r*len(Modes)+i+1, (set.Repeats+1)*len(Modes))
			}
		}
	}
	for i, t := range trainers {
		row := &rows[i]
		row.Low, row.Median, row.High = quartiles(seconds[i])
		ratios := make([]float64, set.Repeats)
		for r := range ratios {
			ratios[r] = seconds[i][r] / seconds[0][r]
		}
		row.RatioLo, row.Ratio, row.RatioHi = quartiles(ratios)
		m, ok, err := t.Memory(ctx, set.Batch)
		if err != nil {
			return nil, err
		}
		if ok {
			row.Memory = &m
		}
	}
	return rows, nil
}

// batch makes images and noise levels such as training sees: EDM's grid, uniform in t.
func batch(m *kernels.Model, n int) (kernels.StepInput, error) {
	spec := m.Network().Spec()
	in := kernels.StepInput{Images: make([]float32, n*m.Pixels()), LR: 1e-5, EMABeta: 0.999}
	latent.Normal(1, 0, in.Images)
	for i, v := range in.Images {
		in.Images[i] = min(max(v/2, -1), 1)
	}
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, schedule.DefaultT, schedule.DefaultG0)
	if err != nil {
		return in, err
	}
	path := theta.Path(schedule.DefaultT, schedule.DefaultG0)
	for i := range n {
		g, gdot := path.Eval(schedule.DefaultT * (float64(i) + 0.5) / float64(n))
		for range m.J() {
			in.G, in.Omega = append(in.G, g), append(in.Omega, schedule.Omega(g, gdot, 1))
		}
		label := int32(-1)
		if spec.Labels > 0 {
			label = int32(i % spec.Labels)
		}
		in.Labels = append(in.Labels, label)
	}
	return in, nil
}

// quartiles returns the first quartile, the median and the third, as order statistics.
func quartiles(x []float64) (low, median, high float64) {
	x = slices.Sorted(slices.Values(x))
	at := func(q int) float64 { return x[(q*(len(x)-1)+2)/4] }
	return at(1), at(2), at(3)
}
