// Package collective adds up buffers of several devices, of one process or of several.
//
// Begin reading with [Sum].
package collective

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Sum returns Σ_k x_k on each of the first len(x) devices of a backend. x_k is on device k, and all have the same
// shape. The x_k are donated, unless an error occurs before the run. A single one is its own sum.
//
// On XLA for CPU the terms are added in the order of the devices, (x_0 + x_1) + x_2 + …, with the bits of that sum on
// one device. On GPUs the collective library chooses the order.
func Sum(ctx context.Context, x []*device.Buffer) ([]*device.Buffer, error) {
	if len(x) == 1 {
		return x, nil
	}
	shape := shapes.Make(x[0].DType(), x[0].Dims()...)
	p, err := x[0].Device().Program(ctx, fmt.Sprintf("sum over %d %s", len(x), shape),
		func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, device.Donated("x"), shape)
			return []*graph.Node{g.Distributed().AllReduceOne(x, backends.ReduceOpSum)}
		}, device.Together(len(x)))
	if err != nil {
		return nil, err
	}
	args := make([]device.Arg, len(x))
	for k, b := range x {
		args[k] = device.Donate(b)
	}
	return p.Run(ctx, args...)
}

// Across adds up float32 buffers of several devices of several processes, through the host's memory.
type Across struct {
	World *processes.World

	host [][]float32 // memory of the previous sum, which is reused
}

// Sum is [Sum] over the devices of all processes; every process has the same number of devices. If the host sees the
// devices' memory, as on XLA for CPU, the terms are added in the order of the processes and then of their devices, with
// the bits of one process with all the devices. Otherwise each process first adds up its own terms by its backend. With
// an error, Sum returns the buffers that are still live.
func (a *Across) Sum(ctx context.Context, x []*device.Buffer) (sums []*device.Buffer, err error) {
	defer func() {
		if err != nil {
			a.World.Fail(err)
		}
	}()
	terms := x
	if !x[0].Device().HostVisible() {
		if sums, err = Sum(ctx, x); err != nil {
			return x, err
		}
		x = sums
		terms = x[:1]
	}
	for len(a.host) < len(terms) {
		a.host = append(a.host, make([]float32, x[0].Size()))
	}
	for k, b := range terms {
		if err := b.Read(a.host[k]); err != nil {
			return x, err
		}
	}
	// XLA for CPU flushes subnormal numbers to zero.
	flush := x[0].Device().Name() == "xla:"+string(device.CPU)
	if err := processes.Sum(ctx, a.World, flush, a.host[:len(terms)]...); err != nil {
		return x, err
	}
	for k, b := range x {
		sum, err := b.Device().Upload(a.host[0], b.Dims()...)
		if err != nil {
			return x, err
		}
		b.Release()
		x[k] = sum
	}
	return x, nil
}
