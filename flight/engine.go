package flight

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
)

// Engine does the work of the service. *engine.Engine is one; tests have another.
type Engine interface {
	// Prepare checks and prices an operation that gives rows.
	Prepare(ctx context.Context, op string, body json.RawMessage) (*engine.Job, error)
	// Exchange opens an operation that takes rows of the schema in.
	Exchange(ctx context.Context, op string, body json.RawMessage, in api.Schema) (*engine.Exchange, error)
	// Action does an operation that speaks JSON.
	Action(ctx context.Context, name string, body json.RawMessage, progress func(api.Meta)) (any, error)
	// Put opens an upload, to a command or a path.
	Put(ctx context.Context, command json.RawMessage, path []string, in api.Schema) (engine.Upload, error)
	// List names everything stored.
	List(ctx context.Context) []api.Flight
}

var _ Engine = (*engine.Engine)(nil)
