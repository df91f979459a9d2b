package passes

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// ladder is an orthonormal set of functions on a plane whose leading ones span nested
// subspaces: cut at one rung it is a basis of two subspaces, at more of more.
type ladder struct {
	name  string
	rungs []int              // numbers of leading functions at which it may be cut, increasing
	cuts  []int              // the cut that each rung is, of a basis of cuts
	pairs bool               // two cuts at a time are bases, too
	rows  map[int]*mat.Dense // [rungs' last, H·W] by label, or basis.Shared
}

// ladders returns those of the registered bases: what formulas nest, and the components
// of the data. Planes too large for components go without those, and only names them
// unless it is empty.
func ladders(ctx context.Context, images Images, perClass bool, only []string) ([]*ladder, error) {
	h, w := images.Height(), images.Width()
	var out []*ladder
	for _, d := range basis.Definitions(basis.Definition.Predicted) {
		if len(only) > 0 && !slices.Contains(only, d.Name) {
			continue
		}
		if d.Chains != nil {
			for _, c := range d.Chains(h, w) {
				rows := mat.NewDense(len(c.Vectors), h*w, slices.Concat(c.Vectors...))
				out = append(out, &ladder{
					name: d.Name, rungs: c.Ranks, cuts: c.Cuts, pairs: c.Cuts != nil,
					rows: map[int]*mat.Dense{basis.Shared: rows},
				})
			}
			continue
		}
		if h*w < 4 || h*w > maxPlane || d.PerClass && !perClass {
			continue
		}
		set := PCASettings{K: h * w / 2, PerClass: d.PerClass, Components: d.Components}
		b, _, err := PCA(ctx, images, set)
		if err != nil {
			return nil, err
		}
		l := &ladder{name: d.Name}
		for k := 1; k <= set.K; k *= 2 {
			l.rungs = append(l.rungs, k)
		}
		if err := l.take(b); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// take takes the functions of a basis, as many as the last rung says.
func (l *ladder) take(b *basis.Basis) error {
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	n, hw := l.rungs[len(l.rungs)-1], b.H()*b.W()
	l.rows = map[int]*mat.Dense{}
	for _, label := range labels {
		v, err := b.Vectors(label)
		if err != nil {
			return err
		}
		l.rows[label] = mat.NewDense(n, hw, v[:n*hw])
	}
	return nil
}

// parts is the number of parts that the rungs cut a plane into.
func (l *ladder) parts() int { return len(l.rungs) + 1 }

// energies adds to sums [parts] the squared lengths of the parts of an image's planes
// [H·W, C] of a class.
func (l *ladder) energies(label int, planes *mat.Dense, sums []float64) {
	rows, ok := l.rows[basis.Shared]
	if !ok {
		rows = l.rows[label]
	}
	var coef mat.Dense
	coef.Mul(rows, planes)
	rest := 0.0
	for _, v := range planes.RawMatrix().Data {
		rest += v * v
	}
	part := 0
	for i := range rows.RawMatrix().Rows {
		for part < len(l.rungs)-1 && i >= l.rungs[part] {
			part++
		}
		for _, v := range coef.RawRowView(i) {
			sums[part] += v * v
			rest -= v * v
		}
	}
	sums[len(sums)-1] += max(rest, 0)
}
