package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/auth"
)

var serveSpec = spec{
	use:   "serve",
	short: "Serve models, schedules and training over Arrow Flight",
	long: `Serve answers Arrow Flight requests on the folder given by --data until it is
interrupted. It logs "listening on ADDRESS" once it is ready. No other process may work
on the folder meanwhile; commands on it find the server and go through it. On SIGTERM or Ctrl-C it
takes no new requests, lets those in progress end within the grace period, and pauses
and stores the runs. A second signal cuts off what is in progress, a third kills.

Addresses that other machines reach need TLS (--tls-cert and --tls-key; see
"anisoflight certificate --help") unless --insecure is given. With --tokens every
request needs a token of that file, but ServerInfo and health checks (see "anisoflight
token --help"). Tokens and certificates are read anew when their files change.

What XLA compiles for a model's first request is compiled ahead with --warm, in the
background, and kept on disk for the next start (ANISOFLIGHT_PROGRAM_CACHE).

With --metrics ADDRESS Prometheus finds metrics at http://ADDRESS/metrics. Where
OTEL_EXPORTER_OTLP_ENDPOINT is set, traces go to the OpenTelemetry collector there.`,
	example: `  anisoflight serve --data data
  anisoflight serve --listen unix:anisoflight.sock
  anisoflight serve --warm digits
  ANISOFLIGHT_LISTEN=127.0.0.1:9000 anisoflight serve --log-format json
  anisoflight serve --listen :8815 --tls-cert certs/server.pem --tls-key certs/server-key.pem --tokens tokens`,
	options: slices.Concat([]option{
		{name: "listen", def: "127.0.0.1:8815", usage: "`address`: HOST:PORT (port 0: any free one) or unix:PATH"},
		dataOption, deviceOption,
		{name: "tls_cert", usage: "PEM `file` of the server's certificate chain"},
		{name: "tls_key", usage: "PEM `file` of its key"},
		{name: "client_ca", usage: "PEM `file` of the authorities that clients' certificates must be of"},
		{name: "tokens", usage: "`file` of the tokens that are good"},
		{name: "metrics", usage: "`address` to answer Prometheus on, at /metrics; default nowhere"},
		{name: "insecure", kind: toggle, usage: "allow addresses that other machines reach without TLS"},
		{name: "max_bytes", kind: whole, usage: "`bytes` that one reply may have (default 1 GiB)"},
		{name: "max_upload_bytes", kind: whole, usage: "`bytes` that one upload may have (default 4 GiB)"},
		{name: "max_requests", kind: whole, usage: "`number` of operations under way at a time (default 256)"},
		{name: "max_calls", kind: whole, usage: "`number` of calls of one caller under way at a time (default 128)"},
		{name: "max_connections", kind: whole, def: "1024", usage: "`number` of connections at a time"},
		{name: "max_message_bytes", kind: whole, usage: "`bytes` that one message of a client may have (default 256 MiB)"},
		{name: "stall", kind: number, usage: "`seconds` after which a client that takes or sends nothing is given up (default 120)"},
		measurePeakOption, memoryLimitOption,
		{name: "seats", kind: whole, usage: "`number` of requests that may use the device at a time (default 4)"},
		{name: "join", kind: toggle, def: "true", usage: "evaluate requests that wait for the same network in one batch"},
		{name: "warm", usage: "`models` whose sampling programs are compiled from the start, in the background: a list such as digits,faces:edm (MODEL or MODEL:SCHEDULE)"},
		{name: "grace", kind: number, def: "30", usage: "`seconds` that requests in progress get at the end"},
	}, []option{precisionOption}, gpuOptions),
	stores: true,
	run:    runServe,
}

