package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/spf13/cobra"
)

func newLower() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lower FOLDER",
		Short: "Write a network's programs as XLA for GPUs would get them",
		Long: `Lower writes the programs of one network as StableHLO, in the form that a CUDA plugin would be given:
FOLDER gets PROGRAM.mlir and PROGRAM.json, which has the floating-point operations and the estimate of its memory.
Nothing large is compiled. bench/gpu_compile.py compiles the files for a GPU that is not there; bench/docs/gpu.md has
the figures.`,
		Example: `  anisoflight-bench lower programs --network cifar10 --batch 128 --precision bfloat16`,
	}
	var flags modelFlags
	f := cmd.Flags()
	flags.register(f, "cifar10")
	programs := f.StringSlice("programs", []string{"sample", "step-score", "step-full"},
		"`list` of programs: "+strings.Join(programNames(), ","))
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for _, name := range *programs { // each on a model that is opened for it: a step holds four times its parameters
			l, err := flags.lower(cmd.Context(), name)
			if err == nil {
				err = writeProgram(args[0], name, l)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d bytes, %.4g GFLOP\n", name, len(l.Text), float64(l.FLOPs)/1e9)
		}
		return nil
	}
	return cmd
}

// lower returns the first program with products that the benchmark of that name runs.
func (m *modelFlags) lower(ctx context.Context, name string) (last device.Lowered, err error) {
	m.device.Plugin = string(device.CPU)
	m.device.Lower = func(l device.Lowered) bool {
		last = l
		return l.FLOPs > 0
	}
	_, err = m.withBench(modelOptions{}, func(b *modelBench) (report, error) {
		if b.dev.Name() == "go" {
			return nil, errors.New("no XLA plugin for processors, which writes programs: run make build")
		}
		_, err := b.compile(ctx, name)
		return nil, err
	})
	switch {
	case errors.Is(err, device.ErrLowered):
		return last, nil
	case err == nil:
		err = errors.New("it has no convolution and no product")
	}
	return last, err
}

// writeProgram writes a program to a folder.
func writeProgram(folder, name string, l device.Lowered) error {
	counts, err := json.Marshal(map[string]any{"key": l.Key, "flops": l.FLOPs, "memory": l.Memory})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name+".mlir"), l.Text, 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, name+".json"), counts, 0o666)
}
