package rewrite

import (
	"fmt"
	"regexp"
	"strings"
)

// Smallest sizes for which Winograd's method is faster. Below them the sums over patches or the transforms of kernels
// cost what the products save. The batch does not count, so that an image does not depend on others.
const (
	winogradChannels         = 64  // of input and output
	winogradGradientChannels = 128 // the same, for the gradient by the kernel
	winogradPixels           = 64  // of an image
)

// F(2×2, 3×3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (2015): a patch d of 4×4 pixels
// gives 2×2 of the result,
//
//	Y = Aᵀ [(G w Gᵀ) ⊙ (Bᵀ d B)] A
//
// With the sum over channels ⊙ becomes sixteen products of matrices, which multiply 16 times where the convolution
// multiplies 36 times. Aᵀ and Bᵀ are sums and differences, so that the result is the same up to rounding. The gradient
// by the kernel is the sum over patches and batch of
//
//	Gᵀ [(Bᵀ d B) ⊙ (A g Aᵀ)] G
var (
	winogradG         = [][]float64{{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}
	winogradGReversed = [][]float64{{0, 0, 1}, {.5, .5, .5}, {.5, -.5, .5}, {1, 0, 0}}
	// winogradGradientG is Gᵀ with the sign that the last row of A has.
	winogradGradientG = [][]float64{{1, .5, .5, 0}, {0, .5, -.5, 0}, {0, .5, .5, -1}}
)

var (
	convolution         = convolutions(`\[b, 0, 1, f\]x\[0, 1, (i, o|o, i)\]->\[b, 0, 1, f\]`)
	convolutionGradient = convolutions(`\[f, 0, 1, b\]x\[(i), 0, 1, o\]->\[0, 1, b, f\]`)
)

// convolutions finds convolutions of stride 1 with a border of one pixel. The groups are the indent, the result, the
// operands, the order of the kernel's axes, whether the kernel is reversed, and the three shapes.
func convolutions(axes string) *regexp.Regexp {
	return regexp.MustCompile(`( *)(%\w+) = "stablehlo\.convolution"\((%\w+), (%\w+)\) \{\n` +
		` *batch_group_count = 1 : i64,\n` +
		` *dimension_numbers = #stablehlo\.conv<` + axes + `>,\n` +
		` *feature_group_count = 1 : i64,\n` +
		` *lhs_dilation = array<i64: 1, 1>,\n` +
		` *padding = dense<\[\[1, 1\], \[1, 1\]\]> : tensor<2x2xi64>,\n` +
		` *precision_config = .*\n` +
		` *rhs_dilation = array<i64: 1, 1>,\n` +
		` *window_reversal = array<i1: (true, true|false, false)>,\n` +
		` *window_strides = array<i64: 1, 1>\n` +
		` *\} : \(tensor<([0-9x]+)xf32>, tensor<([0-9x]+)xf32>\) -> tensor<([0-9x]+)xf32>`)
}

// convolved returns the operands of a convolution that was found, and the shape of its result.
func convolved(m [][]byte) (x, y value, result []int) {
	x = value{string(m[3]), numbers(m[7], "x"), "f32"}
	y = value{string(m[4]), numbers(m[8], "x"), "f32"}
	return x, y, numbers(m[9], "x")
}

// winograd writes 3×3 convolutions with many channels, and their derivatives by the image, by Winograd's method.
func winograd(code []byte) (out []byte, n int) {
	out = convolution.ReplaceAllFunc(code, func(found []byte) []byte {
		m := convolution.FindSubmatch(found)
		x, w, y := convolved(m)
		batch, height, width, in, channels := x.dims[0], y[1], y[2], x.dims[3], y[3]
		if !winogradPays(x.dims, w.dims, min(in, channels), winogradChannels) {
			return found
		}
		n++
		b := &block{indent: string(m[1]), rule: fmt.Sprintf("winograd.%d", n)}
		rows, columns := height/2, width/2

		g, axis := winogradG, 1
		if string(m[6]) == "true, true" {
			g = winogradGReversed
		}
		if string(m[5]) == "o, i" {
			axis = 2
		}
		// Kernels are transformed when their image is known, not all at the start.
		matrix := b.add(b.kronecker(g), b.broadcast(b.zeroAfter(x), 1, 16, 9))
		kernels := b.products(matrix, b.reshape(w, 1, 9, in*channels), 2, 1)
		sums := b.products(b.patches(x, b.constant("0.0")), b.reshape(kernels, 16, w.dims[2], w.dims[3]), 2, axis)
		sums = b.patchOutputs(b.reshape(sums, 4, 4, batch*rows, 1, columns, channels), 3)
		sums = b.patchOutputs(b.reshape(sums, 4, batch*height, columns, 1, channels), 3)
		return b.end(m[2], sums, y...)
	})
	return out, n
}

// winogradGradients writes the derivatives of such convolutions by the kernel by Winograd's method.
func winogradGradients(code []byte) (out []byte, n int) {
	out = convolutionGradient.ReplaceAllFunc(code, func(found []byte) []byte {
		m := convolutionGradient.FindSubmatch(found)
		x, g, w := convolved(m)
		batch, height, width, in, channels := x.dims[0], x.dims[1], x.dims[2], w[2], w[3]
		if string(m[6]) != "false, false" || !winogradPays(x.dims, w, min(in, channels), winogradGradientChannels) {
			return found
		}
		n++
		b := &block{indent: string(m[1]), rule: fmt.Sprintf("winograd.gradient.%d", n)}
		rows, columns := height/2, width/2

		// The image is known since the forward pass; its patches are formed when the gradient is known.
		patches := b.patches(x, b.zeroAfter(g))
		g = b.patchGradients(b.reshape(g, 1, batch*rows, 2, width, channels), 2, 0)
		g = b.patchGradients(b.reshape(g, 4, 1, batch*rows, columns, 2, channels), 4, 1)
		sums := b.products(patches, b.reshape(g, 16, batch*rows*columns, channels), 1, 1)
		return b.end(m[2], b.products(b.kronecker(winogradGradientG), b.reshape(sums, 1, 16, in*channels), 2, 1), w...)
	})
	return out, n
}

// winogradPays reports whether the method applies to images x and kernels w and is faster.
func winogradPays(x, w []int, channels, least int) bool {
	height, width := x[1], x[2]
	return w[0] == 3 && w[1] == 3 && height%2 == 0 && width%2 == 0 && height*width >= winogradPixels && channels >= least
}

// kronecker returns g ⊗ g: a product with it transforms the rows and columns of matrices that are written as vectors.
func (b *block) kronecker(g [][]float64) value {
	var rows []string
	for _, first := range g {
		for _, second := range g {
			var row []string
			for _, x := range first {
				for _, y := range second {
					row = append(row, fmt.Sprintf("%.2f", x*y))
				}
			}
			rows = append(rows, "["+strings.Join(row, ", ")+"]")
		}
	}
	return b.constant("[["+strings.Join(rows, ", ")+"]]", 1, len(g)*len(g), len(g[0])*len(g[0]))
}

// patches returns Bᵀ d B for all patches of images, [B, H, W, C] to [16, B·H/2·W/2, C]. Beyond their border images are
// zero.
func (b *block) patches(x, zero value) value {
	batch, rows, columns, channels := x.dims[0], x.dims[1]/2, x.dims[2]/2, x.dims[3]
	x = b.pad(x, zero, 1, 2)
	x = b.patchInputs(b.reshape(x, 1, batch, rows+1, 2, 2*columns+2, channels), 2, 0)
	x = b.patchInputs(b.reshape(x, 4, 1, batch*rows, columns+1, 2, channels), 3, 1)
	return b.reshape(x, 16, batch*rows*columns, channels)
}

// patchInputs returns Bᵀ d for the patches along an axis of pairs of pixels, [.., n+1, 2, ..]: a patch is two pairs.
// The four values of each of the n patches lie along another axis.
func (b *block) patchInputs(x value, axis, to int) value {
	n := x.dims[axis] - 1
	var d [4]value
	for i := range d {
		d[i] = b.slice(b.slice(x, axis, i/2, i/2+n), axis+1, i%2, i%2+1)
	}
	return b.concatenate(to, b.subtract(d[0], d[2]), b.add(d[1], d[2]), b.subtract(d[2], d[1]), b.subtract(d[1], d[3]))
}

// patchOutputs returns Aᵀ m for the four values along the first axis, two values along another.
func (b *block) patchOutputs(m value, to int) value {
	var s [4]value
	for i := range s {
		s[i] = b.slice(m, 0, i, i+1)
	}
	return b.concatenate(to, b.add(b.add(s[0], s[1]), s[2]), b.subtract(b.subtract(s[1], s[2]), s[3]))
}

// patchGradients returns A g, but for the last sign, for the pairs along an axis, four values along another.
func (b *block) patchGradients(g value, axis, to int) value {
	first, second := b.slice(g, axis, 0, 1), b.slice(g, axis, 1, 2)
	return b.concatenate(to, first, b.add(first, second), b.subtract(first, second), second)
}
