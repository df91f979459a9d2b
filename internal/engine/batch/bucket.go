package batch

import (
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
	if (n > LargeBucket/2 || n > SmallBucket && accelerated(on.Device())) && on.FitBatch(LargeBucket) == LargeBucket {
		return LargeBucket
	}
	return SmallBucket
}

// accelerated reports whether the rows of a batch are computed side by side.
func accelerated(dev *device.Device) bool { return !dev.HostVisible() }

// Pad returns rows from … from+n−1 of v, per numbers each, with the last one repeated until there are bucket of them.
func Pad[E any](v []E, per, from, n, bucket int) []E {
	if n == bucket {
		return v[from*per : (from+n)*per]
	}
	out := append(make([]E, 0, bucket*per), v[from*per:(from+n)*per]...)
	last := out[(n-1)*per:]
	for len(out) < bucket*per {
		out = append(out, last...)
	}
	return out
}
