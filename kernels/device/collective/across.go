package collective

import (
	"context"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Across adds up buffers of several devices of several processes, by way of the host.
type Across struct {
	World *processes.World

	host32 [][]float32 // of the sum before, to be written to again
	host64 [][]float64
}

// Sum is [Sum] over the devices of all processes, of which each has as many. Where the host sees the memory of the
// devices, as on XLA for CPU, the terms are added in the order of the processes and then of their devices, with the
// bits of as many devices of one process. Otherwise those of a process are added first, by its backend. An error comes
// with the buffers that are left.
func (a *Across) Sum(ctx context.Context, x []*device.Buffer) ([]*device.Buffer, error) {
	from := x
	if !x[0].Device().HostVisible() {
		sums, err := Sum(ctx, x)
		if err != nil {
			a.World.Fail(err)
			return x, err
		}
		x = sums
		from = x[:1:1]
	}
	if x[0].DType() == dtypes.Float64 {
		return x, across(ctx, a.World, &a.host64, from, x)
	}
	return x, across(ctx, a.World, &a.host32, from, x)
}

// across puts the sum of from, over all processes, in the place of each of to.
func across[T device.Float](ctx context.Context, w *processes.World, host *[][]T, from, to []*device.Buffer) error {
	for len(*host) < len(from) {
		*host = append(*host, nil)
	}
	for k, b := range from {
		if len((*host)[k]) != b.Size() {
			(*host)[k] = make([]T, b.Size())
		}
		if err := b.Read((*host)[k]); err != nil {
			w.Fail(err)
			return err
		}
	}
	sum := processes.Sum[T]
	if from[0].Device().Name() == "xla:"+string(device.CPU) {
		sum = processes.SumFlushed[T]
	}
	if err := sum(ctx, w, (*host)[:len(from)]...); err != nil {
		return err
	}
	for k, b := range to {
		sum, err := b.Device().Upload((*host)[0], b.Dims()...)
		if err != nil {
			w.Fail(err)
			return err
		}
		b.Release()
		to[k] = sum
	}
	return nil
}
