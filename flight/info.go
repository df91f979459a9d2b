package flight

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
)

// GetFlightInfo checks a request and returns the schema, rows and bytes of its reply, and the ticket for DoGet. The
// descriptor is a command, with the same JSON as the ticket, or a path of ListFlights. With peers, a request that can
// be divided has several endpoints, and every peer can serve each of them.
func (s *service) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	if d.GetType() == flight.DescriptorPATH {
		f, err := s.stored(ctx, pathOf(d))
		if err != nil {
			return nil, err
		}
		return flightInfo(d, f)
	}
	job, err := s.server.engine.Prepare(ctx, callOf(ctx).request)
	if err != nil {
		return nil, err
	}
	info, err := flightInfo(d, api.Flight{Schema: job.Schema, Records: job.Rows, Bytes: job.Bytes, Ticket: d.GetCmd()})
	if err != nil || job.Part == nil || s.server.cfg.Peers == nil {
		return info, err
	}
	if peers := s.server.cfg.Peers(ctx); len(peers) > 0 {
		info.Endpoint, err = endpoints(d.GetCmd(), job, peers)
	}
	return info, err
}

// GetSchema returns the schema alone.
func (s *service) GetSchema(ctx context.Context, d *flight.FlightDescriptor) (*flight.SchemaResult, error) {
	info, err := s.GetFlightInfo(ctx, d)
	if err != nil {
		return nil, err
	}
	return &flight.SchemaResult{Schema: info.GetSchema()}, nil
}

// ListFlights lists the paths of models, schedules, bases, data sets and runs, such as ["models","digits"], except
// those larger than a reply may be. Criteria are the beginning of the paths to list, such as models or models/digits.
func (s *service) ListFlights(criteria *flight.Criteria, to flight.FlightService_ListFlightsServer) error {
	begin := string(criteria.GetExpression())
	for _, f := range s.server.engine.List(to.Context()) {
		if f.Err != nil || !strings.HasPrefix(strings.Join(f.Path, "/"), begin) {
			continue
		}
		info, err := flightInfo(&flight.FlightDescriptor{Type: flight.DescriptorPATH, Path: f.Path}, f)
		if err != nil {
			return err
		}
		if err := to.Send(info); err != nil {
			return transportError(err)
		}
	}
	return nil
}

// flightInfo returns the description of f.
func flightInfo(d *flight.FlightDescriptor, f api.Flight) (*flight.FlightInfo, error) {
	schema, err := columns.ToArrow(f.Schema)
	if err != nil {
		return nil, err
	}
	info := &flight.FlightInfo{
		Schema:           flight.SerializeSchema(schema, memory.DefaultAllocator),
		FlightDescriptor: d, TotalRecords: f.Records, TotalBytes: f.Bytes, Ordered: true,
		Endpoint: []*flight.FlightEndpoint{{Ticket: &flight.Ticket{Ticket: f.Ticket}}},
	}
	return info, nil
}

// pathOf returns the components of a descriptor's path. Some clients can only send one component: they send
// datasets/digits.
func pathOf(d *flight.FlightDescriptor) []string {
	path := d.GetPath()
	if len(path) == 1 {
		return strings.Split(path[0], "/")
	}
	return path
}

// notFound has the error code of a name that does not exist, by kind.
var notFound = map[string]api.Code{
	"models":    api.ModelNotFound,
	"schedules": api.ScheduleNotFound,
	"bases":     api.BasisNotFound,
	"datasets":  api.DatasetNotFound,
	"runs":      api.RunNotFound,
}

// stored returns the entry of ListFlights with a path.
func (s *service) stored(ctx context.Context, path []string) (api.Flight, error) {
	for _, f := range s.server.engine.List(ctx) {
		if slices.Equal(f.Path, path) {
			return f, f.Err
		}
	}
	if len(path) != 2 || notFound[path[0]] == "" {
		return api.Flight{}, api.Errorf(api.PathNotFound, "The path %q is not one of ListFlights", path).
			WithHint("A path is [kind, name], with a kind of models, schedules, bases, datasets and runs.")
	}
	return api.Flight{}, api.Errorf(notFound[path[0]], "There is no %q among the %s", path[1], path[0])
}

// partsPerPeer is the number of endpoints for each peer if a request is large enough. It is more than one so that a
// faster peer can serve more of them.
const partsPerPeer = 4

// endpoints divides a request into parts, in order. Every peer can serve each part. The first peer differs from part to
// part, so that a client that takes the first location of each part uses all peers.
func endpoints(cmd []byte, job *api.Job, peers []string) ([]*flight.FlightEndpoint, error) {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(cmd))
	decoder.UseNumber() // seeds are larger than a float64 holds
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	parts := partsPerPeer * len(peers)
	size := max(1, (job.Samples+parts*api.PartSize-1)/(parts*api.PartSize)) * api.PartSize
	var all []*flight.FlightEndpoint
	for first := 0; first < job.Samples; first += size {
		maps.Copy(fields, job.Part(first, min(size, job.Samples-first)))
		maps.DeleteFunc(fields, func(_ string, value any) bool { return value == nil })
		ticket, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		e := &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: ticket}}
		for i := range peers {
			e.Location = append(e.Location, &flight.Location{Uri: peers[(len(all)+i)%len(peers)]})
		}
		all = append(all, e)
	}
	return all, nil
}
