// Package basis splits the image space into orthogonal subspaces.
//
// A Basis has projectors P_1 … P_J with Σ_j P_j = I that act on the H×W plane of each colour channel. P_1 is the coarse
// part, low frequencies or leading components, and P_J the rest. With R_1 ⊂ R_2 ⊂ … the nested spans,
//
//	P_1 = R_1,  P_j = R_j − R_{j−1},  P_J = I − R_{J−1}.
//
// Kinds: none (J = 1, P_1 = I), dct (separable low-pass cuts of the orthonormal DCT-II), haar (the coarse part of the
// Haar wavelet transform, separable too), dense (orthonormal rows, shared, per class or per cluster of classes). Dense
// rows are given, or the principal components of images: Moments computes the covariance of any number of images in one
// pass, and Components its leading eigenvectors.
//
// Everything is float64, and bases are immutable. Split is the reference that device programs are compared with.
//
// A registry has the names of bases, how they are made and what they accept: see [Definition].
//
// Begin with basis.go; then dct.go and pca.go.
package basis

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The kinds of bases: the names of those given by a formula, and dense for given vectors. Other registered formulas
// have kinds of their own.
const (
	KindNone  = "none"
	KindDCT   = "dct"
	KindHaar  = "haar"
	KindDense = "dense"
)

// Shared is the label of vectors that all classes share.
const Shared = -1

// Basis is a set of orthogonal projectors on H×W planes. Make one with None, DCT, DCTBands, Haar, Dense or Clusters;
// the zero value is not usable.
type Basis struct {
	kind    string
	h, w    int
	dims    []int       // dimensions of each subspace per channel; they add up to H·W
	cuts    []cut       // separable bases: the nested spans R_1 … R_{J−1}
	vectors [][]float64 // bases by their vectors: [group][k·H·W]
	groups  [][]int     // the labels that share each group's vectors
	groupOf map[int]int // label → group
}

// Kind returns the name of the formula that made the basis, or KindDense.
func (b *Basis) Kind() string { return b.kind }

// String returns the kind, and the low-pass spans or the dimensions of the subspaces.
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

// PerClass reports whether the vectors depend on a sample's class.
func (b *Basis) PerClass() bool {
	_, shared := b.groupOf[Shared]
	return b.vectors != nil && !shared
}

// Knows reports whether the basis has projectors for a label.
func (b *Basis) Knows(label int) bool {
	_, ok := b.groupOf[label]
	return ok || !b.PerClass()
}

// Classes returns the labels with vectors, in increasing order, or nil if all classes share them.
func (b *Basis) Classes() []int {
	if !b.PerClass() {
		return nil
	}
	return slices.Sorted(maps.Keys(b.groupOf))
}

// Groups returns the labels of each set of vectors: single classes, clusters of classes, or Shared. It is nil for bases
// without vectors, none and the separable ones.
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

// Vectors returns a copy of the orthonormal rows that span P_1, [k·H·W]: the DCT or Haar functions, with H slow and W
// fast, or the vectors of a class. label has no effect if they are shared. It returns an *Error for basis none and for
// a class without vectors.
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

// None returns the basis of one subspace, the whole plane.
func None(h, w int) *Basis {
	return &Basis{kind: KindNone, h: h, w: w, dims: []int{h * w}}
}

// Error says why a basis, or a request to one, was refused.
type Error struct {
	Label int // class whose vectors are at fault, −1 for a shared basis
	Row   int // vector within the label, −1 if none is to blame
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

// Definition describes a basis that a family may name.
type Definition struct {
	Name string
	// Usage says in a few words what the first subspace holds.
	Usage string

	// Formula returns the basis of h×w planes with k dimensions in P_1, 0 for the default, or with nested cuts. It is nil
	// for a basis that is made from images.
	Formula func(h, w, k int, cuts []int) (*Basis, error)
	// One is true if there is always one subspace; the basis then takes no k.
	One bool
	// Cuts is true if nested cuts may replace k: J = len(cuts)+1.
	Cuts bool
	// CheckK returns what is wrong with a k that no plane can have, or "". It is nil if every k is allowed.
	CheckK func(k int) string
	// Chains returns the nested spans whose gain Predict measures; it may be nil.
	Chains func(h, w int) []Chain

	// Principal is true if P_1 is spanned by the principal components of images.
	Principal bool
	// PerClass is true if each class has components of its own images.
	PerClass bool

	// Made is true if such a basis can be made and stored under a name of its own.
	Made bool
}

// Chain is an orthonormal set of functions, the leading ones of which span nested subspaces.
type Chain struct {
	Vectors [][]float64 // [n][H·W]
	Ranks   []int       // numbers of leading functions at which it may be cut, increasing to n
	Cuts    []int       // the cut that each rank is; nil where bases are known by k
}

// ByFormula reports whether numbers alone determine the basis.
func (d Definition) ByFormula() bool { return d.Formula != nil }

// Predicted reports whether Predict measures what the basis can gain.
func (d Definition) Predicted() bool { return d.Chains != nil || d.Principal }

// definitions are the registered bases, in the order in which they are listed. To add one, write its file and add it
// here.
var definitions = []Definition{none, dct, haar, pca, pcaPerClass}

// Lookup returns the definition of a name. ok is false if the name is not registered, as those of stored bases.
func Lookup(name string) (d Definition, ok bool) {
	i := slices.IndexFunc(definitions, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return definitions[i], true
}

// Definitions returns the definitions for which keep is true, in order; nil keeps all.
func Definitions(keep func(Definition) bool) []Definition {
	var out []Definition
	for _, d := range definitions {
		if keep == nil || keep(d) {
			out = append(out, d)
		}
	}
	return out
}

// Names returns the names of the definitions for which keep is true, in order; nil keeps all.
func Names(keep func(Definition) bool) []string {
	var out []string
	for _, d := range Definitions(keep) {
		out = append(out, d.Name)
	}
	return out
}

// ByFormula reports whether Formula has a basis of this name.
func ByFormula(name string) bool {
	d, ok := Lookup(name)
	return ok && d.ByFormula()
}

// Nested returns the names of the bases that take cuts, as a list for messages.
func Nested() string {
	return strings.Join(Names(func(d Definition) bool { return d.Cuts }), ", ")
}

// Formula returns a basis that numbers determine: with k dimensions in P_1, 0 for the default, or with nested cuts,
// which exclude k. ok is false if no formula has this name. Errors are *Error.
func Formula(name string, h, w, k int, cuts []int) (b *Basis, ok bool, err error) {
	d, known := Lookup(name)
	switch {
	case len(cuts) > 0 && !d.Cuts:
		return nil, true, failf(Shared, -1, "cuts must be left out for basis %s; only %s takes them", name, Nested())
	case !known || !d.ByFormula():
		return nil, false, nil
	case d.One && k != 0:
		return nil, true, failf(Shared, -1, "k must be left out for basis %s", name)
	case len(cuts) > 0 && k != 0:
		return nil, true, failf(Shared, -1, "k and cuts must not both be given, got %d and %v", k, cuts)
	}
	if b, err = d.Formula(h, w, k, cuts); err != nil {
		return nil, true, err
	}
	b.kind = name
	return b, true, nil
}
