// Package start draws initial states of sampling from the data's own normal law instead of pure noise.
//
// Data of mean μ and covariance Σ under noise of covariance M = Σ_j g_j P_j have, to second order, the law N(μ, Σ + M).
// So a sampler may start at
//
//	x_T = μ + (Σ + M)^½ ξ        instead of        x_T = M^½ ξ.
//
// It needs no evaluation, works at any noise level, and is exact for normal data. The root is symmetric, so that x_T →
// M^½ ξ as M grows. The standard start has an error of (Σ^{1/2}(Σ+M)^{-1/2}) μ in the mean, and a factor √(M/(Σ+M)) of
// the spread in each direction. This start is wrong as far as the data at noise M are not normal.
//
// A Law has μ and Σ of one class or of all images, Σ as variances along the frequencies of the DCT with axes of the
// channels at each. A Start has one law for all images and, if it is per class, one for each class.
//
// Everything is deterministic and float64. Begin with law.go; measure.go estimates, root.go draws.
package start

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/internal/base/setting"
)

// Shared is the label of the law of all images.
const Shared = -1

// Start has the law of all images and, if it is per class, the laws of classes. It is immutable and safe for concurrent
// use.
type Start struct {
	settings Settings
	laws     map[int]*Law // Shared is always there
}

// New returns a start of laws by label. They must include Shared and have one size. Errors are *Error.
func New(set Settings, laws map[int]*Law) (*Start, error) {
	if set.Covariance != DCT {
		return nil, failf("covariance", "must be %s, got %q", DCT, set.Covariance)
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

// Labels returns the classes with laws of their own, in increasing order, or nil if all share one.
func (s *Start) Labels() []int {
	labels := slices.Sorted(maps.Keys(s.laws))
	if len(labels) == 1 {
		return nil
	}
	return labels[1:]
}

// Law returns the law of a class, or that of all images for a class without one and for −1.
func (s *Start) Law(label int) *Law {
	if l, ok := s.laws[label]; ok {
		return l
	}
	return s.laws[Shared]
}

// DCT is the covariance that an Estimator estimates: that of the channels at each frequency of the DCT.
const DCT = "dct"

// maxDense bounds the number of values of an image whose covariance no basis makes diagonal.
const maxDense = 1024

// Settings say how the laws were estimated.
type Settings struct {
	Covariance string  // what they keep of the data's covariance
	PerClass   bool    // there is a law for each class
	Shrinkage  float64 // images that the classes' mean covariance counts for in that of a class
	// Units is the map through which the data were seen; nil for images in [−1, 1].
	Units *normalization.Affine
}

// Error reports which field of a request or of a file is wrong.
type Error = setting.Error

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

func largef(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...), TooLarge: true}
}
