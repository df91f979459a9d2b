package collective_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/collective"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// TestAcrossIsSum: two processes of two devices have the bits of four devices, on every device; also of sums that are
// not finite, or too small for a normal number. What was summed is given up.
func TestAcrossIsSum(t *testing.T) {
	devices := devicetest.Several(t)
	for _, n := range []int{1, 7, 300_001} {
		x := draws(n, 4)
		if n > 1 {
			nan, inf := float32(math.NaN()), float32(math.Inf(1))
			x[2][0], x[0][1], x[3][2] = nan, inf, -inf
			x[0][3], x[1][3], x[2][3], x[3][3] = 1.5e-38, -1.25e-38, 0, 0 // 2.5e-39
			x[0][4], x[1][4], x[2][4], x[3][4] = -1.5e-38, 1.25e-38, 1.25e-38, 0
			x[0][5], x[1][5], x[2][5], x[3][5] = 0, 1.25e-38, 0, -1.5e-38 // −2.5e-39
		}
		sums, err := collective.Sum(t.Context(), upload(t, devices, x))
		if err != nil {
			t.Fatal(err)
		}
		want, got := make([]float32, n), make([]float32, n)
		if err := sums[3].Read(want); err != nil {
			t.Fatal(err)
		}
		for _, b := range sums {
			b.Release()
		}
		for range 2 { // the second time in the memory of the first
			job, of, errs := processestest.New(2), make([][]*device.Buffer, 2), make([]error, 2)
			var all sync.WaitGroup
			for k := range of {
				own := upload(t, devices[2*k:2*k+2], x[2*k:2*k+2])
				all.Go(func() {
					a := collective.Across{World: job.World(k)}
					of[k], errs[k] = a.Sum(t.Context(), own)
				})
			}
			all.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for i, b := range slices.Concat(of...) {
				if b.Device() != devices[i] {
					t.Errorf("sum %d lies on device %d", i, slices.Index(devices, b.Device()))
				}
				if err := b.Read(got); err != nil {
					t.Fatal(err)
				}
				for at := range got {
					if math.Float32bits(got[at]) != math.Float32bits(want[at]) && want[at] == want[at] {
						t.Fatalf("device %d: value %d of %d is %g, on four devices %g", i, at, n, got[at], want[at])
					}
				}
				b.Release()
			}
		}
	}
	for k, d := range devices {
		if held := d.Stats().BufferBytes; held != 0 {
			t.Errorf("device %d holds %d bytes", k, held)
		}
	}
}

// TestAcrossAlone: after an error the buffers are there still, and the world says that the others wait.
func TestAcrossAlone(t *testing.T) {
	devices, job := devicetest.Several(t), processestest.New(2)
	job.Kill()
	w := job.World(0)
	given := upload(t, devices[:2], draws(5, 2))
	left, err := (&collective.Across{World: w}).Sum(t.Context(), given)
	var lost *processes.EndError
	if !errors.As(err, &lost) || !w.Broken() || !slices.Equal(left, given) {
		t.Errorf("%v, error %v", left, err)
	}
	for _, b := range left {
		if !b.Live() {
			t.Error("a term is gone")
		}
		b.Release()
	}
}
