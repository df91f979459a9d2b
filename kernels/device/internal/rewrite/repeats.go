package rewrite

import (
	"fmt"
	"regexp"
)

// repeatMost bounds the 0/1 matrix of a repetition, in entries.
const repeatMost = 1 << 18

var repeat = regexp.MustCompile(`( *)(%\w+) = "stablehlo\.broadcast_in_dim"\(%(\w+)\) \{ broadcast_dimensions = ` +
	`array<i64: 0, 1, 2> \} : ` +
	`\(tensor<(\d+x\d+)x1x(f32|f64)>\) -> tensor<(\d+x\d+x\d+)x(?:f32|f64)>`)

// repeats writes the repetition of a group's value for each of its channels, [B, G, 1] to [B, G, k], as a product with
// the matrix of zeros and ones that says which channel belongs to which group:
//
//	y[b, g·k + i] = Σ_h x[b, h] · (h = g)
//
// Group norms and their derivatives repeat means and scales so, and use them over all pixels. XLA would compute the
// repetition anew in these loops, by a division of every channel's index, and not in vectors. A product is computed
// once.
func repeats(code []byte) (out []byte, n int) {
	out = repeat.ReplaceAllFunc(code, func(found []byte) []byte {
		m := repeat.FindSubmatch(found)
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
