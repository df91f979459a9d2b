package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	Long: `Serve answers Arrow Flight requests on the folder given by --data until it is
interrupted. It logs "listening on ADDRESS" once it is ready. No other process may work
on the folder meanwhile; commands on it find the server and go through it. On SIGTERM, SIGHUP or
Ctrl-C it pauses and stores the runs at once, takes no new requests, and lets those in progress
end within the grace period. A second signal cuts off what is in progress, a third kills.

Addresses that other machines reach need TLS (--tls-cert and --tls-key; docs/operation.md
shows how to make them) unless --insecure is given. With --tokens every
request needs a token of that file, but ServerInfo and health checks (see "anisoflight
token --help"). Tokens and certificates are read anew when their files change.

What XLA compiles for a model's first request is kept on disk for the next start
(ANISOFLIGHT_PROGRAM_CACHE).

With --until-eof it also ends, as on SIGTERM, when its standard input does: give it a pipe,
and it ends with the program that holds the other end, however that ends.

With --metrics ADDRESS Prometheus finds metrics at http://ADDRESS/metrics.`,
	Example: `  anisoflight serve --data data
  anisoflight serve --listen unix:anisoflight.sock
  ANISOFLIGHT_LISTEN=127.0.0.1:9000 anisoflight serve --log-format json
  anisoflight serve --listen :8815 --tls-cert server.pem --tls-key server-key.pem --tokens tokens`,
	Options: slices.Concat([]command.Option{
		{Name: "listen", Default: "127.0.0.1:8815", Usage: "`address`: HOST:PORT (port 0: any free one) or unix:PATH"},
		connect.DataOption, connect.DeviceOption,
		{Name: "tls_cert", Usage: "PEM `file` of the server's certificate chain"},
		{Name: "tls_key", Usage: "PEM `file` of its key"},
		{Name: "client_ca", Usage: "PEM `file` of the authorities that clients' certificates must be of"},
		{Name: "tokens", Usage: "`file` of the tokens that are good"},
		{Name: "metrics", Usage: "`address` to answer Prometheus on, at /metrics; default nowhere"},
		{Name: "insecure", Kind: command.Toggle, Usage: "allow addresses that other machines reach without TLS"},
		{Name: "max_bytes", Kind: command.Whole, Usage: "`bytes` that one reply may have", Otherwise: "1 GiB"},
		{Name: "max_upload_bytes", Kind: command.Whole, Usage: "`bytes` that one upload may have", Otherwise: "4 GiB"},
		{Name: "max_requests", Kind: command.Whole, Usage: "`number` of operations under way at a time", Otherwise: "256"},
		{
			Name: "max_calls", Kind: command.Whole,
			Usage:     "`number` of calls of one caller under way at a time",
			Otherwise: "128",
		},
		{Name: "max_connections", Kind: command.Whole, Default: "1024", Usage: "`number` of connections at a time"},
		{
			Name: "max_message_bytes", Kind: command.Whole,
			Usage: "`bytes` that one message of a client may have", Otherwise: "256 MiB",
		},
		{
			Name: "stall", Kind: command.Number,
			Usage: "`seconds` after which a client that takes or sends nothing is given up", Otherwise: "120",
		},
		connect.MeasurePeakOption, connect.MemoryLimitOption,
		{
			Name: "slots", Kind: command.Whole, Usage: "`number` of requests that may use the devices at a time",
			Otherwise: "4 for each",
		},
		{
			Name: "dynamic_batching", Kind: command.Toggle, Default: "true",
			Usage: "evaluate requests that wait for the same network in one batch",
		},
		{
			Name: "until_eof", Kind: command.Toggle,
			Usage: "end when standard input does, as it does when the program that holds the pipe has ended",
		},
		{
			Name: "peers",
			Usage: "`list` of the servers that give the same samples, this one among them, for clients that read in " +
				"parallel: HOST:PORT, locations, or dns:HOST:PORT for every address of a name",
			Otherwise: "this one alone",
		},
		{Name: "grace", Kind: command.Number, Default: "30", Usage: "`seconds` that requests in progress get at the end"},
	}, []command.Option{connect.PrecisionOption}, connect.GPUOptions),
	Stores: true,
	Run:    runServe,
}

