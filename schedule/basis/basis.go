package basis

import "fmt"

// Error says why a basis was refused.
type Error struct {
	Label int // class whose vectors are at fault, −1 for a shared basis
	Row   int // vector within the label, −1 where none is to blame
	Msg   string
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Row < 0 {
		return "basis: " + e.Msg
	}
	return fmt.Sprintf("basis: label %d, vector %d: %s", e.Label, e.Row, e.Msg)
}

// Basis is a set of orthogonal projectors on H×W planes. The zero value is not
// usable; make one with None, DCT, DCTBands or Dense.
type Basis struct {
	kind    string
	h, w    int
	dims    []int       // dimensions of each subspace per channel
	cuts    []separable // dct: the nested spans R_1 … R_{J−1}
	vectors map[int][]float64
}

// separable is the projector X → Q_H X Q_W.
type separable struct {
	qh, qw []float64 // [H·H], [W·W]
	v      []float64 // [k·H·W] the DCT functions themselves
}

// Kind returns "none", "dct" or "dense".
func (b *Basis) Kind() string { return b.kind }

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
func (b *Basis) Dims() []int { return append([]int(nil), b.dims...) }
