package basis

import (
	"slices"
	"strings"
)

// definitions are the bases known by name, in the order in which they are listed. It is
// filled before anything is served, and read only from then on.
var definitions = []Definition{none, dct, haar, pca, pcaPerClass}

// Register adds a basis. It must be called at start-up and panics for a name that is
// taken or a definition that is not of one kind.
func Register(d Definition) {
	if _, taken := Lookup(d.Name); taken || d.Name == "" || d.Name == KindDense {
		panic("basis: the name " + d.Name + " is taken")
	}
	if (d.Formula == nil) == (d.Components == nil) {
		panic("basis: " + d.Name + " must have either Formula or Components")
	}
	definitions = append(definitions, d)
}

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
