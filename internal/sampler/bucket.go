package sampler

import (
	"iter"

	"github.com/anisoflight/anisoflight/kernels"
)

// Bucket is a batch that some of a number of rows go in, padded.
type Bucket struct {
	From, N int // the rows From … From + N − 1
	Size    int // of the batch
}

// Buckets yields the batches that n rows go in, one after the other.
func Buckets(on *kernels.Model, n int) iter.Seq[Bucket] {
	sizes := on.Buckets()
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
