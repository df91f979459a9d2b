package servebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// model is what the network is called.
const model = "bench"

// bench holds two servers on one folder and device: of the engine as it is, and of one that evaluates every request apart.
type bench struct {
	cfg             Config
	together, apart *side
	joined          uint64 // evaluations that another's turn took along, since the first round
}

// side is an engine, its server and connections to it.
type side struct {
	engine  *engine.Engine
	server  *flight.Server
	served  chan error
	clients []*client.Client
}

func newBench(ctx context.Context, dev *device.Device, dir string, cfg Config) (*bench, error) {
	if err := os.MkdirAll(filepath.Join(dir, "models"), 0o700); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(filepath.Join(dir, "models", model), cfg.Model, false); err != nil {
		return nil, err
	}
	b := &bench{cfg: cfg}
	for _, s := range []struct {
		to    **side
		apart bool
	}{{&b.together, false}, {&b.apart, true}} {
		var err error
		if *s.to, err = newSide(ctx, dev, engine.Config{Dir: dir, Seats: cfg.Seats, Apart: s.apart, Logger: slog.New(slog.DiscardHandler)}, cfg.Clients); err != nil {
			return nil, errors.Join(err, b.close(ctx))
		}
	}
	return b, nil
}

func newSide(ctx context.Context, dev *device.Device, cfg engine.Config, clients int) (*side, error) {
	eng, err := engine.Open(ctx, cfg, dev)
	if err != nil {
		return nil, err
	}
	s := &side{engine: eng, server: flight.New(eng, flight.Config{Logger: cfg.Logger}), served: make(chan error, 1)}
	l, err := flight.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, eng.Close(ctx))
	}
	go func() { s.served <- s.server.Serve(l) }()
	for range clients {
		c, err := client.Dial(ctx, flight.Location(l, false), client.Options{})
		if err != nil {
			return nil, errors.Join(err, s.close(ctx))
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

func (s *side) close(ctx context.Context) error {
	var errs []error
	for _, c := range s.clients {
		errs = append(errs, c.Close())
	}
	s.server.Stop()
	return errors.Join(append(errs, <-s.served, s.engine.Close(ctx))...)
}

func (b *bench) close(ctx context.Context) error {
	var errs []error
	for _, s := range []*side{b.together, b.apart} {
		if s != nil {
			errs = append(errs, s.close(ctx))
		}
	}
	return errors.Join(errs...)
}

// request is a request for n samples from a seed.
func (b *bench) request(n int, seed uint64) api.Sample {
	return api.Sample{Model: model, N: &n, Seed: seed, NFE: b.cfg.NFE, Solver: "ab"}
}

// inProcess does a request without the service.
func (b *bench) inProcess(ctx context.Context, req api.Sample) error {
	body, err := json.Marshal(map[string]any{"model": req.Model, "n": req.N, "seed": req.Seed, "nfe": req.NFE, "solver": req.Solver})
	if err != nil {
		return err
	}
	call, err := api.Operations().Call(api.ByGet, "Sample", body)
	if err != nil {
		return err
	}
	job, err := b.together.engine.Prepare(ctx, call)
	if err != nil {
		return err
	}
	rows := 0
	err = job.Run(ctx, func(e api.Event) error {
		if e.Batch != nil {
			rows += e.Batch.Rows
		}
		return nil
	})
	return enough(err, rows, *req.N)
}

// overFlight does a request with a client.
func overFlight(ctx context.Context, c *client.Client, req api.Sample) error {
	rows := 0
	for m, err := range c.Sample(ctx, req) {
		if err != nil {
			return err
		}
		rows += m.Batch.Rows
	}
	return enough(nil, rows, *req.N)
}

func enough(err error, rows, want int) error {
	if err == nil && rows != want {
		return fmt.Errorf("%d samples of %d came", rows, want)
	}
	return err
}

// round takes every measure once, in an order that turns round.
func (b *bench) round(ctx context.Context, round int, to *series) error {
	large := b.request(b.cfg.N, 1)
	measures := []func() error{
		func() error {
			wall, cpu, err := timed(func() error { return b.inProcess(ctx, large) })
			to.engine, to.engineCPU = append(to.engine, wall), append(to.engineCPU, cpu)
			return err
		},
		func() error {
			wall, cpu, err := timed(func() error { return overFlight(ctx, b.together.clients[0], large) })
			to.flight, to.flightCPU = append(to.flight, wall), append(to.flightCPU, cpu)
			return err
		},
		func() error { return b.crowd(ctx, b.apart, &to.apart, &to.apartMid, &to.apartMax) },
		func() error {
			before := b.together.engine.Joined()
			err := b.crowd(ctx, b.together, &to.together, &to.togetherMid, &to.joinMax)
			b.joined += b.together.engine.Joined() - before
			return err
		},
	}
	if round%2 == 1 {
		slices.Reverse(measures)
	}
	for _, m := range measures {
		if err := m(); err != nil {
			return err
		}
	}
	return nil
}

// crowd lets all clients of a side ask at once, one request after the other each, and notes samples per second, the median
// latency and the longest.
func (b *bench) crowd(ctx context.Context, s *side, rate, mid, most *[]float64) error {
	var all sync.WaitGroup
	errs := make([]error, len(s.clients))
	took := make([][]float64, len(s.clients))
	start := time.Now()
	for i, c := range s.clients {
		all.Go(func() {
			for k := range b.cfg.Requests {
				began := time.Now()
				if errs[i] = overFlight(ctx, c, b.request(b.cfg.Each, uint64(1000*i+k))); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(began).Seconds())
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start).Seconds()
	latencies := slices.Sorted(slices.Values(slices.Concat(took...)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	*rate = append(*rate, float64(len(latencies)*b.cfg.Each)/elapsed)
	*mid = append(*mid, latencies[len(latencies)/2])
	*most = append(*most, latencies[len(latencies)-1])
	return nil
}
