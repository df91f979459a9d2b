package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newCompile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compile",
		Short: "Measure what the cache of compiled programs saves at a second start",
		Long: `Compile starts this program with an empty cache of compiled programs and then with the cache that this start
left, in turn. It measures the time from the start of the process to the first result, and the part of it that compiling
or reading took. It checks that all starts compute the same bits. Programs are those of model. See
bench/docs/compile.md.`,
		Example: `  anisoflight-bench compile
  anisoflight-bench compile --network 32x32 --programs sample,step-full --rounds 3`,
	}
	var flags modelFlags
	f, of := cmd.Flags(), pflag.NewFlagSet("model", pflag.ContinueOnError)
	flags.register(of, "digits")
	flags.batch = 8
	f.AddFlagSet(of)
	programs := f.StringSlice("programs", []string{"sample", "step-score", "step-full"}, "`list` of programs")
	var rounds int
	positiveFlag(f, &rounds, "rounds", 3, "`number` of first and second starts of each")
	return runReport(cmd, func(ctx context.Context) (report, error) {
		args := []string{"model", "--drive"}
		of.VisitAll(func(flag *pflag.Flag) { args = append(args, "--"+flag.Name+"="+flag.Value.String()) })
		return measureStarts(ctx, args, *programs, rounds, progress(cmd))
	})
}

// processStart has the answers of a process that runs one program.
type processStart struct {
	hello
	compiled
	digestAnswer
}

type compileReport struct {
	Device string       `json:"device"`
	Rounds int          `json:"rounds"`
	Rows   []compileRow `json:"rows"`
}

// compileRow compares first starts, with an empty cache, and second ones. Ratios are first over second.
type compileRow struct {
	Program   string    `json:"program"`
	First     quartiles `json:"first_s"`  // from the start of the process to the first result
	Second    quartiles `json:"second_s"` // the same
	Start     quartiles `json:"start_ratio"`
	Compile   quartiles `json:"compile_s"` // to make the executables ready, at first
	Load      quartiles `json:"load_s"`    // the same, from the cache
	Ready     quartiles `json:"ready_ratio"`
	Identical bool      `json:"identical"` // every start has computed the same bits
}

// measureStarts starts this executable with args and orders a program, first and second starts in turn. Each first
// start has a new cache.
func measureStarts(
	ctx context.Context, args, programs []string, rounds int, progress func(done, total int),
) (*compileReport, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &compileReport{Rounds: rounds}
	for i, program := range programs {
		s, digests := series{}, map[string]bool{}
		for round := range rounds {
			progress(i*rounds+round, len(programs)*rounds)
			first, second, err := startTwice(ctx, s, exe, args, program)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", program, err)
			}
			r.Device = first.Device
			digests[first.Digest], digests[second.Digest] = true, true
		}
		r.Rows = append(r.Rows, compileRow{
			Program: program, First: s.quartiles("first"), Second: s.quartiles("second"), Start: s.ratio("first", "second"),
			Compile: s.quartiles("compile"), Load: s.quartiles("load"), Ready: s.ratio("compile", "load"),
			Identical: len(digests) == 1,
		})
	}
	progress(len(programs)*rounds, len(programs)*rounds)
	return r, nil
}

// startTwice adds a first start and a second one to s.
func startTwice(
	ctx context.Context, s series, exe string, args []string, program string,
) (first, second processStart, err error) {
	dir, err := os.MkdirTemp("", "anisoflight-programs-*")
	if err != nil {
		return first, second, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	took, first, err := launch(ctx, exe, args, program, dir)
	if err != nil {
		return first, second, err
	}
	s.add("first", took)
	s.add("compile", first.Seconds)
	took, second, err = launch(ctx, exe, args, program, dir)
	if err != nil {
		return first, second, err
	}
	s.add("second", took)
	s.add("load", second.Seconds)
	if first.FromDisk || !second.FromDisk {
		err = fmt.Errorf("the device %s does not keep compiled programs; choose one of XLA", first.Device)
	}
	return first, second, err
}

// launch starts a process whose programs are kept in dir. It returns the seconds to the first result, and the answers.
func launch(
	ctx context.Context, exe string, args []string, program, dir string,
) (took float64, answer processStart, err error) {
	orders := []order{{Compile: program}, {Digest: program}}
	all, err := driveProcess(ctx, exe, args, dir, orders, &answer.hello, &answer.compiled, &answer.digestAnswer)
	if err != nil {
		return 0, answer, err
	}
	return all[1], answer, nil
}

// driveProcess starts this program with args, which contain --drive, and a cache of compiled programs in dir. It sends
// the orders and reads the hello and the answers. took has the seconds from the start of the process to each.
func driveProcess(
	ctx context.Context, exe string, args []string, dir string, orders []order, answers ...any,
) (took []float64, err error) {
	var lines, wrong bytes.Buffer
	for _, o := range orders {
		if err := json.NewEncoder(&lines).Encode(o); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), "ANISOFLIGHT_PROGRAM_CACHE="+dir)
	cmd.Stdin, cmd.Stderr = &lines, &wrong
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(out)
	for _, answer := range answers {
		if err = decodeAnswer(decoder, answer); err != nil {
			break
		}
		took = append(took, time.Since(began).Seconds())
	}
	_, _ = io.Copy(io.Discard, out) // what is left, so that the process can end
	if ended := cmd.Wait(); ended != nil {
		return nil, fmt.Errorf("%w: %s", ended, bytes.TrimSpace(wrong.Bytes()))
	}
	return took, err
}

// decodeAnswer reads an answer of drive. An answer with the field error is an error.
func decodeAnswer(from *json.Decoder, answer any) error {
	var line json.RawMessage
	if err := from.Decode(&line); err != nil {
		return err
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err == nil && failed.Error != "" {
		return errors.New(failed.Error)
	}
	return json.Unmarshal(line, answer)
}

func (r *compileReport) table(t *tabwriter.Writer) {
	fmt.Fprintf(t, "%s, %d rounds; medians (quartiles)\n", r.Device, r.Rounds)
	fmt.Fprintln(t, "PROGRAM\tCOMPILED, S\tFROM DISK, S\tRATIO\tFIRST START, S\tSECOND START, S\tRATIO\tSAME BITS")
	for _, row := range r.Rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%v\n", row.Program,
			row.Compile.text("%.2f"), row.Load.text("%.3f"), row.Ready.text("%.0f"),
			row.First.text("%.2f"), row.Second.text("%.2f"), row.Start.text("%.1f"), row.Identical)
	}
}
