package basis

import (
	"fmt"
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// Frequencies is the orthonormal transform of H×W images of C channels, channels fastest, to the frequencies of the
// DCT-II and, at each of them, to axes of the channels:
//
//	y_{uvk} = Σ_c A_{uvkc} Σ_{ij} R_{ui} S_{vj} x_{ijc},   R and S as in DCTRows.
//
// Coefficients have the order of the images: frequency (u, v) with u slow, axes fastest. Frequencies is immutable and
// safe for concurrent use.
type Frequencies struct {
	h, w, c       int
	r, s, sTurned []float64 // R, S and Sᵀ
	axes          []float64 // A, [H·W, C, C]; nil if the channels are their own axes
	scratch       sync.Pool // of *[2][]float64, each of H·W·C values
}

// NewFrequencies returns the transform of h×w images of c channels. axes is A [H·W·C·C], orthonormal rows; nil means
// the channels themselves. It panics unless the sizes are positive and axes has that length.
func NewFrequencies(h, w, c int, axes []float64) *Frequencies {
	if h < 1 || w < 1 || c < 1 || axes != nil && len(axes) != h*w*c*c {
		panic(fmt.Sprintf("basis: NewFrequencies: %d axes for images of %d×%d×%d", len(axes), h, w, c))
	}
	f := &Frequencies{h: h, w: w, c: c, r: DCTRows(h, h), s: DCTRows(w, w), sTurned: make([]float64, w*w), axes: axes}
	transpose(f.sTurned, f.s, w, w)
	f.scratch.New = func() any {
		return &[2][]float64{make([]float64, f.Size()), make([]float64, f.Size())}
	}
	return f
}

// Size returns H·W·C, the length of images and coefficients.
func (f *Frequencies) Size() int { return f.h * f.w * f.c }

// Forward writes the coefficients of x to dst. Both have Size values; dst may be x.
func (f *Frequencies) Forward(dst, x []float64) {
	f.Low(dst, x, f.h, f.w)
	if f.axes == nil {
		return
	}
	channels := make([]float64, f.c)
	for frequency := range f.h * f.w {
		y := dst[frequency*f.c:][:f.c]
		copy(channels, y)
		for k := range y {
			y[k] = dot(f.axes[(frequency*f.c+k)*f.c:][:f.c], channels)
		}
	}
}

// Low writes the coefficients u < nu and v < nv of each channel of x to dst [nu, nv, C]. dst may be x.
func (f *Frequencies) Low(dst, x []float64, nu, nv int) {
	f.check(len(dst), len(x), nu*nv*f.c)
	scratch := f.scratch.Get().(*[2][]float64)
	defer f.scratch.Put(scratch)
	f.planes(scratch[1], x, nu, nv, scratch[0])
	transpose(dst, scratch[1], f.c, nu*nv)
}

// planes is Low with the channels first, [C, nu, nv]. dst and scratch have Size values and overlap neither x nor each
// other.
func (f *Frequencies) planes(dst, x []float64, nu, nv int, scratch []float64) {
	line := f.w * f.c
	multiply(blas.NoTrans, general(nu, f.h, f.h, f.r), general(f.h, line, line, x), general(nu, line, line, dst))
	transpose(scratch, dst, nu*f.w, f.c) // [C, nu, W]
	multiply(blas.NoTrans, general(f.c*nu, f.w, f.w, scratch), general(f.w, nv, f.w, f.sTurned),
		general(f.c*nu, nv, nv, dst))
}

// Inverse writes the image of coefficients y to dst. Both have Size values; dst may be y.
func (f *Frequencies) Inverse(dst, y []float64) {
	f.check(len(dst), len(y), f.Size())
	scratch := f.scratch.Get().(*[2][]float64)
	defer f.scratch.Put(scratch)
	a, b := scratch[0], scratch[1]
	if f.axes != nil {
		clear(b)
		for i, v := range y {
			channels := b[i/f.c*f.c:][:f.c]
			for c, axis := range f.axes[i*f.c:][:f.c] {
				channels[c] += axis * v
			}
		}
		y = b
	}
	line := f.w * f.c
	transpose(a, y, f.h*f.w, f.c)
	multiply(blas.NoTrans, general(f.c*f.h, f.w, f.w, a), general(f.w, f.w, f.w, f.s), general(f.c*f.h, f.w, f.w, b))
	transpose(a, b, f.c, f.h*f.w)
	multiply(blas.Trans, general(f.h, f.h, f.h, f.r), general(f.h, line, line, a), general(f.h, line, line, dst))
}

func general(rows, cols, stride int, data []float64) blas64.General {
	return blas64.General{Rows: rows, Cols: cols, Stride: stride, Data: data}
}

// multiply writes a·b, or aᵀ·b, to dst.
func multiply(turn blas.Transpose, a, b, dst blas64.General) {
	blas64.Gemm(turn, blas.NoTrans, 1, a, b, 0, dst)
}

// transpose writes the transpose of a matrix [rows, cols] to dst.
func transpose(dst, x []float64, rows, cols int) {
	for j := range cols {
		to := dst[j*rows : (j+1)*rows]
		for i := range to {
			to[i] = x[i*cols+j]
		}
	}
}

func (f *Frequencies) check(dst, x, want int) {
	if x != f.Size() || dst != want {
		panic(fmt.Sprintf("basis: Frequencies: slices of %d and %d values, want %d and %d", dst, x, want, f.Size()))
	}
}

// FrequencyBands returns the subspace of each frequency of the DCT, [H·W] with u slow. ok is false for bases other than
// none and dct, which mix frequencies.
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
