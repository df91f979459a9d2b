package frechet

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule/basis"
)

// side is how many frequencies, and how many cells, there are at most along an axis.
const side = 8

// Features are numbers of an image [H, W, C].
type Features struct {
	Name string
	Dims int
	// Unbounded takes values as they are; else they are clamped to [−1, 1] first, as images are.
	Unbounded bool

	size    int
	measure func(x, dst []float64)
}

// Frequencies are the coefficients u, v < 8 of the orthonormal DCT-II in each channel.
func Frequencies(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	t := basis.NewFrequencies(h, w, c, nil)
	y := make([]float64, h*w*c)
	return Features{Name: "frequencies", Dims: nu * nv * c, size: h * w * c, measure: func(x, dst []float64) {
		t.Forward(y, x)
		for u := range nu {
			copy(dst[u*nv*c:(u+1)*nv*c], y[u*w*c:])
		}
	}}
}

// Edges are the means, over the channels and the cells of a grid of at most 8×8, of the
// absolute differences between a pixel and the next, down and across.
func Edges(h, w, c int) Features {
	nu, nv := min(h, side), min(w, side)
	return Features{Name: "edges", Dims: 2 * nu * nv, size: h * w * c, measure: func(x, dst []float64) {
		clear(dst)
		for y := range h {
			for k := range w {
				cell := y*nu/h*nv + k*nv/w
				for q := range c {
					v := x[(y*w+k)*c+q]
					if y+1 < h {
						dst[cell] += math.Abs(x[((y+1)*w+k)*c+q] - v)
					}
					if k+1 < w {
						dst[nu*nv+cell] += math.Abs(x[(y*w+k+1)*c+q] - v)
					}
				}
			}
		}
		for i := range dst {
			dst[i] *= float64(nu*nv) / float64(h*w*c)
		}
	}}
}
