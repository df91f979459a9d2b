package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// named is the reply of an action that only has to say that it is done.
func named(kind, name string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]string{kind: name}, nil
}

// described is the reply of an action that has made a model.
func described(m *catalog.Model, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return m.Describe(), nil
}

func (e *Engine) listModels(context.Context, api.Empty) (any, error) {
	infos := []api.ModelInfo{}
	for _, m := range e.catalog.Models() {
		infos = append(infos, m.Describe())
	}
	return map[string]any{"models": infos}, nil
}

func (e *Engine) describeModel(_ context.Context, req api.ModelName) (any, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	info := m.Describe()
	info.Config = checkpoint.ConfigOf(m.Net)
	return info, nil
}

func (e *Engine) loadModel(ctx context.Context, req api.LoadModel) (any, error) {
	if err := e.catalog.LoadModel(req); err != nil {
		return nil, err
	}
	return e.describeModel(ctx, api.ModelName{Model: req.Name})
}

func (e *Engine) unloadModel(_ context.Context, req api.ModelName) (any, error) {
	return named("model", req.Model, e.catalog.UnloadModel(req.Model))
}

func (e *Engine) deleteModel(_ context.Context, req api.ModelName) (any, error) {
	return named("model", req.Model, e.catalog.DeleteModel(req.Model))
}

func (e *Engine) listSchedules(context.Context, api.Empty) (any, error) {
	return map[string]any{"schedules": e.catalog.ScheduleInfos()}, nil
}

func (e *Engine) deleteSchedule(_ context.Context, req api.ScheduleName) (any, error) {
	return named("schedule", req.Schedule, e.catalog.DeleteSchedule(req.Schedule))
}

func (e *Engine) listBases(context.Context, api.Empty) (any, error) {
	return map[string]any{"bases": e.catalog.BasisInfos()}, nil
}

func (e *Engine) deleteBasis(_ context.Context, req api.BasisName) (any, error) {
	return named("basis", req.Basis, e.catalog.DeleteBasis(req.Basis))
}

func (e *Engine) listDatasets(context.Context, api.Empty) (any, error) {
	return map[string]any{"datasets": e.catalog.DatasetInfos()}, nil
}

func (e *Engine) deleteDataset(_ context.Context, req api.DatasetName) (any, error) {
	return named("dataset", req.Dataset, e.catalog.DeleteDataset(req.Dataset))
}
