package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/internal/modelbench"
	"github.com/anisoflight/anisoflight/internal/stat"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

var benchModelSpec = spec{
	use:   "model",
	short: "Measure a network's programs: evaluation, derivatives, training steps, sampling",
	long: `Model runs the programs of one network in turn: the network (forward), its derivative
by the image (vjp) and by the parameters, the derivative of the former (double), whole
training steps, and sampling in nine evaluations, in this process and through Flight.
It prints medians and quartiles of wall and processor time per batch, the batch's work
and the share of the device's own rate of matrix products in the same precision (MFU).

The network is that of a model folder, or with random values a built-in one (8x8, 32x32
or cifar10) or one in JSON as in a config.json. --write only writes that model folder.
With --drive the command does what lines of JSON on standard input say and answers on
standard output; docs/benchmarks/model.md compares with PyTorch that way.`,
	example: `  anisoflight bench model --network 8x8
  anisoflight bench model --model data/models/digits --batch 64 --programs forward,step-full
  anisoflight bench model --network 32x32 --write data/models/bench
  echo '{"run":"forward","calls":3}' | anisoflight bench model --network 8x8 --drive`,
	options: append([]option{
		{name: "network", kind: object, def: "8x8", usage: "`name` or JSON of the network"},
		{name: "model", usage: "`folder` of a model, instead of --network"},
		{name: "batch", kind: whole, usage: "`images` per batch (default: the built-in network's own, else 64)"},
		{name: "programs", usage: "`list` of programs: " + strings.Join(modelbench.Programs(), ",") + " (default all)"},
		{name: "repeats", kind: whole, def: "9", usage: "`number` of rounds"},
		{name: "drive", kind: toggle, usage: "take orders from standard input"},
		{name: "write", usage: "`folder` to write the network's model to, and nothing else"},
		precisionOption, deviceOption,
	}, gpuOptions...),
	json: true,
	run:  runBenchModel,
}

func runBenchModel(ctx context.Context, e env) error {
	m, batch, err := modelToMeasure(e)
	if err != nil {
		return err
	}
	if given := e.get("batch"); given.given {
		batch = int(e.whole("batch"))
	}
	if batch < 1 || e.whole("repeats") < 1 {
		return usagef(e.cmd, "--batch is %d, --repeats is %d; both are at least 1", batch, e.whole("repeats"))
	}
	if dir := e.text("write"); dir != "" {
		return checkpoint.SaveModel(dir, m, false)
	}
	precision, err := e.precision()
	if err != nil {
		return err
	}
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	b, err := modelbench.Open(dev, m, batch, precision)
	if err != nil {
		return err
	}
	defer b.Close()
	if e.toggle("drive") {
		return modelbench.Drive(ctx, b, e.cmd.InOrStdin(), e.out)
	}
	programs := modelbench.Programs()
	if list := e.text("programs"); list != "" {
		programs = words(list)
	}
	p := newProgress(e.err, e.log, "measuring")
	r, err := modelbench.Measure(ctx, b, programs, int(e.whole("repeats")), func(done, total int) { p.set(int64(done), int64(total), "") })
	p.close()
	if err != nil {
		return err
	}
	if e.json {
		return printJSON(e.out, r)
	}
	return printModelCost(e.out, r)
}

// modelToMeasure reads the model, or makes it of a configuration, and gives its usual batch.
func modelToMeasure(e env) (*checkpoint.Model, int, error) {
	if dir := e.text("model"); dir != "" {
		if e.get("network").given {
			return nil, 0, usagef(e.cmd, "--model and --network exclude each other")
		}
		m, err := checkpoint.LoadModel(dir)
		return m, 64, err
	}
	builtin := modelbench.Builtin{Batch: 64}
	var err error
	switch v := e.get("network").value.(type) {
	case string:
		builtin, err = modelbench.BuiltinNamed(v)
	case map[string]any:
		var text []byte
		text, err = json.Marshal(v)
		builtin.Config = string(text)
	default:
		err = errors.New("it is a name, or an object as in a config.json")
	}
	if err != nil {
		return nil, 0, usagef(e.cmd, "--network: %w", err)
	}
	cfg, err := unet.ParseConfig([]byte(builtin.Config))
	if err != nil {
		return nil, 0, usagef(e.cmd, "--network: %w", err)
	}
	m, err := modelbench.Random(cfg, 1)
	return m, builtin.Batch, err
}

func printModelCost(w io.Writer, r modelbench.Report) error {
	fmt.Fprintf(w, "%s, %s, %.3g M parameters, batch %d; matrix products %.4g GFLOP/s\n", r.Device, r.Precision, float64(r.Parameters)/1e6, r.Batch, r.Matmul)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "PROGRAM\tMS\tPROCESSOR MS\tIMAGES/S\tGFLOP\tGFLOP/S\tMFU\tCOMPILE S\tMEMORY")
	for _, row := range r.Rows {
		memory, compile := "", fmt.Sprintf("%.1f", row.Seconds)
		if row.Memory != nil {
			memory = fmt.Sprintf("%.1f MiB", float64(row.Memory.Total())/(1<<20))
		}
		if row.FromDisk {
			compile += " (from disk)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.4g\t%.4g\t%.4g\t%.1f %%\t%s\t%s\n", row.Program, milliseconds(row.Wall), milliseconds(row.CPU),
			float64(r.Batch)/row.Wall.Median, float64(row.FLOPs)/1e9, row.GFLOPS, 100*row.MFU, compile, memory)
	}
	return t.Flush()
}

func milliseconds(s stat.Stat) string {
	return stat.Stat{Low: 1e3 * s.Low, Median: 1e3 * s.Median, High: 1e3 * s.High}.Text("%.1f")
}
