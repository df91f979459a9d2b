// Package nodes reads the static parameters of a graph's nodes (axes, strides, paddings), which the graph library does
// not export. Begin at [AttributesOf].
package nodes

import (
	"reflect"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// Attributes are the static parameters of a node by the library's names, read by reflection from an unexported struct.
// A missing field panics: it can only follow an upgrade of the library, and tests of packages autodiff and device read
// every field that is used.
type Attributes struct{ v reflect.Value }

// AttributesOf returns the attributes of a node.
func AttributesOf(node *graph.Node) Attributes {
	return Attributes{reflect.ValueOf(node).Elem().FieldByName("inputs").Elem().Elem()}
}

func (a Attributes) field(name string) reflect.Value {
	f := a.v.FieldByName(name)
	if !f.IsValid() {
		panic("nodes: " + a.v.Type().String() + " has no field " + name +
			"; the graph library has changed, adapt package nodes' callers to it")
	}
	return f
}

// Sub returns the attributes of a nested struct.
func (a Attributes) Sub(name string) Attributes { return Attributes{a.field(name)} }

// Int returns a number.
func (a Attributes) Int(name string) int { return int(a.field(name).Int()) }

// Ints returns a list of numbers.
func (a Attributes) Ints(name string) []int {
	f := a.field(name)
	out := make([]int, f.Len())
	for i := range out {
		out[i] = int(f.Index(i).Int())
	}
	return out
}

// Pairs returns a list of pairs.
func (a Attributes) Pairs(name string) [][2]int {
	f := a.field(name)
	out := make([][2]int, f.Len())
	for i := range out {
		for k := range out[i] {
			out[i][k] = int(f.Index(i).Index(k).Int())
		}
	}
	return out
}
