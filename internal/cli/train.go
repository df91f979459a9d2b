package cli

import (
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
	Long: `Train makes a run on the data folder and trains it, with the settings of a file, of
flags, or both: on the server of --server, or that of the folder, if there is one, else
in this process. Stages:

  pretrain     a network by EDM's loss
  isotropic    one noise level for the whole image, learned by the trajectory loss
  anisotropic  one noise level for each subspace

Ctrl-C ends it after the current step: the run is paused, what was learned is saved
as a model, and --resume goes on from there.`,
	Example: `  anisoflight train --name digits --config configs/digits-pretrain.yaml
  anisoflight train --name digits --stage pretrain --dataset digits --kimg 150 \
    --network '{"img_resolution":8,"img_channels":1}'
  anisoflight train --name learned --stage isotropic --dataset digits --model digits --kimg 12
  anisoflight train --name learned --resume --kimg 24`,
	Options: slices.Concat([]command.Option{
		{Name: "name", Required: true, Usage: "`name` of the run"},
		{Name: "save", Usage: "`name` of the model that is saved", Otherwise: "the run's"},
		{Name: "resume", Kind: command.Toggle, Usage: "go on with a run of that name"},
		{Name: "replace", Kind: command.Toggle, Usage: "replace a run and a model of that name"},
		processesOption,
	}, trainRequest, []command.Option{connect.MeasurePeakOption, connect.MemoryLimitOption}, connect.FolderOptions,
		connect.GPUOptions),
	Stores: true,
	Run:    runTrain,
}

func runTrain(ctx context.Context, e command.Env) error {
	return withProcesses(ctx, e, trainHere)
}

// trainHere trains in this process, or by a server.
func trainHere(ctx context.Context, e command.Env, w *processes.World) error {
	run := e.Text("name")
	model := e.Text("save")
	if model == "" {
		model = run
	}
	return connect.WithServerIn(ctx, e, w, func(c *client.Client) error {
		if err := mayWrite(ctx, c, e, model); err != nil {
			return err
		}
		if err := openRun(ctx, c, e, run); err != nil {
			return err
		}
		if ended, err := unsaved(ctx, c, e, run); ended || err != nil {
			if err != nil {
				return err
			}
			return keep(ctx, c, e, run, model)
		}
		start := map[string]any{"run": run}
		if e.Given("kimg") {
			start["kimg"] = e.Value("kimg") // of a resumed run a new length, else the configured one
		}
		if err := connect.Act(ctx, c, "StartRun", start, nil, nil); err != nil {
			return err
		}
		watchErr := watch(ctx, c, e, run)

		// From here on an interrupt must not lose what was learned.
		kept := context.WithoutCancel(ctx)
		if ctx.Err() != nil {
			e.Log.Info("stopping after the current step")
			if _, err := c.PauseRun(kept, run); err != nil && !command.IsCode(err, api.RunNotRunnable) {
				return err
			}
		} else if watchErr != nil {
			return lostServer(e, run, watchErr)
		}
		if err := keep(kept, c, e, run, model); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return command.ErrInterrupted
		}
		return nil
	})
}

// unsaved reports whether a run that is to be resumed has nothing left to do: it ended, and whoever began it did not
// come to save it.
func unsaved(ctx context.Context, c *client.Client, e command.Env, run string) (bool, error) {
	if !e.Toggle("resume") || e.Given("kimg") {
		return false, nil
	}
	info, err := c.GetRun(ctx, run)
	return err == nil && info.State == "done", err
}

// mayWrite refuses a taken name before the training, not after it.
func mayWrite(ctx context.Context, c *client.Client, e command.Env, model string) error {
	if e.Toggle("replace") || e.Toggle("resume") {
		return nil
	}
	_, err := c.DescribeModel(ctx, model)
	switch {
	case err == nil:
		return fmt.Errorf("a model %q exists already; choose another name with --save, or give --replace", model)
	case command.IsCode(err, api.ModelNotFound):
		return nil
	}
	return err
}

// openRun creates the run, or finds the one to go on with.
func openRun(ctx context.Context, c *client.Client, e command.Env, run string) error {
	if e.Toggle("resume") {
		for _, o := range trainRequest {
			if o.Name != "kimg" && e.Cmd.Flags().Changed(o.Flag()) {
				return command.Usagef(e.Cmd, "--%s cannot go with --resume: a run keeps its settings", o.Flag())
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
	return connect.Act(ctx, c, "CreateRun", fields, nil, nil)
}

// watch shows the run's rows until it ends.
func watch(ctx context.Context, c *client.Client, e command.Env, run string) error {
	info, err := c.GetRun(ctx, run)
	if err != nil {
		return err
	}
	if m := info.Memory; m != nil && m.WholeBytes > 0 {
		e.Log.Info("the batch does not fit the device's memory at once", "microbatch", m.Microbatch,
			"needed_bytes", m.NeededBytes, "whole_bytes", m.WholeBytes, "available_bytes", m.AvailableBytes)
	}
	if info.Parameters > 0 {
		e.Log.Info("training "+run, "parameters", info.Parameters, "kimg", info.Target, "estimated_minutes",
			math.Ceil(info.Seconds/60))
	}
	connect.Notes(e.Err, info.Notes)
	defer func() { // what was learned may be noise
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
			if x := column(name); !math.IsNaN(x) {
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

// lostServer says how to go on with a run whose server has ended, or cannot be reached any more; other errors stay.
func lostServer(e command.Env, run string, err error) error {
	var said *api.Error
	if errors.As(err, &said) && said.Code != api.Draining {
		return err
	}
	e.Log.Warn("the connection to the server was lost", "error", err)
	return fmt.Errorf("the server has ended, or cannot be reached; the run %s is kept up to its last checkpoint; %s", run,
		goOn(e, run))
}

// goOn returns the sentence with the command that resumes a run.
func goOn(e command.Env, run string) string {
	where := "--data " + e.Text("data")
	if at := e.Text("server"); at != "" {
		where = "--server " + at
	}
	return fmt.Sprintf("go on with: anisoflight train --name %s --resume %s", run, where)
}

// keep saves the run's model and says what there is now.
func keep(ctx context.Context, c *client.Client, e command.Env, run, model string) error {
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
	save := api.SaveModel{Run: run, Name: model, Replace: e.Toggle("replace") || e.Toggle("resume")}
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
		fmt.Fprintln(e.Out, goOn(e, run))
		if info.Error != "" && !stopped {
			return errors.New(info.Error)
		}
	}
	return nil
}

// trainRequest are the fields of a run's configuration, those of CreateRun and of the files in configs/.
var trainRequest = connect.Fields(new(train.Config),
	command.Option{Name: "stage", OneOf: train.Stages},
	command.Option{Name: "lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "init", OneOf: train.Inits},
	command.Option{Name: "schedule_lr_ramp", OneOf: train.Ramps},
	command.Option{Name: "probe", OneOf: kernels.Probes},
)
