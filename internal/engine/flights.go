package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
)

// List returns everything stored, as flights: models, schedules, bases, data sets and runs. Data sets and schedules can be
// read as tables.
func (e *Engine) List(ctx context.Context) []api.Flight {
	var flights []api.Flight
	for _, m := range e.catalog.Models() {
		flights = append(flights, api.Flight{Path: []string{"models", m.Name}, Records: -1, Bytes: -1})
	}
	for _, s := range e.catalog.ScheduleInfos() {
		if s.Source == "schedule" {
			flights = append(flights, e.flight(ctx, "schedules", s.Name))
		}
	}
	for _, b := range e.catalog.BasisInfos() {
		flights = append(flights, api.Flight{Path: []string{"bases", b.Name}, Records: -1, Bytes: -1})
	}
	for _, d := range e.catalog.DatasetInfos() {
		flights = append(flights, e.flight(ctx, "datasets", d.Name))
	}
	for _, r := range e.runs.All() {
		flights = append(flights, api.Flight{Path: []string{"runs", r.Name()}, Records: -1, Bytes: -1})
	}
	return flights
}

// flight describes what reading a data set or a schedule gives.
func (e *Engine) flight(ctx context.Context, kind, name string) api.Flight {
	f := api.Flight{Path: []string{kind, name}, Records: -1, Bytes: -1}
	request := map[string]string{"op": "Dataset", "dataset": name}
	if kind == "schedules" {
		request = map[string]string{"op": "EvaluateSchedule", "schedule": name}
	}
	ticket, err := json.Marshal(request)
	if err != nil {
		return f
	}
	call, err := api.Operations().Call(api.ByGet, request["op"], ticket)
	if err != nil {
		return f
	}
	job, err := e.Prepare(ctx, call)
	if err != nil { // it went away between the list and here, or is larger than one reply
		return f
	}
	f.Ticket, f.Schema, f.Records, f.Bytes = ticket, job.Schema, job.Rows, job.Bytes
	return f
}
