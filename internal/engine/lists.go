package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
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
	return map[string]any{"models": e.catalog.ModelInfos()}, nil
}

func (e *Engine) describeModel(_ context.Context, req api.ModelName) (any, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	info := m.Describe()
	info.Config = m.Net
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

// List returns everything stored, as flights: models, schedules, bases, data sets and runs.
func (e *Engine) List(ctx context.Context) []api.Flight {
	var flights []api.Flight
	for _, m := range e.catalog.Models() {
		flights = append(flights, e.flight(ctx, "models", m.Name))
	}
	for _, s := range e.catalog.ScheduleInfos() {
		if s.Source == "schedule" {
			flights = append(flights, e.flight(ctx, "schedules", s.Name))
		}
	}
	for _, b := range e.catalog.BasisInfos() {
		flights = append(flights, e.flight(ctx, "bases", b.Name))
	}
	for _, d := range e.catalog.DatasetInfos() {
		flights = append(flights, e.flight(ctx, "datasets", d.Name))
	}
	for _, r := range e.runs.All() {
		flights = append(flights, runFlight(r.Name()))
	}
	return flights
}

// readers are the operations that read what is stored, and their fields for its name.
var readers = map[string]struct{ op, field string }{
	"models":    {"Model", "model"},
	"schedules": {"EvaluateSchedule", "schedule"},
	"bases":     {"Basis", "basis"},
	"datasets":  {"Dataset", "dataset"},
}

// flight describes what reading something stored gives.
func (e *Engine) flight(ctx context.Context, kind, name string) api.Flight {
	f := api.Flight{Path: []string{kind, name}}
	by := readers[kind]
	f.Ticket, _ = json.Marshal(map[string]string{"op": by.op, by.field: name}) // never fails
	call, err := api.Operations().Call(api.ByGet, by.op, f.Ticket)
	var job *api.Job
	if err == nil {
		job, err = e.Prepare(ctx, call)
	}
	if err != nil { // it went away between the list and here, or is larger than one reply
		f.Err = err
		return f
	}
	f.Schema, f.Records, f.Bytes = job.Schema, job.Rows, job.Bytes
	return f
}

// runFlight describes the rows that a run has so far. They are not counted: a run of an earlier server would be read
// for it.
func runFlight(name string) api.Flight {
	request := api.WatchRun{Run: name, NoWait: true}
	f := api.Flight{Path: []string{"runs", name}, Schema: watchSchema(request), Records: -1, Bytes: -1}
	f.Ticket, f.Err = json.Marshal(struct {
		Op string `json:"op"`
		api.WatchRun
	}{"WatchRun", request})
	return f
}
