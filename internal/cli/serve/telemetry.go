package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// serveMetrics serves GET /metrics on the address of --metrics, without tokens and TLS. The address must be a loopback
// address unless --insecure is given. Without an address it does nothing.
func serveMetrics(ctx context.Context, e command.Env) (at prometheus.Registerer, stop func(), err error) {
	address := e.Text("metrics")
	if address == "" {
		return nil, func() {}, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot listen on %s for metrics: %w", address, err)
	}
	if !flight.Local(listener.Addr()) && !e.Toggle("insecure") {
		return nil, nil, errors.Join(listener.Close(), fmt.Errorf("other machines can reach the metrics on %s; give "+
			"--metrics a loopback address, or give --insecure", address))
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	server := &http.Server{
		Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute,
	}
	go func() { _ = server.Serve(listener) }() // ends with stop
	e.Log.Info("metrics on " + listener.Addr().String())
	return registry, func() { _ = server.Close() }, nil
}
