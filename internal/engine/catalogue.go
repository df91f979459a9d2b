package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// named is the reply of an action that only has to say that it is done.
func named(kind, name string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]string{kind: name}, nil
}

func (e *Engine) listModels(context.Context, api.Empty) (any, error) {
	return map[string]any{"models": e.modelInfos()}, nil
}

func (e *Engine) describeModel(_ context.Context, req api.ModelName) (any, error) {
	m, err := e.modelNamed(req.Model)
	if err != nil {
		return nil, err
	}
	info := m.describe()
	info.Config = m.stored.Net
	return info, nil
}

func (e *Engine) loadModel(ctx context.Context, req api.LoadModel) (any, error) {
	if err := e.serveFolder(req); err != nil {
		return nil, err
	}
	return e.describeModel(ctx, api.ModelName{Model: req.Name})
}

func (e *Engine) unloadModel(_ context.Context, req api.ModelName) (any, error) {
	return named("model", req.Model, e.unserve(req.Model))
}

func (e *Engine) deleteModel(_ context.Context, req api.ModelName) (any, error) {
	return named("model", req.Model, e.removeModel(req.Model))
}

func (e *Engine) listSchedules(context.Context, api.Empty) (any, error) {
	return map[string]any{"schedules": e.scheduleInfos()}, nil
}

func (e *Engine) deleteSchedule(_ context.Context, req api.ScheduleName) (any, error) {
	return named("schedule", req.Schedule, e.removeSchedule(req.Schedule))
}

func (e *Engine) listBases(context.Context, api.Empty) (any, error) {
	return map[string]any{"bases": e.basisInfos()}, nil
}

func (e *Engine) deleteBasis(_ context.Context, req api.BasisName) (any, error) {
	return named("basis", req.Basis, e.removeBasis(req.Basis))
}

func (e *Engine) listDatasets(context.Context, api.Empty) (any, error) {
	return map[string]any{"datasets": e.datasetInfos()}, nil
}

func (e *Engine) deleteDataset(_ context.Context, req api.DatasetName) (any, error) {
	return named("dataset", req.Dataset, e.removeDataset(req.Dataset))
}

func (e *Engine) listRuns(context.Context, api.Empty) (any, error) {
	return map[string]any{"runs": e.runInfos()}, nil
}
