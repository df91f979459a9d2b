package basis

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

	// Components returns the vectors that span P_1, from the moments of images; nil for
	// a basis by formula.
	Components func(m *Moments, k int) (*Components, error)
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
func (d Definition) Predicted() bool { return d.Chains != nil || d.Components != nil }
