package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/spf13/cobra"
)

func newService() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Measure what the service adds to sampling, and what dynamic batching saves",
		Long: `Service draws samples of one network over Flight, with a client on the loopback interface, and in turn with the
engine alone, all in this process: ratios of wall and of processor time, the client's included. Then several clients
ask at once for few samples each, of a server without and of one with dynamic batching. See
bench/docs/service.md.`,
		Example: `  anisoflight-bench service
  anisoflight-bench service --network 32x32 --n 64 --clients 16 --each 1
  anisoflight-bench service --slots 1 --rounds 21 --json > service.json`,
	}
	var flags modelFlags
	var s serviceBench
	var slots int
	f := cmd.Flags()
	flags.register(f, "digits")
	positiveFlag(f, &s.N, "n", 256, "`samples` of the request that is measured with and without the service")
	positiveFlag(f, &s.NFE, "nfe", 9, "`evaluations` for each sample")
	positiveFlag(f, &s.Clients, "clients", 8, "`number` of clients that ask at once")
	positiveFlag(f, &s.Each, "each", 4, "`samples` of each of their requests")
	positiveFlag(f, &s.Requests, "requests", 4, "`number` of requests of each of them in a round")
	positiveFlag(f, &slots, "slots", 0, "`number` of evaluations at a time (default: serve's own)")
	positiveFlag(f, &s.Rounds, "rounds", 9, "`number` of rounds")
	return runReport(cmd, func(ctx context.Context) (report, error) {
		return flags.withDevice(func(dev *device.Device, m *checkpoint.Model, at kernels.Precision) (report, error) {
			return s.measure(ctx, dev, m, engine.Config{Precision: at, Slots: int64(slots)}, progress(cmd))
		})
	})
}

// serviceSettings are the sizes and numbers of requests.
type serviceSettings struct {
	N        int `json:"n"`        // samples of the one large request
	NFE      int `json:"nfe"`      // evaluations for each sample
	Clients  int `json:"clients"`  // that ask at once
	Each     int `json:"each"`     // samples of each of their requests
	Requests int `json:"requests"` // of each of them in a round
	Rounds   int `json:"rounds"`
}

type serviceReport struct {
	serviceSettings
	Overhead   overhead   `json:"overhead"`
	Concurrent concurrent `json:"concurrent"`
}

// overhead compares one request for N samples over Flight with the same request to the engine in the same process.
type overhead struct {
	Engine quartiles `json:"engine_s"`
	Flight quartiles `json:"flight_s"`
	Wall   quartiles `json:"wall_ratio"` // Flight over Engine
	CPU    quartiles `json:"cpu_ratio"`  // the same in processor time, the client's included
}

// concurrent compares clients that ask at once for a few samples each, with and without dynamic batching.
type concurrent struct {
	Alone   traffic   `json:"alone"`
	Batched traffic   `json:"batched"`
	Rate    quartiles `json:"rate_ratio"`    // Batched over Alone
	Latency quartiles `json:"latency_ratio"` // of the medians
	Shared  float64   `json:"shared"`        // share of the evaluations that were made in another request's batch
}

// traffic is what concurrent clients see.
type traffic struct {
	Rate    quartiles `json:"samples_per_s"`
	Latency quartiles `json:"latency_s"` // median of a round's requests
	Worst   quartiles `json:"worst_s"`   // of a round's requests
}

// serviceBench holds a server with dynamic batching and one that evaluates every request alone.
type serviceBench struct {
	serviceSettings
	batched, alone *modelServer
}

// measure starts both servers on dev and takes every measure once a round. The first round compiles and is not counted.
func (b *serviceBench) measure(
	ctx context.Context, dev *device.Device, m *checkpoint.Model, cfg engine.Config, progress func(done, total int),
) (r *serviceReport, err error) {
	if b.batched, err = serveModel(ctx, dev, m, cfg, b.Clients); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.batched.close()) }()
	cfg.Apart = true
	if b.alone, err = serveModel(ctx, dev, m, cfg, b.Clients); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.alone.close()) }()
	if err := b.round(ctx, 0, series{}); err != nil {
		return nil, err
	}
	s := series{}
	before, err := b.batched.joined(ctx)
	if err != nil {
		return nil, err
	}
	for round := range b.Rounds {
		if err := b.round(ctx, round, s); err != nil {
			return nil, err
		}
		progress(round+1, b.Rounds)
	}
	after, err := b.batched.joined(ctx)
	if err != nil {
		return nil, err
	}
	evaluations := b.Rounds * b.Clients * b.Requests * b.NFE * ((b.Each + 7) / 8)
	trafficOf := func(server string) traffic {
		return traffic{
			Rate: s.quartiles(server), Latency: s.quartiles(server + " latency"), Worst: s.quartiles(server + " worst"),
		}
	}
	return &serviceReport{
		serviceSettings: b.serviceSettings,
		Overhead: overhead{
			Engine: s.quartiles("engine"), Flight: s.quartiles("flight"),
			Wall: s.ratio("flight", "engine"), CPU: s.ratio("flight cpu", "engine cpu"),
		},
		Concurrent: concurrent{
			Alone: trafficOf("alone"), Batched: trafficOf("batched"), Rate: s.ratio("batched", "alone"),
			Latency: s.ratio("batched latency", "alone latency"),
			Shared:  float64(after-before) / float64(evaluations),
		},
	}, nil
}

