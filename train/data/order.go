package data

import (
	"cmp"
	"context"

	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/kernels/latent"
)

// The streams of the generator that an order draws from; see package latent.
const (
	streamEpoch uint32 = 0x64617461
	streamFlip  uint32 = 0x666c6970
)

// Order is the endless sequence in which training visits n images: a new permutation in every epoch. The image at
// position p, counted from the start of training, is a function of (seed, p). It belongs to one goroutine.
type Order struct {
	seed  uint64
	n     int
	flip  bool
	epoch uint64
	perm  []int // of epoch
}

// NewOrder returns the order of n ≥ 1 images; with flip every visit mirrors its image with probability ½.
func NewOrder(seed uint64, n int, flip bool) *Order {
	return &Order{seed: seed, n: n, flip: flip}
}

// At returns the image at position p, and whether to mirror it.
func (o *Order) At(p uint64) (image int, flip bool) {
	if epoch := p / uint64(o.n); o.perm == nil || epoch != o.epoch {
		o.epoch = epoch
		o.perm = latent.Perm(latent.Uint64(o.seed, streamEpoch, epoch), streamEpoch, o.n)
	}
	flip = o.flip && latent.Uint64(o.seed, streamFlip, p)&1 == 1
	return o.perm[p%uint64(o.n)], flip
}

// Batch fills images [len(labels), H, W, C] and labels with the visits from position p on, on all cores. A stored file
// that cannot be read is an *[Error].
func (o *Order) Batch(d *Dataset, p uint64, images []float32, labels []int32) error {
	n := d.Pixels()
	visits, flips := make([]int, len(labels)), make([]bool, len(labels))
	for i := range labels { // in order: a permutation is made once
		visits[i], flips[i] = o.At(p + uint64(i))
		labels[i] = d.Label(visits[i])
	}
	if err := d.Check(context.Background()); err != nil {
		return err
	}
	errs := make([]error, len(labels))
	safely.For(len(labels), func(i int) {
		errs[i] = d.protect(func() { d.image(visits[i], flips[i], images[i*n:(i+1)*n]) })
	})
	return cmp.Or(errs...)
}
