package basis

// ByFormula reports whether Formula knows a name.
func ByFormula(name string) bool {
	return name == KindNone || name == KindDCT || name == KindHaar
}

// Formula returns the basis that a name and numbers determine: "none", "dct" or
// "haar", of k dimensions in P_1 (0 means the basis's default), or nested bands of the
// DCT where there are cuts, which exclude k. ok is false for any other name, of bases
// that are made from images or uploaded.
func Formula(name string, h, w, k int, cuts []int) (b *Basis, ok bool, err error) {
	if len(cuts) > 0 && name != KindDCT {
		return nil, true, failf(Shared, -1, "cuts belong to basis dct, not %s", name)
	}
	switch {
	case name == KindNone && k != 0:
		return nil, true, failf(Shared, -1, "basis none takes no k")
	case name == KindNone:
		return None(h, w), true, nil
	case name == KindDCT && len(cuts) > 0 && k != 0:
		return nil, true, failf(Shared, -1, "k is %d beside cuts %v; give one of them", k, cuts)
	case name == KindDCT && len(cuts) > 0:
		b, err = DCTBands(h, w, cuts...)
	case name == KindDCT:
		b, err = DCT(h, w, k)
	case name == KindHaar:
		b, err = Haar(h, w, k)
	default:
		return nil, false, nil
	}
	return b, true, err
}
