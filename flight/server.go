package flight

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// Config configures a server. The zero value of each field means its default.
type Config struct {
	MaxMessageBytes int // a message received; default 256 MiB
	// MaxReceivedBytes are the bytes that all messages received and requests being read may take, of every call
	// together; beyond it they wait, for Patience at most, then BUSY. Default 1 GiB, or four messages.
	MaxReceivedBytes int64
	MaxQueueBytes    int64         // replies of one exchange that its client has not read; default 256 MiB
	MaxCalls         int           // calls under way of one caller, beyond which BUSY; default 128
	Heartbeat        time.Duration // the longest silence of a stream; default 400 ms
	Patience         time.Duration // how long a full queue, or a refused upload, waits for its client; default 30 s
	Stall            time.Duration // how long a client may take, or send, nothing that it should; default 2 min
	Logger           *slog.Logger  // default slog.Default()

	Metrics prometheus.Registerer // where the server's metrics are to be found; default nowhere

	// Peers returns the locations of servers that give the same samples, this one among them, of which GetFlightInfo
	// tells; nil, or none: this one alone.
	Peers func(context.Context) []string

	TLS    *tls.Config         // nil: none
	Tokens func() *auth.Tokens // the tokens in force; nil: everybody may do everything
}

func (c Config) withDefaults() Config {
	c.MaxMessageBytes = positive(c.MaxMessageBytes, 256<<20)
	c.MaxReceivedBytes = positive(c.MaxReceivedBytes, max(1<<30, 4*int64(c.MaxMessageBytes)))
	c.MaxQueueBytes = positive(c.MaxQueueBytes, 256<<20)
	c.MaxCalls = positive(c.MaxCalls, 128)
	c.Heartbeat = positive(c.Heartbeat, 400*time.Millisecond)
	c.Patience = positive(c.Patience, 30*time.Second)
	c.Stall = positive(c.Stall, 2*time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// positive returns x, or the default if x is not positive.
func positive[N int | int64 | time.Duration](x, byDefault N) N {
	if x > 0 {
		return x
	}
	return byDefault
}

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
	Put(ctx context.Context, call api.Call, in api.Schema) (*api.Upload, error)
	// List names everything stored.
	List(ctx context.Context) []api.Flight
}

// Server serves an engine over Arrow Flight, and gRPC's health service beside it.
type Server struct {
	cfg     Config
	log     *slog.Logger
	engine  Engine
	table   api.Table // of its operations
	grpc    *grpc.Server
	health  *health.Server
	traffic traffic
	meters  *meters

	budget *semaphore.Weighted // in bytes of messages received
	works  sync.WaitGroup      // the goroutines that work
	calls  sync.WaitGroup      // those under way

	mu       sync.Mutex
	draining bool
	active   map[string]int // calls under way, by caller

	cutoff context.Context // ends when calls under way are to be cut off
	cut    context.CancelFunc
	// watchers ends when the calls that watch are to be cut off
	watchers    context.Context
	cutWatchers context.CancelFunc
}

// Limits of gRPC.
const (
	maxHeaderBytes = 16 << 10 // of a call; beyond it the call fails
	maxStreams     = 256      // calls under way on one connection; others wait
)

// New makes a server of an engine. Serve starts it.
func New(e Engine, cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Logger, engine: e, table: e.Operations(), health: health.NewServer(),
		budget: semaphore.NewWeighted(cfg.MaxReceivedBytes), active: map[string]int{},
	}
	s.meters = newMeters(s, cfg.Metrics)
	s.cutoff, s.cut = context.WithCancel(context.Background())
	s.watchers, s.cutWatchers = context.WithCancel(s.cutoff)
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec{}),
		grpc.MaxRecvMsgSize(cfg.MaxMessageBytes + maxRequestBytes), // what lies between, its reader refuses
		grpc.MaxSendMsgSize(1<<31 - 1),
		grpc.InitialWindowSize(4 << 20), // a batch or two may travel before the reader asks for more
		grpc.InitialConnWindowSize(8 << 20),
		grpc.WriteBufferSize(wire.WriteBuffer), // shared, so that idle connections hold none
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(10 * time.Second), // until a connection has shaken hands
		grpc.StatsHandler(&s.traffic),
		grpc.InTapHandle(s.admit),
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.stream),
	}
	if cfg.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(cfg.TLS)))
	}
	s.grpc = grpc.NewServer(options...)
	flight.RegisterFlightServiceServer(s.grpc, &service{server: s})
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health)
	s.health.SetServingStatus("arrow.flight.protocol.FlightService", grpc_health_v1.HealthCheckResponse_SERVING)
	return s
}

// Serve answers requests on l until Shutdown or Stop. It closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// lastAnswers is how long a server that stops waits for its last answers to be sent.
const lastAnswers = time.Second

// Shutdown stops the server: new requests are refused as DRAINING, and so are those that watch, which would wait for
// what no longer comes. Those at work may end until ctx does, then they are cut off with the same answer, and Shutdown
// returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.cutWatchers()
	s.health.Shutdown()
	defer s.works.Wait()
	defer s.grpc.Stop() // also what GracefulStop would wait for without end, such as watchers of the health
	var err error
	select {
	case <-finished(s.calls.Wait):
	case <-ctx.Done():
		err = ctx.Err()
		s.cut()
	}
	select {
	case <-finished(s.grpc.GracefulStop):
	case <-time.After(lastAnswers):
	}
	return err
}

// finished runs f and returns a channel that is closed at its end.
func finished(f func()) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	return end
}

// Stop cuts off every request and waits until their work has ended.
func (s *Server) Stop() {
	s.cut()
	s.grpc.Stop()
	s.works.Wait()
}

// service implements Flight's calls.
type service struct {
	flight.BaseFlightServer
	server *Server
}

// PollFlightInfo is not served: GetFlightInfo answers at once.
func (s *service) PollFlightInfo(context.Context, *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return nil, api.Errorf(api.Unimplemented, "PollFlightInfo is not served here").WithHint("Call GetFlightInfo.")
}

// Sizes of messages and of the results of actions.
const (
	maxResultBytes = 3584 << 10 // 3.5 MiB: what a Go client takes by default, with room to spare
	framingBytes   = 16 << 10   // of that, for the description of a message
)

// rowsPerMessage returns how many rows of a schema fit into a message: 3.5 MiB, or more at the client's wish.
func rowsPerMessage(s api.Schema, wish int64) int {
	return rowsWithin(s, max(wish, maxResultBytes-framingBytes))
}

// rowsWithin returns how many rows fit into so many bytes, at least one.
func rowsWithin(s api.Schema, bytes int64) int { return int(max(1, bytes/max(1, s.RowBytes()))) }
