package flight

import (
	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
)

// getQueueBytes is how far the work of a DoGet may run ahead of its reader: a few batches.
const getQueueBytes = 8 << 20

// DoGet runs the operation that the ticket names and streams its rows.
func (s *service) DoGet(_ *flight.Ticket, to flight.FlightService_DoGetServer) error {
	job, err := s.server.engine.Prepare(to.Context(), callOf(to.Context()).request)
	if err != nil {
		return err
	}
	start := api.Meta{"event": "start"}
	if job.Rows >= 0 {
		start["total"] = job.Rows
	}
	out, err := openStream(to, job.Schema, rowsPerMessage(job.Schema, job.BatchBytes), start)
	if err != nil {
		return err
	}
	out.waits = job.Waits
	q := newQueue(job.Schema, getQueueBytes, 0)
	if err := s.server.run(to.Context(), out, q, nil, job.Run); err != nil {
		return err
	}
	return out.end(nil)
}
