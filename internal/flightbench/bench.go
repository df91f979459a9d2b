package flightbench

import (
	"context"
	"errors"
	"slices"

	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/grpc"

	"github.com/anisoflight/anisoflight/flight"
)

// bench holds the services and the clients.
type bench struct {
	pixels [blocks][]float32
	series []series
	closes []func() error
}

// newBench starts everything.
func newBench(ctx context.Context, cfg Config) (*bench, error) {
	b := &bench{pixels: pixels()}
	if err := b.open(ctx, cfg); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) open(ctx context.Context, cfg Config) error {
	as, err := arrowSchema()
	if err != nil {
		return err
	}
	var addresses [2]string // of the project's service and of the stock one
	if addresses[0], err = b.serveOwn(ctx); err != nil {
		return err
	}
	if addresses[1], err = b.serveStock(ctx, newStock(as, b.pixels)); err != nil {
		return err
	}
	var goes [2]client
	for i, address := range addresses {
		c, err := newGoClient(address, i == 1, as, b.pixels)
		if err != nil {
			return err
		}
		b.closes = append(b.closes, c.close)
		goes[i] = c.times
	}
	clients := map[string][2]client{"Go": goes}
	names := []string{"Go"}
	if cfg.Python != "" {
		p, err := startPython(ctx, cfg.Python)
		if err != nil {
			return err
		}
		b.closes = append(b.closes, p.close)
		clients["pyarrow"] = [2]client{p.at("grpc://" + addresses[0]), p.at("grpc://" + addresses[1])}
		names = append(names, "pyarrow")
	}
	for _, operation := range operations {
		for _, name := range names {
			b.series = append(b.series, series{operation: operation, client: name, own: clients[name][0], stock: clients[name][1]})
		}
	}
	return nil
}

// serveOwn starts the project's service and gives its address.
func (b *bench) serveOwn(ctx context.Context) (string, error) {
	l, err := flight.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := flight.New(&rowsAtHand{b.pixels}, flight.Config{})
	b.start(func() error { return s.Serve(l) }, s.Stop)
	return l.Addr().String(), nil
}

// serveStock starts the stock service, with gRPC's own settings.
func (b *bench) serveStock(ctx context.Context, s *stock) (string, error) {
	l, err := flight.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	g := grpc.NewServer()
	arrowflight.RegisterFlightServiceServer(g, s)
	b.start(func() error { return g.Serve(l) }, g.Stop)
	return l.Addr().String(), nil
}

// start serves until close.
func (b *bench) start(serve func() error, stop func()) {
	served := make(chan error, 1)
	go func() { served <- serve() }()
	b.closes = append(b.closes, func() error {
		stop()
		return <-served
	})
}

// close ends clients and services, the latest first.
func (b *bench) close() error {
	var errs []error
	for _, c := range slices.Backward(b.closes) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
