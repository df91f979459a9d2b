package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/selfcheck"
)

var deviceOption = option{name: "device", local: true, usage: "`backend`: cpu, cuda, go, or a PJRT plugin's path (default: the best one found)"}

// memoryLimitOption bounds what is kept on the device.
var memoryLimitOption = option{name: "memory_limit", kind: whole, local: true, usage: "`bytes` that the device's buffers and programs may take (default: what the machine, or the GPU, has to give)"}

// gpuOptions say what of which GPU is used; commands that work for long have them.
var gpuOptions = []option{
	{name: "device_index", kind: whole, local: true, usage: "`number` of the GPU to use, from 0 (default 0)"},
	{name: "memory_fraction", kind: number, local: true, usage: "`share` of the GPU's memory that may be taken (default 0.75)"},
	{name: "preallocate", kind: toggle, local: true, usage: "take that share at the start, in one piece"},
}

var doctorSpec = spec{
	use:   "doctor",
	short: "Report what runs the programs, and whether it works",
	long: `Doctor looks for a PJRT plugin as every command does, reports what it found and why
the rest was not used, and runs a few small programs whose results are known. Its
exit status is 1 if a check fails.

Plugins are looked for in this order: --device, ANISOFLIGHT_PLUGIN,
PJRT_PLUGIN_LIBRARY_PATH, the project's .venv, the active Python's site-packages.`,
	example: `  anisoflight doctor
  anisoflight doctor --device go
  anisoflight doctor --device cuda --device-index 1 --memory-fraction 0.9 --preallocate
  anisoflight doctor --json | jq .device`,
	options: append([]option{deviceOption}, gpuOptions...),
	json:    true,
	run:     runDoctor,
}

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	Version string        `json:"version"`
	Go      string        `json:"go"`
	Device  device.Report `json:"device"`
	Checks  []check       `json:"checks"`
	// Rewritten counts the places in the checks' programs that were given the form in which XLA for the host is fast.
	Rewritten int64 `json:"rewritten"`
	OK        bool  `json:"ok"`
}

type check struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
}

func runDoctor(ctx context.Context, e env) error {
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	d := diagnosis{
		Version: Version(),
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
	d.Rewritten = dev.Stats().Rewritten
	if e.json {
		err = printJSON(e.out, d)
	} else {
		err = d.print(e)
	}
	if err == nil && !d.OK {
		err = errors.New("the device does not compute what it should")
	}
	return err
}

func (d diagnosis) print(e env) error {
	t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("version", "%s, %s", d.Version, d.Go)
	row("backend", "%s", d.Device.Name)
	if d.Device.Plugin != "" {
		row("plugin", "%s", d.Device.Plugin)
		row("PJRT API", "%s", d.Device.APIVersion)
	}
	row("devices", "%d", len(d.Device.Devices))
	for i, name := range d.Device.Devices {
		used := ""
		if i == 0 {
			used = " (used)"
		}
		row("", "%s%s", name, used)
	}
	if m := d.Device.Memory; m != nil {
		row("memory", "%.0f %%, %s", 100*m.Fraction, map[bool]string{true: "taken at the start", false: "taken as needed"}[m.Preallocate])
	}
	if d.Device.ProgramCache != "" {
		row("program cache", "%s", d.Device.ProgramCache)
	}
	row("kept memory", "%s", map[bool]string{true: "large blocks that programs free serve their next run", false: "none"}[d.Device.KeepsBlocks])
	row("rewritten", "%d places in the programs of the checks", d.Rewritten)
	row("NVIDIA GPU", "%s", yesNo(d.Device.GPU))
	row("loads plugins", "%s", yesNo(d.Device.Plugins))
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
	return t.Flush()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// openDevice opens the backend that the settings ask for.
func openDevice(e env) (*device.Device, error) {
	cfg := device.Config{Plugin: e.text("device"), Logger: e.log}
	if e.has("device_index") {
		if v := e.get("memory_fraction"); v.given && e.number("memory_fraction") == 0 {
			return nil, usagef(e.cmd, "--memory-fraction is a share above 0")
		}
		cfg.Index, cfg.Preallocate, cfg.MemoryFraction = int(e.whole("device_index")), e.toggle("preallocate"), e.number("memory_fraction")
	}
	if e.has("memory_limit") {
		cfg.MemoryLimit = e.whole("memory_limit")
	}
	return device.Open(cfg)
}
