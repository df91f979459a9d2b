package cli

import (
	"context"
	"fmt"
	"os/exec"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/internal/flightbench"
)

var benchFlightSpec = spec{
	use:   "flight",
	short: "Measure how fast tables travel over Arrow Flight",
	long: `Flight moves batches of 2 MiB by get, put, exchange and action, over this program's
service and over one made of arrow-go's stock reader and writer, with clients in Go and
in pyarrow, all on the loopback interface. A bare TCP connection and memcpy are measured
in the same rounds. The table gives medians over the rounds and quartiles in brackets;
ratios are taken within a round. See docs/benchmarks/flight.md.`,
	example: `  anisoflight bench flight
  anisoflight bench flight --rounds 21 --python .venv/bin/python --json > flight.json`,
	options: []option{
		{name: "mib", kind: whole, def: "256", usage: "`number` of MiB that each measure moves in a round"},
		{name: "rounds", kind: whole, def: "9", usage: "`number` of rounds"},
		{name: "python", usage: "`interpreter` with the package anisoflight (default: python3 if there is one; none: Go alone)"},
	},
	json: true,
	run:  runBenchFlight,
}

func runBenchFlight(ctx context.Context, e env) error {
	cfg := flightbench.Config{Bytes: int(e.whole("mib")) << 20, Rounds: int(e.whole("rounds")), Python: e.text("python")}
	switch cfg.Python {
	case "none":
		cfg.Python = ""
	case "":
		cfg.Python, _ = exec.LookPath("python3") // without one, Go's client alone is measured
	}
	cfg.Progress = func(round int) { e.log.Info("measuring", "round", round+1, "rounds", cfg.Rounds) }
	r, err := flightbench.Run(ctx, cfg)
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, r)
	}
	fmt.Fprintf(e.out, "%d rounds of %d MiB; medians (quartiles)\n\n", r.Rounds, r.Bytes>>20)
	t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "\t\tGB/s\tof bare TCP\tof stock\tlatency, µs\tstock's, µs\n")
	fmt.Fprintf(t, "memcpy\t\t%s\n", r.Memcpy.Text("%.2f"))
	fmt.Fprintf(t, "bare TCP\t\t%s\n", r.TCP.Text("%.2f"))
	for _, m := range r.Measures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Operation, m.Client, m.Rate.Text("%.2f"), m.OfTCP.Text("%.2f"),
			m.OfStock.Text("%.2f"), m.Latency.Text("%.0f"), m.StockLatency.Text("%.0f"))
	}
	return t.Flush()
}
