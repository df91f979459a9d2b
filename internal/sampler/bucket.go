package sampler

import (
	"iter"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Batches are padded to one of two sizes, so that two compiled programs serve every request.
const (
	SmallBucket = 8
	LargeBucket = 64
)

// BucketFor returns the size of the next device batch when n rows remain. Small remainders go in several small batches
// where a padded row costs as much as a true one, on a CPU; so do all if a large one would not fit the device's
// memory.
func BucketFor(on *kernels.Model, n int) int {
	if (n > LargeBucket/2 || n > SmallBucket && Accelerated(on.Device())) && on.FitBatch(LargeBucket) == LargeBucket {
		return LargeBucket
	}
	return SmallBucket
}

// Accelerated reports whether the rows of a batch are computed side by side.
func Accelerated(dev *device.Device) bool { return !dev.HostVisible() }

// Bucket is a batch that some of a number of rows go in, padded.
type Bucket struct {
	From, N int // the rows From … From + N − 1
	Size    int // of the batch
}

// Buckets yields the batches that n rows go in, one after the other.
func Buckets(on *kernels.Model, n int) iter.Seq[Bucket] {
	return func(yield func(Bucket) bool) {
		for b := (Bucket{}); b.From < n; b.From += b.N {
			b.Size = BucketFor(on, n-b.From)
			if b.N = min(b.Size, n-b.From); !yield(b) {
				return
			}
		}
	}
}

// Pad returns a bucket's rows of v, per numbers each, with the last one repeated until the bucket is full.
func Pad[E any](v []E, per int, b Bucket) []E {
	v = v[b.From*per : (b.From+b.N)*per]
	if b.N == b.Size {
		return v
	}
	out := append(make([]E, 0, b.Size*per), v...)
	last := out[(b.N-1)*per:]
	for len(out) < b.Size*per {
		out = append(out, last...)
	}
	return out
}
