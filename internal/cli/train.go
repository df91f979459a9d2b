package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train"
)

var trainSpec = command.Spec{
	Use:   "train",
	Short: "Train a network or learn a schedule, and save the result as a model",
	Long: `Train makes a run, trains it and saves the result as a model. It works on the server of
--server, or on the folder's server if there is one, else in this process. Stages:

  pretrain     train a network by EDM's loss
  isotropic    learn a schedule with one noise level for the whole image
  anisotropic  learn a schedule with one noise level for each subspace

Ctrl-C pauses the run after the current step and saves its state as a model. To
continue the run, give --resume.`,
	Example: `  anisoflight train --name digits --config configs/digits-pretrain.yaml
  anisoflight train --name digits --stage pretrain --dataset digits --kimg 150 \
    --network '{"img_resolution":8,"img_channels":1}'
  anisoflight train --name learned --stage isotropic --dataset digits --model digits --kimg 12
  anisoflight train --name learned --resume --kimg 24`,
	Options: slices.Concat([]command.Option{
		{Name: "name", Required: true, Usage: "`name` of the run"},
		{Name: "save", Usage: "`name` of the model that is saved", Otherwise: "the run's"},
		{Name: "resume", Kind: command.Toggle, Usage: "continue the run of that name"},
		{Name: "replace", Kind: command.Toggle, Usage: "replace a run and a model of that name"},
		{Name: "force", Kind: command.Toggle, Usage: "save the model also if the loss is not finite in the end"},
		processesOption,
	}, trainRequest, []command.Option{connect.MeasurePeakOption, connect.MemoryLimitOption}, connect.FolderOptions,
		connect.GPUOptions),
	Stores: true,
	Run:    func(ctx context.Context, e command.Env) error { return withProcesses(ctx, e, runTrain) },
}

// runTrain trains on a server, or in this process and the others of the world w, which may be nil.
func runTrain(ctx context.Context, e command.Env, w *processes.World) error {
	run := e.Text("name")
	model := cmp.Or(e.Text("save"), run)
	return connect.WithServerIn(ctx, e, w, func(c *client.Client) error {
		if err := mayWrite(ctx, c, e, model); err != nil {
			return err
		}
		if err := openRun(ctx, c, e, run); err != nil {
			return err
		}
		if e.Toggle("resume") && !e.Given("kimg") {
			if info, err := c.GetRun(ctx, run); err != nil {
				return err
			} else if info.State == "done" { // and perhaps not saved
				return saveRun(ctx, c, e, run, model)
			}
		}
		start := api.StartRun{Run: run}
		if e.Given("kimg") {
			start.Kimg = e.Number("kimg") // a new length for a resumed run, else the configured one
		}
		if _, err := c.StartRun(ctx, start); err != nil {
			return err
		}
		watchErr := watch(ctx, c, e, run)

		// From here on an interrupt must not prevent the save.
		saving := context.WithoutCancel(ctx)
		if ctx.Err() != nil {
			e.Log.Info("stopping after the current step")
			if _, err := c.PauseRun(saving, run); err != nil && !command.IsCode(err, api.RunNotRunnable) {
				return err
			}
		} else if watchErr != nil {
			return lostServer(e, run, watchErr)
		}
		if err := saveRun(saving, c, e, run, model); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return command.ErrInterrupted
		}
		return nil
	})
}

// mayWrite returns an error if the model's name is taken, before the training begins.
func mayWrite(ctx context.Context, c *client.Client, e command.Env, model string) error {
	if e.Toggle("replace") || e.Toggle("resume") {
		return nil
	}
	_, err := c.DescribeModel(ctx, model)
	switch {
	case err == nil:
		return fmt.Errorf("a model %q exists; choose another name with --save, or give --replace", model)
	case command.IsCode(err, api.ModelNotFound):
		return nil
	}
	return err
}

// openRun creates the run, or finds the run to resume.
func openRun(ctx context.Context, c *client.Client, e command.Env, run string) error {
	if e.Toggle("resume") {
		for _, o := range trainRequest {
			if o.Name != "kimg" && e.Cmd.Flags().Changed(o.Flag()) {
				return command.Usagef(e.Cmd, "--%s cannot be given with --resume: a run keeps its settings", o.Flag())
			}
		}
		_, err := c.GetRun(ctx, run)
		return err
	}
	fields := e.Request(trainRequest)
	fields["name"] = run
	if e.Toggle("replace") {
		fields["replace"] = true
	}
	_, err := c.Action(ctx, "CreateRun", fields, nil)
	return err
}

