package kernels

import "testing"

// The batch of an evaluation is the least power of two that is enough work for the device, and that fits: two sizes on
// processors, one on an accelerator.
func TestBuckets(t *testing.T) {
	all := func(int) bool { return true }
	upTo := func(most int) func(int) bool { return func(n int) bool { return n <= most } }
	for _, c := range []struct {
		gflops      float64 // of an image
		accelerated bool
		fits        func(int) bool
		want        Buckets
	}{
		{0.02, false, all, Buckets{8, 64}}, // 8×8 pixels
		{3, false, all, Buckets{8, 32}},    // 17 are enough
		{6.4, false, all, Buckets{8, 8}},   // 32×32, 8.8 million parameters
		{42, false, all, Buckets{8, 8}},    // EDM's for CIFAR-10
		{0.02, false, upTo(20), Buckets{8, 16}},
		{0.02, false, upTo(4), Buckets{4, 4}},
		{0.02, true, all, Buckets{256, 256}},
		{6.4, true, all, Buckets{256, 256}},
		{42, true, all, Buckets{64, 64}},
		{1600, true, all, Buckets{1, 1}},
		{6.4, true, upTo(100), Buckets{64, 64}},
		{0, true, upTo(0), Buckets{1, 1}}, // which has its error when it is run
	} {
		if got := bucketsFor(c.gflops*1e9, c.accelerated, c.fits); got != c.want {
			t.Errorf("%g GFLOP an image, accelerated %t: %v, want %v", c.gflops, c.accelerated, got, c.want)
		}
	}
}
