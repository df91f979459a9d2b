package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/netutil"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// Spec is the command.
var Spec = command.Spec{
	Use:   "serve",
	Short: "Serve models, schedules and training over Arrow Flight",
	Long: `Serve answers Arrow Flight requests on the data folder of --data. It logs "listening on
ADDRESS" when it is ready, whatever --log-level is. It locks the folder: other commands on the folder find the
server and use it.

On SIGTERM, SIGHUP or Ctrl-C it pauses and stores the runs, refuses new requests, and
ends after the requests in progress, or after --grace seconds. A second signal ends these
requests, and a third kills the server. With --until-eof the end of standard input is
such a signal: give the server a pipe, and it ends with the program at the other end.

Addresses that other machines can reach need TLS (--tls-cert and --tls-key;
docs/operation.md shows how to make them) unless --insecure is given. With --tokens every
request except ServerInfo and health checks needs a token of that file (see "anisoflight
token --help"). Tokens and certificates are read again when their files change.

Programs that XLA compiles for a model's first request are kept on disk for the next
start (ANISOFLIGHT_PROGRAM_CACHE). With --metrics ADDRESS, Prometheus finds metrics at
http://ADDRESS/metrics.`,
	Example: `  anisoflight serve --data data
  anisoflight serve --listen unix:anisoflight.sock
  ANISOFLIGHT_LISTEN=127.0.0.1:9000 anisoflight serve --log-format json
  anisoflight serve --listen :8815 --tls-cert server.pem --tls-key server-key.pem --tokens tokens`,
	Options: slices.Concat([]command.Option{
		{Name: "listen", Default: "127.0.0.1:8815", Usage: "`address`: HOST:PORT (port 0: a free port) or unix:PATH"},
		{Name: "default_listen", Usage: "`address` if neither option, variable nor file gives --listen"},
		connect.DataOption, connect.DeviceOption,
		{Name: "tls_cert", Usage: "PEM `file` of the server's certificate chain"},
		{Name: "tls_key", Usage: "PEM `file` of the key of --tls-cert"},
		{Name: "client_ca", Usage: "PEM `file` of the authorities that must have signed clients' certificates"},
		{Name: "tokens", Usage: "`file` of the valid tokens", Otherwise: "no tokens"},
		{Name: "metrics", Usage: "`address` of metrics for Prometheus, at /metrics", Otherwise: "no metrics"},
		{Name: "insecure", Kind: command.Toggle, Usage: "allow addresses that other machines can reach without TLS"},
		limit("max_bytes", "maximum `bytes` of a reply", "1 GiB"),
		limit("max_upload_bytes", "maximum `bytes` of an upload", "4 GiB"),
		limit("max_requests", "maximum `number` of operations at a time", "256"),
		limit("max_calls", "maximum `number` of calls of a caller at a time", "128"),
		{
			Name: "max_connections", Kind: command.Whole, Default: "1024", Usage: "maximum `number` of connections",
			Bounds: wholeBounds,
		},
		limit("max_message_bytes", "maximum `bytes` of a message from a client", "256 MiB"),
		{
			Name: "stall", Kind: command.Number, Bounds: `default:"120" above:"0" max:"1e9"`,
			Usage: "`seconds` after which a client that neither sends nor receives is cut off", Otherwise: "120",
		},
		connect.MeasurePeakOption, connect.MemoryLimitOption,
		limit("slots", "maximum `number` of requests on the devices at a time", "4 for each device"),
		{
			Name: "dynamic_batching", Kind: command.Toggle, Default: "true",
			Usage: "evaluate requests that wait for the same network in one batch",
		},
		{
			Name: "until_eof", Kind: command.Toggle,
			Usage: "end at the end of standard input",
		},
		{
			Name: "peers",
			Usage: "`list` of servers that give the same samples, including this one, for clients that read in parallel: " +
				"HOST:PORT, locations, or dns:HOST:PORT for every address of a name",
			Otherwise: "this server alone",
		},
		{
			Name: "grace", Kind: command.Number, Default: "30", Bounds: `min:"0" max:"1e9"`,
			Usage: "`seconds` that requests in progress get when the server ends",
		},
	}, []command.Option{connect.PrecisionOption}, connect.GPUOptions),
	Stores: true,
	Run:    runServe,
}

// wholeBounds bound a limit so that sums of a few of them do not overflow.
const wholeBounds = `min:"1" max:"1e16"`

func limit(name, usage, otherwise string) command.Option {
	return command.Option{Name: name, Kind: command.Whole, Usage: usage, Otherwise: otherwise, Bounds: wholeBounds}
}

