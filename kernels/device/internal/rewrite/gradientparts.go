package rewrite

import (
	"bytes"
	"fmt"
)

const (
	// gradientSpan is how many pixels of all images the gradient by a kernel sums over at once, for each channel of the
	// result up to 64. YNNPACK multiplies all that it sums over by three rows of the result at a time and 64 channels
	// wide: 2,048 pixels are half a MiB then, which a processor keeps at hand for the next three rows.
	gradientSpan     = 1 << 5
	gradientChannels = 32 // of image and result, at least
	gradientParts    = 16 // at most: each is an operation to compile
	gradientImages   = 2  // of a part, at least: the sum runs over images first
)

// splitGradients writes gradients by the kernel as sums over parts of the batch, so that what a part sums over stays in
// a processor's second cache:
//
//	Σ_{b<B} x[b] * g[b] = Σ_{b<B/n} x[b] * g[b] + Σ_{B/n≤b<2B/n} x[b] * g[b] + …
func splitGradients(code []byte) (out []byte, n int) {
	out = convolutionGradient.ReplaceAllFunc(code, func(found []byte) []byte {
		m := convolutionGradient.FindSubmatch(found)
		x, g, w := convolved(m)
		batch, pixels := x.dims[0], x.dims[1]*x.dims[2]
		parts := min(gradientParts, batch/gradientImages, batch*pixels/(gradientSpan*min(w[3], 64)))
		for parts > 1 && batch%parts != 0 {
			parts--
		}
		if parts < 2 || min(w[2], w[3]) < gradientChannels {
			return found
		}
		n++
		b := &block{indent: string(m[1]), rule: fmt.Sprintf("gradient.%d", n)}
		attributes := string(found[bytes.IndexByte(found, '{')+1 : bytes.LastIndexByte(found, '}')])
		images := batch / parts
		var sum value
		for i := range parts {
			from, to := i*images, (i+1)*images
			part := b.operation("convolution", attributes, w, b.slice(x, 0, from, to), b.slice(g, 0, from, to))
			if i == 0 {
				sum = part
				continue
			}
			sum = b.add(sum, part)
		}
		return b.end(m[2], sum, w...)
	})
	return out, n
}
