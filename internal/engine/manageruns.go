package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
)

func (e *Engine) listRuns(context.Context, api.Empty) (any, error) {
	infos := []api.RunInfo{}
	for _, r := range e.runs.All() {
		infos = append(infos, r.Info())
	}
	return map[string]any{"runs": infos}, nil
}

func (e *Engine) getRun(_ context.Context, req api.RunName) (any, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	return r.Describe(), nil
}

func (e *Engine) createRun(ctx context.Context, req api.CreateRun, progress func(api.Meta)) (any, error) {
	r, err := e.runs.Create(ctx, req, progress)
	if err != nil {
		return nil, err
	}
	return r.Describe(), nil
}

func (e *Engine) startRun(ctx context.Context, req api.StartRun) (any, error) {
	return infoOf(e.runs.Start(ctx, req))
}

func (e *Engine) pauseRun(ctx context.Context, req api.RunName) (any, error) {
	return infoOf(e.runs.Pause(ctx, req.Run))
}

func (e *Engine) cancelRun(ctx context.Context, req api.RunName) (any, error) {
	return infoOf(e.runs.Cancel(ctx, req.Run))
}

func infoOf(r *runs.Run, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return r.Info(), nil
}

func (e *Engine) deleteRun(ctx context.Context, req api.RunName) (any, error) {
	return named("run", req.Run, e.runs.Delete(ctx, req.Run))
}

// saveModel writes the averaged network of a run, with its schedule, as models/NAME and serves it. A run at work goes
// on after the step it is in.
func (e *Engine) saveModel(ctx context.Context, req api.SaveModel) (any, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := e.catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel asks again
		return nil, err
	}
	learned, err := r.Model(ctx)
	if err != nil {
		return nil, err
	}
	learned.Schedule = runs.MadeFor(learned.Schedule, req.Name)
	made, err := e.catalog.SaveModel(req.Name, req.Replace, learned)
	if err != nil {
		return nil, err
	}
	info := made.Describe()
	info.Warning = r.Warning(ctx)
	return info, nil
}
