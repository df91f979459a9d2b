package kernels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"sync"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/collective"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// each calls do for all devices in parallel and waits for them.
func (t *Trainer) each(do func(k int, r *replica) error) error {
	if len(t.replicas) == 1 { // a goroutine would cost 3 % of a step of one millisecond
		return safely.Do(func() error { return do(0, t.replicas[0]) })
	}
	errs := make([]error, len(t.replicas))
	var all sync.WaitGroup
	for k, r := range t.replicas {
		all.Go(func() { errs[k] = safely.Do(func() error { return do(k, r) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// update runs a program on every device that takes its state and returns the new state, a report, and last the
// gradient's norm. It returns the first device's report and the norm. With several devices it is not interrupted. If
// one device fails after another has changed its state, all states are lost.
func (t *Trainer) update(ctx context.Context, run func(context.Context, *replica) ([]*device.Buffer, error),
) (report []*device.Buffer, norm float64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if len(t.replicas) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	outs := make([][]*device.Buffer, len(t.replicas))
	err = t.each(func(k int, r *replica) (err error) {
		outs[k], err = run(ctx, r)
		return err
	})
	norms := make([]float64, len(t.replicas))
	for k, r := range t.replicas {
		if outs[k] == nil {
			t.lost = t.lost || !r.state[0].Live()
			continue
		}
		r.state = outs[k][:4:4]
		if err == nil {
			err = device.Download(outs[k][len(outs[k])-1], norms[k:k+1])
		}
		t.lost = t.lost || err != nil
		if k > 0 || err != nil {
			releaseAll(outs[k][4:])
		}
	}
	if err != nil {
		return nil, 0, err
	}
	for k, v := range norms {
		if math.Float64bits(v) != math.Float64bits(norms[0]) && finite(v) {
			t.lost = true
			releaseAll(outs[0][4:])
			return nil, 0, fmt.Errorf("device %d computed a gradient of norm %g, device 0 one of norm %g: %w", k, v, norms[0],
				ErrStateLost)
		}
	}
	if finite(norms[0]) {
		t.count++
	}
	return outs[0][4:], norms[0], nil
}

// sumGradients adds up the devices' gradients. Unless it is the last time, all devices except the first then start
// again at zero.
func (t *Trainer) sumGradients(ctx context.Context, last bool) error {
	sums := make([]*device.Buffer, len(t.replicas))
	for k, r := range t.replicas {
		sums[k] = r.sum
	}
	var err error
	if t.world == nil {
		sums, err = collective.Sum(ctx, sums)
	} else {
		sums, err = t.across.Sum(ctx, sums)
	}
	for k, r := range t.replicas {
		r.sum = sums[k]
		if err == nil && !last && (k > 0 || t.world.Rank() > 0) {
			r.sum.Release()
			r.sum, err = r.model.zeros(ctx)
		}
	}
	return err
}

// gather adds the terms of the other processes, and returns the FLOPs of all.
func (t *Trainer) gather(ctx context.Context, terms *Terms) (flops int64, err error) {
	counted := make([]float64, 1)
	for _, r := range t.replicas {
		counted[0] += float64(r.flops)
	}
	if t.world != nil {
		for _, values := range append(terms.fields(), counted) {
			if err := processes.Sum(ctx, t.world, false, values); err != nil {
				return 0, err
			}
		}
	}
	return int64(counted[0]), nil
}

// agree tells the other processes of err and returns it; if err is nil it returns the error of another process.
func (t *Trainer) agree(ctx context.Context, digest uint64, err error) error {
	if t.world == nil || t.closed {
		return err
	}
	return t.world.Agree(ctx, digest, err)
}

// digest returns a hash of a step's input, which must be the same in all processes.
func (t *Trainer) digest(in StepInput) uint64 {
	hash := crc64.New(crc64.MakeTable(crc64.ECMA))
	for _, v := range []any{
		in.Images, in.Labels, in.G, in.Omega, in.NetworkG, in.Seed, in.Step, in.LR, in.EMABeta, in.Clip, int64(in.Part),
		t.norm, t.count, int64(len(t.replicas)),
	} {
		if err := binary.Write(hash, binary.LittleEndian, v); err != nil {
			panic(err) // of a type without a fixed size, which none of these has
		}
	}
	return hash.Sum64()
}
