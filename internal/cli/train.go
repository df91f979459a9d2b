package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
)

var trainSpec = spec{
	use:   "train",
	short: "Train a network or learn a schedule, and save the result as a model",
	long: `Train makes a run on the data folder and trains it in this process, with the settings
of a file, of flags, or both. Stages:

  pretrain     a network by EDM's loss
  isotropic    one noise level for the whole image, learned by the trajectory loss
  anisotropic  one noise level for each subspace

Ctrl-C ends it after the current step: the run is paused, what was learned is saved
as a model, and --resume goes on from there.`,
	example: `  anisoflight train --name digits --config configs/digits-pretrain.yaml
  anisoflight train --name digits --stage pretrain --dataset digits --kimg 150 --network '{"img_resolution":8,"img_channels":1}'
  anisoflight train --name learned --stage isotropic --dataset digits --model digits --kimg 12
  anisoflight train --name learned --resume --kimg 24`,
	options: slices.Concat([]option{
		{name: "name", needed: true, usage: "`name` of the run"},
		{name: "save", usage: "`name` of the model that is saved (default: the run's)"},
		{name: "resume", kind: toggle, usage: "go on with a run of that name"},
		{name: "replace", kind: toggle, usage: "replace a run and a model of that name"},
	}, trainRequest, []option{measurePeakOption, memoryLimitOption, dataOption, deviceOption}, gpuOptions),
	run: runTrain,
}

func runTrain(ctx context.Context, e env) error {
	run := e.text("name")
	model := e.text("save")
	if model == "" {
		model = run
	}
	return withEngine(ctx, e, func(eng *engine.Engine) error {
		if err := mayWrite(ctx, eng, e, model); err != nil {
			return err
		}
		if err := openRun(ctx, eng, e, run); err != nil {
			return err
		}
		start := map[string]any{"run": run}
		if kimg := e.get("kimg"); kimg.given {
			start["kimg"] = kimg.value // of a resumed run a new length, else the configured one
		}
		if err := act(ctx, eng, "StartRun", start, nil, nil); err != nil {
			return err
		}
		watchErr := watch(ctx, eng, e, run)

		// From here on an interrupt must not lose what was learned.
		kept := context.WithoutCancel(ctx)
		if ctx.Err() != nil {
			e.log.Info("stopping after the current step")
			if err := act(kept, eng, "PauseRun", map[string]any{"run": run}, nil, nil); err != nil && !isCode(err, api.RunNotRunnable) {
				return err
			}
		} else if watchErr != nil {
			return watchErr
		}
		if err := keep(kept, eng, e, run, model); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		return nil
	})
}

// mayWrite refuses a taken name before the training, not after it.
func mayWrite(ctx context.Context, eng *engine.Engine, e env, model string) error {
	if e.toggle("replace") || e.toggle("resume") {
		return nil
	}
	err := act(ctx, eng, "DescribeModel", map[string]any{"model": model}, nil, nil)
	switch {
	case err == nil:
		return fmt.Errorf("a model %q exists already; choose another name with --save, or give --replace", model)
	case isCode(err, api.ModelNotFound):
		return nil
	}
	return err
}

// openRun creates the run, or finds the one to go on with.
func openRun(ctx context.Context, eng *engine.Engine, e env, run string) error {
	if e.toggle("resume") {
		for _, o := range trainRequest {
			if v := e.get(o.name); o.name != "kimg" && strings.HasPrefix(v.source, "flag ") {
				return usagef(e.cmd, "--%s cannot go with --resume: a run keeps its settings", o.flag())
			}
		}
		return act(ctx, eng, "GetRun", map[string]any{"run": run}, nil, nil)
	}
	fields := e.request(trainRequest)
	fields["name"] = run
	if e.toggle("replace") {
		fields["replace"] = true
	}
	return act(ctx, eng, "CreateRun", fields, nil, nil)
}

// watch shows the run's rows until it ends.
func watch(ctx context.Context, eng *engine.Engine, e env, run string) error {
	var info api.RunInfo
	if err := act(ctx, eng, "GetRun", map[string]any{"run": run}, nil, &info); err != nil {
		return err
	}
	if m := info.Memory; m != nil && m.WholeBytes > 0 {
		e.log.Info("the batch does not fit the device's memory at once", "microbatch", m.Microbatch,
			"needed_bytes", m.NeededBytes, "whole_bytes", m.WholeBytes, "available_bytes", m.AvailableBytes)
	}
	p := newProgress(e.err, e.log, run)
	defer p.close()
	return stream(ctx, eng, "WatchRun", map[string]any{"run": run}, func(s api.Schema, ev api.Event) error {
		if ev.Batch == nil || ev.Batch.Rows == 0 {
			return nil
		}
		last := ev.Batch.Rows - 1
		column := func(name string) float64 { return api.ColumnOf[float64](s, *ev.Batch, name)[last] }
		note := ""
		for _, name := range []string{"loss", "energy"} {
			if x := column(name); !math.IsNaN(x) {
				note += fmt.Sprintf("%s %.4g ", name, x)
			}
		}
		note += fmt.Sprintf("%.4g GFLOP/s ", column("gflops"))
		if mfu := column("mfu"); !math.IsNaN(mfu) {
			note += fmt.Sprintf("(%.0f %% of peak) ", 100*mfu)
		}
		p.set(int64(1000*column("kimg")), int64(1000*info.Target), note)
		return nil
	})
}

// keep saves the run's model and says what there is now.
func keep(ctx context.Context, eng *engine.Engine, e env, run, model string) error {
	var info api.RunInfo
	if err := act(ctx, eng, "GetRun", map[string]any{"run": run}, nil, &info); err != nil {
		return err
	}
	switch {
	case info.State == "failed":
		return errors.New("the run failed: " + info.Error)
	case info.Step == 0:
		fmt.Fprintf(e.out, "run %s: %s before its first step; nothing to save\n", run, info.State)
		return nil
	}
	save := map[string]any{"run": run, "name": model, "replace": e.toggle("replace") || e.toggle("resume")}
	if err := act(ctx, eng, "SaveModel", save, nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(e.out, "run %s: %s after step %d, %.4g kimg; saved as model %s\n", run, info.State, info.Step, info.Kimg, model)
	if s := info.Stopped; s != nil && s.Step == info.Step {
		fmt.Fprintf(e.out, "stopped early (%s): %s\n", s.Reason, s.Message)
	}
	if info.State == "paused" {
		fmt.Fprintf(e.out, "go on with: anisoflight train --name %s --resume --data %s\n", run, e.text("data"))
	}
	return nil
}
