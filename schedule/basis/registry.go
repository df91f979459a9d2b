package basis

import (
	"slices"
	"strings"
)

// Definition is what there is to know of a basis that a family may name: how it is made
// and what of. A new basis is a file with its Definition and a line in definitions.
type Definition struct {
	Name string
	// Usage says in a few words what the first subspace holds.
	Usage string

	// Formula returns the basis of h×w planes with k dimensions in P_1, 0 for the
	// default, or of nested cuts; nil for a basis that is made of images.
	Formula func(h, w, k int, cuts []int) (*Basis, error)
	// One is true where there is one subspace, whatever the numbers; it takes no k.
	One bool
	// Cuts is true where nested cuts may stand in for k: J = len(cuts)+1.
	Cuts bool
	// CheckK says what is wrong with a k that no plane can have; nil allows all.
	CheckK func(k int) string
	// Chains returns the nested spans whose promise Predict measures; nil for none.
	Chains func(h, w int) []Chain

	// Principal is true if P_1 is spanned by the principal components of images.
	Principal bool
	// PerClass is true where each class has components of its own images.
	PerClass bool

	// Made is true where a basis can be made, and stored under a name of its own.
	Made bool
}

// Chain is an orthonormal set of functions whose leading ones span nested subspaces.
type Chain struct {
	Vectors [][]float64 // [n][H·W]
	Ranks   []int       // numbers of leading functions at which it may be cut, increasing to n
	Cuts    []int       // the cut that each rank is; nil where bases are known by k
}

// ByFormula reports whether numbers alone determine the basis.
func (d Definition) ByFormula() bool { return d.Formula != nil }

// Predicted reports whether Predict measures what the basis can gain.
func (d Definition) Predicted() bool { return d.Chains != nil || d.Principal }

// definitions are the bases known by name, in the order in which they are listed.
var definitions = []Definition{none, dct, haar, pca, pcaPerClass}

// Lookup returns the definition of a name; ok is false for the name of a stored basis.
func Lookup(name string) (d Definition, ok bool) {
	i := slices.IndexFunc(definitions, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return definitions[i], true
}

// Definitions returns all, those for which keep is true, in order; nil keeps all.
func Definitions(keep func(Definition) bool) []Definition {
	var out []Definition
	for _, d := range definitions {
		if keep == nil || keep(d) {
			out = append(out, d)
		}
	}
	return out
}

// Names returns the names of the definitions for which keep is true, in order; nil keeps
// all.
func Names(keep func(Definition) bool) []string {
	var out []string
	for _, d := range Definitions(keep) {
		out = append(out, d.Name)
	}
	return out
}

// ByFormula reports whether Formula knows a name.
func ByFormula(name string) bool {
	d, ok := Lookup(name)
	return ok && d.ByFormula()
}

// Nested returns the names of the bases that take cuts, for messages.
func Nested() string {
	return strings.Join(Names(func(d Definition) bool { return d.Cuts }), ", ")
}

// Formula returns the basis that a name and numbers determine: of k dimensions in P_1
// (0 means the basis's default), or of nested cuts where it takes any, which exclude k.
// ok is false for any other name, of bases that are made from images or uploaded.
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
