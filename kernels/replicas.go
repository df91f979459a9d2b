package kernels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sync"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/device/collective"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// Replicas is a Trainer on several devices of one process, or of several. Each has the whole state, takes its share of
// the parts of a batch, and moves its state by the gradient of all of them, so that all states stay the same.
//
// What a step computes depends on the parts of the batch ([StepInput.Part]), and not on the devices that take them. In
// round r device k has part rN + k, and device 0 adds to the gradient s of the rounds before:
//
//	s ← (s + ∇_{rN}) + ∇_{rN+1} + … + ∇_{rN+N−1}
//
// which [collective.Sum] adds up in that order on XLA for CPU: the bits are those of one Trainer, for any N. On GPUs
// the order of a round's terms is the collective library's. A batch of one part is computed by every device.
//
// Of several processes with M devices, device k of process i is device iM + k above, and [collective.Across] adds up.
// Every process takes the same steps, each with the whole batch.
type Replicas struct {
	*Trainer // of the first device
	trainers []*Trainer

	world  *processes.World // nil: this process alone
	across *collective.Across
	last   float64 // norm of the gradient before
}

// NewReplicas starts a trainer on each of the given devices, the first ones of a backend in order. The first has the
// model m, which stays the caller's; the others get models like it, of the same network and basis.
func (m *Model) NewReplicas(devices []*device.Device, cfg TrainerConfig, init [][]float32) (*Replicas, error) {
	r := &Replicas{}
	for k, dev := range devices {
		model, err := m, error(nil)
		if k > 0 {
			model, err = NewModelAt(m.at, dev, m.net, m.Basis())
		}
		var t *Trainer
		if err == nil {
			t, err = model.NewTrainer(cfg, init)
		}
		if err != nil {
			if k > 0 && model != nil {
				model.Close()
			}
			r.Close()
			return nil, err
		}
		r.trainers = append(r.trainers, t)
	}
	r.Trainer = r.trainers[0]
	return r, nil
}

// Join makes the replicas of several processes one, before their first step. Every process has as many devices.
func (r *Replicas) Join(w *processes.World) { r.world, r.across = w, &collective.Across{World: w} }

// Len returns the number of devices of all processes.
func (r *Replicas) Len() int { return len(r.trainers) * r.world.Size() }

// Restore is [Trainer.Restore] on every device. Where one of them fails after the first has its new state, the state is
// lost.
func (r *Replicas) Restore(s *TrainerState) error {
	for k, t := range r.trainers {
		if err := t.Restore(s); err != nil {
			if k > 0 {
				r.lose()
			}
			return err
		}
	}
	return nil
}

// lose marks the state of all devices as lost.
func (r *Replicas) lose() {
	for _, t := range r.trainers {
		t.lost = true
	}
}

// Close frees the memory of all devices. It may be called twice.
func (r *Replicas) Close() {
	for k, t := range r.trainers {
		if t.done {
			continue
		}
		t.Close()
		if k > 0 {
			t.model.Close()
		}
	}
}

// Step is [Trainer.Step] on all devices together. Once it has begun to move the states, one that fails loses them all.
// Of several processes a step that has begun is not interrupted, and a process that cannot take it ends the others'.
func (r *Replicas) Step(ctx context.Context, in StepInput) (StepOutput, error) {
	if len(r.trainers) == 1 && r.world == nil {
		return r.Trainer.Step(ctx, in)
	}
	n, err := r.checkStep(in)
	if r.world != nil {
		if err := ctx.Err(); err != nil {
			return StepOutput{}, err
		}
		ctx = context.WithoutCancel(ctx)
		err = r.agree(ctx, r.digest(in), err)
	}
	if err != nil {
		return StepOutput{}, err
	}
	for _, t := range r.trainers {
		t.flops = 0
	}
	var out StepOutput
	if in.Part == 0 || in.Part >= n {
		out, err = r.whole(ctx, in)
	} else {
		out, err = r.inParts(ctx, in, n)
		for _, t := range r.trainers {
			out.FLOPs += t.flops
		}
	}
	if r.last = out.GradNorm; out.Skipped {
		r.last = 0
	}
	return out, err
}

