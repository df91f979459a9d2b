package bench

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMemory() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Measure how much memory a process needs that runs one program of a network, and for how long",
		Long: `Memory gives every program two processes: the first compiles it and runs it, the second reads it from the cache
and runs it. It reports the peak resident memory of each, the seconds to compile and of a call, and the estimate for a
training step: arguments, outputs and temporaries. The network is EDM's for CIFAR-10, with random values, if no other is
given. See bench/docs/memory.md.`,
		Example: `  anisoflight-bench memory
  anisoflight-bench memory --network 32x32 --batch 8 --programs step-score,step-full --repeats 5`,
	}
	var flags modelFlags
	f, of := cmd.Flags(), pflag.NewFlagSet("model", pflag.ContinueOnError)
	flags.register(of, "cifar10")
	flags.batch = 2
	f.AddFlagSet(of)
	programs := f.StringSlice("programs", []string{"step-score", "step-full", "sample"}, "`list` of programs")
	rounds := 3
	positiveFlag(f, &rounds, "repeats", rounds, "`number` of calls that are timed")
	return runReport(cmd, func(ctx context.Context) (report, error) {
		args := []string{"model", "--drive"}
		of.VisitAll(func(flag *pflag.Flag) { args = append(args, "--"+flag.Name+"="+flag.Value.String()) })
		return measureMemory(ctx, args, *programs, rounds, progress(cmd))
	})
}

type memoryReport struct {
	hello
	Rows []memoryRow `json:"rows"`
}

// memoryRow is what one program takes.
type memoryRow struct {
	Program   string         `json:"program"`
	Compile   float64        `json:"compile_seconds"`
	Wall      quartiles      `json:"wall"`                // seconds of a call
	CPU       quartiles      `json:"cpu"`                 // of processor time
	Compiling int64          `json:"compiling_bytes"`     // the most that was resident of the process that compiled
	Running   int64          `json:"running_bytes"`       // and of the one that had nothing to compile
	Estimated *device.Memory `json:"estimated,omitempty"` // of a training step, from its graph
}

// measureMemory starts this program twice for each program of the network.
func measureMemory(
	ctx context.Context, args, programs []string, rounds int, progress func(done, total int),
) (r *memoryReport, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "anisoflight-programs-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r = &memoryReport{}
	for i, program := range programs {
		row := memoryRow{Program: program}
		var ready, again compiled
		var first, second peak
		orders := []order{{Compile: program}, {Peak: program}}
		if _, err := driveProcess(ctx, exe, args, dir, orders, &r.hello, &ready, &first); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		progress(2*i+1, 2*len(programs))
		calls, answers := make([]timing, rounds), []any{&r.hello, &again, &second}
		for n := range calls {
			orders, answers = append(orders, order{Run: program}), append(answers, &calls[n])
		}
		if _, err := driveProcess(ctx, exe, args, dir, orders, answers...); err != nil {
			return nil, fmt.Errorf("%s: %w", program, err)
		}
		progress(2*i+2, 2*len(programs))
		row.Compile, row.Estimated = ready.Seconds, ready.Memory
		row.Compiling, row.Running = first.Process, second.Process
		s := series{}
		for _, t := range calls {
			s.add("wall", t.Wall)
			s.add("cpu", t.CPU)
		}
		row.Wall, row.CPU = s.quartiles("wall"), s.quartiles("cpu")
		r.Rows = append(r.Rows, row)
	}
	return r, nil
}

func (r *memoryReport) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%s, %s, %.3g M parameters, batch %d\n", r.Device, r.Precision, float64(r.Parameters)/1e6, r.Batch)
	fmt.Fprintln(t, "PROGRAM\tCOMPILE S\tCALL S\tPROCESSOR S\tPEAK, COMPILING\tPEAK, RUNNING\tESTIMATED")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%.1f\t%s\t%s\t%.2f GB\t%.2f GB\t%s\n", row.Program, row.Compile, row.Wall.text("%.2f"),
			row.CPU.text("%.2f"), float64(row.Compiling)/1e9, float64(row.Running)/1e9, mebibytes(row.Estimated))
	}
}
