package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/selfcheck"
)

var doctorSpec = command.Spec{
	Use:   "doctor",
	Short: "Report the device that runs programs, and check that it works",
	Long: `Doctor looks for a PJRT plugin as every command does. It prints the plugin that it
found, why it did not use the others, and the results of a few small programs whose
answers are known. The exit status is 1 if a check fails. Then doctor compares the rate
at which a server samples a small network with that of the bare network.

Plugins are searched in this order: --device, ANISOFLIGHT_PLUGIN, the Python environment
that contains this program, the project's .venv, and the active environment (VIRTUAL_ENV
or CONDA_PREFIX).`,
	Example: `  anisoflight doctor
  anisoflight doctor --device go
  anisoflight doctor --devices all
  anisoflight doctor --device cuda --memory-fraction 0.9
  anisoflight doctor --json | jq .device`,
	Options: append([]command.Option{connect.DeviceOption}, connect.GPUOptions...),
	JSON:    true,
	Run:     runDoctor,
}

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	Version string        `json:"version"`
	Go      string        `json:"go"`
	Device  device.Report `json:"device"`
	// Memory has the bytes of each device in use that buffers and programs may take; 0 if they are not known.
	Memory []int64 `json:"memory"`
	Checks []check `json:"checks"`
	// Rewritten counts the operations of the checks' programs that were rewritten for XLA's CPU compiler.
	Rewritten int64 `json:"rewritten"`
	// Rate is nil without a plugin, and if a check failed.
	Rate *servedRate `json:"rate,omitempty"`
	OK   bool        `json:"ok"`
}

type check struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

func runDoctor(ctx context.Context, e command.Env) error {
	dev, err := connect.OpenDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	d := diagnosis{
		Version: command.Version(),
		Go:      fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Device:  dev.Report(),
		OK:      true,
	}
	for _, r := range selfcheck.Run(ctx, dev) {
		c := check{Name: r.Name, OK: r.Err == nil, Detail: r.Detail, Seconds: r.Seconds}
		if r.Err != nil {
			c.Detail, d.OK = r.Err.Error(), false
		}
		d.Checks = append(d.Checks, c)
	}
	for _, peer := range dev.Peers() {
		available, _ := peer.Available()
		d.Memory = append(d.Memory, available)
	}
	d.Rewritten = dev.Stats().Rewritten
	if d.OK && d.Device.Plugin != "" { // the pure-Go device is slow: its rate is not worth the time
		if d.Rate, err = measureRate(ctx, dev); err != nil {
			d.Checks = append(d.Checks, check{Name: "served sampling", Detail: err.Error()})
			d.OK = false
		}
	}
	err = e.Show(d, d.print)
	if err == nil && !d.OK {
		err = errors.New("the device gives wrong results")
	}
	return err
}

func (d diagnosis) print(w io.Writer) error {
	t := command.NewTable(w, fmt.Sprintf("version\t%s, %s", d.Version, d.Go))
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("backend", "%s", d.Device.Name)
	if d.Device.Plugin != "" {
		row("plugin", "%s", d.Device.Plugin)
		row("PJRT API", "%s", d.Device.APIVersion)
	}
	row("devices", "%d", len(d.Device.Devices))
	for i, name := range d.Device.Devices {
		used := ""
		if i < d.Device.Used {
			used = " (used"
			if d.Memory[i] > 0 {
				used += fmt.Sprintf(", %.1f GiB available", float64(d.Memory[i])/(1<<30))
			}
			used += ")"
		}
		row("", "%s%s", name, used)
	}
	if share := d.Device.MemoryFraction; share > 0 {
		row("memory", "%.0f %%, taken as needed", 100*share)
	}
	if d.Device.ProgramCache != "" {
		row("program cache", "%s", d.Device.ProgramCache)
	}
	if d.Device.Allocator != "" {
		row("malloc of serve", "%s", d.Device.Allocator)
	}
	if d.Device.AllocatorReason != "" {
		row("mimalloc", "not loaded: %s", d.Device.AllocatorReason)
	}
	row("rewritten", "%d operations of the checks' programs", d.Rewritten)
	row("NVIDIA GPU", "%s", command.YesNo(d.Device.GPU))
	row("loads plugins", "%s", command.YesNo(d.Device.Plugins))
	fmt.Fprintln(t, "\ncandidates\t")
	if len(d.Device.Candidates) == 0 {
		row("  none", "run `make build` to install the pinned plugin")
	}
	for _, c := range d.Device.Candidates {
		verdict := "used"
		switch {
		case c.Reason != "":
			verdict = "not used: " + c.Reason
		case !c.Used:
			verdict = "not needed"
		}
		row("  "+c.Source, "%s: %s", c.Path, verdict)
	}
	fmt.Fprintln(t, "\nchecks\t")
	for _, c := range d.Checks {
		verdict := "ok"
		if !c.OK {
			verdict = "FAILED"
		}
		row("  "+c.Name, "%s: %s (%.2f s)", verdict, c.Detail, c.Seconds)
	}
	if r := d.Rate; r != nil {
		fmt.Fprintln(t, "\nsmall network\t")
		row("  bare", "%.0f evaluations of an image of 8×8 pixels a second, in batches of %d", r.Bare, r.Batch)
		row("  served", "%.0f, %.2f of it", r.Served, r.Served/r.Bare)
	}
	return t.Flush()
}
