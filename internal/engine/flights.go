package engine

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
)

// List gives everything stored, as flights: models, schedules, bases, data sets and runs. Data sets and schedules can be
// read as tables.
func (e *Engine) List(ctx context.Context) []api.Flight {
	var flights []api.Flight
	for _, m := range e.listModels() {
		flights = append(flights, api.Flight{Path: []string{"models", m.Name}, Records: -1, Bytes: -1})
	}
	for _, s := range e.listSchedules() {
		if s.Source == "schedule" {
			flights = append(flights, e.flight(ctx, "schedules", s.Name))
		}
	}
	for _, b := range e.listBases() {
		flights = append(flights, api.Flight{Path: []string{"bases", b.Name}, Records: -1, Bytes: -1})
	}
	for _, d := range e.listDatasets() {
		flights = append(flights, e.flight(ctx, "datasets", d.Name))
	}
	for _, r := range e.allRuns() {
		flights = append(flights, api.Flight{Path: []string{"runs", r.name}, Records: -1, Bytes: -1})
	}
	return flights
}

// flight describes what reading a table gives.
func (e *Engine) flight(ctx context.Context, kind, name string) api.Flight {
	f := api.Flight{Path: []string{kind, name}, Records: -1, Bytes: -1}
	op, body, err := Ticket(f.Path)
	if err != nil {
		return f
	}
	job, err := e.Prepare(ctx, op, body)
	if err != nil { // it went away between the list and here, or is larger than one reply
		return f
	}
	f.Ticket, f.Schema, f.Records, f.Bytes = body, job.Schema, job.Rows, job.Bytes
	return f
}

// Ticket gives the operation, and its JSON with "op", that reads a path such as ["datasets","digits"]: data sets,
// schedules (a model's name means its own) and the rows of runs.
func Ticket(path []string) (op string, body json.RawMessage, err error) {
	if len(path) != 2 {
		return "", nil, api.Errorf(api.BadRequest, "The path %q does not name anything", path).WithHint("A path is a kind and a name, such as [\"datasets\",\"digits\"].")
	}
	request := map[string]any{}
	switch path[0] {
	case "datasets":
		op, request["dataset"] = "Dataset", path[1]
	case "schedules", "models":
		op, request["schedule"] = "EvaluateSchedule", path[1]
	case "runs":
		op, request["run"] = "WatchRun", path[1]
	default:
		return "", nil, api.Errorf(api.BadRequest, "The kind %q cannot be read as a table", path[0]).
			WithHint("Kinds: datasets schedules models runs.")
	}
	request["op"] = op
	body, err = json.Marshal(request)
	return op, body, err
}
