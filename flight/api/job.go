package api

import "context"

// Job is an operation that was checked and priced and has not begun. It holds nothing that would have to be given back.
type Job struct {
	Schema     Schema
	Rows       int64 // −1 where not known beforehand
	Bytes      int64 // of the rows; −1 where not known beforehand
	BatchBytes int64 // that a message may have at the client's wish; 0: the server's choice
	// Run does the work and hands its events to emit, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(Event) error) error
	// Waits says, at any time and from any goroutine, what Run waits for where that is a compilation:
	// {"event":"compiling",...}; nil otherwise. It may be nil.
	Waits func() Meta
	// Part returns the fields of the request that asks for samples first … first + n − 1 alone, which gives the same
	// bytes where first is a multiple of PartSize and n another, or all that is left; a field that is nil is left out. It
	// is nil where the work cannot be divided.
	Part func(first, n int) Meta
	// Samples are how many there are to divide.
	Samples int
}

// PartSize is what samples are divided at multiples of: none but whole batches, so that each is computed in a batch of
// the size that it would have had.
const PartSize = 64

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out        Schema
	Window     int   // batches that the client should keep unanswered
	BatchBytes int64 // as a Job's
	// Begin emits what the server says before the first batch comes, for operations that ask their client. It may be nil.
	Begin func(ctx context.Context, emit func(Event) error) error
	// Do answers one batch, whose columns are those of the schema the exchange was opened with. Calls do not overlap. The
	// batch's memory is lent until Do returns: what it keeps or emits has its own.
	Do func(ctx context.Context, in Batch, emit func(Event) error) error
	// Waits is as a Job's, for Do.
	Waits func() Meta
	// End returns what the last message's metadata says beyond rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases what the exchange holds, however it ended. Never nil; called once.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit; after it, or Abort, the upload is over.
type Upload struct {
	// Write takes one batch of the schema that the upload was opened with. It does not keep the batch's memory.
	Write func(Batch) error
	// Commit checks the whole, stores it and returns the number of its rows.
	Commit func() (rows int64, err error)
	// Abort forgets everything received.
	Abort func()
}

type clientKey struct{}

// WithClient says for whom the work of a context is done, which is how the device is shared; work without a client is
// one client's.
func WithClient(ctx context.Context, client string) context.Context {
	return context.WithValue(ctx, clientKey{}, client)
}

// ClientOf returns the client of a context, empty where there is none.
func ClientOf(ctx context.Context) string {
	client, _ := ctx.Value(clientKey{}).(string)
	return client
}
