package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// closers end what has been started.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

// close ends the latest first.
func (c *closers) close() error {
	var errs []error
	for _, f := range slices.Backward(*c) {
		errs = append(errs, f())
	}
	*c = nil
	return errors.Join(errs...)
}

// loopback is a free port of the loopback interface.
const loopback = "127.0.0.1:0"

// serve starts a server at an address of flight.Listen. It ends with c.
func (c *closers) serve(
	ctx context.Context, address string, serve func(net.Listener) error, stop func(),
) (net.Listener, error) {
	l, err := flight.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- serve(l) }()
	c.add(func() error {
		stop()
		return <-served
	})
	return l, nil
}

// servedModel is the name of the model that a modelServer has.
const servedModel = "bench"

// modelServer serves one model from a temporary folder in this process, whose processor time so counts both ends.
type modelServer struct {
	closers
	engine  *engine.Engine
	clients []*client.Client // each with its own connection
}

// joined returns the number of evaluations that were made in another request's slot.
func (s *modelServer) joined(ctx context.Context) (uint64, error) {
	info, err := s.clients[0].ServerInfo(ctx)
	return info.Joined, err
}

// serveModel starts a server on dev and connects clients with it. The caller closes it. cfg.Dir is set here.
func serveModel(
	ctx context.Context, dev *device.Device, m *checkpoint.Model, cfg engine.Config, clients int,
) (s *modelServer, err error) {
	s = &modelServer{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if cfg.Dir, err = os.MkdirTemp("", "anisoflight-bench-*"); err != nil {
		return nil, err
	}
	s.add(func() error { return os.RemoveAll(cfg.Dir) })
	models := filepath.Join(cfg.Dir, "models")
	if err := os.Mkdir(models, 0o700); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(filepath.Join(models, servedModel), m, false); err != nil {
		return nil, err
	}
	cfg.Logger, cfg.Device = slog.New(slog.DiscardHandler), dev
	if s.engine, err = engine.Open(ctx, cfg); err != nil {
		return nil, err
	}
	s.add(func() error { return s.engine.Close(context.WithoutCancel(ctx)) })
	server := flight.New(s.engine, flight.Config{Logger: cfg.Logger})
	l, err := s.serve(ctx, loopback, server.Serve, server.Stop)
	if err != nil {
		return nil, err
	}
	for range clients {
		c, err := client.Dial(ctx, flight.Location(l, false), client.Options{})
		if err != nil {
			return nil, err
		}
		s.add(c.Close)
		s.clients = append(s.clients, c)
	}
	return s, nil
}

// drawSamples asks a server for samples, request.N of them, and throws them away.
func drawSamples(ctx context.Context, c *client.Client, request api.Sample) error {
	rows := 0
	for m, err := range c.Sample(ctx, request) {
		if err != nil {
			return err
		}
		rows += m.Batch.Rows
	}
	if rows != *request.N {
		return fmt.Errorf("%d samples of %d arrived", rows, *request.N)
	}
	return nil
}