// agree returns err, where there is one, after it has told the other processes; or that one of them cannot go on.
func (r *Replicas) agree(ctx context.Context, digest uint64, err error) error {
	if r.world == nil || r.done {
		return err
	}
	return r.world.Agree(ctx, digest, err)
}

// digest returns a hash of what a step is made of, which is the same in all processes.
func (r *Replicas) digest(in StepInput) uint64 {
	table := crc32.MakeTable(crc32.Castagnoli)
	hash := func(values ...any) (sum uint32) {
		for _, v := range values {
			b, err := binary.Append(nil, binary.LittleEndian, v)
			if err != nil {
				panic(err) // of a type without a fixed size, which none of these has
			}
			sum = crc32.Update(sum, table, b)
		}
		return sum
	}
	return uint64(hash(in.Images))<<32 | uint64(hash(in.Labels, in.G, in.Omega, in.NetworkG, in.Seed, in.Step, in.LR,
		in.EMABeta, in.Clip, r.last, r.Count(), int64(in.Part), int64(len(r.trainers))))
}

// whole takes a step of one part on every device. A frozen network has nothing to keep the same: the first estimates.
func (r *Replicas) whole(ctx context.Context, in StepInput) (StepOutput, error) {
	if !r.cfg.TrainNetwork {
		return r.Trainer.Step(ctx, in)
	}
	if in.NetworkG == nil { // compiled while ctx can still end it
		if _, err := r.program(ctx, len(in.Images)/r.model.Pixels()); err != nil {
			return StepOutput{}, err
		}
	}
	outs := make([]StepOutput, len(r.trainers))
	err := r.move(ctx, func(ctx context.Context, k int, t *Trainer) (norm float64, err error) {
		outs[k], err = t.Step(ctx, in)
		return outs[k].GradNorm, err
	})
	return outs[0], err
}

// inParts takes a step on a batch in parts: gradients are summed, then one optimiser step is taken on their mean over
// all n images. The last part is filled up with images of weight zero, so that one program serves all.
func (r *Replicas) inParts(ctx context.Context, in StepInput, n int) (StepOutput, error) {
	devices, m, size := len(r.trainers), r.model, in.Part
	parts := (n + size - 1) / size
	shares := make([]*share, devices)
	defer func() {
		for _, s := range shares {
			s.release()
		}
	}()
	err := r.each(func(k int, t *Trainer) (err error) {
		shares[k], err = t.newShare(ctx, in, n, size)
		return err
	})
	if err := r.agree(ctx, uint64(parts), err); err != nil {
		return StepOutput{}, err
	}
	terms := make([]Terms, parts)
	for from := 0; from < parts; from += r.Len() {
		err := r.each(func(k int, t *Trainer) error {
			if part := from + r.world.Rank()*devices + k; part < parts {
				return t.take(ctx, shares[k], &terms[part], in, part)
			}
			return nil
		})
		if err := r.agree(ctx, uint64(from), err); err != nil {
			return StepOutput{}, err
		}
		if r.cfg.TrainNetwork {
			if err := r.sum(ctx, shares, from+r.Len() >= parts); err != nil {
				return StepOutput{}, err
			}
		}
	}
	out := StepOutput{Terms: &Terms{Mode: r.cfg.Mode, J: m.J()}, Loss: make([]float64, n)}
	if out.FLOPs, err = r.gather(ctx, terms, size*m.J(), n*m.J()); err != nil {
		return StepOutput{}, err
	}
	for k := range terms {
		out.Terms.extend(&terms[k])
	}
	for i, v := range out.Terms.Residual {
		out.Loss[i/m.J()] += in.Omega[i] * v
	}
	if !r.cfg.TrainNetwork {
		return out, nil
	}
	norms := make([]float64, devices)
	err = r.move(ctx, func(ctx context.Context, k int, t *Trainer) (norm float64, err error) {
		norms[k], err = t.apply(ctx, in, n, shares[k].sum)
		return norms[k], err
	})
	if err != nil {
		return StepOutput{}, err
	}
	out.GradNorm, out.Skipped = norms[0], !finite(norms[0])
	return out, nil
}

