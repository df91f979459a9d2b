package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Config configures an engine. The zero value of each optional field means its default.
type Config struct {
	Dir      string       // holds models/ schedules/ bases/ datasets/ runs/; created if missing
	Version  string       // of the program, for ServerInfo
	MaxBytes int64        // bytes a reply may have; default 1 GiB
	Logger   *slog.Logger // default slog.Default()
}

// DefaultMaxBytes bounds a reply.
const DefaultMaxBytes = 1 << 30

// Engine serves one folder on one device. Its methods may be called concurrently.
type Engine struct {
	cfg   Config
	dev   *device.Device
	start time.Time
}

// Open reads the folder and makes ready to serve it on dev, which stays the caller's to close. What cannot be read is
// logged and left out; it never keeps the rest from being served.
func Open(ctx context.Context, cfg Config, dev *device.Device) (*Engine, error) {
	return &Engine{cfg: cfg, dev: dev, start: time.Now()}, nil
}

// Close pauses the runs, stores their states and releases the device memory of the models. Operations must have ended.
func (e *Engine) Close(ctx context.Context) error { return nil }

// Job is an operation that was checked and priced and has not begun.
type Job struct {
	Schema api.Schema
	Rows   int64 // −1 where not known beforehand
	Bytes  int64 // of the rows; −1 where not known beforehand
	// Run does the work and hands its events to emit, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(api.Event) error) error
}

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out    api.Schema
	Window int // batches that the client should keep unanswered
	// Do answers one batch, whose columns are those of the schema the exchange was opened with.
	Do func(ctx context.Context, in api.Batch, emit func(api.Event) error) error
	// End gives what the last message's metadata says beyond rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases what the exchange holds, however it ended. Never nil.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit.
type Upload interface {
	Write(api.Batch) error
	Commit() (rows int64, err error)
	Abort()
}

// Prepare checks and prices an operation that gives rows.
func (e *Engine) Prepare(ctx context.Context, op string, body json.RawMessage) (*Job, error) {
	return nil, api.Errorf(api.OpNotFound, "There is no operation %q", op)
}

// Exchange opens an operation that takes rows in.
func (e *Engine) Exchange(ctx context.Context, op string, body json.RawMessage, in api.Schema) (*Exchange, error) {
	return nil, api.Errorf(api.OpNotFound, "There is no exchange %q", op)
}

// Action does an operation that speaks JSON. Long ones call progress, which may be nil, now and then.
func (e *Engine) Action(ctx context.Context, name string, body json.RawMessage, progress func(api.Meta)) (any, error) {
	return nil, api.Errorf(api.OpNotFound, "There is no action %q", name)
}

// Put opens an upload: command is the JSON with "op", or nil where path, such as ["datasets","digits"], says it all.
func (e *Engine) Put(ctx context.Context, command json.RawMessage, path []string, in api.Schema) (Upload, error) {
	return nil, api.Errorf(api.OpNotFound, "There is no such upload")
}

// List gives everything stored, as flights.
func (e *Engine) List() []api.Flight { return nil }

// Ticket gives the JSON of the DoGet that reads a path such as ["datasets","digits"].
func (e *Engine) Ticket(path []string) (json.RawMessage, error) {
	return nil, api.Errorf(api.BadRequest, "No such path")
}
