package basis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The kinds of a basis: the names of those by formula, and dense for vectors that were
// made or given. Registered formulas have kinds of their own.
const (
	KindNone  = "none"
	KindDCT   = "dct"
	KindHaar  = "haar"
	KindDense = "dense"
)

// Shared is the label of vectors that serve every class.
const Shared = -1

// Basis is a set of orthogonal projectors on H×W planes. The zero value is not
// usable; make one with None, DCT, DCTBands, Haar, Dense or Clusters.
type Basis struct {
	kind    string
	h, w    int
	dims    []int       // dimensions of each subspace per channel
	cuts    []cut       // separable bases: the nested spans R_1 … R_{J−1}
	vectors [][]float64 // bases by their vectors: [group][k·H·W]
	groups  [][]int     // the labels that share each group's vectors
	groupOf map[int]int // label → group
}

// Kind returns the name of the formula that made the basis, or KindDense.
func (b *Basis) Kind() string { return b.kind }

// String reports the kind and what tells it from others of its kind: the low-pass spans,
// or the dimensions of the subspaces.
func (b *Basis) String() string {
	if b.cuts == nil {
		return fmt.Sprint(b.kind, b.dims)
	}
	spans := make([]string, len(b.cuts))
	for i, c := range b.cuts {
		spans[i] = fmt.Sprintf("%d×%d", c.nu, c.nv)
	}
	return fmt.Sprintf("%s[%s of %d×%d]", b.kind, strings.Join(spans, " "), b.h, b.w)
}

// H returns the height of a plane.
func (b *Basis) H() int { return b.h }

// W returns the width of a plane.
func (b *Basis) W() int { return b.w }

// J returns the number of subspaces.
func (b *Basis) J() int { return len(b.dims) }

// K returns the number of dimensions of P_1 per channel.
func (b *Basis) K() int { return b.dims[0] }

// Dims returns the number of dimensions of each subspace per channel; they add up
// to H·W.
func (b *Basis) Dims() []int { return slices.Clone(b.dims) }

// PerClass reports whether a sample's class chooses its vectors.
func (b *Basis) PerClass() bool {
	_, shared := b.groupOf[Shared]
	return b.vectors != nil && !shared
}

// Knows reports whether there are projectors for a label.
func (b *Basis) Knows(label int) bool {
	_, ok := b.groupOf[label]
	return ok || !b.PerClass()
}

// Classes returns the labels that have vectors, in increasing order; nil where all
// classes share them.
func (b *Basis) Classes() []int {
	if !b.PerClass() {
		return nil
	}
	return slices.Sorted(maps.Keys(b.groupOf))
}

// Groups returns the labels that share vectors, a list for each set of vectors: the
// classes one by one, clusters of them, or Shared alone. It is nil for bases without,
// none and separable ones.
func (b *Basis) Groups() [][]int {
	if b.groups == nil {
		return nil
	}
	out := make([][]int, len(b.groups))
	for i, labels := range b.groups {
		out[i] = slices.Clone(labels)
	}
	return out
}

// Vectors returns a copy of the orthonormal rows that span P_1, [k·H·W]: the DCT or
// Haar functions, along H slow and along W fast, or the vectors of a class (any label
// will do where they are shared). It is an error for basis none, which has no vectors, and
// for a class without any.
func (b *Basis) Vectors(label int) ([]float64, error) {
	switch {
	case b.cuts != nil:
		return b.cuts[0].functions(), nil
	case b.vectors != nil:
		v, err := b.rows(label)
		return slices.Clone(v), err
	}
	return nil, failf(label, -1, "basis none has no vectors")
}

func (b *Basis) rows(label int) ([]float64, error) {
	if g, ok := b.groupOf[Shared]; ok {
		return b.vectors[g], nil
	}
	if g, ok := b.groupOf[label]; ok {
		return b.vectors[g], nil
	}
	if label < 0 {
		return nil, failf(label, -1, "this basis has vectors per class and needs a label; none was given")
	}
	return nil, failf(label, -1, "label %d has no vectors in this basis", label)
}

var none = Definition{
	Name: KindNone, Usage: "the whole image, J = 1", One: true,
	Formula: func(h, w, _ int, _ []int) (*Basis, error) { return None(h, w), nil },
}

// None returns the basis of one subspace, the whole plane. It panics unless both
// sizes are positive.
func None(h, w int) *Basis {
	if h < 1 || w < 1 {
		panic("basis: sizes must be positive")
	}
	return &Basis{kind: KindNone, h: h, w: w, dims: []int{h * w}}
}

// Error says why a basis, or a request to one, was refused.
type Error struct {
	Label int // class whose vectors are at fault, −1 for a shared basis
	Row   int // vector within the label, −1 where none is to blame
	Msg   string
}

// Error implements the error interface.
func (e *Error) Error() string {
	switch {
	case e.Row < 0:
		return "basis: " + e.Msg
	case e.Label < 0:
		return fmt.Sprintf("basis: vector %d: %s", e.Row, e.Msg)
	}
	return fmt.Sprintf("basis: label %d, vector %d: %s", e.Label, e.Row, e.Msg)
}

func failf(label, row int, format string, args ...any) error {
	return &Error{Label: label, Row: row, Msg: fmt.Sprintf(format, args...)}
}