// watch shows the run's progress until it ends.
func watch(ctx context.Context, c *client.Client, e command.Env, run string) error {
	info, err := c.GetRun(ctx, run)
	if err != nil {
		return err
	}
	if m := info.Memory; m != nil && m.WholeBytes > 0 {
		e.Log.Info("the batch does not fit the device's memory and is split", "microbatch", m.Microbatch,
			"needed_bytes", m.NeededBytes, "whole_bytes", m.WholeBytes, "available_bytes", m.AvailableBytes)
	}
	if info.Parameters > 0 {
		e.Log.Info("training "+run, "parameters", info.Parameters, "kimg", info.Target, "estimated_minutes",
			math.Ceil(info.Seconds/60))
	}
	connect.Notes(e.Err, info.Notes)
	defer func() { // notes on the result
		if after, err := c.GetRun(ctx, run); err == nil && len(after.Notes) > len(info.Notes) {
			connect.Notes(e.Err, after.Notes[len(info.Notes):])
		}
	}()
	p := command.NewProgress(e.Err, e.Log, run)
	defer p.Close()
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
			if x := column(name); name == "loss" || !math.IsNaN(x) {
				note += fmt.Sprintf("%s %.4g ", name, x)
			}
		}
		note += fmt.Sprintf("%.2g s a step, %.4g GFLOP/s ", column("seconds"), column("gflops"))
		if mfu := column("mfu"); !math.IsNaN(mfu) {
			note += fmt.Sprintf("(%.0f %% of peak) ", 100*mfu)
		}
		p.Set(int64(1000*column("kimg")), int64(1000*info.Target), note)
	}
	return nil
}

// lostServer returns how to resume the run if err means that its server has ended or cannot be reached, else err.
func lostServer(e command.Env, run string, err error) error {
	var contractErr *api.Error
	if errors.As(err, &contractErr) && contractErr.Code != api.Draining {
		return err
	}
	e.Log.Warn("the connection to the server was lost", "error", err)
	return fmt.Errorf("the server has ended, or cannot be reached; the run %s is kept up to its last checkpoint; %s", run,
		howToResume(e, run))
}

// howToResume returns the command that resumes a run.
func howToResume(e command.Env, run string) string {
	where := "--data " + e.Text("data")
	if server := e.Text("server"); server != "" {
		where = "--server " + server
	}
	return fmt.Sprintf("go on with: anisoflight train --name %s --resume %s", run, where)
}

// saveRun saves the run's model and prints the outcome.
func saveRun(ctx context.Context, c *client.Client, e command.Env, run, model string) error {
	info, err := c.GetRun(ctx, run)
	if err != nil {
		return err
	}
	switch {
	case info.State == "failed":
		return errors.New("the run failed: " + info.Error)
	case info.Step == 0 && info.State == "paused" && info.Error != "":
		return errors.New(info.Error)
	case info.Step == 0:
		fmt.Fprintf(e.Out, "run %s: %s before its first step; nothing to save\n", run, info.State)
		return nil
	}
	save := api.SaveModel{
		Run: run, Name: model, Replace: e.Toggle("replace") || e.Toggle("resume"), Force: e.Toggle("force"),
	}
	saved, err := c.SaveModel(ctx, save)
	if err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "run %s: %s after step %d, %.4g kimg; saved as model %s\n", run, info.State, info.Step, info.Kimg,
		model)
	if saved.Outcome != nil {
		fmt.Fprintln(e.Out, saved.Outcome.Summary)
	}
	for warning := range strings.Lines(saved.Warning) {
		fmt.Fprintf(e.Out, "warning: %s\n", strings.TrimSpace(warning))
	}
	stopped := info.Stopped != nil && info.Stopped.Step == info.Step
	if s := info.Stopped; stopped {
		fmt.Fprintf(e.Out, "stopped early (%s): %s\n", s.Reason, s.Message)
	}
	if info.State == "paused" {
		fmt.Fprintln(e.Out, howToResume(e, run))
		if info.Error != "" && !stopped {
			return errors.New(info.Error)
		}
	}
	return nil
}

// trainRequest lists the options for fields of a run's configuration, as in CreateRun and in the files of configs/.
var trainRequest = connect.Fields(new(train.Config),
	command.Option{Name: "stage", OneOf: train.Stages},
	command.Option{Name: "lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "init", OneOf: train.Inits},
	command.Option{Name: "schedule_lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "probe", OneOf: kernels.Probes},
)
