package flight

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
)

// DoExchange runs the operation of the descriptor on every batch that the client sends.
//
// Three goroutines share a stream: one receives, one works, and this one sends. Replies wait in a queue of bounded
// bytes, so that a client may write everything before it reads. If the exchange fails, for example at that bound, the
// rest of the client's stream is read and dropped, so that the client goes on to read the error.
func (s *service) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	in, err := s.openSource(stream.Context(), stream)
	if err != nil {
		return err
	}
	x, err := s.server.engine.Exchange(stream.Context(), callOf(stream.Context()).request, in.schema)
	if err != nil {
		in.reader.Release()
		return err
	}
	out, err := openStream(stream, x.Out, rowsPerMessage(x.Out, x.BatchBytes),
		api.Meta{"event": "start", "window": x.Window})
	if err != nil {
		in.reader.Release()
		x.Close()
		return err
	}
	out.waits = x.Waits
	q := newQueue(x.Out, s.server.cfg.MaxQueueBytes, s.server.cfg.Patience)
	var end map[string]any
	work := func(ctx context.Context, emit func(api.Event) error) (err error) {
		reading, stop := context.WithCancel(ctx)
		defer stop()
		batches := s.receive(reading, in, x.Window)
		if x.Begin != nil {
			if err := x.Begin(ctx, emit); err != nil {
				return err
			}
		}
		end, err = answerAll(ctx, batches, x, emit)
		return err
	}
	if err := s.server.run(stream.Context(), out, q, x.Close, work); err != nil {
		return err
	}
	return out.end(end)
}

// received is a batch or an error.
type received struct {
	batch receivedBatch
	err   error // io.EOF at the end
}

// receive reads up to ahead batches before the work takes them. When the work has ended, or a batch is refused, it
// reads and drops the rest of the stream.
func (s *service) receive(work context.Context, in *source, ahead int) <-chan received {
	batches := make(chan received, max(1, ahead))
	forward := func() error {
		for {
			batch, err := in.next()
			select {
			case batches <- received{batch, err}:
			case <-work.Done():
				return nil
			}
			if err != nil {
				return nil
			}
		}
	}
	go func() {
		defer in.reader.Release()
		if err := recovered(s.server.log, forward); err != nil {
			select {
			case batches <- received{err: err}:
			case <-work.Done():
			}
		}
		_ = recovered(s.server.log, in.from.skip)
	}()
	return batches
}

// answerAll replies to every batch, also to one without rows. It returns the metadata that the operation gives at the
// end.
func answerAll(
	ctx context.Context, batches <-chan received, x *api.Exchange, emit func(api.Event) error,
) (map[string]any, error) {
	var done int64
	for {
		var r received
		select {
		case r = <-batches:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case errors.Is(r.err, io.EOF) && x.End != nil:
			return x.End(ctx)
		case errors.Is(r.err, io.EOF):
			return nil, nil
		case r.err != nil:
			return nil, r.err
		}
		done += int64(r.batch.Rows)
		replied := false
		if r.batch.Rows > 0 {
			err := x.Do(ctx, r.batch.Batch, func(e api.Event) error {
				replied = replied || e.Batch != nil
				return emit(e)
			})
			if err != nil {
				return nil, err
			}
		}
		if !replied {
			none := columns.Empty(x.Out)
			if err := emit(api.Event{Batch: &none, Meta: api.Done(done, -1)}); err != nil {
				return nil, err
			}
		}
		r.batch.recycle()
	}
}
