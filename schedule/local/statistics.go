// Package local describes a denoiser, coordinate by coordinate, as a Wiener filter. solver.Local steps by it.
//
// In a coordinate of basis.Frequencies the denoiser is written as
//
//	D = q x + (1 − q) m,   q = λ/(λ + σ²),
//
// the filter for data of the normal law N(m, λ). Both are local: λ is the variance before the noisy image is seen, and
// m is defined by D. Given the image the variance is σ² q = λσ²/(λ + σ²). All frequencies of a band share λ. By
// Tweedie's formula q is ∂D/∂x, on average the squared error of the denoiser over σ²,
//
//	q = E (D − x_0)²/σ² = E (flow + ε)²,   λ = σ² q/(1 − q),
//
// which one pass over the data measures. A normal law has λ = Σ and m = μ everywhere.
//
// Begin with statistics.go.
package local

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Statistics are the gains q of a denoiser for each row, a class or all of the data, at each noise level and in each
// part, an axis of the channels in one of B bands. They are immutable and safe for concurrent use.
type Statistics struct {
	bands  basis.Bands
	parts  int // B·C
	rows   []Row
	labels []int         // nil if one row is shared
	sigma  []float64     // [P], increasing
	logs   [][][]float64 // ln λ [row][P][B·C]
}

// Row has the statistics of one class, or of all of the data.
type Row struct {
	Axes     []float64   // of the channels in each band, [B, C, C]; nil: the channels are the axes
	Variance []float64   // of the data, [B·C]
	Gain     [][]float64 // q [P][B·C]
}

// Error says why statistics were refused.
type Error struct{ Msg string }

// Error implements the error interface.
func (e *Error) Error() string { return "statistics: " + e.Msg }

func failf(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// New returns the statistics of images in bands, with gains at the noise levels sigma [P ≥ 2], increasing. labels has
// the class of each row; nil means one row shared by all. It keeps the slices. It returns an *Error if sizes do not
// match, and for values that are negative or not finite.
func New(bands basis.Bands, labels []int, sigma []float64, rows []Row) (*Statistics, error) {
	switch {
	case min(bands.H, bands.W, bands.C) < 1 || bands.N < 0:
		return nil, failf("sizes must be positive, got %d×%d×%d in %d bands", bands.H, bands.W, bands.C, bands.N)
	case labels == nil && len(rows) != 1:
		return nil, failf("shared ones must have one row, got %d", len(rows))
	case labels != nil && len(labels) != len(rows):
		return nil, failf("every row must have a label, got %d labels for %d rows", len(labels), len(rows))
	case len(sigma) < 2:
		return nil, failf("at least 2 noise levels are needed, got %d", len(sigma))
	}
	for i, s := range sigma {
		if !(s > 0) || math.IsInf(s, 1) || i > 0 && s <= sigma[i-1] {
			return nil, failf("noise levels must be positive, finite and increasing, got %v at %d", s, i)
		}
	}
	for i, label := range labels {
		if label < 0 || slices.Contains(labels[:i], label) {
			return nil, failf("labels must be distinct and not negative, got %v", labels)
		}
	}
	s := &Statistics{bands: bands, parts: bands.Parts(), rows: rows, labels: labels, sigma: sigma}
	for _, row := range rows {
		logs, err := s.logarithms(row)
		if err != nil {
			return nil, err
		}
		s.logs = append(s.logs, logs)
	}
	return s, nil
}

// logarithms checks a row and returns its ln λ.
func (s *Statistics) logarithms(row Row) ([][]float64, error) {
	if err := s.checkAxes(row.Axes); err != nil {
		return nil, err
	}
	if err := checkRow(row.Variance, s.Size()); err != nil {
		return nil, err
	}
	if len(row.Gain) != len(s.sigma) {
		return nil, failf("every noise level must have gains, got %d for %d", len(row.Gain), len(s.sigma))
	}
	logs := make([][]float64, len(s.sigma))
	for p, q := range row.Gain {
		if err := checkRow(q, s.Size()); err != nil {
			return nil, err
		}
		logs[p] = make([]float64, len(q))
		for f, v := range q {
			logs[p][f] = math.Log(max(variance(v, s.sigma[p], row.Variance[f]), math.SmallestNonzeroFloat64))
		}
	}
	return logs, nil
}

func (s *Statistics) checkAxes(axes []float64) error {
	c := s.bands.C
	if axes != nil && len(axes) != s.Size()*c {
		return failf("axes must be %d numbers, got %d", s.Size()*c, len(axes))
	}
	for block := range slices.Chunk(axes, c*c) {
		if _, _, _, ok := basis.Orthonormal(slices.Collect(slices.Chunk(block, c))); !ok {
			return failf("axes must be orthonormal, got %v", block)
		}
	}
	return nil
}

func checkRow(row []float64, n int) error {
	if len(row) != n {
		return failf("%d values for %d parts", len(row), n)
	}
	for f, v := range row {
		if !(v >= 0) || math.IsInf(v, 1) {
			return failf("gains and variances must be finite and not negative, got %v in part %d", v, f)
		}
	}
	return nil
}

// variance returns λ = σ² q/(1 − q), at most the data's variance: as q → 1, the quotient is dominated by the noise of
// the measurement.
func variance(q, sigma, prior float64) float64 {
	if q >= 1 {
		return prior
	}
	return min(sigma*sigma*q/(1-q), prior)
}

// bandsMeasured is N of the bands in which statistics are measured. On networks of CIFAR-10 at 16×16, coefficients in
// 64 bands are as good as by frequency, and fits to few trajectories are better.
const bandsMeasured = 64

// BandsOf returns the bands in which the statistics of images of a size are measured.
func BandsOf(h, w, c int) basis.Bands { return basis.Bands{H: h, W: w, C: c, N: bandsMeasured} }

// Bands returns the bands of the parts.
func (s *Statistics) Bands() basis.Bands { return s.bands }

// Size returns the number of parts, B·C.
func (s *Statistics) Size() int { return s.parts }

// Rows returns the number of rows: classes, or 1.
func (s *Statistics) Rows() int { return len(s.rows) }

// At returns a row. Its slices must not be written to.
func (s *Statistics) At(row int) Row { return s.rows[row] }

// Labels returns a copy of the rows' labels, or nil if one row is shared.
func (s *Statistics) Labels() []int { return slices.Clone(s.labels) }

// Sigma returns a copy of the noise levels.
func (s *Statistics) Sigma() []float64 { return slices.Clone(s.sigma) }

// Variance writes λ(σ) of every part of a row to dst [B·C]: log-linear in ln σ between the noise levels, constant
// beyond them, and at most the data's variance.
func (s *Statistics) Variance(dst []float64, row int, sigma float64) {
	p := sort.SearchFloat64s(s.sigma, sigma)
	if p == 0 || p == len(s.sigma) {
		p = min(p, len(s.sigma)-1)
		for f, v := range s.logs[row][p] {
			dst[f] = math.Exp(v)
		}
		return
	}
	part := math.Log(sigma/s.sigma[p-1]) / math.Log(s.sigma[p]/s.sigma[p-1])
	low, high := s.logs[row][p-1], s.logs[row][p]
	for f := range dst {
		dst[f] = math.Exp((1-part)*low[f] + part*high[f])
	}
}
