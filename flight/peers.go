package flight

import (
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
)

// partsPerPeer is how many endpoints a request has for each peer, where it is large enough: more than one, so that a
// peer that is faster, or left alone, finds more to do.
const partsPerPeer = 4

// endpoints divides a request into parts, in order, each of which every peer gives. The peer named first differs from
// part to part, so that clients which take the first one of each use them all; one that finds it gone takes the next.
func endpoints(cmd []byte, job *api.Job, peers []string) ([]*flight.FlightEndpoint, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(cmd, &fields); err != nil {
		return nil, err
	}
	parts := partsPerPeer * len(peers)
	size := max(1, (job.Samples+parts*api.PartSize-1)/(parts*api.PartSize)) * api.PartSize
	var all []*flight.FlightEndpoint
	for first := 0; first < job.Samples; first += size {
		for name, value := range job.Part(first, min(size, job.Samples-first)) {
			if value == nil {
				delete(fields, name)
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			fields[name] = text
		}
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