// gather completes the terms of parts, of each the given number of values and of the last what remains of all, with
// those of the other processes; and returns the FLOPs of those.
func (r *Replicas) gather(ctx context.Context, terms []Terms, each, all int) (flops int64, err error) {
	if r.world == nil {
		return 0, nil
	}
	kinds := termsOf(r.cfg.Mode)
	values := make([]float64, len(kinds)*all+1)
	for i := range values {
		values[i] = math.Copysign(0, -1) // which changes nothing that it is added to, not even a zero
	}
	places := func(do func(own *[]float64, at []float64)) {
		for k := range terms {
			fields := terms[k].fields()
			for i, kind := range kinds {
				do(fields[kind], values[i*all+k*each:i*all+min((k+1)*each, all)])
			}
		}
	}
	places(func(own *[]float64, at []float64) { copy(at, *own) })
	for _, t := range r.trainers {
		values[len(kinds)*all] += float64(t.flops)
	}
	if err := processes.Sum(ctx, r.world, values); err != nil {
		return 0, err
	}
	places(func(own *[]float64, at []float64) { *own = at })
	for _, t := range r.trainers {
		t.flops = 0
	}
	return int64(values[len(kinds)*all]), nil
}

// sum adds the shares' gradients up. Unless it is the last time, all but the first begin anew.
func (r *Replicas) sum(ctx context.Context, shares []*share, last bool) error {
	sums := make([]*device.Buffer, len(shares))
	for k, s := range shares {
		sums[k] = s.sum
	}
	var err error
	if r.world == nil {
		sums, err = collective.Sum(ctx, sums)
	} else {
		sums, err = r.across.Sum(ctx, sums)
	}
	for k := range sums {
		shares[k].sum = sums[k]
	}
	if err != nil || last {
		return err
	}
	for k, s := range shares {
		if r.world.Rank() == 0 && k == 0 {
			continue
		}
		s.sum.Release()
		if s.sum, err = r.trainers[k].model.zeros(ctx); err != nil {
			return err
		}
	}
	return nil
}

// move changes the states, all or none: it is not interrupted where there are several, and where one fails that has
// begun, or they would not be the same any more, all are lost.
func (r *Replicas) move(ctx context.Context, do func(ctx context.Context, k int, t *Trainer) (norm float64, err error),
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(r.trainers) > 1 {
		ctx = context.WithoutCancel(ctx)
	}
	norms, count := make([]float64, len(r.trainers)), r.Count()
	err := r.each(func(k int, t *Trainer) (err error) {
		norms[k], err = do(ctx, k, t)
		return err
	})
	if err != nil {
		if slices.ContainsFunc(r.trainers, func(t *Trainer) bool {
			return t.lost || t.count != count || !t.state[0].Live()
		}) {
			r.lose()
		}
		return err
	}
	for k, v := range norms {
		if math.Float64bits(v) != math.Float64bits(norms[0]) && finite(v) {
			r.lose()
			return fmt.Errorf("device %d has another gradient than device 0, of norm %g in place of %g: %w", k, v, norms[0],
				ErrStateLost)
		}
	}
	return nil
}

// each calls do for every device at once, and waits for all.
func (r *Replicas) each(do func(k int, t *Trainer) error) error {
	errs := make([]error, len(r.trainers))
	var all sync.WaitGroup
	for k, t := range r.trainers {
		all.Go(func() { errs[k] = safely.Do(func() error { return do(k, t) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}
