package flight

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Engine does the work of the service. Requests come to it decoded, each of an operation of its table.
type Engine interface {
	// Operations returns what the engine can do: api.Operations, or a table of its own.
	Operations() api.Table
	// Prepare checks and prices an operation that gives rows.
	Prepare(ctx context.Context, call api.Call) (*api.Job, error)
	// Exchange opens an operation that takes rows of the schema in.
	Exchange(ctx context.Context, call api.Call, in api.Schema) (*api.Exchange, error)
	// Action does an operation that speaks JSON. Long ones call progress, which may be nil, now and then.
	Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error)
	// Put opens an upload.
	Put(ctx context.Context, call api.Call, in api.Schema) (api.Upload, error)
	// List names everything stored.
	List(ctx context.Context) []api.Flight
}
