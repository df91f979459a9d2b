package device_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

type drawing = func(g *graph.Graph) []*graph.Node

// affine draws y = scale·x + 1 for x of n elements.
func affine(dtype dtypes.DType, n int, scale float64) drawing {
	return func(g *graph.Graph) []*graph.Node {
		x := graph.Parameter(g, "x", shapes.Make(dtype, n))
		return []*graph.Node{graph.AddScalar(graph.MulScalar(x, scale), 1)}
	}
}

// backends runs a test on the process's device and on the pure-Go fallback.
func backends(t *testing.T, test func(t *testing.T, dev *device.Device)) {
	t.Helper()
	t.Run("default", func(t *testing.T) { test(t, devicetest.Open(t)) })
	t.Run("go", func(t *testing.T) { test(t, open(t, device.Config{Plugin: "go"})) })
}

func open(t *testing.T, cfg device.Config) *device.Device {
	t.Helper()
	dev, err := device.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

func program(t *testing.T, dev *device.Device, key string, build drawing) *device.Program {
	t.Helper()
	p, err := dev.Program(t.Context(), key, build)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func upload(t *testing.T, dev *device.Device, flat any, dims ...int) *device.Buffer {
	t.Helper()
	b, err := dev.Upload(flat, dims...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Release)
	return b
}

func read[T any](t *testing.T, b *device.Buffer) []T {
	t.Helper()
	dst := make([]T, b.Size())
	if err := b.Read(dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func TestRunEveryDType(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		for _, in := range []any{
			[]float32{1, -2.5, 3},
			[]float64{1, -2.5, math.Pi},
			[]int32{1, -2, 3},
			[]int64{1, -2, 1 << 40},
			[]uint32{1, 2, 1 << 31},
			[]uint64{1, 2, 1<<63 + 5},
			[]uint8{1, 2, 255},
		} {
			dtype := dtypes.FromGoType(reflect.TypeOf(in).Elem())
			t.Run(dtype.String(), func(t *testing.T) {
				p := program(t, dev, "identity and sum "+dtype.String(), func(g *graph.Graph) []*graph.Node {
					x := graph.Parameter(g, "x", shapes.Make(dtype, 3))
					return []*graph.Node{x, graph.Sub(graph.Add(x, x), x)}
				})
				out, err := p.Run(t.Context(), device.Use(upload(t, dev, in, 3)))
				if err != nil {
					t.Fatal(err)
				}
				for i, b := range out {
					got := reflect.MakeSlice(reflect.TypeOf(in), 3, 3).Interface()
					if err := b.Read(got); err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(got, in) {
						t.Errorf("output %d is %v, want %v", i, got, in)
					}
					b.Release()
				}
			})
		}
	})
}

// An output that is a parameter, or another output, has memory of its own.
func TestOutputsAreIndependent(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		p := program(t, dev, "the same twice", func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2))
			return []*graph.Node{x, x}
		})
		in := upload(t, dev, []float32{3, 4}, 2)
		out, err := p.Run(t.Context(), device.Use(in))
		if err != nil {
			t.Fatal(err)
		}
		in.Release()
		out[0].Release()
		// Memory that was given back is soon used again.
		upload(t, dev, []float32{-1, -1}, 2)
		upload(t, dev, []float32{-1, -1}, 2)
		if got := read[float32](t, out[1]); !slices.Equal(got, []float32{3, 4}) {
			t.Errorf("the second output is %v after the others were released", got)
		}
	})
}

