package engine

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// denoising is an open Denoise exchange.
type denoising struct {
	e     *Engine
	model *catalog.Model
	on    *kernels.Model
	in    api.Schema
	from  data.Layout
	sigma bool // the rows give sigma, else g
}

// exchangeDenoise evaluates a model on the caller's noisy images.
func (e *Engine) exchangeDenoise(_ context.Context, req api.Denoise, in api.Schema) (*api.Exchange, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d := &denoising{e: e, model: m, in: in, sigma: in.Index("sigma") >= 0}
	if err := d.prepare(req); err != nil {
		return nil, err
	}
	x := in.Columns[in.Index("x")]
	h, w, c := m.ImageSize()
	out := api.Schema{Metadata: reply.OfModel(m, "Denoise", req)}
	for _, name := range []string{"denoised", "flow", "raw"} {
		out.Columns = append(out.Columns, input.ImageColumn(name, api.Float32, d.from, h, w, c))
	}
	if len(x.DimNames) == 0 {
		for i := range out.Columns {
			out.Columns[i].DimNames = nil
		}
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	return &api.Exchange{Out: out, Window: reply.Window, Close: m.Release, Do: d.answer}, nil
}

// prepare chooses the basis and checks the columns.
func (d *denoising) prepare(req api.Denoise) (err error) {
	h, w, _ := d.model.ImageSize()
	switch {
	case req.Basis != "":
		b, err := d.e.catalog.BasisFor(schedule.Family{Basis: req.Basis, K: req.K, Cuts: req.Cuts}, h, w, nil, d.model)
		if err != nil {
			return err
		}
		if d.on, err = d.model.On(b); err != nil {
			return err
		}
	case d.sigma: // one noise level needs no basis
		if d.on, err = d.model.Plain(); err != nil {
			return err
		}
	default:
		if _, d.on, err = d.e.catalog.ScheduleOn(api.ScheduleRef{}, d.model); err != nil {
			return err
		}
	}
	level := api.Column{Name: "sigma", Type: api.Float64}
	if !d.sigma {
		level = api.Column{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{d.on.J()}}
	}
	err = input.Want(d.in, []api.Column{
		{Name: "x", Type: api.Float32, Kind: api.Tensor},
		{Name: "label", Type: api.Int32},
		level,
	}, nil)
	if err != nil {
		return err
	}
	d.from, err = input.Fits(d.model, d.in.Columns[d.in.Index("x")])
	return err
}

// levels returns the noise variances [B·J] of a batch.
func (d *denoising) levels(b api.Batch) ([]float64, error) {
	name, j := "g", d.on.J()
	if d.sigma {
		name, j = "sigma", 1
	}
	levels := api.ColumnOf[float64](d.in, b, name)
	for i, v := range levels {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, api.Errorf(api.BadTensor, "Column %q holds %v in row %d", name, v, i/j).
				WithHint("A noise level is positive and finite.")
		}
		variance := v
		if d.sigma {
			variance = v * v
		}
		if known := d.model.Shape.Range; !known.Holds(variance) {
			lo, hi := known.Ends()
			return nil, api.Errorf(api.BadRequest,
				"Column %q asks for noise level %.6g in row %d, outside of %.6g … %.6g, those that "+
					"the model %q was trained on", name, math.Sqrt(variance), i/j, lo, hi, d.model.Name)
		}
	}
	if !d.sigma {
		return levels, nil
	}
	g := make([]float64, 0, len(levels)*d.on.J())
	for _, sigma := range levels {
		for range d.on.J() {
			g = append(g, sigma*sigma)
		}
	}
	return g, nil
}

// answer evaluates one batch.
func (d *denoising) answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	x := api.ColumnOf[float32](d.in, in, "x")
	labels, err := input.Int32s(d.in, in, "label", 0)
	if err != nil {
		return err
	}
	h, w, c := d.model.ImageSize()
	size := h * w * c
	if err := input.Finite("x", x, size); err != nil {
		return err
	}
	if err := input.CheckLabels(labels, d.model.Shape.Labels); err != nil {
		return err
	}
	g, err := d.levels(in)
	if err != nil {
		return err
	}
	net := batch.Network{On: d.on, Weights: d.model.Weights()}
	denoised, flow, raw, err := d.e.batcher.Denoise(ctx, net, data.ToHWC(x, d.from, h, w, c), g, labels)
	if err != nil {
		return err
	}
	cols := make([]any, 3)
	for k, v := range [][]float32{denoised, flow, raw} {
		out := make([]float32, len(v))
		data.Reorder(out, v, data.HWC, d.from, h, w, c)
		cols[k] = out
	}
	return emit(api.Event{Batch: &api.Batch{Rows: in.Rows, Cols: cols}, Meta: api.Done(int64(in.Rows), -1)})
}
