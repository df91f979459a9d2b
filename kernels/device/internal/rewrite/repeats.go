package rewrite

import (
	"bytes"
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
		indent, y, x, dtype := m[1], m[2], m[3], string(m[5])
		from, to := numbers(m[4], "x"), numbers(m[6], "x")
		batch, groups, size := to[0], to[1], to[2]
		if from[0] != batch || from[1] != groups || groups == 1 || size == 1 || groups*groups*size > repeatMost {
			return found
		}
		n++
		name := func(s string) string { return fmt.Sprintf("%%repeat.%d.%s", n, s) }
		cube, matrix := []int{groups, groups, size}, []int{groups, groups * size}
		var b bytes.Buffer
		line := func(format string, values ...any) {
			fmt.Fprintf(&b, "%s"+format+"\n", append([]any{string(indent)}, values...)...)
		}
		for axis, side := range []string{"row", "column"} {
			line(`%s = "stablehlo.iota"() { iota_dimension = %d : i64 } : () -> %s`, name(side), axis, tensor(cube, "i32"))
		}
		line(`%s = "stablehlo.compare"(%s, %s) { comparison_direction = #stablehlo<comparison_direction EQ> } : (%s, %s) `+
			`-> %s`,
			name("member"), name("row"), name("column"), tensor(cube, "i32"), tensor(cube, "i32"), tensor(cube, "i1"))
		line(`%s = "stablehlo.convert"(%s) : (%s) -> %s`, name("one"), name("member"), tensor(cube, "i1"),
			tensor(cube, dtype))
		line(`%s = "stablehlo.reshape"(%s) : (%s) -> %s`, name("matrix"), name("one"), tensor(cube, dtype),
			tensor(matrix, dtype))
		values, wide := tensor([]int{batch, groups}, dtype), tensor([]int{batch, groups * size}, dtype)
		line(`%s = "stablehlo.reshape"(%%%s) : (%s) -> %s`, name("values"), x, tensor([]int{batch, groups, 1}, dtype), values)
		line(`%s = "stablehlo.dot_general"(%s, %s) { dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = `+
			`[1], `+
			`rhs_contracting_dimensions = [0]> } : (%s, %s) -> %s`,
			name("channels"), name("values"), name("matrix"), values, tensor(matrix, dtype), wide)
		fmt.Fprintf(&b, `%s%s = "stablehlo.reshape"(%s) : (%s) -> %s`, indent, y, name("channels"), wide, tensor(to, dtype))
		return b.Bytes()
	})
	return out, n
}
