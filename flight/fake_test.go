package flight

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/columns"
)

// fakeEngine is an engine without models. Its operations:
//
//	Sample      rows of an index and an image, as slowly as asked
//	WatchRun    the same
//	Denoise     answers a batch x, t with x and t doubled
//	PutDataset  stores the labels it got
type fakeEngine struct {
	working atomic.Int64 // operations under way

	mu     sync.Mutex
	stored map[string][]int32
	aborts int
}

// fakeRequest is what the operations of the fake understand.
type fakeRequest struct {
	Name       string `json:"name"`
	Rows       int    `json:"rows"`
	First      int    `json:"first"` // index of the first row
	Batch      int    `json:"batch"`
	Tick       int    `json:"tick_ms"` // the time one batch takes
	Fail       string `json:"fail"`    // internal, panic, busy; after the first batch
	Size       int    `json:"size"`    // of an image's side; default 2
	Quiet      bool   `json:"quiet"`   // no rows at all
	BatchBytes int64  `json:"batch_bytes"`
	Waits      string `json:"waits"` // for the compilation of this program, as it tells all along
}

// SetDefaults implements api.Request.
func (r *fakeRequest) SetDefaults() { *r = fakeRequest{Batch: 4, Size: 2} }

// Validate implements api.Request.
func (r *fakeRequest) Validate() error { return nil }

// Operations implements Engine: the contract's, with requests of the fake's own.
func (f *fakeEngine) Operations() api.Table {
	var table api.Table
	for _, op := range api.Operations() {
		own := *op
		own.New = func() api.Request { return new(fakeRequest) }
		table = append(table, &own)
	}
	return table
}

func sampleSchema(size int) api.Schema {
	return api.Schema{
		Columns: []api.Column{
			{Name: "index", Type: api.Int64},
			{
				Name: "sample", Type: api.Float32, Kind: api.Tensor, Shape: []int{size, size, 3},
				DimNames: []string{"H", "W", "C"},
			},
			{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{2}},
		},
		Metadata: map[string]string{"op": "Sample", "hash": "abc"},
	}
}

func (f *fakeEngine) Prepare(_ context.Context, call api.Call) (*api.Job, error) {
	if call.Op.Name != "Sample" && call.Op.Name != "WatchRun" {
		return nil, api.Errorf(api.OpNotFound, "There is no operation %q", call.Op.Name)
	}
	req := *call.Request.(*fakeRequest)
	s := sampleSchema(req.Size)
	var part func(first, n int) api.Meta
	if call.Op.Name == "Sample" {
		part = func(first, n int) api.Meta { return api.Meta{"first": first, "rows": n, "name": nil} }
	}
	return &api.Job{
		Samples: req.Rows, Part: part,
		Schema: s, Rows: int64(req.Rows), Bytes: int64(req.Rows) * s.RowBytes(), Waits: req.waiting,
		BatchBytes: req.BatchBytes,
		Run:        func(ctx context.Context, emit func(api.Event) error) error { return f.sample(ctx, req, s, emit) },
	}, nil
}

func (r fakeRequest) waiting() api.Meta {
	if r.Waits == "" {
		return nil
	}
	return api.Meta{"event": "compiling", "program": r.Waits, "compile_s": 1.5}
}

