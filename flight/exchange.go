package flight

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
)

// DoExchange answers every batch that the client sends with the operation that the descriptor names.
//
// Three goroutines share a stream: one receives, one works, and this one sends. Replies wait in a queue of bounded
// bytes, so a client may write everything before it reads. Once the exchange has failed, by running beyond that bound
// for one, what the client still writes is read and forgotten, so that it comes to read why.
func (s *service) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	in, err := openSource(stream, int64(s.server.cfg.MaxMessageBytes),
		func(bytes int) { giveRoom(stream.Context(), bytes) })
	if err != nil {
		in.close()
		return err
	}
	x, err := s.server.engine.Exchange(stream.Context(), askedOf(stream.Context()), in.schema)
	if err != nil {
		in.close()
		return err
	}
	out, err := openStream(stream, x.Out, rowsPerMessage(x.Out, x.BatchBytes),
		api.Meta{"event": "start", "window": x.Window})
	if err != nil {
		in.close()
		x.Close()
		return err
	}
	out.waits = x.Waits
	q := newQueue(x.Out, s.server.cfg.MaxQueueBytes, s.server.cfg.Patience)
	var end map[string]any
	err = s.server.run(stream.Context(), out, q, x.Close, func(ctx context.Context,
		emit func(api.Event) error,
	) (err error) {
		batches := s.receive(ctx, in, x.Window)
		if x.Begin != nil {
			err = x.Begin(ctx, emit)
		}
		if err != nil {
			go discard(ctx, batches)
			return err
		}
		if end, err = answerAll(ctx, batches, x, emit); err != nil {
			go func() {
				_ = recovered(s.server.log, func() error {
					discard(ctx, batches)
					return nil
				})
			}()
		}
		return err
	})
	if err != nil {
		return err
	}
	return out.end(end)
}

// received is a batch, or why there is none.
type received struct {
	batch arrival
	err   error // io.EOF at the end
}

// receive reads batches ahead of the work, and past the first that is refused. Its goroutine ends with the stream or
// ctx.
func (s *service) receive(ctx context.Context, in *source, ahead int) <-chan received {
	batches := make(chan received, max(1, ahead))
	go func() {
		defer in.close()
		for {
			var r received
			r.err = recovered(s.server.log, func() (err error) {
				r.batch, err = in.next()
				return err
			})
			select {
			case batches <- r:
			case <-ctx.Done():
				return
			}
			if r.err != nil {
				_ = recovered(s.server.log, func() error {
					in.from.skip()
					return nil
				})
				return
			}
		}
	}()
	return batches
}

// discard forgets what follows, until the client or ctx ends.
func discard(ctx context.Context, batches <-chan received) {
	for {
		select {
		case r := <-batches:
			if r.err != nil {
				return
			}
			r.batch.recycle()
		case <-ctx.Done():
			return
		}
	}
}

// answerAll answers batch after batch and gives what the operation says at the end.
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
		case errors.Is(r.err, io.EOF):
			if x.End == nil {
				return nil, nil
			}
			return x.End(ctx)
		case r.err != nil:
			return nil, r.err
		}
		done += int64(r.batch.Rows)
		if err := answer(ctx, r.batch.Batch, done, x, emit); err != nil {
			return nil, err
		}
		r.batch.recycle()
	}
}

// answer answers one batch. The client gets a reply to each, also to one without rows.
func answer(ctx context.Context, in api.Batch, done int64, x *api.Exchange, emit func(api.Event) error) error {
	replied := false
	if in.Rows > 0 {
		err := x.Do(ctx, in, func(e api.Event) error {
			replied = replied || e.Batch != nil
			return emit(e)
		})
		if err != nil {
			return err
		}
	}
	if replied {
		return nil
	}
	none := columns.Empty(x.Out)
	return emit(api.Event{Batch: &none, Meta: api.Done(done, -1)})
}
