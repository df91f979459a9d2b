package schedule

import "math"

// Family says how a schedule is shared: over classes or not, and which basis splits
// the image space.
type Family struct {
	// PerClass is true where each class has paths of its own.
	PerClass bool `json:"per_class"`
	// Basis names the subspaces: "none" (J = 1), "dct", or another basis.
	Basis string `json:"basis"`
	// K is the number of dimensions of the first subspace per channel; 0 means the
	// basis's default.
	K int `json:"k,omitempty"`
}

// check returns the first rule that a family with J subspaces breaks.
func (f Family) check(j int) error {
	switch {
	case f.Basis == "":
		return failf(-1, "the family names no basis; use none, dct or the name of a basis")
	case f.Basis == "none" && j != 1:
		return failf(-1, "basis none has one subspace, the schedule has %d", j)
	case f.Basis != "none" && j < 2:
		return failf(-1, "basis %s has at least two subspaces, the schedule has %d", f.Basis, j)
	case f.K < 0:
		return failf(-1, "k is %d; it counts dimensions", f.K)
	case f.Basis == "none" && f.K != 0:
		return failf(-1, "basis none takes no k")
	case f.Basis == "dct":
		if r := int(math.Round(math.Sqrt(float64(f.K)))); r*r != f.K {
			return failf(-1, "k is %d; for basis dct it must be a perfect square", f.K)
		}
	}
	return nil
}
