package flight

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/flight/wire"
)

// Config configures a server. The zero value of each field means its default.
type Config struct {
	MaxMessageBytes int // a message received; default 256 MiB
	MaxRequestBytes int // the JSON of a request; default 16 MiB
	// MaxReceivedBytes are the bytes that all messages received and requests being read may take, of every call
	// together; beyond it they wait, for Patience at most, then BUSY. Default 1 GiB, or four messages.
	MaxReceivedBytes int64
	MaxHeaderBytes   int           // the headers of a call; default 16 KiB
	MaxQueueBytes    int64         // replies of one exchange that its client has not read; default 256 MiB
	MaxStreams       int           // calls under way on one connection, beyond which its client waits; default 256
	MaxCalls         int           // calls under way of one caller, beyond which BUSY; default 128
	Heartbeat        time.Duration // the longest silence of a stream; default 400 ms
	Patience         time.Duration // how long a full queue, or a refused upload, waits for its client; default 30 s
	Stall            time.Duration // how long a client may take, or send, nothing that it should; default 2 min
	Logger           *slog.Logger  // default slog.Default()

	Metrics prometheus.Registerer // where the server's metrics are to be found; default nowhere
	Stats   stats.Handler         // hears of every call beside the server's own, for tracing; default none

	// Peers returns the locations of servers that give the same samples, this one among them, of which GetFlightInfo
	// tells; nil, or none: this one alone.
	Peers func(context.Context) []string

	TLS    *tls.Config         // nil: none
	Tokens func() *auth.Tokens // the tokens in force; nil: everybody may do everything
}

func (c Config) withDefaults() Config {
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = 256 << 20
	}
	if c.MaxRequestBytes <= 0 {
		c.MaxRequestBytes = 16 << 20
	}
	if c.MaxReceivedBytes <= 0 {
		c.MaxReceivedBytes = max(1<<30, 4*int64(c.MaxMessageBytes))
	}
	if c.MaxHeaderBytes <= 0 {
		c.MaxHeaderBytes = 16 << 10
	}
	if c.MaxStreams <= 0 {
		c.MaxStreams = 256
	}
	if c.MaxCalls <= 0 {
		c.MaxCalls = 128
	}
	if c.MaxQueueBytes <= 0 {
		c.MaxQueueBytes = 256 << 20
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = 400 * time.Millisecond
	}
	if c.Patience <= 0 {
		c.Patience = 30 * time.Second
	}
	if c.Stall <= 0 {
		c.Stall = 2 * time.Minute
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
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

	room     *semaphore.Weighted // in bytes of messages received
	works    sync.WaitGroup      // the goroutines that work
	draining atomic.Bool
	mu       sync.Mutex
	active   map[string]int // calls under way, by caller
	watching map[string]int // of calls that watch, which are not active
	idle     chan struct{}  // closed when a draining server has no calls left

	cutoff context.Context // ends when calls under way are to be cut off
	cut    context.CancelFunc
	last   context.Context // ends when those that watch are
	unsee  context.CancelFunc
}

// New makes a server of an engine. Serve starts it.
func New(e Engine, cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, log: cfg.Logger, engine: e, table: e.Operations(), health: health.NewServer(),
		room: semaphore.NewWeighted(cfg.MaxReceivedBytes), active: map[string]int{},
		watching: map[string]int{}, idle: make(chan struct{}),
	}
	s.meters = newMeters(s, cfg.Metrics)
	s.cutoff, s.cut = context.WithCancel(context.Background())
	s.last, s.unsee = context.WithCancel(s.cutoff)
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec{}),
		// of calls with one message, which gRPC itself reads; those of streams are read in receive.go
		grpc.MaxRecvMsgSize(2 * cfg.MaxRequestBytes),
		grpc.MaxSendMsgSize(1<<31 - 1),
		grpc.InitialWindowSize(4 << 20), // a batch or two may travel before the reader asks for more
		grpc.InitialConnWindowSize(8 << 20),
		grpc.WriteBufferSize(wire.WriteBuffer), // shared, so that idle connections hold none
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 20 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxHeaderListSize(uint32(cfg.MaxHeaderBytes)),
		grpc.MaxConcurrentStreams(uint32(cfg.MaxStreams)),
		grpc.ConnectionTimeout(10 * time.Second), // until a connection has shaken hands
		grpc.StatsHandler(&s.traffic),
		grpc.InTapHandle(s.admit),
		grpc.ChainUnaryInterceptor(s.unary),
		grpc.ChainStreamInterceptor(s.stream),
	}
	if cfg.Stats != nil {
		options = append(options, grpc.StatsHandler(cfg.Stats))
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
	if !s.draining.Swap(true) && len(s.active) == 0 {
		close(s.idle)
	}
	s.mu.Unlock()
	s.unsee()
	s.health.Shutdown()
	defer s.works.Wait()
	defer s.grpc.Stop() // also what GracefulStop would wait for without end, such as watchers of the health
	var err error
	select {
	case <-s.idle:
	case <-ctx.Done():
		err = ctx.Err()
		s.cut()
	}
	sent := make(chan struct{}) // the last answers
	go func() {
		defer close(sent)
		s.grpc.GracefulStop()
	}()
	select {
	case <-sent:
	case <-time.After(lastAnswers):
	}
	return err
}

// Stop cuts off every request and waits until their work has ended.
func (s *Server) Stop() {
	s.cut()
	s.grpc.Stop()
	s.works.Wait()
}
