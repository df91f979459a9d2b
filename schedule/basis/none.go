package basis

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
