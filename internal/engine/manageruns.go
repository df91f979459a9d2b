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
