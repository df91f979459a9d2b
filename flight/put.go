package flight

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
)

// DoPut receives a table. It is committed once the client has ended the stream, and the reply tells its rows.
//
// An upload that is refused is read to its end before the client is told: pyarrow raises a server's error when it
// closes a stream, and something that says less when a write to it fails.
func (s *service) DoPut(stream flight.FlightService_DoPutServer) error {
	var rows int64
	err := recovered(s.server.log, func() (err error) {
		rows, err = s.receiveUpload(stream)
		return err
	})
	if err != nil {
		s.server.drain(stream)
		return err
	}
	text, err := json.Marshal(map[string]int64{"rows": rows})
	if err != nil {
		return err
	}
	return transportError(stream.Send(&flight.PutResult{AppMetadata: text}))
}

// receiveUpload stores the table that the stream brings, whole or not at all.
func (s *service) receiveUpload(stream flight.FlightService_DoPutServer) (rows int64, err error) {
	in, err := s.openSource(stream.Context(), stream)
	defer in.close()
	if err != nil {
		return 0, err
	}
	upload, err := s.server.engine.Put(stream.Context(), callOf(stream.Context()).request, in.schema)
	if err != nil {
		return 0, err
	}
	committed := false
	defer func() {
		if !committed { // also after a panic
			upload.Abort()
		}
	}()
	for {
		batch, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && batch.Rows > 0 {
			err = upload.Write(batch.Batch)
		}
		if err != nil {
			return 0, err
		}
		batch.recycle()
	}
	if err := stream.Context().Err(); err != nil {
		return 0, err
	}
	rows, err = upload.Commit()
	callOf(stream.Context()).rows.Add(rows)
	committed = err == nil
	return rows, err
}

// drain reads and forgets what a client still sends, until it ends, goes away, or patience does.
func (s *Server) drain(from flight.FlightService_DoPutServer) {
	rest := receiver{from: from, call: callOf(from.Context())}
	skip := func() error { rest.skip(); return nil }
	select {
	case <-finished(func() { _ = recovered(s.log, skip) }):
	case <-time.After(s.cfg.Patience): // the call's end stops the reading
	}
}
