package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/spf13/cobra"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "Measure a network's programs: evaluation, derivatives, training steps, sampling",
		Long: `Model runs the programs of one network in turn: the network (forward), its derivative by the image (vjp) and by
the parameters, the derivative of the former (double), whole training steps, and sampling in 9 and in 35
evaluations. The table has wall and processor time per batch, the batch's work and the share of the
device's own rate of matrix products in the same precision (MFU).

The network has random values, unless it is that of a model folder. --write writes a model folder and measures nothing.
With --drive the command does what lines of JSON on standard input say and answers on standard output;
bench/docs/model.md compares with PyTorch that way.`,
		Example: `  anisoflight-bench model --network 8x8
  anisoflight-bench model --model data/models/digits --batch 64 --programs forward,step-full
  anisoflight-bench model --network 32x32 --write data/models/bench
  echo '{"run":"forward","calls":3}' | anisoflight-bench model --network 8x8 --drive`,
	}
	f := cmd.Flags()
	programs := f.StringSlice("programs", modelPrograms, "`list` of programs: "+strings.Join(programNames(), ","))
	drive := f.Bool("drive", false, "take orders from standard input")
	write := f.String("write", "", "`folder` to write the network's model to, and nothing else")
	return runModelReport(cmd, "8x8", 9, func(ctx context.Context, flags *modelFlags, rounds int) (report, error) {
		if *write != "" {
			m, err := flags.load()
			if err != nil {
				return nil, err
			}
			return nil, checkpoint.SaveModel(*write, m, false)
		}
		return flags.withBench(modelOptions{}, func(b *modelBench) (report, error) {
			if *drive {
				return nil, b.drive(ctx, cmd.InOrStdin(), cmd.OutOrStdout())
			}
			return b.measure(ctx, *programs, rounds, progress(cmd))
		})
	})
}

func newEstimator() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "estimator",
		Short: "Measure what a training step costs by mode of the estimator",
		Long: `Estimator takes training steps with each mode of the estimator of the schedule's gradient in turn and compares
their times with those of explicit in the same round. Loss is a step without that gradient: with the network trained,
a plain training step. Memory is what the compiler counts for the step's program: arguments, outputs and temporaries;
estimated is what a run reports before it is compiled. See bench/docs/estimator.md.`,
		Example: `  anisoflight-bench estimator
  anisoflight-bench estimator --train-network=false --basis dct --batch 128
  anisoflight-bench estimator --network '{"img_resolution":32,"img_channels":3,"model_channels":32}' --json`,
	}
	f := cmd.Flags()
	basisName := f.String("basis", "none", "`basis` of the subspaces: none or dct")
	trained := f.Bool("train-network", true, "train the network in the step, too")
	return runModelReport(cmd, "digits", 15, func(ctx context.Context, flags *modelFlags, rounds int) (report, error) {
		if *basisName != "none" && *basisName != "dct" {
			return nil, fmt.Errorf("basis must be none or dct, got %q", *basisName)
		}
		options := modelOptions{dct: *basisName == "dct", frozen: !*trained}
		return flags.withBench(options, func(b *modelBench) (report, error) {
			return b.measure(ctx, estimatorPrograms, rounds, progress(cmd))
		})
	})
}

// runModelReport is runReport with the flags of a model and the number of rounds.
func runModelReport(
	cmd *cobra.Command, network string, rounds int,
	measure func(ctx context.Context, flags *modelFlags, rounds int) (report, error),
) *cobra.Command {
	var flags modelFlags
	flags.register(cmd.Flags(), network)
	positiveFlag(cmd.Flags(), &rounds, "repeats", rounds, "`number` of rounds")
	return runReport(cmd, func(ctx context.Context) (report, error) { return measure(ctx, &flags, rounds) })
}

