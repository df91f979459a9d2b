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

// GetFlightInfo checks and prices a request without doing it: the schema, rows and bytes of its reply, and the ticket
// for DoGet. The descriptor is a command, the same JSON as the ticket's, or a path that ListFlights lists. Where the
// server has peers a request that can be divided has several endpoints, each to be had of every peer.
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

// ListFlights lists models, schedules, bases, data sets and runs as paths, such as ["models","digits"], unless they are
// larger than one reply. Criteria, if there are any, are the beginning of a path: models, or models/digits.
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

// flightInfo describes what a ticket gives.
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

// pathOf returns the components of a descriptor's path. Clients that can send one component alone write the path into
// it: datasets/digits.
func pathOf(d *flight.FlightDescriptor) []string {
	path := d.GetPath()
	if len(path) == 1 {
		return strings.Split(path[0], "/")
	}
	return path
}

// notFound are the codes of paths that lead nowhere.
var notFound = map[string]api.Code{
	"models":    api.ModelNotFound,
	"schedules": api.ScheduleNotFound,
	"bases":     api.BasisNotFound,
	"datasets":  api.DatasetNotFound,
	"runs":      api.RunNotFound,
}

// stored finds what a path names.
func (s *service) stored(ctx context.Context, path []string) (api.Flight, error) {
	for _, f := range s.server.engine.List(ctx) {
		if slices.Equal(f.Path, path) {
			return f, f.Err
		}
	}
	if len(path) != 2 || notFound[path[0]] == "" {
		return api.Flight{}, api.Errorf(api.PathNotFound, "The path %q is not one of ListFlights", path).
			WithHint("Paths are [kind, name], and kinds models schedules bases datasets runs.")
	}
	return api.Flight{}, api.Errorf(notFound[path[0]], "Nothing is called %q among the %s", path[1], path[0])
}

// partsPerPeer is how many endpoints a request has for each peer, where it is large enough: more than one, so that a
// peer that is faster, or left alone, finds more to do.
const partsPerPeer = 4

// endpoints divides a request into parts, in order, each of which every peer gives. The peer named first differs from
// part to part, so that clients which take the first one of each use them all; one that finds it gone takes the next.
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
