package evaluating

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// Denoise evaluates a model on rows that a client sends.
func (k *Evaluator) Denoise(_ context.Context, req api.Denoise, in api.Schema) (*api.Exchange, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	bySigma := in.Index("sigma") >= 0 // else the rows give g
	network, err := k.networkFor(req, m, bySigma)
	if err != nil {
		return nil, err
	}
	level := api.Column{Name: "sigma", Type: api.Float64}
	if !bySigma {
		level = api.Column{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{network.J()}}
	}
	images, err := tables.NewImages(m, in, []string{"x"}, level)
	if err != nil {
		return nil, err
	}
	h, w, c := m.ImageSize()
	out := api.Schema{Metadata: tables.OfModel(m, "Denoise", req)}
	for _, name := range []string{"denoised", "flow", "raw"} {
		column := tables.ImageColumn(name, api.Float32, images.Layout, h, w, c)
		if len(in.Columns[in.Index("x")].DimNames) == 0 {
			column.DimNames = nil
		}
		out.Columns = append(out.Columns, column)
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	answer := func(ctx context.Context, b api.Batch, emit func(api.Event) error) error {
		x, err := images.Read(b, "x")
		if err != nil {
			return err
		}
		labels, err := images.Labels(b, 0)
		if err != nil {
			return err
		}
		g, err := variances(m, level.Name, api.ColumnOf[float64](in, b, level.Name), network.J())
		if err != nil {
			return err
		}
		net := sampler.Network{Model: network, Weights: m.Weights()}
		denoised, flow, raw, err := sampler.Denoise(ctx, k.Batcher, net, x, g, labels)
		if err != nil {
			return err
		}
		cols := make([]any, 3)
		for k, v := range [][]float32{denoised, flow, raw} {
			column := make([]float32, len(v))
			data.Reorder(column, v, data.HWC, images.Layout, h, w, c)
			cols[k] = column
		}
		meta := api.Done(int64(b.Rows), -1)
		if w := api.NotFiniteWarning(tables.NotFinite(denoised, h*w*c), b.Rows); w != nil {
			meta["warning"] = w["warning"]
		}
		return emit(api.Event{Batch: &api.Batch{Rows: b.Rows, Cols: cols}, Meta: meta})
	}
	return &api.Exchange{Out: out, Window: tables.Window, Close: m.Release, Do: answer}, nil
}

// networkFor returns the programs of a model for the basis of a request.
func (k *Evaluator) networkFor(req api.Denoise, m *catalog.Model, bySigma bool) (*kernels.Model, error) {
	switch {
	case req.Basis != "":
		h, w, _ := m.ImageSize()
		b, err := k.Catalog.BasisFor(schedule.Family{Basis: req.Basis, K: req.K, Cuts: req.Cuts}, h, w, nil, m)
		if err != nil {
			return nil, err
		}
		return m.NetworkOn(b)
	case bySigma: // one noise level needs no basis
		return m.IsotropicNetwork()
	}
	_, network, err := k.Catalog.ScheduleAndNetwork(api.ScheduleRef{}, m)
	return network, err
}

// variances returns the noise variances [B·J] of a column sigma [B], or g [B·J].
func variances(m *catalog.Model, column string, values []float64, j int) ([]float64, error) {
	var out []float64
	perRow, repeats := j, 1
	if column == "sigma" {
		perRow, repeats = 1, j
	}
	for i, v := range values {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, api.Errorf(api.BadTensor, "Column %q must be positive and finite, got %v in row %d", column, v, i/perRow)
		}
		if column == "sigma" {
			v *= v
		}
		if levels := m.Shape.Range; !levels.Holds(v) {
			lo, hi := levels.Ends()
			return nil, api.Errorf(api.BadRequest,
				"Column %q has noise level %.6g in row %d, outside of %.6g … %.6g, where "+
					"the model %q was trained", column, math.Sqrt(v), i/perRow, lo, hi, m.Name)
		}
		for range repeats {
			out = append(out, v)
		}
	}
	return out, nil
}
