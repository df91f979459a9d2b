// Package devicetest opens the device that a package's tests share.
//
// Opening XLA takes a moment and a process needs only one client, so every test of a binary gets the same device:
//
//	dev := devicetest.Open(t)
//
// [Compute] runs a graph on numbers.
package devicetest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

var shared = sync.OnceValues(func() (*device.Device, error) {
	cfg := device.Config{}
	if folder := os.Getenv("ANISOFLIGHT_TEST_LOWER"); folder != "" {
		cfg.Lower = func(l device.Lowered) bool { return lower(folder, l) }
	}
	return device.Open(cfg)
})

// lower keeps a program that a test compiles in the folder of ANISOFLIGHT_TEST_LOWER, under its content's hash, for
// bench/gpu_compile.py. The test goes on.
func lower(folder string, l device.Lowered) bool {
	name := filepath.Join(folder, fmt.Sprintf("%.12x.mlir", sha256.Sum256(l.Text)))
	if err := os.WriteFile(name, l.Text, 0o666); err != nil {
		panic(err)
	}
	return false
}

// Open returns the process's device, opened by the first call. It is never closed.
func Open(t testing.TB) *device.Device {
	t.Helper()
	dev, err := shared()
	if err != nil {
		t.Fatalf("open device: %v", err)
	}
	return dev
}

var interpreter = sync.OnceValues(func() (*device.Device, error) {
	return device.Open(device.Config{Plugin: "go"})
})

// Fast returns the process's pure-Go device, which has nothing to compile, for tests of small networks in which XLA is
// not the point. With ANISOFLIGHT_TEST_DEVICE=xla it is the device of Open.
func Fast(t testing.TB) *device.Device {
	t.Helper()
	if os.Getenv("ANISOFLIGHT_TEST_DEVICE") == "xla" {
		return Open(t)
	}
	dev, err := interpreter()
	if err != nil {
		t.Fatalf("open device: %v", err)
	}
	return dev
}

var (
	hostMu sync.Mutex
	hosts  = map[int]*device.Device{} // by the number of their peers
)

// threads is a number for all n of Host, up to four: XLA divides loops among its threads, on which the last bit of a
// result may depend.
const threads = "4"

// Host returns the first of n devices of the host, opened by the first call with that n. They are never closed, and
// have nothing in common with the device of Open, not even the number of threads. Without XLA for CPU the test is
// skipped: the pure-Go backend is one device.
func Host(t testing.TB, n int) *device.Device {
	t.Helper()
	hostMu.Lock()
	defer hostMu.Unlock()
	if hosts[n] == nil {
		t.Setenv("NPROC", threads)
		dev, err := device.Open(device.Config{Plugin: string(device.CPU), Devices: strconv.Itoa(n)})
		if none := (*device.PluginError)(nil); errors.As(err, &none) && none.Path == string(device.CPU) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("open %d devices: %v", n, err)
		}
		hosts[n] = dev
	}
	return hosts[n]
}

// Several returns the four devices of Host(t, 4).
func Several(t testing.TB) []*device.Device {
	t.Helper()
	return Host(t, 4).Peers()
}

// PureGo returns a pure-Go device of the test's own, closed at its end.
func PureGo(t testing.TB) *device.Device {
	t.Helper()
	return Limited(t, 0)
}

// Limited returns a pure-Go device of so many bytes, closed at the end of the test; 0 means no limit.
func Limited(t testing.TB, bytes int64) *device.Device {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: "go", MemoryLimit: bytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// Input is an argument of [Compute]: a slice of numbers in the order of memory, and its dimensions.
type Input struct {
	Flat any
	Dims []int
}

// In returns an input of the type float32 or float64.
func In(dtype dtypes.DType, values []float64, dims ...int) Input {
	if dtype == dtypes.Float64 {
		return Input{values, dims}
	}
	rounded := make([]float32, len(values))
	for i, v := range values {
		rounded[i] = float32(v)
	}
	return Input{rounded, dims}
}

// Compute runs the graph that build draws of parameters for the inputs, and returns its outputs, which are float32 or
// float64. key names the graph, inputs included, in the device's cache of programs.
func Compute(t testing.TB, dev *device.Device, key string, build func(in []*graph.Node) []*graph.Node,
	inputs ...Input,
) (results [][]float64) {
	t.Helper()
	program, err := dev.Program(t.Context(), t.Name()+" "+key, func(g *graph.Graph) []*graph.Node {
		var in []*graph.Node
		for i, x := range inputs {
			dtype := dtypes.FromGoType(reflect.TypeOf(x.Flat).Elem())
			in = append(in, graph.Parameter(g, fmt.Sprint("in", i), shapes.Make(dtype, x.Dims...)))
		}
		return build(in)
	})
	if err != nil {
		t.Fatal(err)
	}
	var args []device.Arg
	for _, x := range inputs {
		b, err := dev.Upload(x.Flat, x.Dims...)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		args = append(args, device.Use(b))
	}
	out, err := program.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range out {
		v := make([]float64, b.Size())
		if err := device.Download(b, v); err != nil {
			t.Fatal(err)
		}
		b.Release()
		results = append(results, v)
	}
	return results
}
