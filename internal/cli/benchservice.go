package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/internal/servebench"
)

var benchServiceSpec = spec{
	use:   "service",
	short: "Measure what the service adds to sampling, and what joint evaluations gain",
	long: `Service draws samples of one network over Flight, with a client on the loopback
interface, and in turn with the engine alone, all in this process: ratios of wall and of
processor time, the client's included. Then many clients ask at once for few samples
each, of a server that evaluates each request by itself and of one that evaluates
together what waits together. Medians over the rounds and quartiles in brackets; ratios
are taken within a round. See docs/benchmarks/service.md.`,
	example: `  anisoflight bench service
  anisoflight bench service --network 32x32 --n 64 --clients 16 --each 1
  anisoflight bench service --seats 1 --rounds 21 --json > service.json`,
	options: []option{
		{name: "network", kind: object, def: digitsNetwork, usage: "`name` or JSON of the network, as bench model takes it"},
		{name: "model", usage: "`folder` of a model, instead of --network"},
		{name: "n", kind: whole, def: "256", usage: "`samples` of the request that is measured with and without the service"},
		{name: "nfe", kind: whole, def: "9", usage: "`evaluations` for each sample"},
		{name: "clients", kind: whole, def: "8", usage: "`number` of clients that ask at once"},
		{name: "each", kind: whole, def: "4", usage: "`samples` of each of their requests"},
		{name: "requests", kind: whole, def: "4", usage: "`number` of requests of each of them in a round"},
		{name: "seats", kind: whole, usage: "`number` of evaluations at a time (default: serve's own)"},
		{name: "rounds", kind: whole, def: "9", usage: "`number` of rounds"},
		deviceOption,
	},
	json: true,
	run:  runBenchService,
}

func runBenchService(ctx context.Context, e env) error {
	for _, count := range []string{"n", "nfe", "clients", "each", "requests", "rounds"} {
		if n := e.whole(count); n < 1 {
			return usagef(e.cmd, "--%s is %d; it is at least 1", count, n)
		}
	}
	m, _, err := modelToMeasure(e)
	if err != nil {
		return err
	}
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	p := newProgress(e.err, e.log, "measuring")
	r, err := servebench.Run(ctx, dev, servebench.Config{
		Model: m, N: int(e.whole("n")), NFE: int(e.whole("nfe")), Clients: int(e.whole("clients")), Each: int(e.whole("each")),
		Requests: int(e.whole("requests")), Seats: e.whole("seats"), Rounds: int(e.whole("rounds")),
		Progress: func(round int) { p.set(int64(round), e.whole("rounds"), "") },
	})
	p.close()
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, r)
	}
	return printService(e.out, r)
}

func printService(w io.Writer, r *servebench.Report) error {
	o, c := r.Overhead, r.Crowd
	fmt.Fprintf(w, "%d rounds; medians (quartiles)\n\none request for %d samples of %d evaluations\n", r.Rounds, r.N, r.NFE)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "engine alone, s\t%s\nover Flight, s\t%s\n", o.Engine.Text("%.3f"), o.Flight.Text("%.3f"))
	fmt.Fprintf(t, "Flight/engine, wall time\t%s\nFlight/engine, processor time\t%s\n", o.Wall.Text("%.3f"), o.CPU.Text("%.3f"))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d clients at once, %d requests each for %d samples; %.0f %% of the evaluations joined\n", r.Clients, r.Requests, r.Each, 100*c.Joined)
	fmt.Fprintln(t, "\tsamples/s\tmedian latency, s\tlongest, s")
	for _, row := range []struct {
		name string
		servebench.Traffic
	}{{"each by itself", c.Apart}, {"together", c.Together}} {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.name, row.Rate.Text("%.1f"), row.Latency.Text("%.3f"), row.Worst.Text("%.3f"))
	}
	fmt.Fprintf(t, "together/by itself\t%s\t%s\n", c.Rate.Text("%.2f"), c.Latency.Text("%.2f"))
	return t.Flush()
}
