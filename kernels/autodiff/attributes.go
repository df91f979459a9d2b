package autodiff

import (
	"reflect"

	"github.com/gomlx/gomlx/pkg/core/graph"
)

// attributes reads the static parameters of a node (axes, strides, paddings).
// The graph library keeps them in an unexported struct that only its own rules
// see, so they are read by reflection. A field that is missing, which can only
// follow an upgrade of the library, panics; the tests of this package read
// every field that is used.
type attributes struct{ v reflect.Value }

func attributesOf(node *graph.Node) attributes {
	return attributes{reflect.ValueOf(node).Elem().FieldByName("inputs").Elem().Elem()}
}

func (a attributes) field(name string) reflect.Value {
	f := a.v.FieldByName(name)
	if !f.IsValid() {
		panic("autodiff: " + a.v.Type().String() + " has no field " + name +
			"; the graph library has changed, adapt package autodiff to it")
	}
	return f
}

// sub returns the attributes of a nested struct.
func (a attributes) sub(name string) attributes { return attributes{a.field(name)} }

func (a attributes) int(name string) int { return int(a.field(name).Int()) }

func (a attributes) ints(name string) []int {
	f := a.field(name)
	out := make([]int, f.Len())
	for i := range out {
		out[i] = int(f.Index(i).Int())
	}
	return out
}

func (a attributes) pairs(name string) [][2]int {
	f := a.field(name)
	out := make([][2]int, f.Len())
	for i := range out {
		for k := range out[i] {
			out[i][k] = int(f.Index(i).Index(k).Int())
		}
	}
	return out
}