func TestOneCompilationPerKey(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go"})
	var drawn atomic.Int32
	build := func(g *graph.Graph) []*graph.Node {
		drawn.Add(1)
		time.Sleep(20 * time.Millisecond) // long enough for all to arrive
		return affine(dtypes.Float32, 1, 2)(g)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := dev.Program(t.Context(), "once", build); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := drawn.Load(); n != 1 {
		t.Errorf("16 callers of one key drew its graph %d times, want 1", n)
	}
	if s := dev.Stats(); s.Compiled != 1 || s.Programs != 1 || s.CompileSeconds < 0.02 {
		t.Errorf("stats %+v, want one program compiled in at least 0.02 s", s)
	}
}

func TestLeastRecentlyUsedIsDropped(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go", Programs: 2})
	in := upload(t, dev, []float32{10}, 1)
	run := func(p *device.Program, want float32) {
		t.Helper()
		out, err := p.Run(t.Context(), device.Use(in))
		if err != nil {
			t.Fatal(err)
		}
		if got := read[float32](t, out[0])[0]; got != want {
			t.Fatalf("%v, want %v", got, want)
		}
	}
	a := program(t, dev, "a", affine(dtypes.Float32, 1, 1))
	b := program(t, dev, "b", affine(dtypes.Float32, 1, 2))
	run(a, 11) // b is now the older
	program(t, dev, "c", affine(dtypes.Float32, 1, 3))
	if s := dev.Stats(); s.Programs != 2 || s.Compiled != 3 {
		t.Fatalf("stats %+v, want 2 programs of 3 compiled", s)
	}
	run(a, 11)
	if n := dev.Stats().Compiled; n != 3 {
		t.Errorf("the program used last was compiled again (%d compilations)", n)
	}
	run(b, 21) // its handle outlives its executable
	if n := dev.Stats().Compiled; n != 4 {
		t.Errorf("%d compilations after running the dropped program, want 4", n)
	}
}

// With room for one program, every run evicts the other's executable while it may be running: it must not be finalised
// under its user.
func TestEvictionSparesRunningPrograms(t *testing.T) {
	dev := open(t, device.Config{Programs: 1})
	programs := []*device.Program{
		program(t, dev, "x+1", affine(dtypes.Float32, 4096, 1)),
		program(t, dev, "2x+1", affine(dtypes.Float32, 4096, 2)),
	}
	in := upload(t, dev, make([]float32, 4096), 4096)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 5 {
				out, err := programs[i%2].Run(t.Context(), device.Use(in))
				if err != nil {
					t.Error(err)
					return
				}
				if got := read[float32](t, out[0])[0]; got != 1 {
					t.Errorf("got %v, want 1", got)
				}
				out[0].Release()
			}
		})
	}
	wg.Wait()
}

func TestGraphErrors(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		param := func(g *graph.Graph, name string, n int) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(dtypes.Float32, n))
		}
		for says, build := range map[string]drawing{
			`"wrong": build: `: func(g *graph.Graph) []*graph.Node { // shapes that do not match
				return []*graph.Node{graph.Add(param(g, "a", 2), param(g, "b", 3))}
			},
			"build: no such layer": func(*graph.Graph) []*graph.Node { panic("no such layer") },
			"build: runtime error": func(*graph.Graph) []*graph.Node {
				var n *graph.Node
				return []*graph.Node{n.Graph().Nodes()[0]}
			},
			"build: the graph has no outputs": func(g *graph.Graph) []*graph.Node { param(g, "a", 2); return nil },
			"compile: ": func(g *graph.Graph) []*graph.Node { // another graph's node
				return []*graph.Node{param(graph.NewGraph(g.Backend(), "other"), "a", 2)}
			},
		} {
			p, err := dev.Program(t.Context(), "wrong", build)
			var pe *device.ProgramError
			if !errors.As(err, &pe) || p != nil || !strings.Contains(err.Error(), says) {
				t.Errorf("got program %v, error %v; want a ProgramError with %q", p, err, says)
			}
		}
	})
}

// A caller who gives up does not spoil the compilation for the next one.
func TestCancelledCompilationGoesOn(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go"})
	started, finish := make(chan struct{}), make(chan struct{})
	build := func(g *graph.Graph) []*graph.Node {
		close(started)
		<-finish
		return affine(dtypes.Float32, 1, 2)(g)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watch device.Watch
	go func() {
		<-started
		if key, since, ok := watch.Compiling(); key != "slow" || !ok || since.IsZero() {
			t.Errorf("while it waits the watch tells %q, %v, %v", key, since, ok)
		}
		cancel()
	}()
	if _, err := dev.Program(watch.With(ctx), "slow", build); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	if key, _, ok := watch.Compiling(); ok {
		t.Errorf("nobody waits, and the watch tells of %q", key)
	}
	close(finish)
	if _, err := dev.Program(t.Context(), "slow", build); err != nil {
		t.Fatal(err) // a second call of build would panic at close(started)
	}
	if n := dev.Stats().Compiled; n != 1 {
		t.Errorf("%d compilations, want 1", n)
	}
}

func TestClose(t *testing.T) {
	for _, plugin := range []string{"", "go"} {
		dev, err := device.Open(device.Config{Plugin: plugin})
		if err != nil {
			t.Fatal(err)
		}
		p := program(t, dev, "p", affine(dtypes.Float32, 1, 2))
		b := upload(t, dev, []float32{1}, 1)
		for range 2 {
			if err := dev.Close(); err != nil {
				t.Fatal(err)
			}
		}
		_, run := p.Run(t.Context(), device.Use(b))
		_, again := dev.Upload([]float32{1}, 1)
		_, compiled := dev.Program(t.Context(), "p", affine(dtypes.Float32, 1, 2))
		for what, err := range map[string]error{
			"Run": run, "Upload": again, "Program": compiled, "Read": b.Read(make([]float32, 1)),
		} {
			if !errors.Is(err, device.ErrClosed) {
				t.Errorf("%s on a closed device: %v", what, err)
			}
		}
		b.Release()
		runtime.GC()
	}
}
