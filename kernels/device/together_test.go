package device_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestOutputsOfSeveralDevices pins how go-xla returns them: one of each, in order. Programs with more are refused.
func TestOutputsOfSeveralDevices(t *testing.T) {
	devices := devicetest.Several(t)
	shape := shapes.Make(dtypes.Float32, 3)
	draw := func(outputs int) drawing {
		return func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", shape)
			return []*graph.Node{graph.MulScalar(x, 2), graph.MulScalar(x, 3)}[:outputs]
		}
	}
	twice, err := devices[0].Program(t.Context(), "twice on three", draw(1), device.Together(3))
	if err != nil {
		t.Fatal(err)
	}
	args := make([]device.Arg, 3)
	for k := range args {
		args[k] = device.Use(upload(t, devices[k], []float32{float32(k), 10, 100}, 3))
	}
	out, err := twice.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for k, b := range out {
		if got := read[float32](t, b); got[0] != 2*float32(k) || got[2] != 200 || b.Device() != devices[k] {
			t.Errorf("output %d is %v, on device %d", k, got, slices.Index(devices, b.Device()))
		}
		b.Release()
	}
	_, err = devices[0].Program(t.Context(), "twice and thrice on three", draw(2), device.Together(3))
	if err == nil || !strings.Contains(err.Error(), "one output") {
		t.Errorf("two outputs: %v", err)
	}
	if _, err = twice.Run(t.Context(), args[:2]...); err == nil {
		t.Error("two arguments for three devices are taken")
	}
}

// TestDevicesShareTheirPrograms: a program is compiled once, runs on every device, gives the same bits there, and takes
// arguments of its own device alone. Each counts its own memory.
func TestDevicesShareTheirPrograms(t *testing.T) {
	devices := devicetest.Several(t)
	before := devices[0].Stats().Compiled
	for k, d := range devices {
		p := program(t, d, "shared f32[3]", affine(dtypes.Float32, 3, 0.1))
		held := d.Stats().BufferBytes
		x := upload(t, d, []float32{1, 2, 3}, 3)
		if got := d.Stats().BufferBytes - held; got != 12 {
			t.Errorf("device %d counts %d bytes", k, got)
		}
		out, err := p.Run(t.Context(), device.Use(x))
		if err != nil {
			t.Fatal(err)
		}
		if got := read[float32](t, out[0]); got[2] != float32(3)*0.1+1 || out[0].Device() != d {
			t.Errorf("device %d: %v, on device %d", k, got, slices.Index(devices, out[0].Device()))
		}
		other := program(t, devices[(k+1)%4], "shared f32[3]", affine(dtypes.Float32, 3, 0.1))
		if _, err := other.Run(t.Context(), device.Use(x)); err == nil {
			t.Errorf("device %d takes an argument of device %d", (k+1)%4, k)
		}
	}
	if n := devices[3].Stats().Compiled - before; n != 1 {
		t.Errorf("%d programs compiled", n)
	}
}

// TestDevicesAsked: which configurations have which devices.
func TestDevicesAsked(t *testing.T) {
	devicetest.Several(t) // or the test is skipped
	for asked, want := range map[string]int{"": 1, "2": 2, "7": 7, "all": 1} {
		dev := open(t, device.Config{Plugin: "cpu", Devices: asked})
		if n := len(dev.Peers()); n != want || dev.Report().Used != want {
			t.Errorf("devices %q: %d", asked, n)
		}
	}
	if n := len(open(t, device.Config{Plugin: "go", Devices: "all"}).Peers()); n != 1 {
		t.Errorf("all of the pure-Go backend: %d", n)
	}
	for asked, want := range map[string]string{
		"0": "devices must be all", "-1": "devices must be all", "x": `got "x"`, "65": "from 1 to 64",
	} {
		if _, err := device.Open(device.Config{Plugin: "cpu", Devices: asked}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("devices %q: error %v, want %q", asked, err, want)
		}
	}
	if _, err := device.Open(device.Config{Plugin: "go", Devices: "2"}); err == nil ||
		!strings.Contains(err.Error(), "at most the 1 of go") {
		t.Errorf("two of the pure-Go backend: %v", err)
	}
}
