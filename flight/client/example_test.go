package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"slices"

	"github.com/anisoflight/anisoflight/flight"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// serve starts a server in this process, with a mixture of two Gaussians on the line as the model "two".
func serve(cfg flight.Config) (location string, stop func(), err error) {
	return serveAt("127.0.0.1:0", cfg)
}

// serveAt is serve at an address.
func serveAt(address string, cfg flight.Config) (location string, stop func(), err error) {
	dir, err := os.MkdirTemp("", "client")
	if err != nil {
		return "", nil, err
	}
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		return "", nil, err
	}
	cfg.Logger = slog.New(slog.DiscardHandler)
	ctx := context.Background()
	eng, err := engine.Open(ctx, engine.Config{Dir: dir, Logger: cfg.Logger, Device: dev})
	if err != nil {
		return "", nil, err
	}
	mixture := `{"name":"two","means":[[-1],[1]],"covariances":[[[0.01]],[[0.01]]],"labels":[0,1]}`
	call, err := eng.Operations().Call(api.ByAction, "MakeModel", []byte(mixture))
	if err != nil {
		return "", nil, err
	}
	if _, err := eng.Action(ctx, call, nil); err != nil {
		return "", nil, err
	}
	listener, err := flight.Listen(ctx, address)
	if err != nil {
		return "", nil, err
	}
	server := flight.New(eng, cfg)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return flight.Location(listener, cfg.TLS != nil), func() {
		server.Stop()
		if err := errors.Join(<-served, eng.Close(ctx), dev.Close(), os.RemoveAll(dir)); err != nil {
			log.Print(err)
		}
	}, nil
}

func Example() {
	location, stop, err := serve(flight.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()

	ctx := context.Background()
	c, err := client.Dial(ctx, location, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	request := api.Sample{Model: "two", Labels: []int32{0, 1, 1}, Steps: 18, Output: api.Output{DType: "float32"}}
	for m, err := range c.Sample(ctx, request) {
		if err != nil {
			log.Fatal(err)
		}
		if m.Batch.Rows == 0 { // progress
			continue
		}
		for _, x := range api.ColumnOf[float32](m.Schema, m.Batch, "sample") {
			fmt.Printf("%+.0f ", x)
		}
		fmt.Println(m.Meta["event"], m.Meta["done"], "of", m.Meta["total"])
	}
	// Output: -1 +1 +1 batch 3 of 3
}

// Operations that take rows have an iterator of batches.
func ExampleClient_Denoise() {
	location, stop, err := serve(flight.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	ctx := context.Background()
	c, err := client.Dial(ctx, location, client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	in := client.Input{
		Schema: api.Schema{Columns: []api.Column{
			{Name: "x", Type: api.Float32, Kind: api.Tensor, Shape: []int{1, 1, 1}, DimNames: []string{"H", "W", "C"}},
			{Name: "label", Type: api.Int32},
			{Name: "sigma", Type: api.Float64},
		}},
		Batches: slices.Values([]api.Batch{
			{Rows: 2, Cols: []any{[]float32{-0.9, 0.7}, []int32{0, 1}, []float64{1e-3, 1e-3}}},
		}),
	}
	schema, all, end, err := client.ReadAll(c.Denoise(ctx, api.Denoise{Model: "two"}, in))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f %v\n", api.ColumnOf[float32](schema, all, "denoised"), end["event"])
	// Output: [-0.900 0.700] end
}
