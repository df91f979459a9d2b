package basis

import "fmt"

// Frequencies is the orthonormal transform of H×W images of C channels, channels fastest, to the frequencies of the
// DCT-II and, at each of them, to axes of the channels:
//
//	y_{uvk} = Σ_c A_{uvkc} Σ_{ij} R_{ui} S_{vj} x_{ijc},   R and S as in DCTRows.
//
// Coefficients are in the order of the images: frequency (u, v) with u slow, its axes fastest. Frequencies is immutable
// and safe for concurrent use.
type Frequencies struct {
	h, w, c    int
	rows, cols []float64
	axes       []float64 // A, [H·W, C, C]; nil where the channels are their own axes
}

// NewFrequencies returns the transform of h×w images of c channels. axes is A [H·W·C·C] of orthonormal rows, or nil for
// the channels themselves. It panics unless the sizes are positive and axes has that length.
func NewFrequencies(h, w, c int, axes []float64) *Frequencies {
	if h < 1 || w < 1 || c < 1 || axes != nil && len(axes) != h*w*c*c {
		panic(fmt.Sprintf("basis: NewFrequencies: %d axes for images of %d×%d×%d", len(axes), h, w, c))
	}
	return &Frequencies{h: h, w: w, c: c, rows: DCTRows(h, h), cols: DCTRows(w, w), axes: axes}
}

// Size returns H·W·C, the length of images and coefficients.
func (f *Frequencies) Size() int { return f.h * f.w * f.c }

// Forward writes the coefficients of an image to dst. Both have Size values; dst may be x.
func (f *Frequencies) Forward(dst, x []float64) {
	f.check(dst, x)
	line := f.w * f.c
	half := make([]float64, f.Size())
	for u := range f.h {
		to := half[u*line : (u+1)*line]
		for y := range f.h {
			a := f.rows[u*f.h+y]
			for k, v := range x[y*line : (y+1)*line] {
				to[k] += a * v
			}
		}
	}
	at := make([]float64, f.c)
	for u := range f.h {
		for v := range f.w {
			clear(at)
			for x := range f.w {
				a := f.cols[v*f.w+x]
				for k, y := range half[u*line+x*f.c:][:f.c] {
					at[k] += a * y
				}
			}
			f.turn(dst[(u*f.w+v)*f.c:][:f.c], at, u*f.w+v)
		}
	}
}

// Inverse writes the image of coefficients to dst. Both have Size values; dst may be y.
func (f *Frequencies) Inverse(dst, y []float64) {
	f.check(dst, y)
	line := f.w * f.c
	half, at := make([]float64, f.Size()), make([]float64, f.c)
	for u := range f.h {
		for v := range f.w {
			f.turnBack(at, y[(u*f.w+v)*f.c:][:f.c], u*f.w+v)
			for x := range f.w {
				a := f.cols[v*f.w+x]
				to := half[u*line+x*f.c:][:f.c]
				for k, z := range at {
					to[k] += a * z
				}
			}
		}
	}
	clear(dst)
	for u := range f.h {
		from := half[u*line : (u+1)*line]
		for i := range f.h {
			a := f.rows[u*f.h+i]
			to := dst[i*line : (i+1)*line]
			for k, v := range from {
				to[k] += a * v
			}
		}
	}
}

// turn writes the channels' values to the axes of a frequency, turnBack the inverse.
func (f *Frequencies) turn(dst, channels []float64, frequency int) {
	if f.axes == nil {
		copy(dst, channels)
		return
	}
	for k := range dst {
		dst[k] = dot(f.axes[(frequency*f.c+k)*f.c:][:f.c], channels)
	}
}

func (f *Frequencies) turnBack(channels, y []float64, frequency int) {
	if f.axes == nil {
		copy(channels, y)
		return
	}
	clear(channels)
	for k, v := range y {
		for c, a := range f.axes[(frequency*f.c+k)*f.c:][:f.c] {
			channels[c] += a * v
		}
	}
}

func (f *Frequencies) check(a, b []float64) {
	if len(a) != f.Size() || len(b) != f.Size() {
		panic(fmt.Sprintf("basis: Frequencies: slices of %d and %d values, want %d", len(a), len(b), f.Size()))
	}
}

// FrequencyBands returns the subspace that each frequency of the DCT lies in, [H·W] with u slow. ok is false for a
// basis that mixes frequencies, any other than none and dct.
func (b *Basis) FrequencyBands() (bands []int, ok bool) {
	if b.kind != KindNone && b.kind != KindDCT {
		return nil, false
	}
	bands = make([]int, b.h*b.w)
	for f := range bands {
		for _, c := range b.cuts {
			if f/b.w < c.nu && f%b.w < c.nv {
				break
			}
			bands[f]++
		}
	}
	return bands, true
}
