package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
)

// List returns everything stored, as flights: models, schedules, plans, bases, data sets and runs.
func (e *Engine) List(ctx context.Context) []api.Flight {
	var flights []api.Flight
	add := func(kind, op, field, name string) {
		f := api.Flight{Path: []string{kind, name}}
		f.Ticket, _ = json.Marshal(map[string]string{"op": op, field: name}) // never fails
		call, err := api.Operations().Call(api.ByGet, op, f.Ticket)
		var job *api.Job
		if err == nil {
			job, err = e.Prepare(ctx, call)
		}
		if err == nil {
			f.Schema, f.Records, f.Bytes = job.Schema, job.Rows, job.Bytes
		}
		f.Err = err // it went away between the list and here, or is larger than one reply
		flights = append(flights, f)
	}
	for _, m := range e.catalog.Models() {
		add("models", "Model", "model", m.Name)
	}
	for _, s := range e.catalog.ScheduleInfos() {
		if s.Source == "schedule" {
			add("schedules", "EvaluateSchedule", "schedule", s.Name)
		}
	}
	for _, b := range e.catalog.BasisInfos() {
		add("bases", "Basis", "basis", b.Name)
	}
	for _, d := range e.catalog.DatasetInfos() {
		add("datasets", "Dataset", "dataset", d.Name)
	}
	for _, r := range e.runs.All() { // whose rows are not counted: a run of an earlier server would be read for it
		request := api.WatchRun{Run: r.Name(), NoWait: true}
		f := api.Flight{
			Path: []string{"runs", r.Name()}, Schema: runs.WatchSchema(request), Records: -1, Bytes: -1,
		}
		f.Ticket, f.Err = json.Marshal(struct {
			Op string `json:"op"`
			api.WatchRun
		}{"WatchRun", request})
		flights = append(flights, f)
	}
	return flights
}
