// Package start draws the states at which sampling starts from the data's own normal law instead of pure noise.
//
// Data of mean μ and covariance Σ under noise of covariance M = Σ_j g_j P_j have, to second order, the law N(μ, Σ + M).
// So a sampler may start at
//
//	x_T = μ + (Σ + M)^½ ξ        instead of        x_T = M^½ ξ,
//
// at no evaluation and at any noise level: exact where the data are normal. The root is the symmetric one, so that x_T
// → M^½ ξ from the same ξ as M grows. The standard start errs at the end by what the noise has not drowned,
// (Σ^{1/2}(Σ+M)^{-1/2}) μ and a factor √(M/(Σ+M)) of the spread in each direction; this one by what is not normal in
// the data at noise M.
//
// A Law is μ and Σ of one class or of all images. Σ is kept in one of two forms: variances along the frequencies of the
// DCT, with axes of the channels at each, or along some orthonormal vectors with one variance for the rest. A Start has
// one law for all images and, where it is per class, one for each class.
//
// The package imports schedule/basis, internal/base/normalization, gonum's matrices and the standard library: no
// device, no tensors. Everything is deterministic and float64. Begin with law.go; measure.go estimates, root.go draws.
package start

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
)

// Shared is the label of the law of all images.
const Shared = -1

// Start is the law of all images and, where it is per class, the laws of classes. It is immutable and safe for
// concurrent use.
type Start struct {
	settings Settings
	laws     map[int]*Law // Shared is always there
}

// New returns a start of laws by label, Shared among them, all of one size. Errors are *Error.
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

// Labels returns the classes that have laws of their own, in increasing order; nil where all share one.
func (s *Start) Labels() []int {
	labels := slices.Sorted(maps.Keys(s.laws))
	if len(labels) == 1 {
		return nil
	}
	return labels[1:]
}

// Law returns the law of a class, that of all images for a class without its own and for no class, −1.
func (s *Start) Law(label int) *Law {
	if l, ok := s.laws[label]; ok {
		return l
	}
	return s.laws[Shared]
}

// What a law keeps of the data's covariance.
const (
	None  = "none"  // one variance for all directions
	Bands = "bands" // one variance for each band of DCT frequencies
	DCT   = "dct"   // the channels' covariance at each DCT frequency
	PCA   = "pca"   // the leading principal components, and one variance for the rest
	Full  = "full"  // all of it
)

// Covariances lists them, the coarsest first.
var Covariances = []string{None, Bands, DCT, PCA, Full}

// MaxDense bounds the values of an image whose whole covariance is taken, as by PCA and Full, or for the root of a
// covariance that no basis makes diagonal.
const MaxDense = 1024

// maxNumbers bounds the numbers that the moments of all classes take.
const maxNumbers = 1 << 27

// defaultRank is the number of principal components of PCA.
const defaultRank = 16

// Settings say what is kept of the data's covariance. The zero value of a field means its default.
type Settings struct {
	// Covariance is one of Covariances; DCT by default.
	Covariance string
	// Rank of PCA is the number of leading components; 16 by default, at most H·W·C.
	Rank int
	// Cuts of Bands separate the bands, as in basis.DCTBands; octaves 1, 2, 4, … by default.
	Cuts []int
	// PerClass estimates a law for each class that has images, too.
	PerClass bool
	// Shrinkage ν of PerClass is how many images the classes' mean covariance Σ_w counts for in that of a class of n
	// images,
	//
	//	Σ_y ← (n Σ_y + ν Σ_w)/(n + ν).
	//
	// By default it is the number of values whose covariance is estimated together: 1 for None and Bands, C for DCT, H·W·C
	// for PCA and Full. Negative means none.
	Shrinkage float64
	// Units is the map through which the data were seen; nil for images in [−1, 1].
	Units *normalization.Affine
}

// resolve fills in the covariance and the rank and checks what needs no images.
func (s Settings) resolve() (Settings, error) {
	if s.Covariance == "" {
		s.Covariance = DCT
	}
	switch {
	case !slices.Contains(Covariances, s.Covariance):
		return s, failf("covariance", "must be one of %s, got %q", strings.Join(Covariances, ", "), s.Covariance)
	case s.Rank != 0 && s.Covariance != PCA:
		return s, failf("rank", "must be left out for covariance %s; only pca takes it", s.Covariance)
	case s.Rank < 0:
		return s, failf("rank", "must be at least 1, got %d", s.Rank)
	case s.Cuts != nil && s.Covariance != Bands:
		return s, failf("cuts", "must be left out for covariance %s; only bands takes them", s.Covariance)
	}
	if s.Covariance == PCA && s.Rank == 0 {
		s.Rank = defaultRank
	}
	return s, nil
}

// dense reports whether the whole covariance is estimated.
func (s Settings) dense() bool { return s.Covariance == PCA || s.Covariance == Full }

// fit fills in what depends on the images' size, and checks it.
func (s Settings) fit(h, w, c int) (Settings, error) {
	s, err := s.resolve()
	if err != nil {
		return s, err
	}
	d := h * w * c
	switch {
	case s.dense() && d > MaxDense:
		return s, largef("covariance", "%s serves images of up to %d values, got %d×%d×%d = %d; dct serves every size",
			s.Covariance, MaxDense, h, w, c, d)
	case s.Rank > d:
		return s, failf("rank", "must be at most the %d values of an image, got %d", d, s.Rank)
	}
	if s.Covariance == Bands && s.Cuts == nil {
		for cut := 1; cut < max(h, w); cut *= 2 {
			s.Cuts = append(s.Cuts, cut)
		}
	}
	if s.Shrinkage == 0 && s.PerClass {
		switch s.Covariance {
		case None, Bands:
			s.Shrinkage = 1
		case DCT:
			s.Shrinkage = float64(c)
		default:
			s.Shrinkage = float64(d)
		}
	}
	if s.Shrinkage < 0 || !s.PerClass {
		s.Shrinkage = 0
	}
	return s, nil
}

// Error reports a field of a request or of a file that cannot be used.
type Error struct {
	Field    string // dataset, covariance, rank, cuts, shrinkage, basis, tensor names, …
	Msg      string // goes on after the field's name
	TooLarge bool   // a well-formed request beyond what is served
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

func largef(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...), TooLarge: true}
}
