package start

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
)

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

// MaxDense bounds the values of an image whose whole covariance is taken, as by PCA and
// Full, or for the root of a covariance that no basis makes diagonal.
const MaxDense = 1024

// maxNumbers bounds the numbers that the moments of all classes take.
const maxNumbers = 1 << 27

// defaultRank is the number of principal components of PCA.
const defaultRank = 16

// Settings say what is kept of the data's covariance. The zero value of a field means
// its default.
type Settings struct {
	// Covariance is one of Covariances; DCT by default.
	Covariance string
	// Rank of PCA is the number of leading components; 16 by default, at most H·W·C.
	Rank int
	// Cuts of Bands separate the bands, as in basis.DCTBands; octaves 1, 2, 4, … by
	// default.
	Cuts []int
	// PerClass estimates a law for each class that has images, too.
	PerClass bool
	// Shrinkage ν of PerClass is how many images the classes' mean covariance Σ_w counts
	// for in that of a class of n images,
	//
	//	Σ_y ← (n Σ_y + ν Σ_w)/(n + ν).
	//
	// By default it is the number of values whose covariance is estimated together: 1 for
	// None and Bands, C for DCT, H·W·C for PCA and Full. Negative means none.
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
