package schedule

import (
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Family says how a schedule is shared: over classes or not, and which basis splits
// the image space.
type Family struct {
	// PerClass is true where each class has paths of its own.
	PerClass bool `json:"per_class"`
	// Basis names the subspaces: one of [basis.Names], such as "none" (J = 1), or a stored
	// basis.
	Basis string `json:"basis"`
	// K is the number of dimensions of the first subspace per channel; 0 means the
	// basis's default.
	K int `json:"k,omitempty"`
	// Cuts are the nested bands of a basis that takes them, such as dct, J = len(Cuts)+1:
	// P_1 holds the frequencies max(u, v) < Cuts[0], P_2 those below Cuts[1] but not in
	// P_1, and so on. They exclude K.
	Cuts []int `json:"cuts,omitempty"`
}

// Equal reports whether two families are one.
func (f Family) Equal(o Family) bool {
	return f.PerClass == o.PerClass && f.Basis == o.Basis && f.K == o.K && slices.Equal(f.Cuts, o.Cuts)
}

// check returns the first rule that a family with J subspaces breaks.
func (f Family) check(j int) error {
	d, _ := basis.Lookup(f.Basis)
	switch {
	case f.Basis == "":
		return failf(-1, "family.basis is missing; use %s or the name of a stored basis",
			strings.Join(basis.Names(nil), ", "))
	case d.One && j != 1:
		return failf(-1, "a schedule on basis %s must have one subspace, got %d", f.Basis, j)
	case !d.One && j < 2:
		return failf(-1, "a schedule on basis %s must have at least two subspaces, got %d", f.Basis, j)
	case f.K < 0:
		return failf(-1, "k must be at least 1, got %d", f.K)
	case d.One && f.K != 0:
		return failf(-1, "k must be left out for basis %s", f.Basis)
	case len(f.Cuts) > 0 && !d.Cuts:
		return failf(-1, "cuts must be left out for basis %s, got %v", f.Basis, f.Cuts)
	case len(f.Cuts) > 0:
		return f.checkCuts(j)
	case d.CheckK != nil:
		if wrong := d.CheckK(f.K); wrong != "" {
			return failf(-1, "%s", wrong)
		}
	}
	return nil
}

func (f Family) checkCuts(j int) error {
	switch {
	case f.K != 0:
		return failf(-1, "k and cuts must not both be given, got %d and %v", f.K, f.Cuts)
	case j != len(f.Cuts)+1:
		return failf(-1, "cuts must make the %d subspaces of the schedule, got %v, which make %d", j, f.Cuts, len(f.Cuts)+1)
	}
	for i, c := range f.Cuts {
		if c < 1 || i > 0 && c <= f.Cuts[i-1] {
			return failf(-1, "cuts must increase from 1 on, got %v", f.Cuts)
		}
	}
	return nil
}
