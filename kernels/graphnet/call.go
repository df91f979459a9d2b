package graphnet

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// call is a node that is being built. Its methods read arguments and panic if one does not fit the operation; build
// turns that into an error that names the node.
type call struct {
	b *builder
	o *node
}

func refuse(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (c *call) has(name string) bool { return c.o.Args[name] != nil }

func (c *call) tensor(name string) value { return c.asTensor(name, c.o.Args[name]) }

func (c *call) asTensor(name string, a any) value {
	r, ok := a.(ref)
	if !ok {
		refuse("%s must be a tensor, got %v", name, a)
	}
	v := c.b.values[r]
	if v.n == nil {
		refuse("%s is %s, which is no single tensor", name, c.b.p.nodes[r].Name)
	}
	return v
}

// floating returns a tensor that can be differentiated.
func (c *call) floating(name string) value { return c.tensorOf(float, name) }

// boolean returns a tensor of true and false.
func (c *call) boolean(name string) value { return c.tensorOf(boolean, name) }

func (c *call) tensorOf(k kind, name string) value {
	v := c.tensor(name)
	if kindOf(v.n.DType()) != k {
		refuse("%s must be of a %s type, got %s", name, k, v.n.DType())
	}
	return v
}

// optional returns a tensor, or nothing.
func (c *call) optional(name string) (v value, ok bool) {
	if !c.has(name) {
		return value{}, false
	}
	return c.tensor(name), true
}

// vector returns an optional tensor of one axis, or nil.
func (c *call) vector(name string, size int) *Node {
	v, ok := c.optional(name)
	if !ok {
		return nil
	}
	if v.rank() != 1 || v.dims()[0] != size {
		refuse("%s must have shape [%d], got %v", name, size, v.dims())
	}
	return v.n
}

// operand returns a tensor, or a number as a tensor of like's type. JSON does not distinguish 2 and 2.0 as PyTorch
// does: the declared type of the result decides.
func (c *call) operand(name string, like *Node) value {
	a, ok := c.o.Args[name].(float64)
	if !ok {
		if t, isBool := c.o.Args[name].(bool); isBool {
			return torchOrder(graph.Const(c.b.g, t))
		}
		return c.tensor(name)
	}
	t := like.DType()
	if !t.IsFloat() {
		t = c.b.dtype(integer)
		if c.o.DType != "" && kinds[c.o.DType] == float || a != math.Trunc(a) {
			t = c.b.wide
		}
	}
	return torchOrder(graph.Scalar(c.b.g, t, a))
}

// operands returns self and other, one of which may be a number.
func (c *call) operands() (x, y value) {
	if _, number := c.o.Args["self"].(float64); number {
		y = c.tensor("other")
		return c.operand("self", y.n), y
	}
	x = c.tensor("self")
	return x, c.operand("other", x.n)
}

func (c *call) tensors(name string) (out []value) {
	for _, a := range c.list(name) {
		out = append(out, c.asTensor(name, a))
	}
	if len(out) == 0 {
		refuse("%s must be a list of tensors", name)
	}
	return out
}

func (c *call) list(name string) []any {
	l, ok := c.o.Args[name].([]any)
	if !ok && c.has(name) {
		refuse("%s must be a list, got %v", name, c.o.Args[name])
	}
	return l
}

// size returns an integer, which may be a multiple of the batch.
func (c *call) size(name string, a any) int {
	switch a := a.(type) {
	case dim:
		return a.size(c.b.batch)
	case float64:
		if a == math.Trunc(a) { // PyTorch writes the largest integer for an open end
			return int(max(-1<<53, min(a, 1<<53)))
		}
	}
	refuse("%s must be an integer, got %v", name, a)
	return 0
}

func (c *call) int(name string) int { return c.size(name, c.o.Args[name]) }

func (c *call) intOr(name string, other int) int {
	if !c.has(name) {
		return other
	}
	return c.int(name)
}

func (c *call) ints(name string) []int {
	if n, ok := c.o.Args[name].(float64); ok { // a list of one
		return []int{c.size(name, n)}
	}
	var out []int
	for _, a := range c.list(name) {
		out = append(out, c.size(name, a))
	}
	return out
}

func (c *call) float(name string, other float64) float64 { return argument(c, name, "a number", other) }

func (c *call) bool(name string) bool { return argument(c, name, "true or false", false) }

func (c *call) str(name string) string { return argument(c, name, "a word", "") }

// argument returns an argument of a type, or other if it is not given.
func argument[T any](c *call, name, must string, other T) T {
	a := c.o.Args[name]
	if a == nil {
		return other
	}
	v, ok := a.(T)
	if !ok {
		refuse("%s must be %s, got %v", name, must, a)
	}
	return v
}

// axis returns an axis counted from the front.
func axis(a, rank int) int {
	i := a
	if i < 0 {
		i += rank
	}
	if i < 0 || i >= rank {
		refuse("there is no axis %d of %d", a, rank)
	}
	return i
}

func (c *call) axis(name string, other, rank int) int { return axis(c.intOr(name, other), rank) }

// axes returns the axes of a list without repetition; all axes if the list is empty.
func (c *call) axes(name string, rank int) []int {
	out := c.ints(name)
	if len(out) == 0 {
		return count(rank)
	}
	seen := make([]bool, rank)
	for i := range out {
		out[i] = axis(out[i], rank)
		if seen[out[i]] {
			refuse("%s names an axis twice: %v", name, out)
		}
		seen[out[i]] = true
	}
	return out
}

// target returns the sizes that the file declares for the result.
func (c *call) target() []int {
	out := make([]int, len(c.o.Shape))
	for i, d := range c.o.Shape {
		out[i] = d.size(c.b.batch)
	}
	return out
}

// each returns a number for each of n axes; the argument may be one number for all, or missing.
func (c *call) each(name string, n, other int) []int {
	v := c.ints(name)
	switch len(v) {
	case n:
		return v
	case 0:
		return slices.Repeat([]int{other}, n)
	case 1:
		return slices.Repeat(v, n)
	}
	refuse("%s must have one number, or %d, got %v", name, n, v)
	return nil
}

// A rule appends an operation.
type rule func(c *call) value