func runServe(ctx context.Context, e env) (err error) {
	cfg, err := serverConfig(e)
	if err != nil {
		return err
	}
	lock, err := lockFolder(e)
	if err != nil {
		return err
	}
	eng, err := openEngine(ctx, e, lock)
	if err != nil {
		return err
	}
	// The runs' states are stored even after an interrupt.
	defer func() { err = errors.Join(err, eng.close(context.WithoutCancel(ctx))) }()
	listener, err := listen(ctx, e, cfg.TLS != nil)
	if err != nil {
		return err
	}
	metrics, stopMetrics, err := serveMetrics(ctx, e)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopMetrics()
	tracing, stopTracing, err := startTracing(ctx)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer stopTracing()
	cfg.Metrics, cfg.Stats = metrics, tracing
	server := flight.New(eng, cfg)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := lock.Publish(locationHere(listener, cfg.TLS != nil)); err != nil {
		server.Stop()
		return errors.Join(err, <-served)
	}
	e.log.Info("listening on "+address(listener.Addr()), "location", flight.Location(listener, cfg.TLS != nil), "data", e.text("data"))
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	// New commands wait until the folder is free.
	if err := lock.Publish(""); err != nil {
		e.log.Warn("the folder's lock still names this server", "error", err)
	}
	shutdown(ctx, e, server)
	return <-served
}

// locationHere returns the location of a listener for programs of this machine, wherever they run.
func locationHere(l net.Listener, secure bool) string {
	location := flight.Location(l, secure)
	switch a := l.Addr().(type) {
	case *net.UnixAddr:
		if path, err := filepath.Abs(a.Name); err == nil {
			return "grpc+unix://" + path
		}
	case *net.TCPAddr:
		if a.IP.IsUnspecified() { // every address, that of this machine to itself among them
			return strings.Replace(location, a.String(), net.JoinHostPort("localhost", strconv.Itoa(a.Port)), 1)
		}
	}
	return location
}

// serverConfig returns the server's configuration, whose files have been read.
func serverConfig(e env) (flight.Config, error) {
	cfg := flight.Config{
		Logger: e.log, MaxMessageBytes: int(e.whole("max_message_bytes")), MaxCalls: int(e.whole("max_calls")),
		Stall: seconds(e.number("stall")),
	}
	if cert, key, ca := e.text("tls_cert"), e.text("tls_key"), e.text("client_ca"); cert+key+ca != "" {
		var err error
		if cfg.TLS, err = auth.ServerTLS(cert, key, ca, e.log); err != nil {
			return cfg, err
		}
	}
	if path := e.text("tokens"); path != "" {
		tokens, err := auth.WatchTokens(path, e.log)
		if err != nil {
			return cfg, err
		}
		cfg.Tokens = tokens.Get
	}
	return cfg, nil
}

// listen opens the address, if it may be served as it is.
func listen(ctx context.Context, e env, secure bool) (net.Listener, error) {
	listener, err := flight.Listen(ctx, e.text("listen"))
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", e.text("listen"), err)
	}
	if !secure && !e.toggle("insecure") && !flight.Local(listener.Addr()) {
		return nil, errors.Join(listener.Close(), fmt.Errorf("other machines reach %s, which needs TLS: give --tls-cert and --tls-key "+
			"(anisoflight certificate makes them), listen on 127.0.0.1, or force it with --insecure", e.text("listen")))
	}
	if !flight.Local(listener.Addr()) && e.text("tokens")+e.text("client_ca") == "" {
		e.log.Warn("whoever reaches this address may do everything: neither --tokens nor --client-ca is given")
	}
	return flight.Bounded(listener, int(e.whole("max_connections"))), nil
}

// shutdown drains the server until the grace ends or a second signal comes; a third one kills.
func shutdown(ctx context.Context, e env, server *flight.Server) {
	grace := seconds(e.number("grace"))
	e.log.Info("shutting down", "grace", grace)
	end, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(end, stop)
	defer stop()
	end, cancel := context.WithTimeout(end, grace)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		e.log.Warn("requests in progress were cut off", "reason", context.Cause(end))
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
