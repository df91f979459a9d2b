package rewrite

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

const (
	sumParts = 4
	// sumSpan is the least distance, in values, between the first and the last term of a sum in parts: 32 KiB, the size of
	// a processor's first cache. It does not count the batch, so that an image does not depend on others.
	sumSpan = 1 << 13
)

var sumOfPixels = regexp.MustCompile(`( *)(%\w+ = "stablehlo\.reduce"\()%(\w+)(, %\w+\) \(\{\n` +
	` *\^\w+\(%lhs: tensor<f\d+>, %rhs: tensor<f\d+>\) :\n` +
	` *%\w+ = "stablehlo\.add"\(%lhs, %rhs\) : .*\n` +
	` *"stablehlo\.return"\(%\w+\) : .*\n` +
	` *\}\) \{ dimensions = array<i64: )([0-9, ]+)(> \} : \()tensor<([0-9x]+)x(f32|f64)>(, tensor<f\d+>\) -> .*)`)

// elementwise are the operations that XLA fuses into the loop of a sum over them.
var elementwise = map[string]bool{
	"add": true, "subtract": true, "multiply": true, "divide": true, "negate": true, "select": true, "convert": true,
	"maximum": true, "minimum": true, "abs": true, "power": true, "sqrt": true, "rsqrt": true,
	"exponential": true, "log": true, "logistic": true, "tanh": true,
}

// sums writes sums of computed terms by parts. XLA's loop for a sum over pixels computes one output after the other,
// and one value at a time, because its terms are a row of channels apart. By parts along the first axis of the sum,
//
//	Σ_{i<n} t[i] = Σ_{i<n/4} (t[i] + t[i+n/4] + t[i+n/2] + t[i+3n/4])
//
// the terms are computed in the order of memory, in vectors, and YNNPACK sums a quarter of them. Terms that have
// another use are not rewritten, because they would be computed twice.
func sums(code []byte) (out []byte, n int) {
	if !bytes.Contains(code, []byte(`"stablehlo.reduce"`)) {
		return code, 0
	}
	defined, uses := definitions(code)
	out = sumOfPixels.ReplaceAllFunc(code, func(found []byte) []byte {
		m := sumOfPixels.FindSubmatch(found)
		terms, dtype := string(m[3]), string(m[8])
		dims, axes := numbers(m[7], "x"), numbers(m[5], ", ")
		axis := slices.Min(axes)
		if !elementwise[defined[terms]] || uses[terms] > 1 || axis == len(dims)-1 ||
			dims[axis]%sumParts != 0 || product(dims[axis:]) < sumSpan {
			return found
		}
		n++
		length := dims[axis] / sumParts
		b := &block{indent: string(m[1])}
		var total value
		for i := range sumParts {
			attributes, short := span(dims, axis, i*length, (i+1)*length)
			part := b.define(value{fmt.Sprintf("%%part.%d.%d", n, i), short, dtype}, "slice", attributes,
				value{"%" + terms, dims, dtype})
			if i == 0 {
				total = part
				continue
			}
			total = b.define(value{fmt.Sprintf("%%parts.%d.%d", n, i), short, dtype}, "add", "", total, part)
		}
		fmt.Fprintf(&b.text, "%s%s%s%s%s%s%s%s", b.indent, m[2], total.name, m[4], m[5], m[6], total, m[9])
		return b.text.Bytes()
	})
	return out, n
}

// repeatMost bounds the 0/1 matrix of a repetition, in entries.
const repeatMost = 1 << 18

var groupRepeat = regexp.MustCompile(`( *)(%\w+) = "stablehlo\.broadcast_in_dim"\(%(\w+)\) \{ broadcast_dimensions = ` +
	`array<i64: 0, 1, 2> \} : ` +
	`\(tensor<(\d+x\d+)x1x(f32|f64)>\) -> tensor<(\d+x\d+x\d+)x(?:f32|f64)>`)

// repeats writes the repetition of a group's value for each of its channels, [B, G, 1] to [B, G, k], as a product with
// a matrix of zeros and ones:
//
//	y[b, g·k + i] = Σ_h x[b, h] · (h = g)
//
// Group norms and their derivatives repeat means and scales like this and use them for all pixels. XLA would repeat
// them in each of these loops, with a division for every channel and without vectors. A product is computed once.
func repeats(code []byte) (out []byte, n int) {
	out = groupRepeat.ReplaceAllFunc(code, func(found []byte) []byte {
		m := groupRepeat.FindSubmatch(found)
		y, x, dtype := m[2], m[3], string(m[5])
		from, to := append(numbers(m[4], "x"), 1), numbers(m[6], "x")
		batch, groups, size := to[0], to[1], to[2]
		if from[0] != batch || from[1] != groups || groups == 1 || size == 1 || groups*groups*size > repeatMost {
			return found
		}
		n++
		b := &block{indent: string(m[1])}
		define := func(name string, dims []int, dtype, op, attributes string, operands ...value) value {
			return b.define(value{fmt.Sprintf("%%repeat.%d.%s", n, name), dims, dtype}, op, attributes, operands...)
		}
		cube := []int{groups, groups, size}
		row := define("row", cube, "i32", "iota", "iota_dimension = 0 : i64")
		column := define("column", cube, "i32", "iota", "iota_dimension = 1 : i64")
		member := define("member", cube, "i1", "compare", "comparison_direction = #stablehlo<comparison_direction EQ>",
			row, column)
		one := define("one", cube, dtype, "convert", "", member)
		matrix := define("matrix", []int{groups, groups * size}, dtype, "reshape", "", one)
		values := define("values", []int{batch, groups}, dtype, "reshape", "", value{"%" + string(x), from, dtype})
		channels := define("channels", []int{batch, groups * size}, dtype, "dot_general", "dot_dimension_numbers = "+
			"#stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>", values, matrix)
		return b.end(y, channels, to...)
	})
	return out, n
}
