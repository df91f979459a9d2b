package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/internal/startbench"
	"github.com/anisoflight/anisoflight/kernels/device"
)

var benchCompileSpec = spec{
	use:   "compile",
	short: "Measure what the cache of compiled programs saves at a second start",
	long: `Compile starts this program again and again, in turn with an empty cache of compiled
programs and with what that start has left, and measures the time from the start of the
process to the first result, and the part of it that compiling took, or reading. It
checks that all starts compute the same bits. Programs are those of bench model. See
docs/benchmarks/compile.md.

With --once it does one program once, with the cache as it is, and prints two lines of
JSON: the times with the first result, then the result's digest.`,
	example: `  anisoflight bench compile
  anisoflight bench compile --network 32x32 --programs sample,step-full --rounds 3
  anisoflight bench compile --programs sample --once`,
	options: []option{
		{name: "network", kind: object, def: digitsNetwork, usage: "`name` or JSON of the network, as bench model takes it"},
		{name: "model", usage: "`folder` of a model, instead of --network"},
		{name: "batch", kind: whole, def: "8", usage: "`images` per batch"},
		{name: "programs", def: "sample,step-score,step-full", usage: "`list` of programs"},
		{name: "rounds", kind: whole, def: "3", usage: "`number` of first and second starts of each"},
		{name: "once", kind: toggle, usage: "do the one program once, in this process"},
		precisionOption, deviceOption,
	},
	json: true,
	run:  runBenchCompile,
}

func runBenchCompile(ctx context.Context, e env) error {
	programs := words(e.text("programs"))
	if e.whole("batch") < 1 || e.whole("rounds") < 1 || len(programs) == 0 {
		return usagef(e.cmd, "--batch is %d, --rounds is %d, --programs are %q; there must be some of each", e.whole("batch"), e.whole("rounds"), programs)
	}
	m, _, err := modelToMeasure(e)
	if err != nil {
		return err
	}
	if e.toggle("once") {
		if len(programs) != 1 {
			return usagef(e.cmd, "--once takes one program, not %d", len(programs))
		}
		precision, err := e.precision()
		if err != nil {
			return err
		}
		return startbench.Once(ctx, func() (*device.Device, error) { return openDevice(e) }, m, int(e.whole("batch")), programs[0], precision, e.out)
	}
	settings, err := e.arguments("network", "model", "batch", "precision", "device")
	if err != nil {
		return err
	}
	p := newProgress(e.err, e.log, "measuring")
	r, err := startbench.Run(ctx, startbench.Config{
		Programs: programs, Rounds: int(e.whole("rounds")),
		Command: func(program string) []string {
			return append([]string{"bench", "compile", "--once", "--programs", program}, settings...)
		},
		Progress: func(done, total int) { p.set(int64(done), int64(total), "") },
	})
	p.close()
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, r)
	}
	return printStarts(e.out, r)
}

// arguments gives settings of this command as flags, for another process.
func (e env) arguments(names ...string) (args []string, err error) {
	for _, name := range names {
		v := e.get(name)
		if !v.given {
			continue
		}
		text, ok := v.value.(string)
		if !ok {
			raw, err := json.Marshal(v.value)
			if err != nil {
				return nil, err
			}
			text = string(raw)
		}
		args = append(args, "--"+v.flag()+"="+text)
	}
	return args, nil
}

func printStarts(w io.Writer, r *startbench.Report) error {
	fmt.Fprintf(w, "%s, %d rounds; medians (quartiles)\n", r.Device, r.Rounds)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "PROGRAM\tCOMPILED, S\tFROM DISK, S\tRATIO\tFIRST START, S\tSECOND START, S\tRATIO\tSAME BITS")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%v\n", row.Program, row.Compile.Text("%.2f"), row.Load.Text("%.3f"), row.Ready.Text("%.0f"),
			row.First.Text("%.2f"), row.Second.Text("%.2f"), row.Start.Text("%.1f"), row.Identical)
	}
	return t.Flush()
}
