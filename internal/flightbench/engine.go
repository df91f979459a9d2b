package flightbench

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
)

// The operations, which the engine takes for its own; their names must be some of the contract.
const (
	getOp      = "Sample"
	exchangeOp = "Denoise"
	putOp      = "PutDataset"
)

// request asks for rows.
type request struct {
	Op   string `json:"op"`
	Rows int    `json:"rows"`
}

// rowsAtHand is an engine that has its rows at hand: it gives them, and answers batch for batch in exchanges.
type rowsAtHand struct{ pixels [blocks][]float32 }

var _ flight.Engine = (*rowsAtHand)(nil)

func (e *rowsAtHand) batch(i, n int) *api.Batch {
	return &api.Batch{Rows: n, Cols: []any{e.pixels[i%blocks][:n*side*side]}}
}

// Prepare implements flight.Engine.
func (e *rowsAtHand) Prepare(_ context.Context, _ string, body json.RawMessage) (*engine.Job, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, api.Errorf(api.BadRequest, "The request is not JSON: %w", err)
	}
	return &engine.Job{Schema: schema, Rows: int64(r.Rows), Bytes: int64(r.Rows) * rowBytes, Run: func(_ context.Context, emit func(api.Event) error) error {
		return batches(r.Rows, func(i, n int) error { return emit(api.Event{Batch: e.batch(i, n)}) })
	}}, nil
}

// Exchange implements flight.Engine.
func (e *rowsAtHand) Exchange(context.Context, string, json.RawMessage, api.Schema) (*engine.Exchange, error) {
	i := 0
	return &engine.Exchange{Out: schema, Window: window, Close: func() {},
		Do: func(_ context.Context, in api.Batch, emit func(api.Event) error) error {
			i++
			return emit(api.Event{Batch: e.batch(i, in.Rows)})
		}}, nil
}

// Action implements flight.Engine.
func (*rowsAtHand) Action(context.Context, string, json.RawMessage, func(api.Meta)) (any, error) {
	return struct{}{}, nil
}

// Put implements flight.Engine.
func (*rowsAtHand) Put(context.Context, json.RawMessage, []string, api.Schema) (engine.Upload, error) {
	return new(counter), nil
}

// List implements flight.Engine.
func (*rowsAtHand) List(context.Context) []api.Flight { return nil }

// counter is an upload that counts its rows and forgets them.
type counter struct{ rows int64 }

// Write implements engine.Upload.
func (c *counter) Write(b api.Batch) error {
	c.rows += int64(b.Rows)
	return nil
}

// Commit implements engine.Upload.
func (c *counter) Commit() (int64, error) { return c.rows, nil }

// Abort implements engine.Upload.
func (*counter) Abort() {}
