package search

import "testing"

// The seeds of a search or a fit never meet those from 0 on, with which its choice is measured.
func TestSearchSeedsAreNotThoseOfSamples(t *testing.T) {
	const reach = 1 << 40 // seeds from 0 on, and of each search
	var starts []uint64
	for _, seed := range []uint64{0, 1, 2, 42, 1234, 1 << 20} {
		start := firstSeed(seed)
		if start < reach || start > 1<<64-1-reach {
			t.Errorf("seed %d begins at %d", seed, start)
		}
		for _, other := range starts {
			if start-other < reach || other-start < reach {
				t.Errorf("seeds from %d and from %d meet", start, other)
			}
		}
		starts = append(starts, start)
	}
}
