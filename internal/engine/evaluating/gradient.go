package evaluating

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
)

// gradient is an open ScheduleGradient exchange.
type gradient struct {
	req     api.ScheduleGradient
	model   *catalog.Model
	network *kernels.Model
	sched   catalog.Schedule
	images  *tables.Images
	batcher *batch.Batcher
	in      api.Schema

	sum *schedule.Gradient // over all rows
}

// ScheduleGradient estimates the loss of the rows that a client sends, and its gradient with respect to a schedule.
func (k *Evaluator) ScheduleGradient(_ context.Context, req api.ScheduleGradient, in api.Schema,
) (*api.Exchange, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	x := &gradient{req: req, model: m, batcher: k.Batcher, in: in}
	if x.sched, x.network, err = k.Catalog.ScheduleAndNetwork(req.Schedule, m); err != nil {
		return nil, err
	}
	x.images, err = tables.NewImages(m, in, []string{"image", "noise", "probe"}, api.Column{Name: "t", Type: api.Float64})
	if err != nil {
		return nil, err
	}
	x.sum = schedule.NewGradient(x.sched.Schedule)
	j := []int{x.sched.J()}
	out := api.Schema{
		Columns: []api.Column{
			{Name: "loss", Type: api.Float64},
			{Name: "A", Type: api.Float64, Kind: api.List, Shape: j},
			{Name: "B", Type: api.Float64, Kind: api.List, Shape: j},
		},
		Metadata: tables.OfModel(m, "ScheduleGradient", req),
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	return &api.Exchange{Out: out, Window: tables.Window, Close: m.Release, Do: x.answer, End: x.end}, nil
}

// answer estimates the loss of one batch, bucket by bucket.
func (x *gradient) answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	if in.Rows == 0 {
		return nil
	}
	size, j := x.network.Pixels(), x.sched.J()
	images := map[string][]float32{}
	for _, name := range []string{"image", "noise", "probe"} {
		var err error
		if images[name], err = x.images.Read(in, name); err != nil {
			return err
		}
	}
	labels, err := x.images.Labels(in, 0)
	if err != nil {
		return err
	}
	t := api.ColumnOf[float64](x.in, in, "t")
	noise, err := x.levels(t, labels)
	if err != nil {
		return err
	}
	loss, a, b := make([]float64, 0, in.Rows), make([]float64, 0, in.Rows*j), make([]float64, 0, in.Rows*j)
	for bucket := range sampler.Buckets(x.network, in.Rows) {
		image := func(name string) []float32 { return sampler.Pad(images[name], size, bucket) }
		level := func(v []float64) []float64 { return sampler.Pad(v, j, bucket) }
		var terms *kernels.Terms
		err := x.batcher.Take(ctx, func() (err error) {
			terms, err = x.network.Estimate(ctx, x.model.Weights(), kernels.EstimateInput{
				Mode: kernels.Mode(x.req.Mode), X0: image("image"), Eps: image("noise"), Probe: image("probe"),
				G: level(noise.g), Omega: level(noise.omega), Labels: sampler.Pad(labels, 1, bucket),
			})
			return err
		})
		if err != nil {
			return err
		}
		l, da, db := terms.Assemble(level(noise.g), level(noise.gdot), x.req.C)
		if !setting.Finite(passes.Mean(l)) {
			return passes.ErrNotFinite
		}
		loss, a, b = append(loss, l[:bucket.N]...), append(a, da[:bucket.N*j]...), append(b, db[:bucket.N*j]...)
	}
	for i, row := range noise.row {
		x.sum.Add(row, t[i], a[i*j:(i+1)*j], b[i*j:(i+1)*j])
	}
	return emit(api.Event{Batch: &api.Batch{Rows: in.Rows, Cols: []any{loss, a, b}}, Meta: api.Done(int64(in.Rows), -1)})
}

// levels are the noise variances, their derivatives in time and the loss weights [B·J] of a batch, and the schedule's
// row of each sample.
type levels struct {
	g, gdot, omega []float64
	row            []int
}

func (x *gradient) levels(t []float64, labels []int32) (levels, error) {
	j, T := x.sched.J(), x.sched.T()
	out := levels{
		g: make([]float64, len(t)*j), gdot: make([]float64, len(t)*j), omega: make([]float64, len(t)*j),
		row: make([]int, len(t)),
	}
	for i := range t {
		if !(t[i] >= 0 && t[i] <= T) {
			return out, api.Errorf(api.BadTensor, "Column \"t\" must lie in 0 … %g, got %v in row %d", T, t[i], i)
		}
		row, err := x.sched.Row(int(labels[i]))
		if err != nil {
			return out, err
		}
		out.row[i] = row
		x.sched.Eval(row, t[i], out.g[i*j:(i+1)*j], out.gdot[i*j:(i+1)*j])
		for q := i * j; q < (i+1)*j; q++ {
			out.omega[q] = schedule.Omega(out.g[q], out.gdot[q], x.req.C)
		}
	}
	return out, nil
}

// end returns the gradients of the mean loss: d_logg, and d_theta if θ made the schedule.
func (x *gradient) end(context.Context) (map[string]any, error) {
	dlogg, dtheta := x.sum.Mean()
	out := map[string]any{"d_logg": dlogg}
	if dtheta != nil {
		out["d_theta"] = dtheta
	}
	return out, nil
}
