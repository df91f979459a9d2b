package basis

func None(h, w int) *Basis                                           { return &Basis{kind: "none", h: h, w: w, dims: []int{h * w}} }
func DCT(h, w, k int) (*Basis, error)                                { return nil, nil }
func DCTBands(h, w int, cuts ...int) (*Basis, error)                 { return nil, nil }
func Dense(h, w int, v map[int][][]float64) (*Basis, error)          { return nil, nil }
func (b *Basis) Separable() (qh, qw []float64, ok bool)              { return nil, nil, false }
func (b *Basis) SeparableAt(cut int) (qh, qw []float64, ok bool)     { return nil, nil, false }
func (b *Basis) Vectors(label int) ([]float64, error)                { return nil, nil }
func (b *Basis) PerClass() bool                                      { return false }
func (b *Basis) Classes() []int                                      { return nil }
func (b *Basis) Split(label int, x []float64, dst [][]float64) error { return nil }
