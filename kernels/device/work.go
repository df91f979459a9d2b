package device

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
)

// Work counts the runs of one kind of program since the device was opened.
type Work struct {
	Runs    int64
	FLOPs   int64   // see [Program.FLOPs]
	Seconds float64 // sum of the runs' durations
}

// Work returns the work of each kind of program; a kind is the first word of a program's key.
func (d *Device) Work() map[string]Work {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.work)
}

// count notes a run of the program of that key.
func (d *Device) count(key string, flops int64, took time.Duration) {
	kind, _, _ := strings.Cut(key, " ")
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.work[kind]
	w.Runs++
	w.FLOPs += flops
	w.Seconds += took.Seconds()
	d.work[kind] = w
}

// MatmulPeak doubles the size of the product until it takes long enough for the start of a run not to matter.
const (
	peakLeast, peakMost = 512, 16384
	peakLong            = 50 * time.Millisecond
	peakRepeats         = 5
)

// MatmulPeak returns the rate, in FLOP/s, at which the device multiplies large square matrices of a type: the best of
// several products, which the first call measures in about a second. Shares of the peak (MFU) refer to it.
func (d *Device) MatmulPeak(ctx context.Context, dtype dtypes.DType, options ...ProgramOption) (float64, error) {
	d.peakOnce.Lock()
	defer d.peakOnce.Unlock()
	if peak, ok := d.Peak(); ok {
		return peak, nil
	}
	var best float64
	var took time.Duration
	for n := peakLeast; n <= peakMost && took < peakLong; n *= 2 {
		var err error
		if took, err = d.timeProduct(ctx, n, dtype, options); err != nil {
			return 0, err
		}
		best = max(best, 2*math.Pow(float64(n), 3)/took.Seconds())
	}
	d.peak.Store(math.Float64bits(best))
	return best, nil
}

// Peak returns the rate that MatmulPeak has measured; ok is false before that.
func (d *Device) Peak() (flops float64, ok bool) {
	flops = math.Float64frombits(d.peak.Load())
	return flops, flops > 0
}

// timeProduct returns the shortest time that a product of n×n matrices took.
func (d *Device) timeProduct(ctx context.Context, n int, dtype dtypes.DType, options []ProgramOption) (time.Duration,
	error,
) {
	p := &Program{}
	for _, option := range options {
		option(p)
	}
	p, err := d.Program(ctx, fmt.Sprintf("peak %d %s %s", n, dtype, p.module()), func(g *graph.Graph) []*graph.Node {
		x := graph.ConvertDType(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, n, n)), dtype)
		return []*graph.Node{graph.Dot(x, x)}
	}, options...)
	if err != nil {
		return 0, err
	}
	values := make([]float32, n*n)
	for i := range values {
		values[i] = float32(i%13)/13 - 0.5
	}
	x, err := d.Upload(values, n, n)
	if err != nil {
		return 0, err
	}
	defer x.Release()
	best := time.Duration(math.MaxInt64)
	for range peakRepeats {
		began := time.Now()
		out, err := p.Run(ctx, Use(x))
		if err != nil {
			return 0, err
		}
		best = min(best, time.Since(began))
		out[0].Release()
	}
	return best, nil
}
