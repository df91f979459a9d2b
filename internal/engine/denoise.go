package engine

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// denoising is an open Denoise exchange.
type denoising struct {
	e     *Engine
	model *model
	on    *kernels.Model
	in    api.Schema
	from  pixels.Layout
	sigma bool // the rows give sigma, else g
}

// exchangeDenoise evaluates a model on the caller's noisy images.
func (e *Engine) exchangeDenoise(_ context.Context, req api.Denoise, in api.Schema) (*api.Exchange, error) {
	m, err := e.modelNamed(req.Model)
	if err != nil {
		return nil, err
	}
	d := &denoising{e: e, model: m, in: in, sigma: in.Index("sigma") >= 0}
	if err := d.prepare(req); err != nil {
		return nil, explain(err)
	}
	x := in.Columns[in.Index("x")]
	h, w, c := m.imageSize()
	out := api.Schema{Metadata: m.metadata("Denoise", req)}
	for _, name := range []string{"denoised", "flow", "raw"} {
		out.Columns = append(out.Columns, imageColumn(name, api.Float32, d.from, h, w, c))
	}
	if len(x.DimNames) == 0 {
		for i := range out.Columns {
			out.Columns[i].DimNames = nil
		}
	}
	if err := m.hold(); err != nil {
		return nil, err
	}
	return &api.Exchange{Out: out, Window: exchangeWindow, Close: m.release, Do: d.answer}, nil
}

// prepare chooses the basis and checks the columns.
func (d *denoising) prepare(req api.Denoise) (err error) {
	h, w, _ := d.model.imageSize()
	switch {
	case req.Basis != "":
		b, err := d.e.basisFor(schedule.Family{Basis: req.Basis, K: req.K, Cuts: req.Cuts}, h, w, nil, d.model)
		if err != nil {
			return err
		}
		if d.on, err = d.model.on(b); err != nil {
			return err
		}
	case d.sigma: // one noise level needs no basis
		if d.on, err = d.e.plain(d.model); err != nil {
			return err
		}
	default:
		if _, d.on, err = d.e.scheduleOn(api.ScheduleRef{}, d.model); err != nil {
			return err
		}
	}
	level := api.Column{Name: "sigma", Type: api.Float64}
	if !d.sigma {
		level = api.Column{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{d.on.J()}}
	}
	err = wantColumns(d.in, []api.Column{{Name: "x", Type: api.Float32, Kind: api.Tensor}, {Name: "label", Type: api.Int32}, level}, nil)
	if err != nil {
		return err
	}
	d.from, err = d.model.fits(d.in.Columns[d.in.Index("x")])
	return err
}

// levels gives the noise variances [B·J] of a batch.
func (d *denoising) levels(b api.Batch) ([]float64, error) {
	name, j := "g", d.on.J()
	if d.sigma {
		name, j = "sigma", 1
	}
	levels := api.ColumnOf[float64](d.in, b, name)
	for i, v := range levels {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, api.Errorf(api.BadTensor, "Column %q holds %v in row %d", name, v, i/j).WithHint("A noise level is positive and finite.")
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

// answer evaluates one batch, a bucket at a time.
func (d *denoising) answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	x := api.ColumnOf[float32](d.in, in, "x")
	labels := api.ColumnOf[int32](d.in, in, "label")
	h, w, c := d.model.imageSize()
	size := h * w * c
	if err := finite("x", x, size); err != nil {
		return err
	}
	if err := checkLabels(labels, d.model.shape.Labels); err != nil {
		return err
	}
	g, err := d.levels(in)
	if err != nil {
		return err
	}
	x = pixels.ToHWC(x, d.from, h, w, c)
	j := d.on.J()
	out := [3][]float32{}
	for k := range out {
		out[k] = make([]float32, len(x))
	}
	for done := 0; done < in.Rows; {
		bucket := bucketFor(d.on, in.Rows-done)
		n := min(bucket, in.Rows-done)
		p := &denoisePart{on: d.on, weights: d.model.weights, n: n,
			x: pad(x, size, done, n, bucket), g: pad(g, j, done, n, bucket), labels: pad(labels, 1, done, n, bucket)}
		err := d.e.joint.evaluate(ctx, network{d.on, d.model.weights}, p)
		if err != nil {
			return explain(err)
		}
		for k := range out {
			pixels.Reorder(out[k][done*size:(done+n)*size], p.out[k], hwc, d.from, h, w, c)
		}
		done += n
	}
	if in.Rows == 0 {
		return nil
	}
	return emit(api.Event{Batch: &api.Batch{Rows: in.Rows, Cols: []any{out[0], out[1], out[2]}}, Meta: api.Done(int64(in.Rows), -1)})
}

// denoisePart is a part of a batch, padded to a bucket.
type denoisePart struct {
	on      *kernels.Model
	weights *kernels.Weights
	n       int // rows that are no padding
	x       []float32
	g       []float64
	labels  []int32
	out     [3][]float32 // denoised, flow, raw, without padding
}

func (p *denoisePart) rows() int { return p.n }

func (p *denoisePart) alone(ctx context.Context) error {
	denoised, flow, raw, err := p.on.Denoise(ctx, p.weights, p.x, p.g, p.labels)
	if err != nil {
		return err
	}
	size := p.n * p.on.Pixels()
	return p.use(ctx, denoised[:size], flow[:size], raw[:size])
}

func (p *denoisePart) give(context.Context) (x []float32, g []float64, labels []int32, err error) {
	return p.x[:p.n*p.on.Pixels()], p.g[:p.n*p.on.J()], p.labels[:p.n], nil
}

func (p *denoisePart) use(_ context.Context, denoised, flow, raw []float32) error {
	p.out = [3][]float32{denoised, flow, raw}
	return nil
}