func runServe(ctx context.Context, e command.Env) (err error) {
	signal.Ignore(syscall.SIGPIPE) // a log that nobody reads is no reason to end before the runs are stored
	if e.Toggle("until_eof") {
		ctx = untilEOF(ctx, e.Cmd.InOrStdin())
	}
	cfg, err := serverConfig(e)
	if err != nil {
		return err
	}
	lock, err := connect.LockFolder(e)
	if err != nil {
		return err
	}
	letKill := holdSignals()
	defer letKill()
	eng, err := connect.OpenEngine(ctx, e, lock, nil)
	if err != nil {
		return err
	}
	// The runs' states are stored even after an interrupt.
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
	if err := lock.Publish(locationHere(listener, cfg.TLS != nil)); err != nil {
		server.Stop()
		return errors.Join(err, <-served)
	}
	e.Log.Info("listening on "+address(listener.Addr()), "location", flight.Location(listener, cfg.TLS != nil), "data",
		e.Text("data"))
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	rested := make(chan error, 1)
	go func() { rested <- eng.PauseAndStoreAll(context.WithoutCancel(ctx)) }() // first of all, whatever requests are under way
	// New commands wait until the folder is free.
	if err := lock.Publish(""); err != nil {
		e.Log.Warn("the folder's lock still names this server", "error", err)
	}
	shutdown(ctx, e, server, letKill)
	<-rested // what could not be stored is said by Release
	return <-served
}

// untilEOF returns a context that also ends when in does. A pipe ends when nobody holds its other end any more, which
// is how a program hears on every system that the one which started it has ended. What in holds is not looked at.
func untilEOF(ctx context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// locationHere returns the location of a listener for programs of this machine, wherever they run.
func locationHere(l net.Listener, secure bool) string {
	location := flight.Location(l, secure)
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsUnspecified() { // every address, that of this machine among them
		return strings.Replace(location, a.String(), net.JoinHostPort("localhost", strconv.Itoa(a.Port)), 1)
	}
	return location
}

// serverConfig returns the server's configuration, whose files have been read.
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

// listen opens the address, if it may be served as it is.
func listen(ctx context.Context, e command.Env, secure bool) (net.Listener, error) {
	listener, err := flight.Listen(ctx, e.Text("listen"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", e.Text("listen"), err)
	}
	if !secure && !e.Toggle("insecure") && !flight.Local(listener.Addr()) {
		return nil, errors.Join(listener.Close(), fmt.Errorf("other machines reach %s, which needs TLS: give --tls-cert and "+
			"--tls-key (docs/operation.md shows how to make them), listen on 127.0.0.1, or force it with --insecure",
			e.Text("listen")))
	}
	if !flight.Local(listener.Addr()) && e.Text("tokens")+e.Text("client_ca") == "" {
		e.Log.Warn("whoever reaches this address may do everything: neither --tokens nor --client-ca is given")
	}
	return netutil.LimitListener(listener, int(e.Whole("max_connections"))), nil
}

// holdSignals keeps signals from ending the process by themselves; letKill ends that for all but SIGHUP, which a
// terminal that is closed sends beside others.
func holdSignals() (letKill func()) {
	held := make(chan os.Signal, 1)
	signal.Notify(held, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
	return func() { signal.Stop(held) }
}

// shutdown drains the server until the grace ends or a second signal comes; a third one kills.
func shutdown(ctx context.Context, e command.Env, server *flight.Server, letKill func()) {
	grace := seconds(e.Number("grace"))
	e.Log.Info("shutting down", "grace", grace)
	end, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(end, func() {
		stop()
		letKill()
	})
	defer stop()
	end, cancel := context.WithTimeout(end, grace)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		e.Log.Warn("requests in progress were cut off", "reason", context.Cause(end))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// address returns a listener's address as --listen takes it.
func address(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}