// withBench hands a bench of the flags' model to f and returns its report.
func (m *modelFlags) withBench(o modelOptions, f func(b *modelBench) (report, error)) (report, error) {
	return m.withDevice(func(dev *device.Device, model *checkpoint.Model, at kernels.Precision) (r report, err error) {
		o.batch, o.precision = m.batch, at
		b, err := openModel(dev, model, o)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.close()) }()
		return f(b)
	})
}

// modelRow is what a program costs, per call.
type modelRow struct {
	compiled
	Wall   quartiles `json:"wall"`   // seconds
	Ratio  quartiles `json:"ratio"`  // of Wall, to the first program's
	CPU    quartiles `json:"cpu"`    // seconds of processor time
	FLOPs  int64     `json:"flops"`  // of one call, as device.Program counts them
	GFLOPS float64   `json:"gflops"` // per second, at the median
	MFU    float64   `json:"mfu"`    // the same as a share of the rate of matrix products
}

type modelReport struct {
	Device     string     `json:"device"`
	Precision  string     `json:"precision"`
	Parameters int        `json:"parameters"`
	Batch      int        `json:"batch"`
	Matmul     float64    `json:"matmul_gflops"` // the device's rate of matrix products in that precision
	Rows       []modelRow `json:"rows"`
}

// measure compiles the programs and runs each once a round.
func (b *modelBench) measure(
	ctx context.Context, programs []string, rounds int, progress func(done, total int),
) (*modelReport, error) {
	r := &modelReport{
		Device: b.dev.Name(), Precision: string(b.precision), Parameters: b.net.ParamCount(), Batch: b.inputs.batch,
		Rows: make([]modelRow, len(programs)),
	}
	var err error
	if r.Matmul, err = b.matmul(ctx); err != nil {
		return nil, err
	}
	total := (rounds + 1) * len(programs)
	for i, name := range programs {
		if r.Rows[i].compiled, err = b.compile(ctx, name); err != nil {
			return nil, err
		}
		progress(i+1, total)
	}
	wall, cpu := series{}, series{}
	for round := range rounds {
		for i, name := range programs {
			t, err := b.run(ctx, name, 1)
			if err != nil {
				return nil, err
			}
			wall.add(name, t.Wall)
			cpu.add(name, t.CPU)
			r.Rows[i].FLOPs = t.FLOPs
			progress((round+1)*len(programs)+i+1, total)
		}
	}
	for i, name := range programs {
		row := &r.Rows[i]
		row.Wall, row.CPU = wall.quartiles(name), cpu.quartiles(name)
		row.Ratio = wall.ratio(name, programs[0])
		row.GFLOPS = float64(row.FLOPs) / 1e9 / row.Wall.Median
		row.MFU = row.GFLOPS / r.Matmul
	}
	return r, nil
}

func (r *modelReport) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%s, %s, %.3g M parameters, batch %d; matrix products %.4g GFLOP/s\n",
		r.Device, r.Precision, float64(r.Parameters)/1e6, r.Batch, r.Matmul)
	fmt.Fprintln(t, "PROGRAM\tMS\tOF FIRST\tPROCESSOR MS\tIMAGES/S\tGFLOP\tGFLOP/S\tMFU\tCOMPILE S\tMEMORY")
	for _, row := range r.Rows {
		compile := fmt.Sprintf("%.1f", row.Seconds)
		if row.FromDisk {
			compile += " (from disk)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g\t%.4g\t%.4g\t%.1f %%\t%s\t%s\n", row.Program,
			row.Wall.scaled(1e3).text("%.1f"), row.Ratio.text("%.2f"), row.CPU.scaled(1e3).text("%.1f"),
			float64(r.Batch)/row.Wall.Median, float64(row.FLOPs)/1e9, row.GFLOPS, 100*row.MFU,
			compile, mebibytes(row.Memory))
	}
}

func mebibytes(m *device.Memory) string {
	if m == nil {
		return ""
	}
	return fmt.Sprintf("%.1f MiB", float64(m.Total())/(1<<20))
}
