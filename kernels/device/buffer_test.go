package device_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

func TestDonatedBufferIsUnusable(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		p := program(t, dev, "affine 2", affine(dtypes.Float32, 2, 2))
		b := upload(t, dev, []float32{1, 2}, 2)
		out, err := p.Run(t.Context(), device.Donate(b))
		if err != nil {
			t.Fatal(err)
		}
		if got := read[float32](t, out[0]); !slices.Equal(got, []float32{3, 5}) {
			t.Errorf("got %v, want [3 5]", got)
		}
		_, used := p.Run(t.Context(), device.Use(b))
		_, donated := p.Run(t.Context(), device.Donate(b))
		errs := map[string]error{"Use": used, "Donate": donated, "Read": b.Read(make([]float32, 2))}
		if dev.HostVisible() {
			errs["View"] = b.View(func(any) error { return nil })
		}
		for name, err := range errs {
			if !errors.Is(err, device.ErrDonated) {
				t.Errorf("%s after donation: %v, want ErrDonated", name, err)
			}
		}
		if b.Live() {
			t.Error("a donated buffer calls itself live")
		}
		b.Release() // allowed, and frees nothing twice
	})
}

func TestReleasedBufferIsUnusable(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go"})
	b := upload(t, dev, []float32{1, 2}, 2)
	b.Release()
	b.Release()
	if err := b.Read(make([]float32, 2)); !errors.Is(err, device.ErrReleased) {
		t.Errorf("Read after release: %v", err)
	}
}

// Arguments that do not fit leave every buffer live, the donated ones too.
func TestMisfitArgumentsKeepBuffers(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		f32 := shapes.Make(dtypes.Float32, 2)
		p := program(t, dev, "a+b", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Add(graph.Parameter(g, "a", f32), graph.Parameter(g, "b", f32))}
		})
		other := open(t, device.Config{Plugin: "go"})
		a := upload(t, dev, []float32{1, 2}, 2)
		dead := upload(t, dev, []float32{1, 2}, 2)
		dead.Release()
		for says, args := range map[string][]device.Arg{
			"arguments: got 1, want 2":      {device.Donate(a)},
			"argument 1: the buffer is nil": {device.Donate(a), device.Use(nil)},
			"argument 1: got (Float32)[3]":  {device.Donate(a), device.Use(upload(t, dev, []float32{1, 2, 3}, 3))},
			"argument 1: got (Float64)[2]":  {device.Donate(a), device.Use(upload(t, dev, []float64{1, 2}, 2))},
			"argument 1: the buffer belongs to another device": {
				device.Donate(a), device.Use(upload(t, other, []float32{1, 2}, 2)),
			},
			"argument 1: it is argument 0's buffer again": {device.Donate(a), device.Donate(a)},
			"0's buffer again, and donated":               {device.Use(a), device.Donate(a)},
			"argument 1: buffer was released":             {device.Donate(a), device.Use(dead)},
		} {
			_, err := p.Run(t.Context(), args...)
			var wrong *device.ProgramError
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
				t.Errorf("got error %v, want %q", err, says)
			}
			if says == "argument 1: buffer was released" && !errors.Is(err, device.ErrReleased) {
				t.Errorf("%v is no ErrReleased", err)
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.Run(cancelled, device.Donate(a), device.Use(a)); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled run: %v", err)
		}
		if out, err := p.Run(t.Context(), device.Use(a), device.Use(a)); err != nil {
			t.Errorf("the buffer did not survive: %v", err)
		} else if got := read[float32](t, out[0]); !slices.Equal(got, []float32{2, 4}) {
			t.Errorf("a+a = %v, want [2 4]", got)
		}
	})
}

func TestWrongSlicesAreRefused(t *testing.T) {
	dev := open(t, device.Config{Plugin: "go"})
	for name, c := range map[string]struct {
		flat any
		dims []int
	}{
		"no slice":           {42, nil},
		"nil":                {nil, nil},
		"strings":            {[]string{"a"}, []int{1}},
		"too few values":     {[]float32{1, 2}, []int{3}},
		"too many values":    {[]float32{1, 2}, nil},
		"negative dimension": {[]float32{1, 2}, []int{-1, -2}},
		"nothing":            {[]float32{}, []int{0, 3}},
	} {
		if b, err := dev.Upload(c.flat, c.dims...); err == nil {
			t.Errorf("%s: uploaded as %v", name, b.Dims())
		}
	}
	b := upload(t, dev, []float32{1, 2}, 2)
	for _, dst := range []any{make([]float32, 1), make([]float32, 3), make([]float64, 2), 1.0, nil} {
		if err := b.Read(dst); err == nil {
			t.Errorf("read into %v", dst)
		}
	}
}

func TestViewIsTheBuffersMemory(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		b := upload(t, dev, []float32{1, 2, 3}, 3)
		if !dev.HostVisible() {
			if err := b.View(func(any) error { return nil }); !errors.Is(err, errors.ErrUnsupported) {
				t.Fatalf("View without host-visible memory: %v", err)
			}
			return
		}
		stop := errors.New("stop")
		err := b.View(func(flat any) error {
			if got, ok := flat.([]float32); !ok || !slices.Equal(got, []float32{1, 2, 3}) {
				t.Errorf("view is %v", flat)
			}
			return stop
		})
		if !errors.Is(err, stop) {
			t.Errorf("View returned %v, want its callback's error", err)
		}
	})
}

// Runs that donate the same buffers in opposite orders neither deadlock nor share: for every buffer exactly one of them
// wins.
func TestDonationRaces(t *testing.T) {
	backends(t, func(t *testing.T, dev *device.Device) {
		f32 := shapes.Make(dtypes.Float32, 64)
		p := program(t, dev, "a+b 64", func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.Add(graph.Parameter(g, "a", f32), graph.Parameter(g, "b", f32))}
		})
		for range 50 {
			a, b := upload(t, dev, make([]float32, 64), 64), upload(t, dev, make([]float32, 64), 64)
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for i := range errs {
				wg.Go(func() {
					x, y := a, b
					if i%2 == 1 {
						x, y = b, a
					}
					var out []*device.Buffer
					out, errs[i] = p.Run(t.Context(), device.Donate(x), device.Donate(y))
					for _, o := range out {
						o.Release()
					}
				})
				wg.Go(func() { _ = a.Read(make([]float32, 64)) })
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !errors.Is(err, device.ErrDonated) {
					t.Fatal(err)
				}
			}
			if won != 1 {
				t.Fatalf("%d of 4 runs got the same donated buffers, want 1", won)
			}
		}
	})
}