func runServe(ctx context.Context, e command.Env) (err error) {
	if e.Toggle("until_eof") {
		ctx = untilEOF(ctx, e.Cmd.InOrStdin())
	}
	cfg, err := serverConfig(e)
	if err != nil {
		return err
	}
	lock, err := connect.AwaitFolder(ctx, e)
	if err != nil {
		return err
	}
	allowKill := holdSignals()
	defer allowKill()
	eng, err := connect.OpenEngine(ctx, e, lock, nil)
	if err != nil {
		return err
	}
	// The runs are stored even after an interrupt.
	defer func() { err = errors.Join(err, eng.Release(context.WithoutCancel(ctx))) }()
	listener, err := listen(ctx, e, cfg.TLS != nil)
	if err != nil {
		return err
	}
	metrics, stopMetrics, err := serveMetrics(ctx, e)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopMetrics()
	cfg.Metrics = metrics
	server := flight.New(eng, cfg)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := lock.Publish(localLocation(listener, cfg.TLS != nil)); err != nil {
		server.Stop()
		return errors.Join(err, <-served)
	}
	// Whatever the level: programs wait for it.
	ready := slog.NewRecord(time.Now(), slog.LevelInfo, "listening on "+address(listener.Addr()), 0)
	ready.Add("location", flight.Location(listener, cfg.TLS != nil), "data", e.Text("data"))
	_ = e.Log.Handler().Handle(ctx, ready)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	paused := make(chan error, 1)
	go func() { paused <- eng.PauseAndStoreAll(context.WithoutCancel(ctx)) }() // before the requests in progress end
	// New commands wait until the folder is free.
	if err := lock.Publish(""); err != nil {
		e.Log.Warn("the folder's lock still names this server", "error", err)
	}
	shutdown(ctx, e, server, allowKill)
	<-paused // Release returns the error of a run that could not be stored
	return <-served
}

// untilEOF returns a context that also ends at the end of in, whose contents are ignored. On every system a pipe ends
// when the program at its other end does.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// localLocation returns the location of a listener for programs on this machine.
func localLocation(l net.Listener, secure bool) string {
	location := flight.Location(l, secure)
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() {
		return strings.Replace(location, a.String(), net.JoinHostPort("localhost", strconv.Itoa(a.Port)), 1)
	}
	return location
}

// serverConfig returns the server's configuration, and reads the files of certificates and tokens.
func serverConfig(e command.Env) (flight.Config, error) {
	cfg := flight.Config{
		Logger: e.Log, MaxMessageBytes: int(e.Whole("max_message_bytes")), MaxCalls: int(e.Whole("max_calls")),
		Stall: seconds(e.Number("stall")),
	}
	if cert, key, ca := e.Text("tls_cert"), e.Text("tls_key"), e.Text("client_ca"); cert+key+ca != "" {
		var err error
		if cfg.TLS, err = auth.ServerTLS(cert, key, ca, e.Log); err != nil {
			return cfg, err
		}
	}
	if path := e.Text("tokens"); path != "" {
		tokens, err := auth.WatchTokens(path, e.Log)
		if err != nil {
			return cfg, err
		}
		cfg.Tokens = tokens.Get
	}
	var err error
	cfg.Peers, err = parsePeers(e, cfg.TLS != nil)
	return cfg, err
}

// listen opens the address, unless it needs TLS that is not configured.
func listen(ctx context.Context, e command.Env, secure bool) (net.Listener, error) {
	chosen := e.Text("listen")
	if other := e.Text("default_listen"); other != "" && !e.Given("listen") {
		chosen = other
	}
	listener, err := flight.Listen(ctx, chosen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", chosen, err)
	}
	if !secure && !e.Toggle("insecure") && !flight.Local(listener.Addr()) {
		return nil, errors.Join(listener.Close(), fmt.Errorf("other machines can reach %s, which needs TLS: give "+
			"--tls-cert and --tls-key (docs/operation.md shows how to make them), listen on 127.0.0.1, or give --insecure",
			chosen))
	}
	if !flight.Local(listener.Addr()) && e.Text("tokens")+e.Text("client_ca") == "" {
		e.Log.Warn("everyone who reaches this address may do everything: neither --tokens nor --client-ca is given")
	}
	return netutil.LimitListener(listener, int(e.Whole("max_connections"))), nil
}

// holdSignals prevents signals from ending the process. After allowKill all of them except SIGHUP end it: a terminal
// that is closed may send SIGHUP in addition to other signals.
func holdSignals() (allowKill func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	return func() { signal.Stop(signals) }
}

// shutdown drains the server until the grace period ends or a second signal comes. A third signal kills the process.
func shutdown(ctx context.Context, e command.Env, server *flight.Server, allowKill func()) {
	grace := seconds(e.Number("grace"))
	e.Log.Info("shutting down", "grace", grace)
	end, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(end, func() {
		stop()
		allowKill()
	})
	defer stop()
	end, cancel := context.WithTimeout(end, grace)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		e.Log.Warn("requests in progress were cut off", "reason", context.Cause(end))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// address returns a listener's address in the form of --listen.
func address(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}
