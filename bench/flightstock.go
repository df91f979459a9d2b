package bench

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// stockService is a service made with arrow-go alone: its reader, its writer, gRPC's defaults.
type stockService struct {
	flight.BaseFlightServer
	schema  *arrow.Schema
	records records
}

func newStock(s *arrow.Schema, p [blocks][]float32) *stockService {
	return &stockService{schema: s, records: newRecords(s, p)}
}

// DoGet implements flight.FlightServer.
func (s *stockService) DoGet(ticket *flight.Ticket, to flight.FlightService_DoGetServer) error {
	var r rowsRequest
	if err := json.Unmarshal(ticket.GetTicket(), &r); err != nil {
		return err
	}
	w := flight.NewRecordWriter(to, ipc.WithSchema(s.schema))
	if err := forBatches(r.Rows, func(i, n int) error { return w.Write(s.records.batch(i, n)) }); err != nil {
		return err
	}
	return w.Close()
}

// DoAction implements flight.FlightServer.
func (s *stockService) DoAction(action *flight.Action, to flight.FlightService_DoActionServer) error {
	var r rowsRequest
	if err := json.Unmarshal(action.GetBody(), &r); err != nil {
		return err
	}
	return forBatches(r.Rows, func(i, n int) error {
		var body bytes.Buffer
		w := ipc.NewWriter(&body, ipc.WithSchema(s.schema))
		if err := w.Write(s.records.batch(i, n)); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return to.Send(&flight.Result{Body: body.Bytes()})
	})
}

// DoPut implements flight.FlightServer.
func (s *stockService) DoPut(from flight.FlightService_DoPutServer) error {
	r, err := flight.NewRecordReader(from)
	if err != nil {
		return err
	}
	defer r.Release()
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	if r.Err() != nil {
		return r.Err()
	}
	return from.Send(&flight.PutResult{AppMetadata: fmt.Appendf(nil, `{"rows":%d}`, rows)})
}

// DoExchange implements flight.FlightServer.
func (s *stockService) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	r, err := flight.NewRecordReader(stream)
	if err != nil {
		return err
	}
	defer r.Release()
	w := flight.NewRecordWriter(stream, ipc.WithSchema(s.schema))
	for i := 0; r.Next(); i++ {
		if err := w.Write(s.records.batch(i, int(r.RecordBatch().NumRows()))); err != nil {
			return err
		}
	}
	if r.Err() != nil {
		return r.Err()
	}
	return w.Close()
}
