package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// action does one JSON operation. Its request was not decoded yet.
type action func(e *Engine, ctx context.Context, body json.RawMessage, progress func(api.Meta)) (any, error)

// do makes an action of a function on its decoded request.
func do[R any, P interface {
	*R
	api.Request
}](f func(e *Engine, ctx context.Context, req R, progress func(api.Meta)) (any, error)) action {
	return func(e *Engine, ctx context.Context, body json.RawMessage, progress func(api.Meta)) (any, error) {
		var req R
		if err := api.Decode(body, P(&req)); err != nil {
			return nil, err
		}
		return f(e, ctx, req, progress)
	}
}

var actions = map[string]action{
	"ServerInfo": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) { return e.serverInfo() }),
	"ListModels": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) {
		return map[string]any{"models": e.listModels()}, nil
	}),
	"DescribeModel": do(func(e *Engine, _ context.Context, req api.ModelName, _ func(api.Meta)) (any, error) {
		return e.describeModel(req.Model)
	}),
	"LoadModel": do(func(e *Engine, _ context.Context, req api.LoadModel, _ func(api.Meta)) (any, error) {
		if err := e.loadModel(req); err != nil {
			return nil, err
		}
		return e.describeModel(req.Name)
	}),
	"UnloadModel": do(func(e *Engine, _ context.Context, req api.ModelName, _ func(api.Meta)) (any, error) {
		return named("model", req.Model, e.unloadModel(req.Model))
	}),
	"DeleteModel": do(func(e *Engine, _ context.Context, req api.ModelName, _ func(api.Meta)) (any, error) {
		return named("model", req.Model, e.deleteModel(req.Model))
	}),
	"MakeModel": do((*Engine).makeModel),
	"ListSchedules": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) {
		return map[string]any{"schedules": e.listSchedules()}, nil
	}),
	"MakeSchedule":   do((*Engine).makeSchedule),
	"ExportSchedule": do((*Engine).exportSchedule),
	"ImportSchedule": do((*Engine).importSchedule),
	"DeleteSchedule": do(func(e *Engine, _ context.Context, req api.ScheduleName, _ func(api.Meta)) (any, error) {
		return named("schedule", req.Schedule, e.deleteSchedule(req.Schedule))
	}),
	"ListBases": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) {
		return map[string]any{"bases": e.listBases()}, nil
	}),
	"MakeBasis": do((*Engine).makeBasis),
	"DeleteBasis": do(func(e *Engine, _ context.Context, req api.BasisName, _ func(api.Meta)) (any, error) {
		return named("basis", req.Basis, e.deleteBasis(req.Basis))
	}),
	"ListDatasets": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) {
		return map[string]any{"datasets": e.listDatasets()}, nil
	}),
	"MakeDataset": do((*Engine).makeDataset),
	"DeleteDataset": do(func(e *Engine, _ context.Context, req api.DatasetName, _ func(api.Meta)) (any, error) {
		return named("dataset", req.Dataset, e.deleteDataset(req.Dataset))
	}),
	"ListRuns": do(func(e *Engine, _ context.Context, _ api.Empty, _ func(api.Meta)) (any, error) {
		return map[string]any{"runs": e.listRuns()}, nil
	}),
	"GetRun": do(func(e *Engine, _ context.Context, req api.RunName, _ func(api.Meta)) (any, error) {
		return e.getRun(req.Run)
	}),
	"CreateRun": do((*Engine).createRun),
	"StartRun":  do((*Engine).startRun),
	"PauseRun":  do((*Engine).pauseRun),
	"CancelRun": do((*Engine).cancelRun),
	"DeleteRun": do((*Engine).deleteRun),
	"SaveModel": do((*Engine).saveModel),
}

// named is the reply of an action that only has to tell that it is done.
func named(kind, name string, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return map[string]string{kind: name}, nil
}

// Action does an operation that speaks JSON and gives the object to reply with. Long ones call progress, which may be
// nil, now and then.
func (e *Engine) Action(ctx context.Context, name string, body json.RawMessage, progress func(api.Meta)) (any, error) {
	act, ok := actions[name]
	if !ok {
		return nil, unknownOp("action", name, actions)
	}
	if progress == nil {
		progress = func(api.Meta) {}
	}
	if name != "ServerInfo" { // which must answer, and not count itself, when the server is busy
		leave, err := e.enter()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	reply, err := act(e, ctx, body, progress)
	return reply, explain(err)
}

func (e *Engine) describeModel(name string) (any, error) {
	m, err := e.modelNamed(name)
	if err != nil {
		return nil, err
	}
	info := m.describe()
	info.Config = checkpoint.ConfigOf(m.stored.Net)
	return info, nil
}
