package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
)

var trainSpec = spec{
	use:   "train",
	short: "Train a network or learn a schedule, and save the result as a model",
	long: `Train makes a run on the data folder and trains it, with the settings of a file, of
flags, or both: on the server of --server, or that of the folder, if there is one, else
in this process. Stages:

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
	}, trainRequest, []option{measurePeakOption, memoryLimitOption}, folderOptions, gpuOptions),
	stores: true,
	run:    runTrain,
}

func runTrain(ctx context.Context, e env) error {
	run := e.text("name")
	model := e.text("save")
	if model == "" {
		model = run
	}
	return withServer(ctx, e, func(c connection) error {
		if err := mayWrite(ctx, c, e, model); err != nil {
			return err
		}
		if err := openRun(ctx, c, e, run); err != nil {
			return err
		}
		start := map[string]any{"run": run}
		if kimg := e.get("kimg"); kimg.given {
			start["kimg"] = kimg.value // of a resumed run a new length, else the configured one
		}
		if err := act(ctx, c, "StartRun", start, nil, nil); err != nil {
			return err
		}
		watchErr := watch(ctx, c, e, run)

		// From here on an interrupt must not lose what was learned.
		kept := context.WithoutCancel(ctx)
		if ctx.Err() != nil {
			e.log.Info("stopping after the current step")
			if _, err := c.PauseRun(kept, run); err != nil && !isCode(err, api.RunNotRunnable) {
				return err
			}
		} else if watchErr != nil {
			return watchErr
		}
		if err := keep(kept, c, e, run, model); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
		return nil
	})
}

// mayWrite refuses a taken name before the training, not after it.
func mayWrite(ctx context.Context, c connection, e env, model string) error {
	if e.toggle("replace") || e.toggle("resume") {
		return nil
	}
	_, err := c.DescribeModel(ctx, model)
	switch {
	case err == nil:
		return fmt.Errorf("a model %q exists already; choose another name with --save, or give --replace", model)
	case isCode(err, api.ModelNotFound):
		return nil
	}
	return err
}

// openRun creates the run, or finds the one to go on with.
func openRun(ctx context.Context, c connection, e env, run string) error {
	if e.toggle("resume") {
		for _, o := range trainRequest {
			if v := e.get(o.name); o.name != "kimg" && strings.HasPrefix(v.source, "flag ") {
				return usagef(e.cmd, "--%s cannot go with --resume: a run keeps its settings", o.flag())
			}
		}
		_, err := c.GetRun(ctx, run)
		return err
	}
	fields := e.request(trainRequest)
	fields["name"] = run
	if e.toggle("replace") {
		fields["replace"] = true
	}
	return act(ctx, c, "CreateRun", fields, nil, nil)
}

// watch shows the run's rows until it ends.
func watch(ctx context.Context, c connection, e env, run string) error {
	info, err := c.GetRun(ctx, run)
	if err != nil {
		return err
	}
	if m := info.Memory; m != nil && m.WholeBytes > 0 {
		e.log.Info("the batch does not fit the device's memory at once", "microbatch", m.Microbatch,
			"needed_bytes", m.NeededBytes, "whole_bytes", m.WholeBytes, "available_bytes", m.AvailableBytes)
	}
	p := newProgress(e.err, e.log, run)
	defer p.close()
	for m, err := range c.WatchRun(ctx, api.WatchRun{Run: run}) {
		if err != nil {
			return err
		}
		if m.Batch.Rows == 0 {
			continue
		}
		column := func(name string) float64 { return api.ColumnOf[float64](m.Schema, m.Batch, name)[m.Batch.Rows-1] }
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
	}
	return nil
}

// keep saves the run's model and says what there is now.
func keep(ctx context.Context, c connection, e env, run, model string) error {
	info, err := c.GetRun(ctx, run)
	if err != nil {
		return err
	}
	switch {
	case info.State == "failed":
		return errors.New("the run failed: " + info.Error)
	case info.Step == 0:
		fmt.Fprintf(e.out, "run %s: %s before its first step; nothing to save\n", run, info.State)
		return nil
	}
	save := api.SaveModel{Run: run, Name: model, Replace: e.toggle("replace") || e.toggle("resume")}
	saved, err := c.SaveModel(ctx, save)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.out, "run %s: %s after step %d, %.4g kimg; saved as model %s\n", run, info.State, info.Step, info.Kimg, model)
	if saved.Warning != "" {
		fmt.Fprintf(e.out, "warning: %s\n", saved.Warning)
	}
	if s := info.Stopped; s != nil && s.Step == info.Step {
		fmt.Fprintf(e.out, "stopped early (%s): %s\n", s.Reason, s.Message)
	}
	if info.State == "paused" {
		where := "--data " + e.text("data")
		if at := e.text("server"); at != "" {
			where = "--server " + at
		}
		fmt.Fprintf(e.out, "go on with: anisoflight train --name %s --resume %s\n", run, where)
	}
	return nil
}
