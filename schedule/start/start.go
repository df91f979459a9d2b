package start

import (
	"maps"
	"slices"
)

// Shared is the label of the law of all images.
const Shared = -1

// Start is the law of all images and, where it is per class, the laws of classes. It is
// immutable and safe for concurrent use.
type Start struct {
	settings Settings
	laws     map[int]*Law // Shared is always there
}

// New returns a start of laws by label, Shared among them, all of one size. Errors are
// *Error.
func New(set Settings, laws map[int]*Law) (*Start, error) {
	set, err := set.resolve()
	if err != nil {
		return nil, err
	}
	all := laws[Shared]
	if all == nil {
		return nil, failf("mean.-1", "must be there, the mean of all images")
	}
	if err := set.Units.Fits(all.C); err != nil {
		return nil, failf("units", "must fit the channels: %v", err)
	}
	for label, l := range laws {
		if err := l.Check(); err != nil {
			return nil, err
		}
		switch {
		case label < Shared:
			return nil, failf("label", "must be at least -1, got %d", label)
		case l.H != all.H || l.W != all.W || l.C != all.C:
			return nil, failf("mean", "must be of one size in all classes, got %d×%d×%d and %d×%d×%d", all.H, all.W, all.C, l.H,
				l.W, l.C)
		}
	}
	if set.PerClass = len(laws) > 1; !set.PerClass {
		set.Shrinkage = 0
	}
	return &Start{settings: set, laws: maps.Clone(laws)}, nil
}

// Settings returns how the covariances were estimated.
func (s *Start) Settings() Settings { return s.settings }

// Size returns height, width and channels of the images.
func (s *Start) Size() (h, w, c int) {
	l := s.laws[Shared]
	return l.H, l.W, l.C
}

// Labels returns the classes that have laws of their own, in increasing order; nil where
// all share one.
func (s *Start) Labels() []int {
	labels := slices.Sorted(maps.Keys(s.laws))
	if len(labels) == 1 {
		return nil
	}
	return labels[1:]
}

// Law returns the law of a class, that of all images for a class without its own and for
// no class, −1.
func (s *Start) Law(label int) *Law {
	if l, ok := s.laws[label]; ok {
		return l
	}
	return s.laws[Shared]
}
