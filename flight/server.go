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
	MaxMessageBytes int // maximum bytes of a received message; default 256 MiB
	// MaxReceivedBytes bounds the bytes of all received messages and requests in use, of all calls together. Beyond it
	// calls wait, for Patience at most, then they are BUSY. The default is 1 GiB, or four messages.
	MaxReceivedBytes int64
	MaxQueueBytes    int64         // maximum bytes of unread replies of an exchange; default 256 MiB
	MaxCalls         int           // maximum number of active calls of a caller, then BUSY; default 128
	Heartbeat        time.Duration // longest time between two messages of a stream; default 400 ms
	Patience         time.Duration // how long a full queue, or a refused upload, waits for its client; default 30 s
	Stall            time.Duration // how long a client may neither send nor receive when it should; default 2 min
	Logger           *slog.Logger  // default slog.Default()

	Metrics prometheus.Registerer // registry of the server's metrics; default none

	// Peers returns the locations of servers that give the same samples, including this one. GetFlightInfo returns them.
	// If it is nil or returns none, this server is alone.
	Peers func(context.Context) []string

	TLS    *tls.Config         // default no TLS
	Tokens func() *auth.Tokens // returns the valid tokens; nil: everyone may do everything
}

func (c Config) withDefaults() Config {
	c.MaxMessageBytes = cmp.Or(max(0, c.MaxMessageBytes), 256<<20)
	c.MaxReceivedBytes = cmp.Or(max(0, c.MaxReceivedBytes), max(1<<30, 4*int64(c.MaxMessageBytes)))
	c.MaxQueueBytes = cmp.Or(max(0, c.MaxQueueBytes), 256<<20)
	c.MaxCalls = cmp.Or(max(0, c.MaxCalls), 128)
	c.Heartbeat = cmp.Or(max(0, c.Heartbeat), 400*time.Millisecond)
	c.Patience = cmp.Or(max(0, c.Patience), 30*time.Second)
	c.Stall = cmp.Or(max(0, c.Stall), 2*time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Engine does the work of the service. Its requests are decoded, and belong to operations of its table.
type Engine interface {
	// Operations returns the table of operations: api.Operations, or the engine's own.
	Operations() api.Table
	// Prepare checks and prices an operation that gives rows.
	Prepare(ctx context.Context, call api.Call) (*api.Job, error)
	// Exchange opens an operation that takes rows of the schema in.
	Exchange(ctx context.Context, call api.Call, in api.Schema) (*api.Exchange, error)
	// Action calls an operation with a JSON reply. If progress is not nil, a long operation calls it repeatedly.
	Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error)
	// Put opens an upload.
	Put(ctx context.Context, call api.Call, in api.Schema) (*api.Upload, error)
	// List lists everything stored.
	List(ctx context.Context) []api.Flight
}

// Server serves an engine over Arrow Flight, and gRPC's health service.
type Server struct {
	cfg     Config
	log     *slog.Logger
	engine  Engine
	table   api.Table // operations of the engine
	grpc    *grpc.Server
	health  *health.Server
	traffic traffic
	meters  *meters

	budget *semaphore.Weighted // bytes of received messages
	works  sync.WaitGroup      // goroutines that work
	calls  sync.WaitGroup      // active calls

	mu       sync.Mutex
	draining bool
	active   map[string]int // number of active calls by caller

	cutoff      context.Context // ends to cancel all calls
	cut         context.CancelFunc
	watchers    context.Context // ends to cancel the calls that watch runs
	cutWatchers context.CancelFunc
}

// Limits of gRPC.
const (
	maxHeaderBytes = 16 << 10 // headers of a call; beyond it the call fails
	maxStreams     = 256      // active calls of a connection; others wait
)

// New returns a server of an engine. Serve starts it.
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
		grpc.MaxRecvMsgSize(cfg.MaxMessageBytes + maxRequestBytes), // receiver refuses bodies above MaxMessageBytes
		grpc.MaxSendMsgSize(1<<31 - 1),
		grpc.InitialWindowSize(4 << 20), // one or two batches
		grpc.InitialConnWindowSize(8 << 20),
		grpc.WriteBufferSize(wire.WriteBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(10 * time.Second), // for a handshake
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

// Serve answers requests on l until Shutdown or Stop, and closes l.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// lastReplies bounds the time in which a stopping server sends its last replies.
const lastReplies = time.Second

// Shutdown stops the server. It refuses new calls as DRAINING, ends calls that watch runs at once, and waits for the
// other calls. If ctx ends first, it ends them as DRAINING, too, and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.cutWatchers()
	s.health.Shutdown()
	defer s.works.Wait()
	defer s.grpc.Stop() // ends calls that GracefulStop would wait for forever, such as watchers of the health
	var err error
	select {
	case <-finished(s.calls.Wait):
	case <-ctx.Done():
		err = ctx.Err()
		s.cut()
	}
	select {
	case <-finished(s.grpc.GracefulStop):
	case <-time.After(lastReplies):
	}
	return err
}

// finished calls f in a goroutine and returns a channel that is closed at its end.
func finished(f func()) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		f()
	}()
	return end
}

// Stop cancels all calls and waits until their work has ended.
func (s *Server) Stop() {
	s.cut()
	s.grpc.Stop()
	s.works.Wait()
}

// service implements the calls of Flight.
type service struct {
	flight.BaseFlightServer
	server *Server
}

// PollFlightInfo is not served, because GetFlightInfo replies at once.
func (s *service) PollFlightInfo(context.Context, *flight.FlightDescriptor) (*flight.PollInfo, error) {
	return nil, api.Errorf(api.Unimplemented, "PollFlightInfo is not served here").WithHint("Call GetFlightInfo.")
}

// Sizes of messages and of the results of actions.
const (
	maxResultBytes = 3584 << 10 // 3.5 MiB: below the default limit of Go clients, 4 MiB
	framingBytes   = 16 << 10   // part of that for the header of a message
)

// rowsPerMessage returns the number of rows of a message, of 3.5 MiB or of the bytes that the client asks for.
func rowsPerMessage(s api.Schema, bytes int64) int {
	return rowsWithin(s, max(bytes, maxResultBytes-framingBytes))
}

// rowsWithin returns the number of rows that fit into bytes, at least one.
func rowsWithin(s api.Schema, bytes int64) int { return int(max(1, bytes/max(1, s.RowBytes()))) }
