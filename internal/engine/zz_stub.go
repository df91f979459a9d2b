package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
)

type dataset struct{}
type run struct{}

const running = "running"

func (r *run) info() api.RunInfo                                                  { return api.RunInfo{} }
func (e *Engine) scanDatasets()                                                   {}
func (e *Engine) scanRuns()                                                       {}
func (e *Engine) closeRuns(ctx context.Context) error                             { return nil }
func (e *Engine) prepareTrainStep(context.Context, json.RawMessage) (*Job, error) { return nil, nil }
func (e *Engine) prepareWatchRun(context.Context, json.RawMessage) (*Job, error)  { return nil, nil }
func (e *Engine) prepareEvaluateModel(context.Context, json.RawMessage) (*Job, error) {
	return nil, nil
}
func (e *Engine) prepareDataset(context.Context, json.RawMessage) (*Job, error) { return nil, nil }
func (e *Engine) exchangeTrainStep(context.Context, json.RawMessage, api.Schema) (*Exchange, error) {
	return nil, nil
}
func (e *Engine) putDataset(json.RawMessage, api.Schema) (Upload, error) { return nil, nil }
func (e *Engine) listDatasets() []api.DatasetInfo                        { return nil }
func (e *Engine) listRuns() []api.RunInfo                                { return nil }
func (e *Engine) getRun(string) (any, error)                             { return nil, nil }
func (e *Engine) deleteDataset(string) error                             { return nil }
func (e *Engine) makeSchedule(context.Context, api.MakeSchedule, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) createRun(context.Context, api.CreateRun, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) startRun(context.Context, api.StartRun, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) pauseRun(context.Context, api.RunName, func(api.Meta)) (any, error) { return nil, nil }
func (e *Engine) cancelRun(context.Context, api.RunName, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) deleteRun(context.Context, api.RunName, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) saveModel(context.Context, api.SaveModel, func(api.Meta)) (any, error) {
	return nil, nil
}
func (e *Engine) List() []api.Flight { return nil }
