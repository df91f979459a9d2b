package rewrite

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A value is a value of a program: its name, its shape and the type of its entries.
type value struct {
	name  string
	dims  []int
	dtype string
}

func (v value) String() string {
	if len(v.dims) == 0 {
		return "tensor<" + v.dtype + ">"
	}
	return tensor(v.dims, v.dtype)
}

// A block is the operations by which a rule replaces one.
type block struct {
	indent string
	rule   string // prefix of the names of values
	count  int
	text   bytes.Buffer
}

// operation writes an operation of float32 with its attributes and operands, and returns its value.
func (b *block) operation(op, attributes string, dims []int, operands ...value) value {
	return b.define(b.next("f32", dims), op, attributes, operands...)
}

// next returns a value with a new name, which is not defined yet.
func (b *block) next(dtype string, dims []int) value {
	b.count++
	return value{fmt.Sprintf("%%%s.%d", b.rule, b.count), dims, dtype}
}

// define writes the operation that computes a value, and returns the value.
func (b *block) define(v value, op, attributes string, operands ...value) value {
	b.write(v, op, attributes, operands)
	b.text.WriteByte('\n')
	return v
}

func (b *block) write(v value, op, attributes string, operands []value) {
	names, types := make([]string, len(operands)), make([]string, len(operands))
	for i, o := range operands {
		names[i], types[i] = o.name, o.String()
	}
	if attributes != "" {
		attributes = " { " + attributes + " }"
	}
	fmt.Fprintf(&b.text, `%s%s = "stablehlo.%s"(%s)%s : (%s) -> %s`, b.indent, v.name, op, strings.Join(names, ", "),
		attributes, strings.Join(types, ", "), v)
}

// constant returns a constant; numbers is in the syntax of MLIR.
func (b *block) constant(numbers string, dims ...int) value {
	return b.operation("constant", fmt.Sprintf("value = dense<%s> : %s", numbers, value{dims: dims, dtype: "f32"}), dims)
}

func (b *block) reshape(x value, dims ...int) value { return b.operation("reshape", "", dims, x) }

func (b *block) add(x, y value) value { return b.operation("add", "", x.dims, x, y) }

func (b *block) subtract(x, y value) value { return b.operation("subtract", "", x.dims, x, y) }

// broadcast returns a number in all entries.
func (b *block) broadcast(x value, dims ...int) value {
	return b.operation("broadcast_in_dim", "broadcast_dimensions = array<i64>", dims, x)
}

// slice returns x[from:to] along an axis.
func (b *block) slice(x value, axis, from, to int) value {
	attributes, dims := span(x.dims, axis, from, to)
	return b.operation("slice", attributes, dims, x)
}

// span returns a slice's attributes, and its shape.
func span(of []int, axis, from, to int) (attributes string, dims []int) {
	low, high, dims := make([]int, len(of)), slices.Clone(of), slices.Clone(of)
	low[axis], high[axis], dims[axis] = from, to, to-from
	return fmt.Sprintf("limit_indices = %s, start_indices = %s, strides = %s",
		array(high), array(low), array(slices.Repeat([]int{1}, len(of)))), dims
}

func (b *block) concatenate(axis int, parts ...value) value {
	dims := slices.Clone(parts[0].dims)
	dims[axis] = 0
	for _, p := range parts {
		dims[axis] += p.dims[axis]
	}
	return b.operation("concatenate", fmt.Sprintf("dimension = %d : i64", axis), dims, parts...)
}

// pad returns x with one more entry at both ends of each of the axes.
func (b *block) pad(x, entry value, axes ...int) value {
	edge, dims := make([]int, len(x.dims)), slices.Clone(x.dims)
	for _, axis := range axes {
		edge[axis]++
		dims[axis] += 2
	}
	return b.operation("pad", fmt.Sprintf("edge_padding_high = %s, edge_padding_low = %s, interior_padding = %s",
		array(edge), array(edge), array(make([]int, len(edge)))), dims, x, entry)
}

// products returns the products of two stacks of matrices, summed over an axis of each: 1 for rows, 2 for columns.
func (b *block) products(x, y value, xAxis, yAxis int) value {
	return b.operation("dot_general", fmt.Sprintf("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], "+
		"rhs_batching_dimensions = [0], lhs_contracting_dimensions = [%d], rhs_contracting_dimensions = [%d]>", xAxis, yAxis),
		[]int{x.dims[0], x.dims[3-xAxis], y.dims[3-yAxis]}, x, y)
}

// zeroAfter returns a zero that depends on x. XLA for CPU computes operations as early as it can, and would compute
// everything that does not depend on x at the start, and hold it.
//
// It is 10⁻³⁰ if the first entry of x is about to overflow, so that no compiler can compute it without x.
func (b *block) zeroAfter(x value) value {
	for axis := range x.dims {
		x = b.slice(x, axis, 0, 1)
	}
	large := b.define(b.next("i1", nil), "compare", "comparison_direction = #stablehlo<comparison_direction GT>",
		b.reshape(x), b.constant("3.0e38"))
	return b.operation("select", "", nil, large, b.constant("1.0e-30"), b.constant("0.0"))
}

// end gives x, in another shape, the name of the value that the block replaces, and returns the block's text.
func (b *block) end(name []byte, x value, dims ...int) []byte {
	b.write(value{string(name), dims, x.dtype}, "reshape", "", []value{x})
	return b.text.Bytes()
}
