package bench

import (
	"context"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
)

// The operations have names of the contract, which the client knows.
const (
	getOp      = "Sample"
	exchangeOp = "Denoise"
	putOp      = "PutDataset"
)

// rowsRequest asks for rows.
type rowsRequest struct {
	Op   string `json:"op"`
	Rows int    `json:"rows"`
}

// SetDefaults implements api.Request.
func (r *rowsRequest) SetDefaults() { *r = rowsRequest{} }

// Validate implements api.Request.
func (r *rowsRequest) Validate() error { return nil }

// memoryEngine is an engine that has its rows in memory: it sends them, and answers batch for batch in exchanges.
type memoryEngine struct{ pixels [blocks][]float32 }

var _ flight.Engine = (*memoryEngine)(nil)

func (e *memoryEngine) batch(i, n int) *api.Batch {
	return &api.Batch{Rows: n, Cols: []any{e.pixels[i%blocks][:n*side*side]}}
}

// Operations implements flight.Engine.
func (*memoryEngine) Operations() api.Table {
	own := func() api.Request { return new(rowsRequest) }
	return api.Table{
		{Name: getOp, Ways: api.ByGet | api.ByAction, Scope: api.SampleScope, New: own, Rows: true},
		{Name: exchangeOp, Ways: api.ByExchange, Scope: api.SampleScope, New: own, Rows: true},
		{Name: putOp, Ways: api.ByPut, Scope: api.TrainScope, New: own},
	}
}

// Prepare implements flight.Engine.
func (e *memoryEngine) Prepare(_ context.Context, call api.Call) (*api.Job, error) {
	r := call.Request.(*rowsRequest)
	run := func(_ context.Context, emit func(api.Event) error) error {
		return forBatches(r.Rows, func(i, n int) error { return emit(api.Event{Batch: e.batch(i, n)}) })
	}
	return &api.Job{Schema: imageSchema, Rows: int64(r.Rows), Bytes: int64(r.Rows) * rowBytes, Run: run}, nil
}

// Exchange implements flight.Engine.
func (e *memoryEngine) Exchange(context.Context, api.Call, api.Schema) (*api.Exchange, error) {
	i := 0
	answer := func(_ context.Context, in api.Batch, emit func(api.Event) error) error {
		i++
		return emit(api.Event{Batch: e.batch(i, in.Rows)})
	}
	return &api.Exchange{Out: imageSchema, Window: window, Close: func() {}, Do: answer}, nil
}

// Action implements flight.Engine.
func (*memoryEngine) Action(context.Context, api.Call, func(api.Meta)) (any, error) {
	return struct{}{}, nil
}

// Put implements flight.Engine.
func (*memoryEngine) Put(context.Context, api.Call, api.Schema) (*api.Upload, error) {
	var rows int64
	return &api.Upload{
		Write:  func(b api.Batch) error { rows += int64(b.Rows); return nil },
		Commit: func() (int64, error) { return rows, nil },
		Abort:  func() {},
	}, nil
}

// List implements flight.Engine.
func (*memoryEngine) List(context.Context) []api.Flight { return nil }
