package schedules

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/train/schedulecheck"
)

var checkSpec = command.Spec{
	Use:   "check",
	Short: "Test the gradient with respect to the schedule where the truth is known",
	Long: `Check runs every mode of the estimator, with every law of probes, on a mixture of
Gaussians whose flow is exact, and compares with finite differences of the loss.
Exact modes are compared sample by sample, the others in the mean, within their own
error bars; false_alarm is the probability that a sound estimator fails anywhere.

It takes the programs of a training step, on the device that training would use.
The exit status is 1 if a comparison fails.`,
	Example: `  anisoflight schedule check
  anisoflight schedule check --samples 65536 --seed 7
  anisoflight schedule check --json | jq .ok`,
	Options: []command.Option{
		{Name: "samples", Kind: command.Whole, Default: "8192", Usage: "`draws` of time, image, noise and probe"},
		{Name: "seed", Kind: command.Seed, Default: "0", Usage: "of the draws"},
		{Name: "false_alarm", Kind: command.Number, Default: "1e-4", Usage: "`probability` that a sound estimator fails"},
		connect.DeviceOption,
	},
	JSON: true,
	Run:  runScheduleCheck,
}

func runScheduleCheck(ctx context.Context, e command.Env) error {
	set := schedulecheck.Settings{
		Samples: int(e.Whole("samples")), Seed: e.Get("seed").Value.(uint64), FalseAlarm: e.Number("false_alarm"),
	}
	if err := set.Check(); err != nil {
		return command.Usagef(e.Cmd, "%w", err)
	}
	dev, err := connect.OpenDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	report, err := schedulecheck.Run(ctx, dev, set)
	if err != nil {
		return err
	}
	err = e.Show(report, func(w io.Writer) error { return printCheck(w, report) })
	if err == nil && !report.OK {
		err = errors.New("the estimator does not give the gradient of the loss")
	}
	return err
}

func printCheck(w io.Writer, r *schedulecheck.Report) error {
	t := command.NewTable(w, "ESTIMATOR\tDEVIATION\tBOUND\tIN\t")
	for _, row := range r.Rows {
		in, verdict := "relative, sample by sample", "ok"
		if row.Statistical {
			in = "standard errors of the mean"
		}
		if !row.OK {
			verdict = "FAIL"
		}
		fmt.Fprintf(t, "%s\t%.2g\t%.2g\t%s\t%s\n", row.Name, row.Deviation, row.Bound, in, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%d samples; a sound estimator fails with probability %g\n", r.Samples, r.FalseAlarm)
	return err
}
