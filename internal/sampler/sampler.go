// Package sampler takes latents along plans to samples: in buckets that fit the device, from noise or from the law of
// the data, with the evaluations of two networks mixed if a guide asks for that, and by coefficients of subspaces or
// of coordinates.
//
// Begin with Sampler, which follows plans on the server's devices, and with Ensemble, the seam through which a search
// uses any network.
package sampler

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Row is one sample to be computed.
type Row struct {
	Index int64
	Seed  uint64
	Label int32 // −1 for none
}

// Sampler takes rows from their latents along plans to samples, with one network on a device.
type Sampler struct {
	Device  Device
	Network Network
	Start   *Start // draws the initial states; nil starts from noise alone
	Guide   *Guide // nil for none
}

// Source returns row i with its plan, and fills in its latent [H, W, C]. It is called from one goroutine.
type Source func(i int, latent []float32) (Row, *solver.Plan, error)

// DrawLatent fills in the latent of a seed.
func DrawLatent(seed uint64, latents []float32) { latent.Normal(seed, latent.StreamLatent, latents) }

// Watch has the callbacks of Follow. Each is called from one goroutine at a time.
type Watch struct {
	// Evaluated, which may be nil, is called after each stage of every batch with the number of its rows.
	Evaluated func(rows int)
	// Stage, which may be nil, is called after each stage of a batch, and with −1 before the first. If several batches are
	// followed at the same time, it is called for the first of them alone.
	Stage func(b *Batch, stage int, t *kernels.Trajectory) error
	// Known, which may be nil, returns the denoised images of a stage [n, H, W, C] if they are known. Plan.Data must hold.
	Known func(b *Batch, stage int) []float32
	// Every follows one batch at a time, so that Stage is called for all of them.
	Every bool
	// Done is called with each batch and its samples, in the order of the rows.
	Done func(b *Batch) error
}

// Follow samples n rows, batch by batch. All plans have the same structure. It follows as many batches at a time as
// there are devices.
func (s *Sampler) Follow(ctx context.Context, n int, source Source, w Watch) error {
	atOnce := len(s.Network.Model.Device().Peers())
	if w.Every {
		atOnce = 1
	}
	var batches []*Batch
	for bucket := range Buckets(s.Network.Model, n) {
		b, err := s.batch(bucket, source)
		if err != nil {
			return err
		}
		if batches = append(batches, b); len(batches) < atOnce && bucket.From+bucket.N < n {
			continue
		}
		if err := s.followAll(ctx, batches, w); err != nil {
			return err
		}
		batches = nil
	}
	return nil
}

// followAll samples batches at the same time.
func (s *Sampler) followAll(ctx context.Context, batches []*Batch, w Watch) error {
	var evaluating sync.Mutex
	evaluated := func(rows int) {
		if w.Evaluated == nil {
			return
		}
		evaluating.Lock()
		defer evaluating.Unlock()
		w.Evaluated(rows)
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for k, b := range batches {
		watch := Watch{Known: w.Known, Evaluated: evaluated}
		if k == 0 {
			watch.Stage = w.Stage
		}
		group.Go(func() error {
			return safely.Do(func() error { return s.follow(groupCtx, b, watch) })
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
