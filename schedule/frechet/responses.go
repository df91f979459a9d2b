package frechet

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas32"
)

// leastSide is the least side that images are averaged to before they are filtered.
const leastSide = 32

// widths are the numbers of filters of the layers.
var widths = [...]int{16, 24, 32}

// Responses returns the means over the image of the absolute responses of fixed random filters in three layers. The
// first layer filters the image. Each further layer filters the responses of the layer before, less their mean over the
// filters, at half the resolution. Filters have 3×3 taps, those of the first layer sum to 0 in every channel, and
// images are padded by 0. Images of 64 pixels or more along both axes are averaged over square cells first. Each bank
// has filters of its own.
func Responses(h, w, c int, bank uint64) Features {
	cell, layers := max(1, min(h, w)/leastSide), filtersOf(c, bank)
	f := Features{Name: "responses", standard: true, size: h * w * c}
	for _, n := range widths {
		f.Dims += n
	}
	f.measure = func(x, dst []float64) {
		at := planesOf(x, h, w, c).averaged(cell, cell)
		for i, n := range widths {
			if i > 0 {
				at = at.averaged(min(2, at.h), min(2, at.w))
				at.centre()
			}
			at = at.responses(layers[i], n)
			for k := range n {
				dst[k] = at.mean(k)
			}
			dst = dst[n:]
		}
	}
	return f
}

// taps is the number of values of a filter in a channel.
const taps = 9

// filtersOf returns the filters of each layer of a bank, for images of c channels.
func filtersOf(c int, bank uint64) (layers [len(widths)][]float32) {
	rng := rand.New(rand.NewPCG(0x726573, 0x706f6e+bank))
	for i, n := range widths {
		layers[i] = randomFilters(rng, n, c, i == 0)
		c = n
	}
	return layers
}

// randomFilters returns n filters [n, channels, 3, 3], on average of norm 1.
func randomFilters(rng *rand.Rand, n, channels int, zeroSum bool) []float32 {
	out := make([]float32, n*channels*taps)
	for i := range out {
		out[i] = float32(rng.NormFloat64() / math.Sqrt(float64(channels*taps)))
	}
	if !zeroSum {
		return out
	}
	for filter := range slices.Chunk(out, taps) {
		var mean float32
		for _, v := range filter {
			mean += v / taps
		}
		for i := range filter {
			filter[i] -= mean
		}
	}
	return out
}

// planes are channels of h×w values, each within a border of zeros.
type planes struct {
	h, w int
	of   [][]float32 // [h+2, w+2]
}

func newPlanes(n, h, w int) planes {
	p := planes{h, w, make([][]float32, n)}
	size := (h + 2) * (w + 2)
	all := make([]float32, n*size)
	for k := range p.of {
		p.of[k] = all[k*size : (k+1)*size]
	}
	return p
}

// row returns the values of a row.
func (p planes) row(k, y int) []float32 { return p.of[k][(y+1)*(p.w+2)+1:][:p.w] }

// planesOf returns the channels of an image [h, w, c].
func planesOf(x []float64, h, w, c int) planes {
	p := newPlanes(c, h, w)
	for i, v := range x {
		p.row(i%c, i/c/w)[i/c%w] = float32(v)
	}
	return p
}

// averaged returns the means over cells of dy×dx values, without incomplete cells.
func (p planes) averaged(dy, dx int) planes {
	out := newPlanes(len(p.of), p.h/dy, p.w/dx)
	for k := range p.of {
		for y := range out.h * dy {
			to := out.row(k, y/dy)
			for x, v := range p.row(k, y)[:out.w*dx] {
				to[x/dx] += v / float32(dy*dx)
			}
		}
	}
	return out
}

// centre subtracts the mean over all channels from each value.
func (p planes) centre() {
	for i := range p.of[0] {
		var mean float32
		for _, values := range p.of {
			mean += values[i] / float32(len(p.of))
		}
		for _, values := range p.of {
			values[i] -= mean
		}
	}
}

func vector(x []float32) blas32.Vector { return blas32.Vector{N: len(x), Inc: 1, Data: x} }

// responses returns the absolute responses of n filters.
func (p planes) responses(filters []float32, n int) planes {
	out := newPlanes(n, p.h, p.w)
	line := p.w + 2
	within := p.h*line - 2 // from the first value to the last, with the borders between
	for k := range n {
		to := out.of[k]
		y := vector(to[line+1:][:within])
		for q, from := range p.of {
			for i, v := range filters[(k*len(p.of)+q)*taps:][:taps] {
				blas32.Axpy(v, vector(from[i/3*line+i%3:][:within]), y)
			}
		}
		for i := range p.h {
			to[(i+1)*line], to[(i+1)*line+p.w+1] = 0, 0
			for j, v := range out.row(k, i) {
				if v < 0 {
					out.row(k, i)[j] = -v
				}
			}
		}
	}
	return out
}

// mean returns the mean of a channel.
func (p planes) mean(k int) (sum float64) {
	for _, v := range p.of[k] {
		sum += float64(v)
	}
	return sum / float64(p.h*p.w)
}
