package sampler

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Row is one sample on its way.
type Row struct {
	Index int64
	Seed  uint64
	Label int32 // −1 for none
}

// Sampler takes rows from their latents along plans to samples, with one network on a device.
type Sampler struct {
	Device  Device
	Network Network
	Start   *Start // where trajectories start; nil: at noise alone
	Guide   *Guide // nil for none
}

// Source returns row i with its plan, and fills in its latent [H, W, C]. It is called from one goroutine.
type Source func(i int, latent []float32) (Row, *solver.Plan, error)

// DrawLatent fills in the latent of a seed.
func DrawLatent(seed uint64, latents []float32) { latent.Normal(seed, latent.StreamLatent, latents) }

// Watch sees what becomes of batches. Its functions are called from one goroutine at a time.
type Watch struct {
	// Stage, which may be nil, is called when a stage of a batch is done, and with −1 before the first. Of batches that
	// are under way at the same time it sees the first.
	Stage func(b *Batch, stage int, t *kernels.Trajectory) error
	// Known, which may be nil, returns the denoised images of a stage [n, H, W, C] if they are known, of plans that keep
	// them.
	Known func(b *Batch, stage int) []float32
	// Every has one batch under way at a time, so that Stage sees all of them.
	Every bool
	// Done takes a batch with its samples, in the order of the rows.
	Done func(b *Batch) error
}

// Follow takes n rows to samples, batch by batch. The plans are of equal structure. As many batches are under way at a
// time as there are devices.
func (s *Sampler) Follow(ctx context.Context, n int, source Source, w Watch) error {
	atOnce := len(s.Network.Model.Device().Peers())
	if w.Every {
		atOnce = 1
	}
	var batches []*Batch
	for in := range Buckets(s.Network.Model, n) {
		b, err := s.batch(in, source)
		if err != nil {
			return err
		}
		if batches = append(batches, b); len(batches) < atOnce && in.From+in.N < n {
			continue
		}
		if err := s.followAll(ctx, batches, w); err != nil {
			return err
		}
		batches = nil
	}
	return nil
}

// followAll takes batches to their samples at the same time.
func (s *Sampler) followAll(ctx context.Context, batches []*Batch, w Watch) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for k, b := range batches {
		own := Watch{Known: w.Known}
		if k == 0 {
			own.Stage = w.Stage
		}
		group.Go(func() error {
			return safely.Do(func() error { return s.follow(groupCtx, b, own) })
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, b := range batches {
		if err := w.Done(b); err != nil {
			return err
		}
	}
	return nil
}