func (f *fakeEngine) sample(ctx context.Context, req fakeRequest, s api.Schema, emit func(api.Event) error) error {
	f.working.Add(1)
	defer f.working.Add(-1)
	for done := 0; done < req.Rows; {
		if err := sleep(ctx, req.Tick); err != nil {
			return err
		}
		n := min(req.Batch, req.Rows-done)
		b := columns.Empty(s)
		b.Rows = n
		for i, c := range s.Columns {
			b.Cols[i] = api.MakeColumn(c, n)
		}
		for i := range n {
			b.Cols[0].([]int64)[i] = int64(req.First + done + i)
			b.Cols[1].([]float32)[i*s.Columns[1].Len()] = float32(done + i)
			b.Cols[2].([]float64)[2*i+1] = float64(done + i)
		}
		done += n
		if req.Quiet {
			continue
		}
		if err := emit(api.Event{Meta: api.Progress(done, req.Rows)}); err != nil {
			return err
		}
		if err := emit(api.Event{Batch: &b, Meta: api.Done(int64(done), int64(req.Rows))}); err != nil {
			return err
		}
		if err := fail(req.Fail); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, ms int) error {
	if ms == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func fail(how string) error {
	switch how {
	case "internal":
		return errors.New("the secret is 42")
	case "panic":
		panic("the secret is 43")
	case "busy":
		return api.Errorf(api.Busy, "Too much to do").WithHint("Wait.")
	}
	return nil
}

func (f *fakeEngine) Exchange(_ context.Context, call api.Call, in api.Schema) (*api.Exchange, error) {
	if call.Op.Name != "Denoise" {
		return nil, api.Errorf(api.OpNotFound, "There is no exchange %q", call.Op.Name)
	}
	req := *call.Request.(*fakeRequest)
	i := in.Index("x")
	if i < 0 || in.Columns[i].Kind != api.Tensor {
		return nil, api.Errorf(api.BadTensor, "Column \"x\" is missing")
	}
	f.working.Add(1)
	var total float64
	return &api.Exchange{
		Out: in, Window: 3, Close: func() { f.working.Add(-1) },
		Do: func(ctx context.Context, b api.Batch, emit func(api.Event) error) error {
			if err := sleep(ctx, req.Tick); err != nil {
				return err
			}
			if err := fail(req.Fail); err != nil {
				return err
			}
			for _, x := range api.ColumnOf[float32](in, b, "x") {
				total += float64(x)
			}
			if req.Quiet {
				return nil
			}
			return emit(api.Event{Batch: &b, Meta: api.Done(int64(b.Rows), -1)})
		},
		End: func(context.Context) (map[string]any, error) { return map[string]any{"total": total}, nil },
	}, nil
}

func (f *fakeEngine) Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error) {
	req := *call.Request.(*fakeRequest)
	f.working.Add(1)
	defer f.working.Add(-1)
	for i := range req.Rows {
		if err := sleep(ctx, req.Tick); err != nil {
			return nil, err
		}
		progress(api.Progress(i, req.Rows))
	}
	return map[string]string{"name": call.Op.Name}, fail(req.Fail)
}

func (f *fakeEngine) Put(_ context.Context, call api.Call, in api.Schema) (*api.Upload, error) {
	req := *call.Request.(*fakeRequest)
	if in.Index("label") < 0 {
		return nil, api.Errorf(api.BadTensor, "Column \"label\" is missing")
	}
	u := &fakeUpload{f: f, name: req.Name, in: in, fail: req.Fail}
	return &api.Upload{Write: u.Write, Commit: u.Commit, Abort: u.Abort}, nil
}

type fakeUpload struct {
	f      *fakeEngine
	name   string
	fail   string
	in     api.Schema
	labels []int32
}

func (u *fakeUpload) Write(b api.Batch) error {
	u.labels = append(u.labels, api.ColumnOf[int32](u.in, b, "label")...)
	return fail(u.fail)
}

func (u *fakeUpload) Commit() (int64, error) {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.stored[u.name] = u.labels
	return int64(len(u.labels)), nil
}

func (u *fakeUpload) Abort() {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.aborts++
}

func (f *fakeEngine) List(context.Context) []api.Flight {
	return []api.Flight{
		{
			Path: []string{"datasets", "digits"}, Schema: sampleSchema(2), Records: 5, Bytes: 320,
			Ticket: []byte(`{"op":"Sample","rows":5}`),
		},
		{
			Path: []string{"bases", "haar"}, Schema: sampleSchema(2), Records: -1, Bytes: -1,
			Ticket: []byte(`{"op":"Sample","rows":1}`),
		},
		{Path: []string{"datasets", "huge"}, Err: api.Errorf(api.TooLarge, "The reply would have too many rows")},
	}
}

// logs collects what the server logs.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// testServer is a real server of a fake engine, with a client of arrow-go.
type testServer struct {
	*Server
	fake    *fakeEngine
	client  flight.Client
	address string
	logs    *logs
}

// serve starts a server on loopback.
func serve(t *testing.T, cfg Config) *testServer {
	t.Helper()
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, l, l.Addr().String(), cfg)
}

func serveOn(t *testing.T, l net.Listener, address string, cfg Config) *testServer {
	t.Helper()
	out := &logs{}
	cfg.Logger = slog.New(slog.NewTextHandler(out, nil))
	fake := &fakeEngine{stored: map[string][]int32{}}
	s := &testServer{Server: New(fake, cfg), fake: fake, address: address, logs: out}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	s.client = connect(t, address)
	return s
}

func connect(t *testing.T, address string) flight.Client {
	t.Helper()
	c, err := flight.NewClientWithMiddleware(address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// dial opens a connection without a client of Flight.
func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%s: not within %s\n%s", what, within, buf[:runtime.Stack(buf, true)])
		}
	}
}

// rest receives the messages of a stream to its end. It takes the error of opening the stream, too.
func rest[M any](stream interface{ Recv() (M, error) }, err error) (all []M, _ error) {
	for err == nil {
		var m M
		if m, err = stream.Recv(); err == nil {
			all = append(all, m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return all, err
}

// act does an action and returns the bodies of its results.
func (s *testServer) act(ctx context.Context, name, body string) (bodies [][]byte, err error) {
	results, err := rest(s.client.DoAction(ctx, &flight.Action{Type: name, Body: []byte(body)}))
	for _, r := range results {
		bodies = append(bodies, r.GetBody())
	}
	return bodies, err
}

// doAction does an action without a request.
func (s *testServer) doAction(ctx context.Context, name string) error {
	return errorOf(s.act(ctx, name, ""))
}
