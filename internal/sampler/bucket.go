package sampler

import (
	"iter"

	"github.com/anisoflight/anisoflight/kernels"
)

// Bucket is a padded batch of some of a number of rows.
type Bucket struct {
	From, N int // the rows From … From + N − 1
	Size    int // of the batch
}

// Buckets yields the batches of n rows, in order.
func Buckets(model *kernels.Model, n int) iter.Seq[Bucket] {
	sizes := model.Buckets()
	return func(yield func(Bucket) bool) {
		for b := (Bucket{}); b.From < n; b.From += b.N {
			left := n - b.From
			if b.Size = sizes.Large; left <= sizes.Large/2 {
				b.Size = sizes.Small // several, where a padded row costs as much as a true one
			}
			if b.N = min(b.Size, n-b.From); !yield(b) {
				return
			}
		}
	}
}

// Pad returns a bucket's rows of v, size numbers each, and repeats the last one until the bucket is full.
func Pad[E any](v []E, size int, b Bucket) []E {
	v = v[b.From*size : (b.From+b.N)*size]
	if b.N == b.Size {
		return v
	}
	out := append(make([]E, 0, b.Size*size), v...)
	last := out[(b.N-1)*size:]
	for len(out) < b.Size*size {
		out = append(out, last...)
	}
	return out
}
