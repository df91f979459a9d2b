package modelbench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// servedWork asks a server in this process for one batch of images, over a loopback
// connection, so that the processor time holds both ends.
type servedWork struct {
	bench   *Bench
	request api.Sample
	dir     string
	engine  *engine.Engine
	server  *flight.Server
	served  chan error
	client  *client.Client
}

func newServed(ctx context.Context, b *Bench) (w work, err error) {
	s := &servedWork{bench: b, request: api.Sample{
		Model: "bench", Labels: b.in.labels, NFE: NFE, SecondPoint: edmHeun.SecondPoint, Grid: api.Grid{Kind: api.GridEDM, SigmaMin: 0.002, SigmaMax: 80, Rho: 7},
		DenoiseToZero: edmHeun.DenoiseToZero, DType: "float32",
	}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "anisoflight-bench-*"); err != nil {
		return nil, err
	}
	models := filepath.Join(s.dir, "models")
	if err := os.Mkdir(models, 0o700); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(filepath.Join(models, "bench"), b.source, false); err != nil {
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	if s.engine, err = engine.Open(ctx, engine.Config{Dir: s.dir, Logger: log, Precision: s.bench.at}, b.dev); err != nil {
		return nil, err
	}
	listener, err := flight.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.server, s.served = flight.New(s.engine, flight.Config{Logger: log}), make(chan error, 1)
	go func() { s.served <- s.server.Serve(listener) }()
	s.client, err = client.Dial(ctx, flight.Location(listener, false), client.Options{})
	return s, err
}

func (s *servedWork) images(ctx context.Context) ([]float32, error) {
	schema, all, _, err := client.ReadAll(s.client.Sample(ctx, s.request))
	if err != nil {
		return nil, err
	}
	if all.Rows != s.bench.in.batch {
		return nil, fmt.Errorf("%d images came back, not %d", all.Rows, s.bench.in.batch)
	}
	return api.ColumnOf[float32](schema, all, "sample"), nil
}

func (s *servedWork) run(ctx context.Context) error {
	_, err := s.images(ctx)
	return err
}

func (s *servedWork) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	images, err := s.images(ctx)
	if err != nil {
		return nil, err
	}
	return []safetensors.Tensor{safetensors.FromFloat32s("output/sample-flight", s.bench.in.image(), images)}, nil
}

// memory is not told of several programs together.
func (s *servedWork) memory(context.Context) (m device.Memory, ok bool, err error) {
	return m, false, nil
}

// close ends the server; what it leaves is a temporary folder, which goes as well.
func (s *servedWork) close() {
	var errs []error
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	if s.server != nil {
		s.server.Stop()
		errs = append(errs, <-s.served)
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close(context.Background()))
	}
	if err := errors.Join(append(errs, os.RemoveAll(s.dir))...); err != nil {
		slog.Warn("the server of the bench did not end well", "reason", err)
	}
}