// round takes every measure once, every other time in the reverse order.
func (b *serviceBench) round(ctx context.Context, round int, s series) error {
	measures := []func() error{
		func() error { return b.large(s, "engine", func() error { return b.inProcess(ctx) }) },
		func() error {
			return b.large(s, "flight", func() error { return b.overFlight(ctx, b.batched.clients[0], b.N, 1) })
		},
		func() error { return b.concurrently(ctx, s, "alone", b.alone.clients) },
		func() error { return b.concurrently(ctx, s, "batched", b.batched.clients) },
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

func (b *serviceBench) large(s series, name string, request func() error) error {
	wall, cpu, err := measureTime(request)
	s.add(name, wall)
	s.add(name+" cpu", cpu)
	return err
}

// inProcess does the large request without the service.
func (b *serviceBench) inProcess(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"model": servedModel, "n": b.N, "seed": 1, "nfe": b.NFE, "solver": "ab"})
	if err != nil {
		return err
	}
	call, err := api.Operations().Call(api.ByGet, "Sample", body)
	if err != nil {
		return err
	}
	job, err := b.batched.engine.Prepare(ctx, call)
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
	if err == nil && rows != b.N {
		err = fmt.Errorf("%d samples of %d arrived", rows, b.N)
	}
	return err
}

// overFlight asks for n samples from a seed.
func (b *serviceBench) overFlight(ctx context.Context, c *client.Client, n int, seed uint64) error {
	return drawSamples(ctx, c, api.Sample{Model: servedModel, N: &n, Seed: seed, NFE: b.NFE, Solver: "ab"})
}

// concurrently lets all clients ask at once, one request after the other each, and notes samples per second, the
// median latency and the longest.
func (b *serviceBench) concurrently(ctx context.Context, s series, name string, clients []*client.Client) error {
	var all sync.WaitGroup
	errs := make([]error, len(clients))
	took := make([][]float64, len(clients))
	start := time.Now()
	for i, c := range clients {
		all.Go(func() {
			for k := range b.Requests {
				began := time.Now()
				if errs[i] = b.overFlight(ctx, c, b.Each, uint64(1000*i+k)); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(began).Seconds())
			}
		})
	}
	all.Wait()
	elapsed := time.Since(start).Seconds()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	latencies := slices.Sorted(slices.Values(slices.Concat(took...)))
	s.add(name, float64(len(latencies)*b.Each)/elapsed)
	s.add(name+" latency", latencies[len(latencies)/2])
	s.add(name+" worst", latencies[len(latencies)-1])
	return nil
}

func (r *serviceReport) table(t *tabwriter.Writer) {
	o, c := r.Overhead, r.Concurrent
	fmt.Fprintf(t, "%d rounds; medians (quartiles)\n\none request for %d samples of %d evaluations\n",
		r.Rounds, r.N, r.NFE)
	fmt.Fprintf(t, "engine alone, s\t%s\nover Flight, s\t%s\n", o.Engine.text("%.3f"), o.Flight.text("%.3f"))
	fmt.Fprintf(t, "Flight/engine, wall time\t%s\n", o.Wall.text("%.3f"))
	fmt.Fprintf(t, "Flight/engine, processor time\t%s\n\n", o.CPU.text("%.3f"))
	fmt.Fprintf(t, "%d clients at once, %d requests each for %d samples; ", r.Clients, r.Requests, r.Each)
	fmt.Fprintf(t, "%.0f %% of the evaluations in another request's batch\n", 100*c.Shared)
	fmt.Fprintln(t, "\tsamples/s\tmedian latency, s\tlongest, s")
	row := func(name string, v traffic) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, v.Rate.text("%.1f"), v.Latency.text("%.3f"), v.Worst.text("%.3f"))
	}
	row("each request alone", c.Alone)
	row("dynamic batching", c.Batched)
	fmt.Fprintf(t, "batching/alone\t%s\t%s\n", c.Rate.text("%.2f"), c.Latency.text("%.2f"))
}
