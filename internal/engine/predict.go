package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

var predictColumns = []api.Column{
	{Name: "basis", Type: api.Int32},
	{Name: "per_class", Type: api.Int32},
	{Name: "k", Type: api.Int32},
	{Name: "cut", Type: api.Int32},
	{Name: "cut_2", Type: api.Int32},
	{Name: "energy", Type: api.Float64},
	{Name: "stderr", Type: api.Float64},
	{Name: "gain", Type: api.Float64},
	{Name: "gain_stderr", Type: api.Float64},
}

// preparePredict measures what bases and classes can gain.
func (e *Engine) preparePredict(_ context.Context, req api.Predict) (*api.Job, error) {
	for _, b := range req.Bases {
		if _, err := catalog.BasisKind("bases", b, basis.Definition.Predicted); err != nil {
			return nil, err
		}
	}
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	d, err := e.catalog.ImagesFor(m, req.Dataset)
	if err != nil {
		return nil, err
	}
	on, err := m.Plain()
	if err != nil {
		return nil, err
	}
	if req.T == 0 { // the end of the model's own time
		own, err := m.OwnSchedule()
		if err != nil {
			return nil, err
		}
		req.T = own.T()
	}
	req.G0 = m.G0(req.G0)
	schema := api.Schema{Columns: predictColumns, Metadata: modelMetadata(m, "Predict", req)}
	schema.Metadata["bases"] = strings.Join(basis.Names(nil), " ")
	return &api.Job{Schema: schema, Rows: -1, Bytes: -1, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := m.Hold(); err != nil {
			return err
		}
		defer m.Release()
		var rows []passes.Prediction
		err := e.queue.Run(ctx, emit, func(ctx context.Context, report func(done, total int)) (err error) {
			rows, err = passes.Predict(ctx, on, m.Weights(), d, passes.PredictSettings{
				T: req.T, G0: req.G0, C: req.C, Points: req.Points, Samples: req.Samples, Seed: req.Seed, Bases: req.Bases,
				Progress: report,
			})
			return err
		})
		if err != nil {
			return err
		}
		return emit(api.Event{Batch: predictionBatch(rows), Meta: api.Done(int64(len(rows)), int64(len(rows)))})
	}}, nil
}

func predictionBatch(rows []passes.Prediction) *api.Batch {
	var whole [5][]int32
	var numbers [4][]float64
	for _, p := range rows {
		perClass, cuts := 0, [2]int{}
		if p.PerClass {
			perClass = 1
		}
		copy(cuts[:], p.Cuts)
		for c, v := range []int{slices.Index(basis.Names(nil), p.Basis), perClass, p.K, cuts[0], cuts[1]} {
			whole[c] = append(whole[c], int32(v))
		}
		for c, v := range []float64{p.Energy, p.Stderr, p.Gain, p.GainStderr} {
			numbers[c] = append(numbers[c], v)
		}
	}
	out := &api.Batch{Rows: len(rows)}
	for _, v := range whole {
		out.Cols = append(out.Cols, v)
	}
	for _, v := range numbers {
		out.Cols = append(out.Cols, v)
	}
	return out
}
