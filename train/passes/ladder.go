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
	cuts  []int              // of dct: the cut that each rung is
	pairs bool               // two cuts at a time are bases, too
	rows  map[int]*mat.Dense // [rungs' last, H·W] by label, or basis.Shared
}

// ladders returns those of the DCT's frequencies max(u, v), of Haar's scales, and of
// the principal components of the data, of all images and of each class. Planes too
// large for components go without those, and only names them unless it is empty.
func ladders(ctx context.Context, images Images, perClass bool, only []string) ([]*ladder, error) {
	h, w := images.Height(), images.Width()
	wanted := func(name string) bool { return len(only) == 0 || slices.Contains(only, name) }
	var out []*ladder
	if max(h, w) > 1 && wanted("dct") {
		out = append(out, dctLadder(h, w))
	}
	for k := h * w / 4; k >= 1 && wanted("haar"); k /= 4 {
		b, err := basis.Haar(h, w, k)
		if err != nil {
			break // no such scale
		}
		l := &ladder{name: "haar", rungs: []int{k}}
		if err := l.take(b); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	if h*w < 4 || h*w > maxPlane {
		return out, nil
	}
	for _, set := range []PCASettings{{K: h * w / 2}, {K: h * w / 2, PerClass: true}} {
		name := "pca"
		if set.PerClass {
			name = "pca_per_class"
		}
		if !wanted(name) || set.PerClass && !perClass {
			continue
		}
		b, _, err := PCA(ctx, images, set)
		if err != nil {
			return nil, err
		}
		l := &ladder{name: name}
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

// dctLadder has a rung at each cut 1 … max(H, W)−1, its functions in the order of
// max(u, v).
func dctLadder(h, w int) *ladder {
	rows, cols := basis.DCTRows(h, h), basis.DCTRows(w, w)
	l := &ladder{name: "dct", pairs: true}
	var flat []float64
	count := 0
	for cut := 1; cut < max(h, w); cut++ {
		for u := range min(cut, h) {
			for v := range min(cut, w) {
				if max(u, v) != cut-1 {
					continue
				}
				count++
				for y := range h {
					for x := range w {
						flat = append(flat, rows[u*h+y]*cols[v*w+x])
					}
				}
			}
		}
		l.rungs, l.cuts = append(l.rungs, count), append(l.cuts, cut)
	}
	l.rows = map[int]*mat.Dense{basis.Shared: mat.NewDense(count, h*w, flat)}
	return l
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
