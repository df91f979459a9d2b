package kernels

import (
	"slices"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Bucket returns the batch size that n samples are computed at: the next power
// of two up to 32, the next multiple of 32 beyond. Programs are compiled for
// buckets only, so a request of any size finds one compiled soon; the samples
// that fill up are dropped.
func Bucket(n int) int {
	if n > 32 {
		return (n + 31) / 32 * 32
	}
	b := 1
	for b < n {
		b *= 2
	}
	return b
}

// padded repeats the last of len(x)/per rows until there are n.
func padded[T any](x []T, per, n int) []T {
	if len(x) == n*per || len(x) == 0 {
		return x
	}
	out := append(make([]T, 0, n*per), x...)
	last := slices.Clone(x[len(x)-per:])
	for len(out) < n*per {
		out = append(out, last...)
	}
	return out
}

// downloadPadded copies the first len(dst) values of a buffer.
func downloadPadded[T device.Float](b *device.Buffer, dst []T) error {
	if b.Size() == len(dst) {
		return device.Download(b, dst)
	}
	all := make([]T, b.Size())
	if err := device.Download(b, all); err != nil {
		return err
	}
	copy(dst, all)
	return nil
}
