package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/anisoflight/anisoflight/flight"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"
)

func newFlight() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flight",
		Short: "Measure how fast tables travel over Arrow Flight",
		Long: `Flight moves batches of 2 MiB by get, put, exchange and action, over this project's service and over one made
of arrow-go's stock reader and writer, with clients in Go and, with --python, in pyarrow, all on the loopback
interface. A bare TCP connection is measured in the same rounds. See bench/docs/flight.md.`,
		Example: `  anisoflight-bench flight
  PYTHONPATH=bench anisoflight-bench flight --rounds 21 --python .venv/bin/python --json > flight.json`,
	}
	var b flightBench
	var mib int
	f := cmd.Flags()
	positiveFlag(f, &mib, "mib", 256, "`number` of MiB that each measure moves in a round")
	positiveFlag(f, &b.rounds, "rounds", 9, "`number` of rounds")
	positiveFlag(f, &b.latencies, "latencies", 50, "`number` of requests for one row in a round")
	f.StringVar(&b.python, "python", "",
		"`interpreter` with pyarrow, and bench_flight.py on its PYTHONPATH (default: Go's client alone)")
	f.BoolVar(&b.unix, "unix", false, "serve on unix sockets, in place of the loopback interface")
	return runReport(cmd, func(ctx context.Context) (report, error) {
		b.batches = mib << 20 / batchBytes
		return b.measure(ctx, progress(cmd))
	})
}

type flightReport struct {
	Bytes    int             `json:"bytes"` // in a round
	Rounds   int             `json:"rounds"`
	TCP      quartiles       `json:"tcp_gb_per_s"` // GB are 10⁹ bytes
	Measures []flightMeasure `json:"measures"`
}

// flightMeasure is one operation by one client. An exchange moves its bytes both ways; they are counted once.
type flightMeasure struct {
	Operation    string    `json:"operation"`
	Client       string    `json:"client"`
	Rate         quartiles `json:"gb_per_s"`
	Stock        quartiles `json:"stock_gb_per_s"` // of arrow-go's stock service and, in Go, its stock client
	OfTCP        quartiles `json:"of_tcp"`         // Rate over TCP's
	OfStock      quartiles `json:"of_stock"`       // Rate over Stock
	Latency      quartiles `json:"latency_us"`     // of a request for one row
	StockLatency quartiles `json:"stock_latency_us"`
}

// flightOperations are measured.
var flightOperations = []string{"get", "put", "exchange", "action"}

// flightPair are the clients of one kind, of this project's service and of the stock one.
type flightPair struct {
	name       string
	own, stock flightClient
}

// flightBench holds the services and the clients.
type flightBench struct {
	closers
	batches, rounds, latencies int
	python                     string
	unix                       bool // serve on unix sockets
	pixels                     [blocks][]float32
	clients                    []flightPair
}

// measure starts everything and takes every measure once a round, every other time the stock service first.
func (b *flightBench) measure(ctx context.Context, progress func(done, total int)) (r *flightReport, err error) {
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	r = &flightReport{Bytes: b.batches * batchBytes, Rounds: b.rounds}
	gigabytes := func(took time.Duration) float64 { return float64(r.Bytes) / float64(took.Nanoseconds()) }
	one := func(s series, name string, do flightClient, operation string) error {
		took, err := do(ctx, operation, b.batches*batchRows, 1)
		if err != nil {
			return err
		}
		s.add(name, gigabytes(took[0]))
		if took, err = do(ctx, operation, 1, b.latencies); err != nil {
			return err
		}
		slices.Sort(took)
		s.add(name+" latency", float64(took[len(took)/2].Nanoseconds())/1e3)
		return nil
	}
	all := series{}
	measures := map[string]series{}
	for round := range b.rounds {
		for _, operation := range flightOperations {
			for _, c := range b.clients {
				s := measures[operation+c.name]
				if s == nil {
					s = series{}
					measures[operation+c.name] = s
				}
				took, err := bareTCP(ctx, r.Bytes)
				if err != nil {
					return nil, err
				}
				all.add("tcp", gigabytes(took))
				s.add("tcp", gigabytes(took))
				own := func() error { return one(s, "own", c.own, operation) }
				stock := func() error { return one(s, "stock", c.stock, operation) }
				if round%2 == 0 {
					own, stock = stock, own
				}
				if err := own(); err != nil {
					return nil, err
				}
				if err := stock(); err != nil {
					return nil, err
				}
			}
		}
		progress(round+1, b.rounds)
	}
	r.TCP = all.quartiles("tcp")
	for _, operation := range flightOperations {
		for _, c := range b.clients {
			s := measures[operation+c.name]
			r.Measures = append(r.Measures, flightMeasure{
				Operation: operation, Client: c.name, Rate: s.quartiles("own"), Stock: s.quartiles("stock"),
				OfTCP: s.ratio("own", "tcp"), OfStock: s.ratio("own", "stock"),
				Latency: s.quartiles("own latency"), StockLatency: s.quartiles("stock latency"),
			})
		}
	}
	return r, nil
}

// open starts the services and the clients.
func (b *flightBench) open(ctx context.Context) error {
	b.pixels = pixels()
	as, err := arrowSchema()
	if err != nil {
		return err
	}
	service := flight.New(&memoryEngine{b.pixels}, flight.Config{})
	addresses := [2]string{loopback, loopback}
	if b.unix {
		dir, err := os.MkdirTemp("", "anisoflight-bench-*")
		if err != nil {
			return err
		}
		b.add(func() error { return os.RemoveAll(dir) })
		addresses = [2]string{"unix:" + filepath.Join(dir, "own"), "unix:" + filepath.Join(dir, "stock")}
	}
	own, err := b.serve(ctx, addresses[0], service.Serve, service.Stop)
	if err != nil {
		return err
	}
	g := grpc.NewServer() // with gRPC's own settings
	arrowflight.RegisterFlightServiceServer(g, newStock(as, b.pixels))
	stock, err := b.serve(ctx, addresses[1], g.Serve, g.Stop)
	if err != nil {
		return err
	}
	var clients [2]flightClient
	for i, l := range []net.Listener{own, stock} {
		target := l.Addr().String()
		if b.unix {
			target = addresses[i]
		}
		c, err := newGoClient(target, i == 1, as, b.pixels)
		if err != nil {
			return err
		}
		b.add(c.conn.Close)
		clients[i] = c.repeat
	}
	b.clients = []flightPair{{"Go", clients[0], clients[1]}}
	if b.python == "" {
		return nil
	}
	p, err := startPython(ctx, b.python)
	if err != nil {
		return err
	}
	b.add(p.close)
	location := func(l net.Listener) flightClient { return p.clientOf(flight.Location(l, false)) }
	b.clients = append(b.clients, flightPair{"pyarrow", location(own), location(stock)})
	return nil
}

func (r *flightReport) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%d rounds of %d MiB; medians (quartiles)\n\n", r.Rounds, r.Bytes>>20)
	fmt.Fprintf(t, "\t\tGB/s\tof bare TCP\tof stock\tlatency, µs\tstock's, µs\n")
	fmt.Fprintf(t, "bare TCP\t\t%s\n", r.TCP.text("%.2f"))
	for _, m := range r.Measures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Operation, m.Client, m.Rate.text("%.2f"), m.OfTCP.text("%.2f"),
			m.OfStock.text("%.2f"), m.Latency.text("%.0f"), m.StockLatency.text("%.0f"))
	}
}
